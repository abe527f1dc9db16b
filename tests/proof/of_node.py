"""The whole of cardpack-node on a real card, with the doubles of tests/node for kubelet and API server."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

from base import Card, Client, Options, Process, command, fact, folder, not_here, unseen, until
from kubelet import Answer, Kubelet, base36, fields, pod
from world import COUNT, Cluster, Node, serve

MIB = 1 << 20
UNITS = 256  # at least so many on the card, whatever its size
PODS = 200
OVER_MIB = 512  # by which the pod uses more than its share
CONTAINER = "c0ffee" * 10 + "c0ff"
CARDS = "cardpack.io/cards"


class Rig:
    """cardpack-node and its doubles."""

    def __init__(self, o: Options, card: Card) -> None:
        self.o, self.card, self.cluster = o, card, Cluster()
        self.unit_mib = 16
        while card.usable_mib // self.unit_mib >= 2 * UNITS:
            self.unit_mib *= 2
        self.units = card.usable_mib // self.unit_mib
        self.place = folder(o, "node")
        (self.place / "device-plugins").mkdir()
        self.kubelet = Kubelet(command(o, "node_kubelet"), self.place / "device-plugins", 0, 0)
        self.server = serve(self.cluster)
        self.node = self.start("--usage-interval=1s", "--usage-write=1s")
        self.index = 0

    def start(self, *flags: str) -> Node:
        """cardpack-node."""
        return Node(command(self.o, "cardpack-node"), self.o.nvml, self.place, self.server, None,
                    f"--memory-unit={self.unit_mib}MiB", f"--cards={self.card.uuid}", "--isolation=none",
                    "--log-level=info", *flags)  # fmt: skip

    @property
    def table(self) -> list[dict[str, Any]]:
        """What it has announced."""
        text = self.cluster.node["metadata"].get("annotations", {}).get(CARDS, "[]")
        return list(json.loads(text))

    def metric(self, sample: str) -> float:
        """A figure of it; 0: there is none."""
        text = self.node.metric(sample)
        return 0 if text == "(none)" else float(text)

    def allocate(self, uid: str, units: int) -> tuple[str, Answer, bool]:
        """Devices of the card for a pod that waits; whether it gets the card."""
        devices, answer = self.kubelet.allocate(uid, units, card=self.index)
        good = answer.status == 0 and answer.env.get("NVIDIA_VISIBLE_DEVICES") == self.card.uuid
        return devices, answer, good


def read_list(path: Path) -> dict[str, str]:
    """The first list of devices that the plugin sends: health by ID. HTTP/2 as it is on the wire."""

    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    head = {":method": "POST", ":scheme": "http", ":path": "/v1beta1.DevicePlugin/ListAndWatch",
            ":authority": "localhost", "content-type": "application/grpc", "te": "trailers"}  # fmt: skip
    packed = b"".join(bytes([0, len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in head.items())
    data = b""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(str(path))
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, packed) +
                  frame(0, 1, 1, bytes(5)))  # fmt: skip
        stream = s.makefile("rb")
        while len(data) < 5 or len(data) < 5 + int.from_bytes(data[1:5], "big"):
            fixed = stream.read(9)
            payload = stream.read(int.from_bytes(fixed[:3], "big"))
            data += payload if fixed[3] == 0 else b""
            if not fixed:
                break
    devices = [dict(fields(device)) for _, device in fields(data[5:])]
    return {d[1].decode(): d[2].decode() for d in devices}


def check_announced(r: Rig) -> bool:
    """Its table and its devices."""
    until(20, lambda: r.table)
    entry = (r.table or [{}])[0]
    count = r.cluster.node["status"]["capacity"].get(COUNT)
    so = (len(r.table), entry.get("memory"), entry.get("uuid"), count) == (1, r.units, r.card.uuid, "1")
    fact("node-table", so and "health" not in entry, f"{json.dumps(r.table)}, {COUNT} {count}",
         f"one healthy card with {r.units} units of {r.unit_mib} MiB, and a count of 1")  # fmt: skip
    if not so or not until(20, r.kubelet.registered.is_set):
        not_here("node-*", "the card is not announced, or the double of the kubelet was not called")
        return False
    r.index = entry["index"]
    r.kubelet.free = {r.index: set(range(r.units))}
    devices = read_list(r.place / "device-plugins/cardpack.sock")
    wanted = {f"{base36(r.index)}.{base36(n)}": "Healthy" for n in range(r.units)}
    healthy = list(devices.values()).count("Healthy")
    fact("node-devices", devices == wanted, f"{len(devices)} devices, {healthy} healthy",
         f"{r.units} healthy devices of card {r.index}")  # fmt: skip
    return True


def check_allocate(r: Rig) -> bool:
    """A pod gets its card."""
    r.cluster.put(pod("a", str(r.index), 2))
    devices, answer, good = r.allocate("a", 2)
    start = r.kubelet.call("start", devices)
    fact("node-allocates", good and start.status == 0,
         f"status {answer.status}, {answer.env if answer.status == 0 else answer.text}, start: {start.status}",
         "the variables name the card's UUID, and the container may start")  # fmt: skip
    return good


def check_rate(r: Rig) -> None:
    """200 pods, one after the other, as a kubelet admits them: it writes its checkpoint after each."""
    uids = [f"p{n}" for n in range(PODS)]
    for uid in uids:
        r.cluster.put(pod(uid, str(r.index), 1))
    until(20, lambda: r.cluster.shown >= r.cluster.history[-1][0])
    begin = time.monotonic()
    answers = [r.allocate(uid, 1) for uid in uids]
    took = time.monotonic() - begin
    times = sorted(a.ns / 1e6 for _, a, _ in answers)
    good = sum(so for *_, so in answers)
    fact("node-allocates-200-a-second", good == PODS and sum(times) <= 1000 and times[PODS * 99 // 100] <= 20,
         f"{good} of {PODS} good, {sum(times):.0f} ms, with the checkpoints {1000 * took:.0f} ms, 99 % within "
         f"{times[PODS * 99 // 100]:.1f} ms",
         "all good, within a second, and 99 % of them within 20 ms each")  # fmt: skip
    for uid in uids:
        r.cluster.remove(uid)
    r.kubelet.entries = r.kubelet.entries[:1]
    r.kubelet.write()


def check_usage(r: Rig) -> None:
    """A process in the cgroup of the pod's container uses more than the pod's share."""
    cgroup = Path(r.o.cgroup) / CONTAINER
    if not r.o.cgroup or r.card.absent:
        why = f"no client: {r.card.absent}" if r.card.absent else "no cgroup of version 2 can be made here"
        not_here("node-usage-of-a-pod", why)
        not_here("node-over-share", why)
        return
    cgroup.mkdir()
    share = 2 * r.unit_mib
    running = json.loads(json.dumps(r.cluster.pods["a"]))
    running["status"] = {"phase": "Running", "containerStatuses": [
        {"name": "c", "containerID": f"containerd://{CONTAINER}", "state": {"running": {}}}]}  # fmt: skip
    r.cluster.put(running)
    c = Client(r.o, share + OVER_MIB, f"cgroup={cgroup}", CUDA_VISIBLE_DEVICES=r.card.uuid)
    sample = f'cardpack_node_pod_used_bytes{{namespace="ns",pod="a",card="{r.index}"}}'
    wanted = (share + OVER_MIB) * MIB
    if c.ready:
        until(15, lambda: r.metric(sample) >= wanted)
    used = r.metric(sample)
    if not c.ready:
        not_here("node-usage-of-a-pod", f"no client: {c.first}")
        not_here("node-over-share", f"no client: {c.first}")
    elif not used and unseen():
        not_here("node-usage-of-a-pod", "this is not the host's PID namespace")
        not_here("node-over-share", "this is not the host's PID namespace")
    else:
        fact("node-usage-of-a-pod", used >= wanted,
             f"{used / MIB:.0f} MiB of a process that has allocated {share + OVER_MIB}",
             "at least as much, for the pod in whose cgroup the process is")  # fmt: skip
        event = until(20, lambda: [e for e in r.cluster.events if e["reason"] == "GPUMemoryOverShare"])
        fact("node-over-share", event, event[0]["message"] if event else "no event within 20 s",
             f"the event GPUMemoryOverShare of the pod, whose share is {share} MiB")  # fmt: skip
    c.kill()
    until(10, lambda: not (cgroup / "cgroup.procs").read_text())
    cgroup.rmdir()


def check_xid(r: Rig) -> None:
    """A fault of an application is none of the card."""
    if r.card.absent:
        not_here("node-health-after-an-xid", f"no client: {r.card.absent}")
        return
    before = r.metric("cardpack_node_xids_total")
    c = Process(command(r.o, "probe", "fault"), CUDA_VISIBLE_DEVICES=r.card.uuid)
    until(15, lambda: r.metric("cardpack_node_xids_total") > before)
    time.sleep(1)
    c.kill()
    xids = r.metric("cardpack_node_xids_total") - before
    healthy = r.metric('cardpack_node_cards{health="healthy"}')
    fact("node-health-after-an-xid", xids > 0 and healthy == 1 and "health" not in r.table[0],
         f"{xids:.0f} XIDs, healthy cards: {healthy:.0f}", "the XID of a bad store is seen, and the card stays healthy")


def cpu_s(pid: int) -> float:
    """Processor time that it has used."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(text[11]) + int(text[12])) / os.sysconf("SC_CLK_TCK")


