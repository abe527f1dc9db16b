"""Many pods at once, through the real kube-scheduler."""

from __future__ import annotations

import os
import random

from bench import PATIENCE, Bench, agree, check, dice, message, scenario
from component import wait_for
from truth import name_of, size_of

PODS = 500
SIZES = [1, 1, 2, 2, 2, 3, 4, 4, 6, 8]


def mixed_nodes(bench: Bench, count: int, luck: random.Random) -> int:
    """
    Makes nodes of 2 to 8 cards, with one card size per node. Returns the memory that surely fits in
    pods of at most the largest of SIZES, with any choice of cards: a pod is refused only if every card
    has less than the pod's size left.
    """
    safe = 0
    for i in range(count):
        cards, size = 2 + i % 7, luck.choice([12, 16, 24, 32, 40, 80])
        bench.node(f"n{i:02}", cards, size, remainder=luck.randrange(cards))
        safe += cards * (size - max(SIZES) + 1)
    return safe


@scenario("real")
def burst(bench: Bench) -> None:
    """500 pods that fit on 20 nodes: all are bound, with one write each."""
    luck = dice("burst")
    safe = mixed_nodes(bench, 20, luck)
    sizes = [luck.choice(SIZES) for _ in range(PODS)]
    check(sum(sizes) <= safe, f"{sum(sizes)} of {safe}: the test itself does not fit")
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    bench.pods([f"p{i:03}" for i in range(PODS)], sizes)
    bench.wait_bound(PODS, kicking=True)
    truth = bench.verify(daemon)
    check(len(truth.bound()) == PODS, f"{len(truth.bound())} bound")
    check(all(len(entry["pod"]) > 0 for entry in daemon.log("bound")), "log lines without a pod")


@scenario("real")
def oversubscribed(bench: Bench) -> None:
    """More pods than fit: each pending pod fits on no card, and its condition says so."""
    luck = dice("oversubscribed")
    for i, (cards, size) in enumerate([(2, 8), (3, 12), (4, 16), (8, 7), (1, 40)]):
        bench.node(f"n{i}", cards, size, remainder=i)
    room = 2 * 8 + 3 * 12 + 4 * 16 + 8 * 7 + 40
    sizes = []
    while sum(sizes) < room * 1.3:
        sizes.append(luck.choice([2, 3, 5, 6, 7, 8, 9, 11, 13, 16]))
    sizes.append(41)  # larger than every card, smaller than some nodes
    daemon = bench.cardpack()
    bench.pods([f"p{i:03}" for i in range(len(sizes))], sizes)
    wait_for(lambda: _settled(bench), "what is pending to be hopeless", PATIENCE, poll=1.0)
    truth = bench.verify(daemon)
    pending = truth.pending()
    check(pending and len(pending) + len(truth.bound()) == len(sizes), f"{len(pending)} pending")
    for pod in pending:
        nodes = truth.room_for(size_of(pod))
        check(not nodes, f"{name_of(pod)} of {size_of(pod)} is pending, and fits on {nodes}")
        # cardpack refuses some nodes for lack of a card; the scheduler itself refuses others by their
        # sum.
        text = message(bench.get(pod["metadata"]["name"]))
        check("nsufficient" in text, f"{name_of(pod)}: {text!r}")
    # A bind without filter is refused as well, and reserves nothing.
    for pod in pending[:5]:
        for node in truth.nodes:
            error = daemon.bind(pod, node)
            check("can't hold pod" in error and "free" in error, f"bind to {node}: {error!r}")
    bench.verify(daemon)


def _settled(bench: Bench) -> bool:
    """No pending pod fits, and the scheduler has said so for each of them."""
    bench.kick()
    truth = bench.truth()
    return all(message(pod) and not truth.room_for(size_of(pod)) for pod in truth.pending())


@scenario("valgrind")
def memcheck(bench: Bench) -> None:
    """A small burst with cardpack under valgrind's memcheck: no error, no leak."""
    luck = dice("memcheck")
    for i in range(4):
        bench.node(f"n{i}", 2 + i, 16)
    daemon = bench.cardpack(binary=bench.options.plain, valgrind=True)
    bench.pods([f"p{i:02}" for i in range(50)], [luck.choice([1, 2, 3]) for _ in range(50)])
    bench.wait_bound(50, kicking=True)
    for i in range(0, 50, 3):
        bench.cluster.delete_pod(f"p{i:02}", bench.namespace)
    bench.resize("n0", gpu_mem=64, gpu_count=4)
    bench.unhealthy("n1", "0, 2,x")
    for body in (b"", b"{", b"[]", b'{"Pod":{},"NodeNames":[1]}', b'{"Pod":null}'):
        daemon.call("POST", "/gpushare-scheduler/filter", body)
        daemon.call("POST", "/gpushare-scheduler/bind", body)
    bench.cluster.apiserver.restart()
    bench.node("n9", 1, 4)
    agree(daemon, bench.truth)


@scenario("real")
def halves_of_two_cards(bench: Bench) -> None:
    """
    16 pods of half a card at once, on two cards, again and again: four are bound, two a card. Another
    scheduler has put more than two on a card in this burst (KAI-Scheduler's issue 2153).
    """
    rounds = int(os.environ.get("HALVES_ROUNDS", "8"))
    bench.node("n1", 2, 16)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    for turn in range(rounds):
        names = [f"r{turn:03}-{i:02}" for i in range(16)]
        bench.pods(names, [8] * len(names))
        wait_for(lambda: _decided(bench, names), f"round {turn} decided", PATIENCE)
        truth = bench.truth()
        node = truth.nodes["n1"]
        check(sorted(map(len, node.pods)) == [2, 2], f"round {turn}: {node.pods}")
        check(not truth.overcommitted(), truth.overcommitted())
        path = f"/api/v1/namespaces/{bench.namespace}/pods"
        bench.cluster.must("DELETE", path, {"gracePeriodSeconds": 0}, timeout=60)
        wait_for(lambda: not bench.truth().pods, "no pods", PATIENCE)
        agree(daemon, bench.truth)


def _decided(bench: Bench, names: list[str]) -> bool:
    """Whether four of the pods are bound, and cardpack or the scheduler has refused the others."""
    bench.kick()
    bound = [name for name in names if bench.get(name)["spec"].get("nodeName")]
    told = [name for name in names if name not in bound and message(bench.get(name))]
    return len(bound) == 4 and len(told) == 12
