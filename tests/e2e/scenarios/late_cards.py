"""Late binding with a real kubelet and containerd 2: cards by CDI specs, without a guess."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

from agent import Agent, Watching, card_line
from bench import Bench, Skipped, check, dice, scenario
from component import wait_for
from worker import GONE, Worker

from scenarios.agents import ASSIGNED, IDX, all_run, annotation, gpu_pod, mps_daemon

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
SPREAD = {"cardpack.io/card-policy": "spread"}
FOLDER = "/run/cdi"


def specs(worker: Worker) -> list[Path]:
    """The files of cardpack-node in the folder of CDI specs."""
    return sorted(worker.machine.path(FOLDER).glob("cardpack.io-*"))


def greedy_pod(bench: Bench, worker: Worker, name: str, size: int) -> None:
    """A pod that asks for all cards by the variable of NVIDIA's runtime."""
    spec = worker.spec(("c0",), (size,))
    spec["containers"][0]["env"].append({"name": VISIBLE, "value": "all"})
    bench.pod(name, 0, spec=spec, annotations=SPREAD)


def bound(bench: Bench, names: list[str]) -> None:
    """Waits until the pods have a node."""
    wait_for(
        lambda: all(bench.get(name)["spec"].get("nodeName") for name in names),
        "all to be bound",
        60,
    )


def gone(bench: Bench, names: list[str]) -> None:
    """Deletes the pods and waits for their end."""
    for name in names:
        bench.cluster.delete_pod(name, bench.namespace, grace=1)
    wait_for(
        lambda: not any(bench.cluster.pod(name, bench.namespace) for name in names),
        "all to be gone",
        GONE,
    )


def right(bench: Bench, worker: Worker, names: list[str]) -> None:
    """Each pod's container has the card of its annotation, also those that asked for all."""
    for name in names:
        card = annotation(bench.get(name), IDX)
        found = worker.wait_container(name)
        check(found.env[VISIBLE] == f"GPU-{card}", (name, card, found.env))
        check(found.env[IDX] == card and found.env["ALIYUN_COM_GPU_MEM_DEV"] == "16", found.env)
        wait_for(
            lambda one=name: annotation(bench.get(one), ASSIGNED) == "true", f"{name} assigned", 30
        )


def cards(bench: Bench, names: list[str]) -> dict[str, str]:
    """The card of each pod, by the pod's UID."""
    pods = [bench.get(name) for name in names]
    return {pod["metadata"]["uid"]: annotation(pod, IDX) for pod in pods}


@scenario("node")
def late_binding(bench: Bench) -> None:
    """Equal pods in random order, a backlog, kill -9, a reboot: each has its card, none was exchanged."""
    worker = bench.worker("n1", cards=4, cdi=True)
    agent = Agent(bench, worker, (16, 16, 16, 16))
    agent.start()
    wait_for(lambda: agent.metric("cardpack_node_late_binding") == 1, "late binding", 30)
    bench.cardpack()
    random = dice("late")
    exchanged = 0.0
    with Watching(agent.judge) as watching:
        for turn in range(2):
            names = [f"l{turn}-{i}" for i in range(8)]
            random.shuffle(names)
            if turn > 0:
                worker.kubelet.kill()
            for name in names:
                if random.random() < 0.3:
                    greedy_pod(bench, worker, name, 4)
                else:
                    gpu_pod(bench, worker, name, 4, annotations=SPREAD)
            if turn > 0:
                bound(bench, names)
                worker.kubelet.start()
            all_run(bench, worker, names, 180)
            exchanged += agent.metric("cardpack_node_exchanged_total")
            agent.program.kill()  # kill -9: containers go on, and it starts again
            agent.start()
            right(bench, worker, names)
            check(len(specs(worker)) >= len(names), specs(worker))
            if turn == 0:
                gone(bench, names)
        check(watching.moments > 5, watching.trouble)
    before = cards(bench, names)
    check({one.stat().st_mode & 0o777 for one in specs(worker)} == {0o644}, specs(worker))
    worker.cut_power()
    worker.machine.close()
    worker.start_runtime()
    check(not specs(worker), specs(worker))
    agent.program.launch()
    with Watching(agent.judge):
        worker.kubelet.start()
        all_run(bench, worker, names, 180)
        agent.program.wait_ready()
    right(bench, worker, names)
    kept = {uid: card for uid, card in cards(bench, names).items() if uid in before}
    check(kept.items() <= before.items(), (before, kept))  # the kubelet may have rejected some: KUBELETS_OWN
    exchanged += agent.metric("cardpack_node_exchanged_total")
    check(exchanged == 0, f"{exchanged:g} pods exchanged")
    gone(bench, names)
    gpu_pod(bench, worker, "last", 4)  # the kubelet writes its checkpoint anew
    all_run(bench, worker, ["last"])
    wait_for(lambda: len(specs(worker)) == 1, "the other specs to be removed", 30)


