"""What pods really use of their card, on a real kubelet: metrics, ConfigMap and event."""

from __future__ import annotations

import json

from agent import Agent, card_line
from bench import Bench, Json, check, scenario
from component import wait_for
from worker import GONE, Worker

from scenarios.agents import all_run, gpu_pod

MAP = "/api/v1/namespaces/kube-system/configmaps/cardpack-usage-n1"
MIB = 1 << 20


def show(agent: Agent, worker: Worker, used: int, pods: dict[str, int], other: int) -> None:
    """NVML's world: one card, a process of each pod's container, and one of the node itself."""
    processes = [f"process pid=1 mib={other}\n"]
    for name, mib in pods.items():
        pid = int(worker.wait_container(name).proc.name)  # as the node has it
        processes.append(f"process pid={pid} mib={mib}\n")
    agent.show([card_line(0, 16).replace("\n", f" used={used}\n"), *processes])


def text(bench: Bench) -> Json:
    """What the ConfigMap says; empty if there is none."""
    status, answer = bench.cluster.api("GET", MAP)
    return json.loads(answer["data"]["usage"]) if status == 200 else {"cards": [], "pods": []}


def figures(bench: Bench) -> dict[str, int]:
    """The same: MiB by pod."""
    return {pod["name"]: pod["usedMiB"] for pod in text(bench)["pods"]}


def sample(bench: Bench, agent: Agent, what: str, pod: str) -> float:
    """A pod's metric on the card; -1: there is none."""
    try:
        return agent.metric(f'cardpack_node_pod_{what}_bytes{{namespace="{bench.namespace}",pod="{pod}",card="0"}}')
    except KeyError:
        return -1


def over(bench: Bench) -> list[Json]:
    """The events about pods that are over their share."""
    events = bench.cluster.list_all(f"/api/v1/namespaces/{bench.namespace}/events")
    return [event for event in events if event["reason"] == "GPUMemoryOverShare"]


def container_id(bench: Bench, pod: str) -> str:
    """Of the pod's container that runs; empty if none does."""
    (one,) = bench.get(pod)["status"].get("containerStatuses") or [{}]  # a kubelet may write it without them
    return str(one.get("containerID", "")).removeprefix("containerd://") if "running" in one.get("state", {}) else ""


@scenario("node")
def what_pods_use(bench: Bench) -> None:
    """Two pods on one card: each one's memory is counted for it; one that exceeds its share gets an event."""
    worker = bench.worker("n1", cards=1)
    agent = Agent(bench, worker, (16,), "--usage-interval=1s", "--usage-write=1s")
    agent.start()
    bench.cardpack()
    gpu_pod(bench, worker, "one", 4)
    gpu_pod(bench, worker, "two", 8)
    all_run(bench, worker, ["one", "two"])
    wait_for(lambda: figures(bench) == {"one": 0, "two": 0}, "both to be idle", 60, poll=0.2)

    show(agent, worker, 9000, {"one": 3000, "two": 5000}, 200)
    wait_for(lambda: figures(bench) == {"one": 3000, "two": 5000}, "the figures", 60, poll=0.2)
    uids = {pod["name"]: pod["uid"] for pod in text(bench)["pods"]}
    check(uids == {name: bench.get(name)["metadata"]["uid"] for name in ("one", "two")}, uids)
    card = text(bench)["cards"][0]
    check((card["index"], card["usedMiB"], card["totalMiB"]) == (0, 9000, 16384), card)
    for name, used, share in (("one", 3000, 4), ("two", 5000, 8)):
        check(sample(bench, agent, "used", name) == used * MIB, name)
        check(sample(bench, agent, "promised", name) == share * 1024 * MIB, name)
    check(agent.metric('cardpack_node_other_used_bytes{card="0"}') == 1000 * MIB, "other")
    check(agent.metric("cardpack_node_usage_blind") == 0, "it sees no process")
    check(not over(bench), over(bench))

    show(agent, worker, 9000, {"one": 4097, "two": 4000}, 200)
    event = wait_for(lambda: over(bench), "an event", 60, poll=0.2)[0]
    check(event["message"] == "uses 4,097 MiB of card 0, its share is 4,096 MiB", event)
    check(event["type"] == "Warning" and event["involvedObject"]["uid"] == uids["one"], event)
    check(event["source"]["component"] == "cardpack-node", event)
    check(agent.metric("cardpack_node_pods_over_share") == 1, "the count of such pods")

    rounds = agent.metric("cardpack_node_usage_rounds_total")
    wait_for(lambda: agent.metric("cardpack_node_usage_rounds_total") > rounds + 3, "some rounds", 30, poll=0.2)
    check(len(over(bench)) == 1 and over(bench)[0].get("count", 1) == 1, over(bench))

    # The container starts again: another ID, another process, the same pod.
    first = container_id(bench, "two")
    worker.ctr("tasks", "kill", "-s", "SIGKILL", first)
    wait_for(lambda: container_id(bench, "two") not in ("", first), "another container", 60, poll=0.2)
    show(agent, worker, 9000, {"one": 1000, "two": 4321}, 200)
    wait_for(lambda: figures(bench) == {"one": 1000, "two": 4321}, "the new container's figure", 60, poll=0.2)

    show(agent, worker, 9000, {"one": 1000}, 200)
    bench.cluster.delete_pod("two", bench.namespace, grace=1)
    wait_for(lambda: figures(bench) == {"one": 1000}, "one pod to be left", GONE, poll=0.2)
    check(agent.metric("cardpack_node_pods_over_share") == 0, "the count of such pods")
    check(sample(bench, agent, "used", "two") == -1, "its metric")
    wrote = agent.metric("cardpack_node_usage_written_total")
    agent.program.terminate()
    check(wrote > 0 and figures(bench) == {"one": 1000}, "the ConfigMap stays")
    bench.cluster.api("DELETE", MAP)
