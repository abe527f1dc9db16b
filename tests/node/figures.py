"""
What cardpack-node costs with 8 cards and 100 pods: the time of Allocate and PreStartContainer over its
socket, its memory, and its processor time at rest. For scripts/bench; see tests/bench/bench.h.

    figures.py CARDPACK_NODE NVML_DOUBLE KUBELET

Pods come and go meanwhile: each Allocate finds a checkpoint that still names the pod that ended last.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from kubelet import Kubelet, pod
from world import Cluster, Node, serve, wait

CARDS, UNITS, PODS = 8, 80, 100
QUICK = "BENCH_QUICK" in os.environ
# Without events: NVIDIA's library sleeps in nvmlEventSetWait, and its double looks every 5 ms.
WORLD = "no-events\n" + "".join(
    f"card uuid=GPU-{i} name=NVIDIA_A100 bus={0x3B + i:#x} minor={i} mib={UNITS * 1024}\n"
    for i in range(CARDS)
)


def tell(what: str, value: float, unit: str, target: float = 0) -> None:
    """One figure, as bench_figure of tests/bench/bench.c writes it."""
    verdict = f"<= {target:g} {'met' if value <= target else 'MISSED'}" if target else ""
    print(f"{'node':19} {what:36} {'':16} {value:12.3f} {unit:8} {verdict}", flush=True)
    figure = {"table": "node", "what": what, "value": value, "unit": unit}
    if target:
        figure |= {"target": target, "sense": "at most"}
    if path := os.environ.get("BENCH_FIGURES"):
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps(figure, separators=(",", ":")) + "\n")


def quantile(values: list[float], q: float) -> float:
    """As bench_quantile."""
    return sorted(values)[min(int(q * len(values)), len(values) - 1)]


class Load:
    """Pods that come and go."""

    def __init__(self, cluster: Cluster, kubelet: Kubelet) -> None:
        self.cluster = cluster
        self.kubelet = kubelet
        self.n = 0
        self.allocate_ms: list[float] = []
        self.start_ms: list[float] = []

    def come(self) -> tuple[str, str]:
        """A pod of 4 units on the next card: its UID and devices."""
        self.n += 1
        uid = f"00000000-0000-4000-8000-{self.n:012}"
        self.cluster.put(pod(uid, str(self.n % CARDS), 4, name=f"server-{self.n}"))
        # The watch has shown it: this is no benchmark of the API server.
        wait("the watch", lambda: self.cluster.shown >= self.cluster.history[-1][0])
        time.sleep(0.005)
        devices, answer = self.kubelet.allocate(uid, 4)
        assert answer.status == 0, answer
        self.allocate_ms.append(answer.ns / 1e6)
        answer = self.kubelet.call("start", devices)
        assert answer.status == 0, answer
        self.start_ms.append(answer.ns / 1e6)
        running = self.cluster.pods[uid]
        running["status"]["phase"] = "Running"
        self.cluster.put(running)
        return uid, devices

    def go(self, uid: str, devices: str) -> None:
        """It ends. The checkpoint keeps it until it is written the next time."""
        self.cluster.remove(uid)
        self.kubelet.give_back(devices)
        self.kubelet.entries = [e for e in self.kubelet.entries if e["PodUID"] != uid]


def cpu_s(pid: int) -> float:
    """Processor time that it has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int, key: str) -> float:
    """A value of its status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(key)


def measure(node: Node, load: Load) -> None:
    """All figures."""
    pid = node.process.pid
    there = [load.come() for _ in range(PODS)]
    load.allocate_ms.clear()
    load.start_ms.clear()
    for i in range(3 if QUICK else 1000):
        load.go(*there[i % PODS])
        there[i % PODS] = load.come()
    for what, values, bar in (("Allocate", load.allocate_ms, 20), ("PreStartContainer", load.start_ms, 50)):
        tell(f"{what}, median", quantile(values, 0.5), "ms")
        tell(f"{what}, p99", quantile(values, 0.99), "ms", bar)
    time.sleep(1)
    seconds = 1 if QUICK else 60
    before = cpu_s(pid)
    time.sleep(seconds)
    tell("of a core at rest", 100 * (cpu_s(pid) - before) / seconds, "%", 0.5)
    tell("resident memory", resident_mib(pid, "VmRSS"), "MiB", 20)
    tell("its peak", resident_mib(pid, "VmHWM"), "MiB")


def main() -> int:
    """See the top of this file."""
    program, double, kubelet_program = sys.argv[1:]
    cluster = Cluster()
    server = serve(cluster)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plugins = folder / "device-plugins"
        plugins.mkdir()
        kubelet = Kubelet(kubelet_program, plugins, CARDS, UNITS)
        node = Node(program, double, folder, server, WORLD, "--log-level=info")
        try:
            wait("a registration", kubelet.registered.is_set)
            measure(node, Load(cluster, kubelet))
        finally:
            node.process.kill()
            node.process.wait()
            kubelet.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
