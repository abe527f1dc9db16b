"""
Pods, files and folders that are meant to do harm, and a watch that is late, against the whole
cardpack-node: it neither ends nor hangs, gives no wrong card, and writes to nothing else.

    adverse.py CARDPACK_NODE NVML_DOUBLE KUBELET [CHECK ...]
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kubelet import Answer, Kubelet, pod
from world import WAIT_S, Cluster, Node, serve, wait

CARDS = "".join(
    f"card uuid=GPU-{i} name=NVIDIA_A100 bus={0x3B + i:#x} minor={i} mib=16384\n" for i in range(2)
)
IDX = "ALIYUN_COM_GPU_MEM_IDX"
ALLOCATION = "scheduler.framework.gpushare.allocation"
VACATED = "cardpack.io/vacated-cards"
SOON_S = 15.0  # an Allocate ends within 3 s of waiting; the rest is for a slow machine


class World:
    """One cardpack-node with its cluster and kubelet."""

    def __init__(self, folder: Path, programs: list[str]) -> None:
        self.folder = folder
        self.programs = programs
        self.plugins = folder / "device-plugins"
        self.plugins.mkdir()
        self.cluster = Cluster()
        self.server = serve(self.cluster)
        self.kubelet: Kubelet | None = None
        self.node: Node | None = None

    def start(self, cards: str = CARDS, units: int = 16, *flags: str) -> Node:
        """Starts both, and waits until they know each other."""
        self.kubelet = Kubelet(self.programs[2], self.plugins, cards.count("card "), units)
        self.node = Node(*self.programs[:2], self.folder, self.server, cards, *flags)
        wait("a registration", self.kubelet.registered.is_set)
        return self.node

    def close(self) -> None:
        """Ends both, and looks at how they ended."""
        if self.node is not None:
            self.node.process.send_signal(signal.SIGTERM)
            assert self.node.process.wait(WAIT_S) == 0, self.log()
        if self.kubelet is not None:
            self.kubelet.close()
        self.server.shutdown()

    def log(self) -> str:
        """The end of the log."""
        return (self.folder / "log").read_text()[-4000:]

    def admit(self, *args: object, **more: object) -> Answer:
        """Kubelet.allocate, which must end soon."""
        assert self.kubelet and self.node
        began = time.monotonic()
        _, answer = self.kubelet.allocate(*args, **more)  # type: ignore[arg-type]
        assert time.monotonic() - began < SOON_S, answer
        assert self.node.get("/healthz") == (200, "ok\n")
        return answer

    def is_right(self, uid: str, n: int, card: int) -> None:
        """A good pod comes beside the hostile ones, and gets its card."""
        assert self.kubelet
        self.cluster.put(pod(uid, str(card), n))
        devices, answer = self.kubelet.allocate(uid, n)
        assert answer.status == 0 and answer.env[IDX] == str(card), (answer, self.log())
        started = self.kubelet.call("start", devices)
        assert started.status == 0, started


@contextmanager
def world(programs: list[str]) -> Iterator[World]:
    """A running one."""
    with tempfile.TemporaryDirectory() as folder:
        w = World(Path(folder), programs)
        try:
            yield w
        except BaseException:
            if w.node is not None:
                print(w.log(), w.cluster.strange, file=sys.stderr)
                w.node.process.kill()
            raise
        w.close()


def check_annotations(w: World) -> None:
    """Annotations of garbage, out of range, twice and huge: no such pod gets a card, others get theirs."""
    w.start()
    indices = [
        "", " ", "-1", "2", "7", "1023", "65534", "65535", "4294967296", "99999999999999999999", "0x0",
        "+ 1", "1 1", "0;1", "0|true", "$(id)", "../../0", "\x00", "\ufffd", "0\n1", "x" * 200_000,
        ",", ",-1,", "-0x", "--0", ",".join(["x"] * 20_000),
    ]  # fmt: skip
    allocations = [
        "", "{", "null", "[]", '{"0":{"7":5}}', '{"0":{"0":-5}}', '{"0":{"0":9223372036854775807}}',
        '{"9":{"0":5}}', '{"0":{"0":5.5}}', "{" * 100_000, '{"0":{' + ",".join(f'"{i}":1' for i in range(5000)) + "}}",
    ]  # fmt: skip
    for i, index in enumerate(indices):
        w.cluster.put(pod(f"i{i}", index, 5))
    for i, text in enumerate(allocations):
        w.cluster.put(pod(f"a{i}", "-1", 5, annotations={ALLOCATION: text}))
    answer = w.admit("i0", 5)
    assert answer.status != 0, (answer.env, w.log())
    w.is_right("good", 4, 1)
    for uid in list(w.cluster.pods):
        if uid != "good":
            w.cluster.remove(uid)
    w.is_right("last", 5, 0)


def check_claims(w: World) -> None:
    """A pod whose annotations claim a card that another pod fills gets nothing of it, now or later."""
    w.start()
    w.is_right("victim", 12, 0)
    w.cluster.put(pod("thief", "0", 12))
    answer = w.admit("thief", 12)
    assert answer.status != 0 and "no room on the card" in answer.text, answer
    w.cluster.remove("thief")
    w.is_right("mover", 12, 1)
    mover = w.cluster.pods["mover"]
    mover["metadata"]["annotations"][IDX] = "0"  # after its start its owner writes the victim's card
    w.cluster.put(mover)
    wait("the annotation to be as before", lambda: mover["metadata"]["annotations"][IDX] == "1")
    assert w.cluster.pods["victim"]["metadata"]["annotations"][IDX] == "0"


def check_vacated(w: World) -> None:
    """A user's vacated-cards annotation moves no pod, and goes away."""
    w.start()
    for i, text in enumerate(["0", "1", "0,1", "7", "", "x", "9" * 100_000]):
        w.cluster.put(pod(f"v{i}", "0", 1, annotations={VACATED: text}))
    w.is_right("good", 4, 1)

    def gone() -> bool:
        return not any(VACATED in p["metadata"]["annotations"] for p in w.cluster.pods.values() if
                       p["metadata"]["annotations"].get(VACATED) != "")  # fmt: skip

    wait("no such annotation", gone)
    assert {p["metadata"]["annotations"][IDX] for u, p in w.cluster.pods.items() if u != "good"} == {"0"}


