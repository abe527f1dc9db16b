"""Real nodes: that the kubelet, containerd and containers do what the other scenarios build on."""

from __future__ import annotations

import json
from pathlib import Path

from bench import Bench, check, scenario
from component import wait_for
from machine import remaining
from worker import GONE, Worker


def gone(bench: Bench, name: str) -> None:
    """Waits until a pod is deleted."""
    wait_for(lambda: bench.cluster.pod(name, bench.namespace) is None, f"{name} to be gone", GONE)


def node_pod(bench: Bench, worker: Worker, name: str) -> None:
    """Makes a pod without cards on that node."""
    bench.cluster.create_pod(name, bench.namespace, node_name=worker.name, spec=worker.spec())


@scenario("node")
def containers_run(bench: Bench) -> None:
    """Containers outlive the kubelet and not the node; a node that lost its state starts pods again."""
    worker = bench.worker("n1", cards=2)
    for name in ("a", "b"):
        node_pod(bench, worker, name)
    first = worker.wait_container("a")
    check(first.env["CARDPACK_TEST_UID"] == bench.get("a")["metadata"]["uid"], first.env)
    check("/etc/hosts" in first.mounts(), first.mounts())
    check(not first.devices(), first.devices())
    worker.wait_container("b")

    worker.kubelet.kill()
    node_pod(bench, worker, "backlog")
    bench.cluster.delete_pod("a", bench.namespace, grace=1)
    check(sorted(one.pod for one in worker.containers()) == ["a", "b"], worker.containers())
    worker.kubelet.start()
    gone(bench, "a")
    worker.wait_container("backlog")
    check(sorted(one.pod for one in worker.containers()) == ["b", "backlog"], worker.containers())

    worker.containerd.kill()
    check(len(worker.containers()) == 2, "containers end with containerd")
    worker.containerd.start()
    node_pod(bench, worker, "c")
    worker.wait_container("c")

    worker.cut_power()
    check(not worker.machine.running, "still on")
    worker.machine.close()
    worker.wipe()
    worker.boot()
    for name in ("b", "backlog", "c"):
        worker.wait_container(name)


@scenario("node")
def nodes_apart(bench: Bench) -> None:
    """Two nodes on one host do not see each other, and leave nothing behind."""
    tunable = Path("/proc/sys/kernel/panic").read_text()
    workers = [bench.worker("n1", cards=1), bench.worker("n2", cards=3)]
    for worker in workers:
        node_pod(bench, worker, f"on-{worker.name}")
    for worker in workers:
        worker.wait_container(f"on-{worker.name}")
        check([one.pod for one in worker.containers()] == [f"on-{worker.name}"], worker.name)
        cards = len(list(worker.machine.path("/dev").glob("nvidia[0-9]*")))
        check(cards == worker.machine.cards, f"{worker.name} has {cards} cards")
    check(Path("/proc/sys/kernel/panic").read_text() == tunable, "the kubelet changed the host")
    check(not Path("/run/containerd/containerd.sock").exists(), "containerd's socket is on the host")
    folders = [worker.folder for worker in workers]
    bench.finish()
    check(not remaining(), remaining())
    mounts = Path("/proc/self/mountinfo").read_text()
    check(not any(str(folder) in mounts for folder in folders), mounts)
    alive = [
        proc.name
        for proc in Path("/proc").glob("[0-9]*")
        if any(str(folder) in _command(proc) for folder in folders)
    ]
    check(not alive, json.dumps([_command(Path("/proc", pid)) for pid in alive]))


def _command(proc: Path) -> str:
    try:
        return (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
