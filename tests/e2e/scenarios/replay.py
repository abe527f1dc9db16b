"""The policy bid-price in kube-scheduler: each pod is where cardpack-sim has it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from arrivals import (
    NO_LESSON,
    Arrival,
    Arriving,
    Lesson,
    Node,
    Trace,
    make_node,
    share_of,
    simulate,
)
from bench import Bench, Skipped, agree, check, dice, scenario
from share_truth import ShareTruth

POLICY = "bid-price"
# CPU, MiB of memory, cards, parts of a card, models; and how many of 100 pods are such pods.
SHAPES = (
    (Arrival(4000, 8192, 1, 1000, ""), 20),
    (Arrival(6000, 12288, 1, 460, ""), 18),
    (Arrival(8000, 16384, 1, 810, ""), 14),
    (Arrival(2000, 4096, 1, 250, ""), 14),
    (Arrival(1000, 2048, 1, 120, ""), 12),
    (Arrival(12000, 30720, 1, 500, "V100|T4"), 8),
    (Arrival(3000, 8192, 1, 330, "T4"), 6),
    (Arrival(16000, 32768, 2, 1000, ""), 5),
    (Arrival(40000, 131072, 4, 1000, ""), 3),
)
# What the allocated share may differ by, in percent of all card memory, if the daemon learned at other
# times than cardpack-sim: one pod of four cards, two of two.
TOLERANCE = 8.0


def small_trace(random_numbers: random.Random) -> Trace:
    """12 nodes with 72 cards, and pods that ask for 130 % of them."""
    nodes = [Node(f"v{i}", 64000, 524288, 8, "V100") for i in range(4)]
    nodes += [Node(f"t{i}", 64000, 262144, 8, "T4") for i in range(4)]
    nodes += [Node(f"p{i}", 32000, 131072, 2, "P100") for i in range(4)]
    shapes, weights = zip(*SHAPES, strict=True)
    pods: list[Arrival] = []
    trace = Trace(nodes, pods)
    left = trace.capacity * 130 // 100
    while left > 0:
        pods += random_numbers.choices(shapes, weights)
        left -= pods[-1].size
    return trace


def on_time(lessons: Sequence[Lesson]) -> bool:
    """Whether each lesson began when cardpack-sim would begin it: with the pod that was due."""
    before = [NO_LESSON, *lessons]
    return all(one.pods == was.next_due for was, one in zip(before, lessons))  # noqa: B905


@scenario("real")
def bid_price_as_simulated(bench: Bench) -> None:
    """
    Pods ask for 130 % of all cards, one after the other. With shortlist 1 and bid-price each one is on
    the node that cardpack-sim gives it, and not on that of binpack; those that fit nowhere are the same.
    """
    if bench.minor < 27:
        raise Skipped("a pod can't have a scheduling gate")
    trace = small_trace(dice("bid-price-as-simulated"))
    simulator = bench.options.binary.parent / "cardpack-sim"
    folder = bench.workdir / "replay"
    expected = simulate(simulator, trace, POLICY, folder)
    check(expected != simulate(simulator, trace, "binpack", folder), "the policies do not differ")
    check("" in expected, "all pods fit")
    for node in trace.nodes:
        make_node(bench.cluster, node)
    daemon = bench.cardpack(
        "--shortlist", "1", "--node-policy", POLICY, "--card-policy", POLICY
    )
    agree(daemon, bench.truth)
    arriving = Arriving(bench.cluster, bench.namespace, daemon, settled=True)
    try:
        places = list(arriving.all(trace.pods))
    finally:
        arriving.close()
    lessons = arriving.lessons.look()
    check(lessons, "no lesson")
    if on_time(lessons):
        wrong = [
            (i, real or arriving.refusals[i], sim)
            for i, (real, sim) in enumerate(zip(places, expected, strict=True))
            if real != sim
        ]
        check(not wrong, f"{len(wrong)} pods are elsewhere; pod, node, simulated: {wrong[:5]}")
    else:  # on a slow machine the daemon also learns because 30 s are over
        real, sim = (share_of(trace, nodes) for nodes in (places, expected))
        check(abs(real - sim) < TOLERANCE, f"{real:.2f} % allocated, simulated {sim:.2f} %")
    pods = bench.cluster.list_all(f"/api/v1/namespaces/{bench.namespace}/pods")
    truth = ShareTruth(bench.cluster.list_all("/api/v1/nodes"), pods)
    check(len(pods) == len(places) - places.count(""), f"{len(pods)} pods")
    check(not truth.faults(), truth.faults())
