"""From gpushare's device plugin to cardpack-node and back, on a real kubelet, while pods run.

gpushare's plugin is a double of it in Go, tests/grpc/gpushare, which follows what that plugin does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from agent import COUNT, RESOURCE, Agent, Watching
from bench import ROOT, Bench, Skipped, agree, check, scenario
from cluster import Json
from component import Component, wait_for
from container_truth import judge
from worker import GONE, PLUGINS, Container, Worker

IDX = "ALIYUN_COM_GPU_MEM_IDX"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
SPREAD = {"cardpack.io/card-policy": "spread"}
SIZES = (16, 16)


def uuid(index: int) -> str:
    """As long as NVIDIA's: the kubelet's devices of gpushare's plugin are named by it."""
    return f"GPU-5a1f0000-0000-4000-8000-00000000000{index}"


def line(index: int, gib: int) -> str:
    """One card for the double of NVML."""
    return f"card uuid={uuid(index)} name=NVIDIA_A100 bus={0x3B + index:#x} minor={index} mib={gib * 1024}\n"


def build_double(folder: Path) -> Path:
    """gpushare's device plugin, with the Go that builds the control plane."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/lib/go-1.26/bin", "/usr/local/go/bin"])
    go = shutil.which("go", path=path)
    if go is None:
        raise Skipped("no Go that builds the double of gpushare's device plugin")
    program = folder / "gpushare"
    more = {"CGO_ENABLED": "0", "GO111MODULE": "on", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    argv = [go, "build", "-mod=readonly", "-o", program, "./gpushare"]
    done = subprocess.run(argv, cwd=ROOT / "tests" / "grpc", env=os.environ | more,
                          capture_output=True, text=True, timeout=600)  # fmt: skip
    if "requires go >=" in done.stderr:
        raise Skipped(done.stderr.strip())
    check(done.returncode == 0, done.stderr)
    return program


class Sides:
    """A node with both device plugins, of which one runs."""

    def __init__(self, bench: Bench, sizes: Iterable[int] = SIZES, node: str = "n1") -> None:
        self.bench = bench
        self.sizes = list(sizes)
        self.worker = bench.worker(node, cards=len(self.sizes))
        self.agent = Agent(bench, self.worker, self.sizes)
        self.agent.show(line(*one) for one in enumerate(self.sizes))
        cluster = bench.cluster
        self.old = self.worker.add_program(
            Component(
                "gpushare",
                [
                    build_double(self.worker.folder), f"--node={node}", f"--server={cluster.url}",
                    f"--ca={cluster.ca_file}", f"--token={cluster.admin_token}",
                    f"--memory={self.sizes[0]}", *(uuid(i) for i in range(len(self.sizes))),
                ],
                self.worker.folder,
                self.registered,
                where=self.worker.machine.inside,
            )  # fmt: skip
        )

    def registered(self) -> bool:
        """Whether the kubelet has gpushare's devices: its socket is there, and they are healthy."""
        there = self.worker.machine.path(f"{PLUGINS}/aliyungpushare.sock").exists()
        return there and self.worker.capacity(RESOURCE, "allocatable") == sum(self.sizes)

    def to_cardpack_node(self) -> None:
        """As a DaemonSet does when the node's labels change: the one ends while the other starts."""
        self.agent.program.launch()
        self.old.terminate()
        self.agent.program.wait_ready()
        self.whole()

    def to_gpushare(self) -> None:
        """The way back, in the other order."""
        self.agent.program.terminate()
        self.old.start()
        self.whole()

    def whole(self) -> None:
        """Waits until the node has all units and cards, and all are allocatable."""

        def has() -> bool:
            fields = ("capacity", "allocatable")
            return all(self.worker.capacity(RESOURCE, field) == sum(self.sizes)
                       and self.worker.capacity(COUNT, field) == len(self.sizes) for field in fields)  # fmt: skip

        wait_for(has, "the node to have all units", 60, poll=0.1)

    def judge(self) -> list[str]:
        """Containers on another card than annotated, and cards over their size, at this moment."""
        containers = self.worker.containers()
        pods = self.bench.cluster.list_all("/api/v1/pods")
        cards = {uuid(index): index for index in range(len(self.sizes))}
        return judge(containers, pods, cards, dict(enumerate(self.sizes)))

    def pod(self, name: str, *sizes: int, restarts: bool = False) -> Json:
        """A pod for kube-scheduler. restarts: the kubelet starts its containers again."""
        names = tuple(f"c{i}" for i in range(len(sizes)))
        spec = self.worker.spec(names, sizes)
        return self.bench.pod(name, 0, spec=spec | {"restartPolicy": "Always" if restarts else "Never"},
                              annotations=SPREAD)  # fmt: skip

    def runs(self, *names: str) -> dict[str, Container]:
        """Waits until the pods run, and are acknowledged by a device plugin; returns their first containers."""
        found = {name: self.worker.wait_container(name, timeout=120) for name in names}
        for name in names:
            wait_for(lambda n=name: note(self.bench.get(n), ASSIGNED) == "true", f"{name} assigned", 60)
        return found