@scenario("node")
def late_binding_keeps(bench: Bench) -> None:
    """Init containers, two containers; edited annotations are set back; a folder that others may write to."""
    worker = bench.worker("n1", cards=2, cdi=True)
    agent = Agent(bench, worker, (16, 16), "--late-binding=on")
    agent.start()
    bench.cardpack()
    spec = worker.spec(("c0", "c1"), (2, 2))
    init = worker.container("init", {"limits": {"aliyun.com/gpu-mem": "2"}}, ["/bin/true"])
    spec["initContainers"] = [init]
    bench.pod("several", 0, spec=spec)
    all_run(bench, worker, ["several"])
    card = annotation(bench.get("several"), IDX)
    for name in ("c0", "c1"):
        found = worker.wait_container("several", name)
        check(found.env[VISIBLE] == f"GPU-{card}" and found.env[IDX] == card, found.env)
    check(len(specs(worker)) == 3, specs(worker))

    gpu_pod(bench, worker, "edited", 4)
    all_run(bench, worker, ["edited"])
    card = annotation(bench.get("edited"), IDX)
    path = f"/api/v1/namespaces/{bench.namespace}/pods/edited"
    other = {"metadata": {"annotations": {IDX: str(1 - int(card))}}}
    bench.cluster.must("PATCH", path, other, content_type="application/merge-patch+json")
    wait_for(lambda: annotation(bench.get("edited"), IDX) == card, "the card to be set back", 30)
    check("do not name the cards that its containers have" in agent.program.tail(4000), "no line")

    folder = worker.machine.path(FOLDER)
    folder.chmod(0o777)
    gpu_pod(bench, worker, "waits", 4)

    def told() -> bool:
        events = bench.cluster.list_all("/api/v1/events")
        return any("users other than root may write to it" in one.get("message", "") for one in events)

    wait_for(told, "an event with the reason", 60)
    check(worker.find("waits") is None, "it runs")
    folder.chmod(0o755)
    all_run(bench, worker, ["waits"])


@scenario("node")
def late_binding_with_mps(bench: Bench) -> None:
    """What a client of MPS needs is in the spec, and its limit wins against the pod's own variable."""
    worker = bench.worker("n1", cards=2, cdi=True)
    with tempfile.TemporaryDirectory(prefix="mps") as short:  # a socket's path has at most 107 bytes
        folder = Path(short)
        daemons = [mps_daemon(folder, f"GPU-{n}") for n in range(2)]
        agent = Agent(bench, worker, (16, 16), "--late-binding=on", "--isolation=mps", f"--mps-dir={folder}")
        agent.show([card_line(n, 16).replace("\n", " compute-mode=3\n") for n in range(2)])
        agent.start()
        bench.cardpack()
        spec = worker.spec(("c0",), (6,))
        limit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
        spec["containers"][0]["env"].append({"name": limit, "value": "0=16G"})
        bench.pod("client", 0, spec=spec)
        all_run(bench, worker, ["client"])
        found = worker.wait_container("client")
        pipe = str(folder / f"GPU-{annotation(bench.get('client'), IDX)}")
        check(found.env["CUDA_MPS_PIPE_DIRECTORY"] == pipe and found.env[limit] == "0=6144M", found.env)
        check(found.mounts()[pipe].endswith(pipe), found.mounts())
        check(found.mounts()["/dev/shm"].endswith(f"{pipe}.shm"), found.mounts())
        for daemon in daemons:
            daemon.shutdown(socket.SHUT_RDWR)  # wakes its thread
            daemon.close()


def shows_none(bench: Bench, worker: Worker) -> None:
    """--late-binding=on where the runtime ignores CDI: containers see no card."""
    agent = Agent(bench, worker, (16, 16), "--late-binding=on")
    agent.start()
    bench.cardpack()
    gpu_pod(bench, worker, "p", 4)
    found = worker.wait_container("p")
    check(found.env[VISIBLE] == "void" and IDX not in found.env, found.env)


@scenario("node")
def late_binding_without_cdi(bench: Bench) -> None:
    """containerd 2 with CDI switched off: no card, and not a wrong one."""
    shows_none(bench, bench.worker("n1", cards=2, cdi=False))


@scenario("node")
def late_binding_with_an_old_runtime(bench: Bench) -> None:
    """Debian's containerd ignores CDI devices."""
    if bench.minor < 28:
        raise Skipped("this kubelet keeps no name of a CDI device: with --late-binding=on no container starts")
    shows_none(bench, bench.worker("n1", cards=2))
