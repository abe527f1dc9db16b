"""cardpack-node on a real kubelet: the card that was promised is the card that is given."""

from __future__ import annotations

from agent import Agent, Watching
from bench import Bench, check, dice, scenario
from cluster import Json
from component import wait_for
from worker import Worker

IDX = "ALIYUN_COM_GPU_MEM_IDX"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"


def annotation(pod: Json, key: str) -> str:
    return str(pod["metadata"].get("annotations", {}).get(key, ""))


def gpu_pod(
    bench: Bench, worker: Worker, name: str, *sizes: int, annotations: dict[str, str] | None = None
) -> Json:
    """A pod for kube-scheduler, whose containers run until it is deleted."""
    names = tuple(f"c{i}" for i in range(len(sizes)))
    return bench.pod(name, 0, spec=worker.spec(names, sizes), annotations=annotations)


def all_run(bench: Bench, worker: Worker, names: list[str], timeout: float = 120) -> None:
    """Waits until a container of each pod runs."""
    wait_for(
        lambda: {one.pod for one in worker.containers()} >= set(names),
        f"{len(names)} pods to run",
        timeout,
        poll=0.2,
    )


@scenario("node")
def promised_cards(bench: Bench) -> None:
    """Through kube-scheduler, cardpack, kubelet and containerd each container gets the pod's card."""
    worker = bench.worker("n1", cards=2)
    agent = Agent(bench, worker, (16, 16))
    agent.start()
    bench.cardpack()
    with Watching(agent.judge):
        gpu_pod(bench, worker, "one", 12)
        gpu_pod(bench, worker, "two", 12)
        gpu_pod(bench, worker, "pair", 2, 2)
        all_run(bench, worker, ["one", "two", "pair"])
        for name in ("one", "two"):
            found = worker.wait_container(name)
            pod = bench.get(name)
            card = annotation(pod, IDX)
            check(found.env["NVIDIA_VISIBLE_DEVICES"] == f"GPU-{card}", found.env)
            check(found.env[IDX] == card, found.env)
            check(found.env["ALIYUN_COM_GPU_MEM_POD"] == "12", found.env)
            check(found.env["ALIYUN_COM_GPU_MEM_CONTAINER"] == "12", found.env)
            check(found.env["ALIYUN_COM_GPU_MEM_DEV"] == "16", found.env)
            wait_for(lambda n=name: annotation(bench.get(n), ASSIGNED) == "true", f"{name} assigned", 30)
        second = worker.wait_container("pair", "c1")
        check(second.env["ALIYUN_COM_GPU_MEM_POD"] == "4", second.env)
        cards = {annotation(bench.get(name), IDX) for name in ("one", "two")}
        check(cards == {"0", "1"}, cards)


@scenario("node")
def backlog_after_a_restart(bench: Bench) -> None:
    """A kubelet and an agent that start on a backlog of equal pods: no container on a wrong card.

    Half of the units: a kubelet that has just started still counts the devices of pods that ended.
    """
    worker = bench.worker("n1", cards=4)
    agent = Agent(bench, worker, (16, 16, 16, 16))
    agent.start()
    bench.cardpack()
    random = dice("backlog")
    exchanged = 0.0
    with Watching(agent.judge) as watching:
        for turn in range(2):
            worker.kubelet.kill()
            if turn == 1:
                agent.program.kill()
            names = [f"b{turn}-{i}" for i in range(8)]
            random.shuffle(names)
            for name in names:
                gpu_pod(bench, worker, name, 4, annotations={"cardpack.io/card-policy": "spread"})
            wait_for(
                lambda want=names: all(bench.get(n)["spec"].get("nodeName") for n in want),
                "all to be bound",
                60,
            )
            if turn == 1:
                agent.program.launch()  # ready when the kubelet is there
            worker.kubelet.start()
            all_run(bench, worker, names, 180)
            exchanged += agent.metric("cardpack_node_exchanged_total")
            agent.program.kill()  # kill -9: containers go on, and it starts again
            agent.start()
            for name in names:
                bench.cluster.delete_pod(name, bench.namespace, grace=1)
            wait_for(
                lambda want=names: not any(bench.cluster.pod(n, bench.namespace) for n in want),
                "all to be gone",
                90,
            )
        print(f"# {watching.moments} moments, {exchanged:g} pods exchanged")