def note(pod: Json, key: str) -> str:
    return str(pod["metadata"].get("annotations", {}).get(key, ""))


def same(before: dict[str, Container], now: dict[str, Container]) -> None:
    """The containers are the same processes, with the same environment."""
    for name, one in before.items():
        check(now[name].proc == one.proc and now[name].env == one.env, f"{name}: {one} {now[name]}")


def restart_container(sides: Sides, name: str) -> Container:
    """Ends the container's process, as a crash does; returns the one that the kubelet starts for it."""
    old = sides.worker.find(name)
    assert old is not None
    os.kill(int(pid_outside(old)), 9)

    def again() -> Container | None:
        new = sides.worker.find(name)
        return new if new is not None and new.proc != old.proc else None

    found = wait_for(again, f"the container of {name} to start again", 120, poll=0.1)
    assert found is not None
    check(found.env["NVIDIA_VISIBLE_DEVICES"] == old.env["NVIDIA_VISIBLE_DEVICES"], (old.env, found.env))
    return found


def pid_outside(one: Container) -> str:
    """The process ID on the host of a process that the machine's /proc shows."""
    text = (one.proc / "environ").read_bytes()
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            if (proc / "environ").read_bytes() == text and os.readlink(proc / "exe") == "/bin/busybox":
                status = (proc / "status").read_text()
                if status.split("NSpid:")[1].split("\n")[0].split()[-1] == "1":
                    return proc.name
        except OSError:
            continue
    raise AssertionError(f"{one.proc}: not found on the host")


def fill(sides: Sides, prefix: str, mem: int) -> list[str]:
    """One pod after the other, until kube-scheduler finds no room; returns those that run."""
    found = []
    agree(sides.bench.daemons[-1], sides.bench.truth)  # cardpack may see a new pod before the end of an old one
    for i in range(sum(sides.sizes) // mem + 2):
        name = f"{prefix}{i}"
        sides.pod(name, mem)

        def told(n: str = name) -> str:
            pod = sides.bench.get(n)
            conditions = pod["status"].get("conditions", [])
            full = any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)
            return "bound" if pod["spec"].get("nodeName") else "full" if full else ""

        if wait_for(told, f"{name} to be bound or not", 60, poll=0.1) == "full":
            sides.bench.cluster.delete_pod(name, sides.bench.namespace, grace=0)
            return found
        sides.runs(name)
        found.append(name)
    raise AssertionError(f"the node is never full: {found}")


def refused(sides: Sides, name: str, mem: int, card: str) -> None:
    """A pod that was bound past cardpack to a card that has no room beside the old pods: it may not start."""
    notes = {IDX: card, "ALIYUN_COM_GPU_MEM_DEV": "16", "ALIYUN_COM_GPU_MEM_POD": str(mem), ASSIGNED: "false",
             "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1800000000000000001"}  # fmt: skip
    spec = sides.worker.spec(sizes=(mem,)) | {"restartPolicy": "Never"}
    sides.bench.pod(name, 0, spec=spec, node_name=sides.worker.name, annotations=notes)

    def message() -> str:
        status = sides.bench.get(name)["status"]
        return str(status.get("message", "failed")) if status["phase"] == "Failed" else ""

    why = wait_for(message, f"{name} to be refused", 60)
    check(why is not None and "no room on the card" in why, why)
    delete(sides, name)


def delete(sides: Sides, *names: str) -> None:
    for name in names:
        sides.bench.cluster.delete_pod(name, sides.bench.namespace, grace=1)
    wait_for(lambda: not any(sides.bench.cluster.pod(n, sides.bench.namespace) for n in names),
             "the pods to be gone", GONE)  # fmt: skip