def check_rest(r: Rig) -> None:
    """What it costs while nothing happens, with its own intervals; the program before has ended."""
    pid = r.start().process.pid
    until(20, lambda: r.table)
    time.sleep(2)
    before = cpu_s(pid)
    time.sleep(r.o.rest)
    percent = 100 * (cpu_s(pid) - before) / r.o.rest
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    fact("node-processor-at-rest", percent <= 0.5, f"{percent:.2f} % of a core in {r.o.rest} s", "at most 0.5 %")
    fact("node-memory-at-rest", resident <= 20, f"{resident:.1f} MiB resident", "at most 20 MiB")
    os.kill(pid, signal.SIGKILL)


def facts(o: Options, card: Card) -> None:
    """All of them."""
    if card.usable_mib < 2 * UNITS:
        not_here("node-*", "NVML does not tell the card's memory, as in MIG mode, or it is below 512 MiB")
        return
    r = Rig(o, card)
    if not check_announced(r):
        return
    if check_allocate(r):
        check_rate(r)
        check_usage(r)
    check_xid(r)
    begin = time.monotonic()
    r.node.process.send_signal(signal.SIGTERM)
    status = until(10, lambda: r.node.process.poll() is not None) and r.node.process.poll()
    fact("node-ends", status == 0, f"status {status} after {time.monotonic() - begin:.1f} s",
         "status 0 within 10 s of SIGTERM")  # fmt: skip
    if status == 0:
        check_rest(r)
    else:
        not_here("node-*-at-rest", "the program before has not ended")
