"""The choice of a node: cardpack's scores next to the scheduler's own, as shipped, and a shortlist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench import PATIENCE, Bench, agree, check, scenario
from component import wait_for
from truth import IDX

NODES = ("n0", "n1", "n2")
# A share of the node's 16 CPUs, which makes the scheduler's own scores spread pods.
CPU = {"cpu": "2", "memory": "16Gi"}
OWN = "cardpack.io/"


def place_of(bench: Bench, name: str) -> tuple[str, str]:
    """The node and the card of a pod, once it is bound."""
    pod = wait_for(
        lambda: (p := bench.get(name))["spec"].get("nodeName") and p, f"{name} bound", PATIENCE
    )
    return pod["spec"]["nodeName"], pod["metadata"]["annotations"][IDX]


def one_by_one(bench: Bench, prefix: str, count: int, **options: Any) -> list[str]:
    """The nodes of pods that are made one after the other, each selected by a Service."""
    nodes = []
    for i in range(count):
        name = f"{prefix}{i}"
        bench.pod(name, 4, labels={"app": "e2e"}, resources=CPU, **options)
        nodes.append(place_of(bench, name)[0])
    return nodes


def service(bench: Bench) -> None:
    """Makes a Service, for which the scheduler spreads its pods over nodes by default."""
    item = {
        "metadata": {"name": "e2e"},
        "spec": {"selector": {"app": "e2e"}, "ports": [{"port": 80}]},
    }
    bench.cluster.must("POST", f"/api/v1/namespaces/{bench.namespace}/services", item)


def equal_nodes(bench: Bench) -> None:
    """Makes three nodes that differ only in their names."""
    for name in NODES:
        bench.cluster.create_node(
            name, {"aliyun.com/gpu-mem": 32, "aliyun.com/gpu-count": 2, "cpu": "16"}
        )


def without_our_scores(bench: Bench, then: Callable[[], None]) -> None:
    """Runs `then` with a scheduler that requests no scores, and restores the usual one."""
    bench.start_scheduler(overrides={"prioritizeVerb": '""'})
    try:
        then()
    finally:
        bench.start_scheduler()


@scenario("real")
def prioritize_decides(bench: Bench) -> None:
    """
    Pods of a Service that also request CPU, one by one: the scheduler alone spreads them over all
    nodes. With the shipped weight they fill one node; with the policy "spread" they go to the
    emptiest.
    """
    equal_nodes(bench)
    service(bench)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    packed = one_by_one(bench, "packed", 4)
    check(len(set(packed)) == 1, f"not on one node: {packed}")
    # The scheduler's scores prefer nodes with free CPU, so the test takes CPU on another node.
    empty = next(name for name in NODES if name not in packed)
    third = next(name for name in NODES if name not in (*packed, empty))
    bench.placed_pod("little", 2, third, 0)
    for i in range(4):
        bench.cluster.create_pod(
            f"busy{i}", bench.namespace, node_name=empty, resources=CPU, labels={"app": "e2e"}
        )
    agree(daemon, bench.truth)
    spread = one_by_one(bench, "spread", 1, annotations={OWN + "node-policy": "spread"})
    check(spread == [empty], f"{spread} is not the node with the emptiest cards, {empty}")
    check(daemon.log("prioritized"), "kube-scheduler did not call prioritize")
    bench.verify(daemon)


@scenario("real")
def spread_by_configuration(bench: Bench) -> None:
    """
    node-policy: spread: pods of a Service go over all nodes; a pod with "binpack" goes to the fullest.
    """
    equal_nodes(bench)
    daemon = bench.cardpack("--node-policy", "spread")
    agree(daemon, bench.truth)
    nodes = one_by_one(bench, "p", 6)
    check(sorted(nodes) == sorted(2 * NODES), f"not evenly: {nodes}")
    bench.placed_pod("more", 6, "n1", 1)
    agree(daemon, bench.truth)
    packs = one_by_one(bench, "packs", 2, annotations={OWN + "policy": "binpack"})
    check(packs == ["n1", "n1"], f"{packs} is not the fullest node")
    bench.verify(daemon)


@scenario("real")
def node_and_card_policies(bench: Bench) -> None:
    """HAMi's four combinations: the policy for the node, and for its card."""
    bench.node("full", 2, 16)
    bench.node("free", 2, 16)
    bench.placed_pod("full0", 8, "full", 0)
    bench.placed_pod("full1", 4, "full", 1)
    bench.placed_pod("free0", 2, "free", 0)
    daemon = bench.cardpack()
    expected = {
        ("binpack", "binpack"): ("full", "0"),
        ("binpack", "spread"): ("full", "1"),
        ("spread", "binpack"): ("free", "0"),
        ("spread", "spread"): ("free", "1"),
    }
    for (node, card), place in expected.items():
        agree(daemon, bench.truth)
        name = f"{node}-{card}"
        notes = {OWN + "node-policy": node, OWN + "card-policy": card}
        bench.pod(name, 4, annotations=notes)
        got = place_of(bench, name)
        check(got == place, f"node {node}, card {card}: on {got}, not on {place}")
        bench.cluster.delete_pod(name, bench.namespace)
    bench.verify(daemon)


@scenario("real")
def shortlist_of_one(bench: Bench) -> None:
    """
    With shortlist: 1 only cardpack decides the node, though the scheduler requests no scores and has
    its own: pods of a Service fill the node with the lowest name, then the next one.
    """
    equal_nodes(bench)
    service(bench)

    def alone() -> None:
        daemon = bench.cardpack("--shortlist", "1")
        agree(daemon, bench.truth)
        nodes = one_by_one(bench, "p", 10)  # 8 fill a node, and its CPU suffices for 8
        check(nodes == ["n0"] * 8 + ["n1"] * 2, f"in this order: {nodes}")
        check(not daemon.log("prioritized"), "somebody asked for priorities")
        spread = one_by_one(bench, "s", 1, annotations={OWN + "policy": "spread"})
        check(spread == ["n2"], f"{spread} is not the empty node")
        bench.verify(daemon)
        daemon.stop()
        # The same without the shortlist, which shows that cardpack's choice decided.
        for i in range(10):
            bench.cluster.delete_pod(f"p{i}", bench.namespace)
        bench.cluster.delete_pod("s0", bench.namespace)
        other = bench.cardpack()
        agree(other, bench.truth)
        loose = one_by_one(bench, "loose", 3)
        check(len(set(loose)) == 3, f"the scheduler does not spread them: {loose}")

    without_our_scores(bench, alone)