@scenario("node")
def from_gpushares_plugin_and_back(bench: Bench) -> None:
    """Running containers keep their cards, new pods fill the node, and no card holds more than its size."""
    sides = Sides(bench)
    sides.old.start()
    sides.whole()
    bench.cardpack()
    with Watching(sides.judge) as watching:
        first = {}
        for name in ("old-a", "old-b"):  # pods of one size that wait would get one card
            sides.pod(name, 6, restarts=True)
            first |= sides.runs(name)
        check({one.env[IDX] for one in first.values()} == {"0", "1"}, first)

        sides.to_cardpack_node()
        same(first, sides.runs("old-a", "old-b"))
        # The kubelet counts no device of the old pods now: none is in the list of cardpack-node.
        refused(sides, "too-much-0", 12, first["old-a"].env[IDX])
        names = fill(sides, "new-", 4)
        check(len(names) == 4, f"{names}: 10 are free on each card")
        again = restart_container(sides, "old-a")
        worker = sides.worker
        worker.kubelet.kill()
        worker.kubelet.start()
        sides.agent.program.wait_ready()
        sides.whole()
        now = sides.runs("old-a", "old-b", *names)
        same({"old-a": again, "old-b": first["old-b"]}, now)
        delete(sides, *names)
        refused(sides, "too-much-1", 12, first["old-b"].env[IDX])
        names = fill(sides, "newer-", 4)
        check(len(names) == 4, names)
        check(fill(sides, "more-", 4) == [], "the node was full")
        restart_container(sides, "old-b")
        delete(sides, "old-a", names[0])
        late = fill(sides, "late-", 6)
        check(len(late) == 2, f"{late}: 6 and 4 have become free beside 2 on each card")
        names = [*names[1:], *late]

        here = sides.runs("old-b", *names)
        sides.to_gpushare()
        same(here, sides.runs("old-b", *names))
        delete(sides, late[0])
        names.remove(late[0])
        check(fill(sides, "back-", 6) == ["back-0"], "the place of the deleted pod is free, and no other")
        here = sides.runs("old-b", "back-0", *names)
        worker.kubelet.kill()
        worker.kubelet.start()
        sides.whole()
        same(here, sides.runs("old-b", "back-0", *names))
        check(fill(sides, "last-", 4) == [], "the node was full")
        restart_container(sides, "old-b")
        print(f"# {watching.moments} moments")


@scenario("node")
def power_fails_after_the_change(bench: Bench) -> None:
    """A node that starts again after the change: its cards hold no more than their size.

    Newer kubelets fail the pods of gpushare's time then, because no plugin offers their devices any more.
    """
    sides = Sides(bench)
    sides.old.start()
    sides.whole()
    bench.cardpack()
    sides.pod("old", 6, restarts=True)
    sides.runs("old")
    sides.to_cardpack_node()
    sides.pod("new", 6, restarts=True)
    sides.runs("new")
    worker = sides.worker
    worker.cut_power()
    worker.machine.close()
    worker.start_runtime()
    sides.agent.program.launch()
    with Watching(sides.judge) as watching:
        worker.kubelet.start()
        sides.agent.program.wait_ready()
        sides.whole()

        def settled() -> str:
            status = bench.get("old")["status"]
            if status["phase"] == "Failed":
                return str(status.get("message", ""))
            return "runs" if worker.find("old") is not None else ""

        what = wait_for(settled, "the old pod to run or to fail", 120, poll=0.2)
        check(what == "runs" or "devices" in what, what)
        print(f"# {bench.version}: the old pod {what}")
        names = fill(sides, "more-", 4)
        check(len(names) >= 4, names)
        print(f"# {watching.moments} moments")


@scenario("node")
def gpushares_mistakes_are_mended(bench: Bench) -> None:
    """Pods that gpushare's plugin gave each the other's card, or did not acknowledge: the annotations follow."""
    sides = Sides(bench)
    sides.old.start()
    sides.whole()
    sides.old.pause()  # so that the kubelet asks when both wait
    for name, card, when in (("a", 0, 2), ("b", 1, 1)):
        notes = {IDX: str(card), "ALIYUN_COM_GPU_MEM_DEV": "16", "ALIYUN_COM_GPU_MEM_POD": "6", ASSIGNED: "false",
                 "ALIYUN_COM_GPU_MEM_ASSUME_TIME": f"180000000000000000{when}"}  # fmt: skip
        bench.pod(name, 0, spec=sides.worker.spec(sizes=(6,)), node_name="n1", annotations=notes)
    sides.old.resume()
    swapped = sides.runs("a", "b")
    check([swapped[name].env[IDX] for name in ("a", "b")] == ["1", "0"], "gpushare's plugin was right")
    alone = Sides(bench, (16,), "n2")
    alone.old.start()
    alone.whole()
    notes = {IDX: "0", "ALIYUN_COM_GPU_MEM_DEV": "16", "ALIYUN_COM_GPU_MEM_POD": "4", ASSIGNED: "false",
             "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1800000000000000003"}  # fmt: skip
    spec = alone.worker.spec(("c0", "c1"), (2, 2))
    bench.pod("pair", 0, spec=spec, node_name="n2", annotations=notes)
    pair = [alone.worker.wait_container("pair", name) for name in ("c0", "c1")]
    check(note(bench.get("pair"), ASSIGNED) == "false", "gpushare's plugin has found a pod with two containers")

    sides.to_cardpack_node()
    alone.to_cardpack_node()
    wait_for(lambda: not sides.judge(), "the annotations to follow", 60)
    check([note(bench.get(name), IDX) for name in ("a", "b")] == ["1", "0"], "the annotations")
    wait_for(lambda: note(bench.get("pair"), ASSIGNED) == "true", "the pair to be acknowledged", 60)
    same(swapped, sides.runs("a", "b"))
    check([alone.worker.find("pair", one.name) for one in pair] == pair, "a container was touched")
    for name in ("a", "b"):
        check("cardpack.io/vacated-cards" not in bench.get(name)["metadata"]["annotations"], name)