def check_names(w: World) -> None:
    """Names with paths, shells, line ends and quotes; containers of the same name; very many containers."""
    node = w.start()
    bad = [
        "../../nodes/gpu-7", "a/../../../secrets", "x?force=true", "x#y", "x y", "%2e%2e%2f", "$(reboot)",
        "`id`", "a\nmsg=forged", 'a","msg":"forged', "\x1b[31mred", "\u202egnp", "é" * 80, "",
    ]  # fmt: skip
    for i, name in enumerate(bad):
        p = pod(f"n{i}", "0", 1, name=name or " ", containers=[name or "c"])
        w.cluster.put(p)
        devices, answer = w.kubelet.allocate(f"n{i}", 1, container=name or "c")  # type: ignore[union-attr]
        assert w.kubelet.call("start", devices).status == 0  # type: ignore[union-attr]
        assert answer.status == 0 and answer.env[IDX] == "0", (name, answer)
    wait("all assigned", lambda: all(
        p["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true"
        for p in w.cluster.pods.values()))  # fmt: skip
    assert not w.cluster.strange, w.cluster.strange
    w.cluster.put(pod("twins", "1", 1, 1, containers=["c", "c"]))
    assert w.admit("twins", 1).status == 0
    w.cluster.put(pod("many", "1", *[1] * 3000))
    w.is_right("good", 4, 1)
    for line in (w.folder / "log").read_text().splitlines():
        json.loads(line)  # one object a line
    assert not node.line("forged")


def plant(path: Path, kind: str, victim: Path) -> None:
    """Something else in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(victim)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    elif kind == "huge":
        with path.open("w") as file:
            file.truncate(1 << 40)
    elif kind == "torn":
        path.write_text('{"Data":{"PodDeviceEntries":[{"PodUID":"p1","Cont')
    elif kind == "binary":
        path.write_bytes(bytes(range(256)) * 100)
    elif kind == "deep":
        path.write_text('{"Data":' + "[" * 1_000_000)


def check_checkpoint(w: World) -> None:
    """A checkpoint that is a link, a pipe, a folder, huge or torn: no container gets a card from it."""
    w.start()
    kubelet = w.kubelet
    assert kubelet
    victim = w.folder / "victim"
    victim.write_text("secret\n")
    w.cluster.put(pod("p1", "0", 12))
    devices, answer = kubelet.allocate("p1", 12)
    assert answer.status == 0, answer
    w.cluster.put(pod("p2", "1", 2))
    for kind in ("pipe", "folder", "link", "loop", "zeros", "huge", "torn", "binary", "deep"):
        plant(kubelet.checkpoint, kind, victim)
        assert w.admit("p2", 2, card=1).status != 0, kind
        assert "secret" not in w.log()
    if kubelet.checkpoint.is_dir():
        kubelet.checkpoint.rmdir()
    kubelet.write()
    assert kubelet.call("start", devices).status == 0
    w.is_right("p3", 4, 1)
    assert victim.read_text() == "secret\n"


def check_sockets(w: World) -> None:
    """What lies in the place of its socket: a link is not followed, and what is no socket stays."""
    victim = w.folder / "victim"
    victim.write_text("secret\n")
    socket = w.plugins / "cardpack.sock"
    for kind in ("pipe", "folder", "link", "loop", "torn"):
        plant(socket, kind, victim)
        node = Node(*w.programs[:2], w.folder, w.server, CARDS)
        wait("a complaint", lambda n=node: n.line("cannot serve the device plugin"))
        assert node.get("/healthz") == (200, "ok\n")
        node.process.send_signal(signal.SIGTERM)
        status = node.process.wait(WAIT_S)
        assert status == 0, (kind, status, node.log_path.read_text()[-3000:])
        assert victim.read_text() == "secret\n"
    plant(socket, "nothing", victim)
    w.start()
    w.is_right("good", 4, 1)


def check_state(w: World) -> None:
    """A file of the indices that is no file or holds garbage ends the start; it is not overwritten."""
    victim = w.folder / "victim"
    victim.write_text("secret\n")
    state = w.folder / "cards"
    for kind in ("pipe", "folder", "link", "loop", "zeros", "huge", "torn", "binary", "deep"):
        plant(state, kind, victim)
        before = state.lstat()
        config = w.folder / "kubeconfig"
        config.write_text("apiVersion: v1\nkind: Config\n")
        done = subprocess.run(
            [w.programs[0], "--node-name=gpu-7", f"--kubeconfig={config}", f"--nvml={w.programs[1]}",
             f"--state={state}", f"--kubelet-dir={w.folder}", "--listen=127.0.0.1:0"],
            env=dict(os.environ), capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
        assert done.returncode in (1, 2), (kind, done)
        after = state.lstat()
        assert (before.st_ino, before.st_mode, before.st_size) == (after.st_ino, after.st_mode, after.st_size)
        assert victim.read_text() == "secret\n"
    plant(state, "nothing", victim)
    plant(w.folder / "cards.new", "link", victim)
    w.start()
    w.is_right("good", 4, 1)
    assert victim.read_text() == "secret\n" and state.is_file() and not state.is_symlink()


def check_reuse(w: World) -> None:
    """Devices of a pod that has ended go to the next pod before the API server says that it has ended."""
    w.start()
    kubelet = w.kubelet
    assert kubelet
    w.cluster.put(pod("old", "0", 4))
    devices, answer = kubelet.allocate("old", 4)
    assert answer.status == 0 and kubelet.call("start", devices).status == 0
    kubelet.give_back(devices)
    kubelet.entries.clear()  # the kubelet knows, and its file does not
    w.is_right("next", 4, 0)
    kubelet.entries.clear()
    kubelet.free[0] = set(range(4))
    w.cluster.put(pod("crowd", "1", 13))
    assert kubelet.allocate("crowd", 13)[1].status == 0
    w.cluster.put(pod("full", "1", 4))  # the card is full until the watch shows the end of "crowd"
    kubelet.free[1] = set(range(16))
    waiting = kubelet.begin("allocate", kubelet.take(4, card=1))
    time.sleep(0.5)
    assert waiting.empty()
    w.cluster.remove("crowd")
    assert waiting.get(timeout=WAIT_S).status == 0


def check_many_devices(w: World) -> None:
    """100,000 devices: eight containers of 12,500 each get their cards."""
    cards = "".join(
        f"card uuid=GPU-{i} name=NVIDIA_A100 bus={0x3B + i:#x} minor={i} mib=25000\n" for i in range(4)
    )
    node = w.start(cards, 25_000, "--memory-unit=MiB", "--log-level=info")
    assert node.metric("cardpack_node_offered_units") == "100000"
    for i in range(8):
        w.is_right(f"p{i}", 12_500, i // 2)
    w.cluster.put(pod("more", "0", 1))
    w.kubelet.free[0] = {0}  # type: ignore[union-attr]
    assert w.admit("more", 1).status != 0


@contextmanager
def mps_daemons(w: World, cards: int) -> Iterator[str]:
    """Control daemons of MPS that accept connections: the flag that names their folder."""
    sockets = []
    for i in range(cards):
        path = w.folder / "mps" / f"GPU-{i}" / "control"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        sockets.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        sockets[-1].bind(str(path))
        sockets[-1].listen(64)
    try:
        yield f"--mps-dir={w.folder}/mps"
    finally:
        for one in sockets:
            one.close()


def check_mps_clients(w: World) -> None:
    """The server of MPS of a card has 48 clients: the 49th container is refused, and another card has room."""
    cards = CARDS.replace("mib=16384", "mib=65536 compute-mode=3")
    with mps_daemons(w, 2) as flag:
        node = w.start(cards, 64, "--isolation=mps", flag)
        wait("MPS", lambda: node.metric('cardpack_node_isolation{kind="mps"}') == "1")
        for i in range(48):
            w.cluster.put(pod(f"p{i}", "0", 1))
            answer = w.admit(f"p{i}", 1, card=0)
            assert answer.status == 0, (i, answer, w.log())
        assert "CUDA_MPS_PIPE_DIRECTORY" in answer.env, answer.env
        w.cluster.put(pod("two", "0,1", 4))  # a process without MPS would take both cards from all others
        answer = w.admit("two", 4)
        assert answer.status != 0 and "MPS serves a process with one" in answer.text, answer
        w.cluster.remove("two")
        w.cluster.put(pod("more", "0", 1))
        answer = w.admit("more", 1, card=0)
        assert answer.status != 0 and "card 0 has 48 containers" in answer.text, answer
        w.cluster.remove("more")
        w.cluster.put(pod("beside", "1", 2))  # of another size: the watch may not have shown that end yet
        assert w.admit("beside", 2, card=1).status == 0, w.log()
        w.cluster.remove("p7")
        w.kubelet.entries[:] = [e for e in w.kubelet.entries if e["PodUID"] != "p7"]  # type: ignore[union-attr]
        w.kubelet.write()  # type: ignore[union-attr]
        w.cluster.put(pod("next", "0", 3))
        assert w.admit("next", 3, card=0).status == 0, w.log()


def check_mps_away(w: World) -> None:
    """While the daemon of a container's card is away the container does not start: CUDA would run without a limit."""
    cards = CARDS.replace("mib=16384", "mib=16384 compute-mode=3")
    with mps_daemons(w, 2) as flag:
        node = w.start(cards, 16, "--isolation=mps", flag)
        wait("MPS", lambda: node.metric('cardpack_node_isolation{kind="mps"}') == "1")
        given = {}
        for uid, index in (("p", 0), ("q", 1)):
            w.cluster.put(pod(uid, str(index), 4))
            given[uid], answer = w.kubelet.allocate(uid, 4, card=index)  # type: ignore[union-attr]
            assert answer.status == 0, (answer, w.log())
        # Of a pod with a container on each card, the one whose card is served starts.
        apart = pod("r", "0,1", 3, 2, annotations={ALLOCATION: json.dumps({"0": {"0": 3}, "1": {"1": 2}})})
        w.cluster.put(apart)
        first = w.kubelet.allocate("r", 3, card=0)  # type: ignore[union-attr]
        second = w.kubelet.allocate("r", 2, "c1", card=1)  # type: ignore[union-attr]
        assert first[1].status == 0 and second[1].status == 0, (first, second, w.log())
        path = w.folder / "mps" / "GPU-0" / "control"
        path.unlink()
        assert w.kubelet.call("start", second[0]).status == 0, w.log()  # type: ignore[union-attr]
        starting = w.kubelet.begin("start", given["p"])  # type: ignore[union-attr]
        assert w.kubelet.call("start", given["q"]).status == 0, w.log()  # type: ignore[union-attr]
        with suppress(queue.Empty):
            raise AssertionError(f"a start without its daemon: {starting.get(timeout=1)}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
            daemon.bind(str(path))
            daemon.listen(64)
            assert starting.get(timeout=SOON_S).status == 0, w.log()
        # A container that starts again is no exception, and the kubelet shows why it waits.
        node.process.kill()
        node.process.wait()
        w.kubelet.registered.clear()  # type: ignore[union-attr]
        w.node = Node(*w.programs[:2], w.folder, w.server, cards.splitlines()[0], "--isolation=mps", flag)
        wait("a registration", w.kubelet.registered.is_set)  # type: ignore[union-attr]
        given["r"] = second[0]
        again = [w.kubelet.begin("start", devices) for devices in given.values()]  # type: ignore[union-attr]
        for waits, why in zip(again, ("MPS: no control daemon answers at", *2 * ("card 1 is not on this node",)), strict=True):
            answer = waits.get(timeout=WAIT_S)
            assert answer.status != 0 and why in answer.text, (answer, w.log())


def check_older(w: World) -> None:
    """What got its cards before MPS served them does not start again; with late binding its spec is written anew."""
    late = w.folder / "cdi"
    late.mkdir()
    for number, flags in enumerate(((), ("--late-binding=on", f"--cdi-dir={late}"))):
        with mps_daemons(w, 2) as flag:
            node = w.start(CARDS, 16, flag, *flags)
            uid = f"p{number}"
            w.cluster.put(pod(uid, "0", 4))
            devices, answer = w.kubelet.allocate(uid, 4, card=0)  # type: ignore[union-attr]
            assert answer.status == 0 and w.kubelet.call("start", devices).status == 0, w.log()  # type: ignore[union-attr]
            node.show(CARDS.replace("mib", "compute-mode=3 mib"))
            with w.cluster.changed:
                w.cluster.node["metadata"].setdefault("labels", {})["cardpack.io/mps"] = "true"
                w.cluster.touch()
            wait("MPS", lambda node=node: node.metric('cardpack_node_isolation{kind="mps"}') == "1")
            answer = w.kubelet.call("start", devices)  # type: ignore[union-attr]
            if flags:
                specs = [path.read_text() for path in late.iterdir()]
                assert answer.status == 0 and len(specs) == 1 and "CUDA_MPS_PIPE_DIRECTORY" in specs[0], (answer, specs)
                continue
            assert answer.status != 0 and "before MPS served them there" in answer.text, answer
            node.process.kill()
            node.process.wait()
            w.kubelet.close()  # type: ignore[union-attr]
            with w.cluster.changed:
                del w.cluster.node["metadata"]["labels"]["cardpack.io/mps"]
            w.cluster.remove(uid)


def check_after_mps(w: World) -> None:
    """A node that loses the label of MPS has checked no limit of its driver yet: it does not say that it has them."""
    root = w.folder / "cgroup"
    root.mkdir()
    (root / "cgroup.controllers").touch()
    w.cluster.node["metadata"].setdefault("labels", {})["cardpack.io/mps"] = "true"
    with mps_daemons(w, 2) as flag:
        node = w.start(CARDS.replace("mib", "compute-mode=3 mib") + "limits\n", 16, flag, f"--cgroup-root={root}")
        wait("MPS", lambda: node.metric('cardpack_node_isolation{kind="mps"}') == "1")
        node.show(CARDS + "limits\n")
        with w.cluster.changed:
            del w.cluster.node["metadata"]["labels"]["cardpack.io/mps"]
            w.cluster.touch()
        wait("no MPS", lambda: node.metric('cardpack_node_isolation{kind="mps"}') == "0")
        assert node.metric('cardpack_node_isolation{kind="none"}') == "1", w.log()
        wait("the limits", lambda: node.metric('cardpack_node_isolation{kind="driver-limits"}') == "1")


def check_owed_list(w: World) -> None:
    """MPS begins while the pods are being listed: those that were listed before are looked at, too."""
    cards = CARDS.replace("mib=16384", "mib=16384 compute-mode=3")
    hold = w.cluster.hold = threading.Event()
    overriding = pod("first", "0", 1)
    overriding["status"]["phase"] = "Running"  # the pods are not listed again to know what is on its way
    overriding["spec"]["containers"][0]["env"] = [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]
    w.cluster.put(overriding)
    for uid in ("one", "twin", "last"):
        p = pod(uid, "1", 1)
        p["status"]["phase"] = "Running"
        p["status"]["containerStatuses"] = [
            {"name": "c", "containerID": "containerd://" + "7" * 64, "state": {"running": {}}}]  # fmt: skip
        w.cluster.put(p)
    with mps_daemons(w, 2) as flag:
        node = w.start(cards, 16, flag)
        wait("the list after the registration", lambda: node.line("registered with the kubelet"))
        # in each list the twin of an ID is left out: then all pods but the last one have been read
        left_out = "cardpack_node_containers_left_out_total"
        wait("all but one", lambda: 0 < w.cluster.held == int(node.metric(left_out)))
        with w.cluster.changed:
            w.cluster.node["metadata"].setdefault("labels", {})["cardpack.io/mps"] = "true"
            w.cluster.touch()
        wait("MPS", lambda: node.metric('cardpack_node_isolation{kind="mps"}') == "1")
        assert node.metric("cardpack_node_pods_synced") == "0"
        w.cluster.hold = None
        hold.set()
        wait("the pod that overrides", lambda: node.metric("cardpack_node_overriding_pods") == "1")
        assert node.line("a pod overrides a variable of its limits")["pod"] == "first"


def run(w: World, uid: str, units: int) -> None:
    """A pod on card 0 whose container runs."""
    device, answer = w.kubelet.allocate(uid, units, card=0)  # type: ignore[union-attr]
    assert answer.status == 0 and answer.env[IDX] == "0", (answer, w.log())
    assert w.kubelet.call("start", device).status == 0, w.log()  # type: ignore[union-attr]
    edit(w, uid, lambda p: p["status"].update(phase="Running"))


def edit(w: World, uid: str, change: Callable[[dict], object]) -> None:
    """Changes a pod at the API server."""
    with w.cluster.changed:
        change(w.cluster.pods[uid])
        w.cluster.tell("MODIFIED", w.cluster.pods[uid])


def check_edits(w: World) -> None:
    """What an author writes in place of a running pod's index, or removes, is set back; its room stays its own."""
    w.start()
    w.cluster.put(pod("p", "0", 10))
    run(w, "p", 10)
    notes = w.cluster.pods["p"]["metadata"]["annotations"]
    for text in ("x", "0,1", "-1", "", None):
        edit(w, "p", lambda p, text=text: notes.pop(IDX) if text is None else notes.update({IDX: text}))
        wait(f"{text!r} to be set back", lambda: w.cluster.pods["p"]["metadata"]["annotations"].get(IDX) == "0")
        notes = w.cluster.pods["p"]["metadata"]["annotations"]


def check_overrides(w: World) -> None:
    """A pod that sets a limit itself marks the cards that it has, whatever its annotations name: no others, and no less."""
    cards = CARDS.replace("mib=16384", "mib=16384 compute-mode=3")
    w.cluster.node["metadata"].setdefault("labels", {})["cardpack.io/mps"] = "true"
    with mps_daemons(w, 2) as flag:
        node = w.start(cards, 16, flag)
        wait("MPS", lambda: node.metric('cardpack_node_isolation{kind="mps"}') == "1")
        assert not w.cluster.events, w.cluster.events  # no card was ill before the node's label was known
        for uid, index in (("waits", "0,1"), ("runs", "0")):
            overriding = pod(uid, index, 2 if uid == "waits" else 4)
            overriding["spec"]["containers"][0]["env"] = [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]
            w.cluster.put(overriding)
        wait("both", lambda: node.metric("cardpack_node_overriding_pods") == "2")
        run(w, "runs", 4)
        wait("one card", lambda: node.metric("cardpack_node_offered_cards") == "1")
        assert w.cluster.config_map and w.cluster.config_map["data"] == {"gpus": "0"}, w.cluster.config_map
        edit(w, "runs", lambda p: p["metadata"]["annotations"].pop(IDX))
        wait("it to be set back", lambda: w.cluster.pods["runs"]["metadata"]["annotations"].get(IDX) == "0")
        assert node.metric("cardpack_node_offered_cards") == "1"
        assert not any(e["reason"] == "CardRecovered" for e in w.cluster.events), w.cluster.events


def check_small(w: World) -> None:
    """A card smaller than one unit is left out, and the node's event says what to set; so is another in its place."""
    first, second, small = *CARDS.splitlines(), "card uuid=GPU-9 name=NVIDIA_T4 bus=0x60 minor=9 mib=1500"
    node = w.start("\n".join((first, second, small)), 16, "--reserve-memory=600MiB")
    assert node.metric("cardpack_node_left_out_cards") == "1"
    assert node.metric("cardpack_node_unheard_cards") == "0"
    wait("an event", lambda: w.cluster.events)
    event = w.cluster.events[0]
    assert event["reason"] == "GPULeftOut" and "GPU-9: without what is held back" in event["message"], event
    wait("a table", lambda: "cardpack.io/cards" in w.cluster.node["metadata"].get("annotations", {}))
    assert "GPU-9" not in w.cluster.node["metadata"]["annotations"]["cardpack.io/cards"]

    def left_out(text: str) -> dict:
        return next((e for e in w.cluster.events if e["message"].startswith(f"{text} cards or slices are not")), {})

    w.cluster.events.clear()
    node.show("\n".join((f"{first} memory=3", second, small.replace("1500", "16384"))))
    wait("an event about another card", lambda: "GPU-0: nvmlDeviceGetMemoryInfo" in left_out("1").get("message", ""))
    node.show("\n".join((f"{first} memory=3", f"{second} memory=3", small)))
    wait("an event about three", lambda: left_out("3"))
    message = left_out("3")["message"]
    assert all(f"{uuid}: " in message for uuid in ("GPU-0", "GPU-1", "GPU-9")), message


CHECKS: tuple[Callable[[World], None], ...] = (
    check_annotations, check_claims, check_vacated, check_names, check_checkpoint, check_sockets, check_state,
    check_reuse, check_many_devices, check_mps_clients, check_mps_away, check_older, check_after_mps, check_owed_list, check_small, check_edits, check_overrides,
)  # fmt: skip


def main() -> int:
    """See the top of this file."""
    only = sys.argv[4:]  # names of checks
    print(f"1..{len(CHECKS)}")
    for n, check in enumerate(CHECKS, 1):
        if only and check.__name__ not in only:
            continue
        with world(sys.argv[1:4]) as w:
            check(w)
        print(f"ok {n} - {check.__doc__}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
