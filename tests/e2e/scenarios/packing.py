"""The choice of a card: the examples of gpushare's documents, and the messages without a feasible
card.
"""

from __future__ import annotations

import time

from bench import NOBODY, PATIENCE, Bench, agree, check, message, scenario
from component import wait_for
from share_truth import CORES, GPU_COUNT
from truth import IDX

from cluster import GPU_MEM

NO_CARD = "Insufficient GPU Memory in one device"


def card_of(bench: Bench, name: str) -> str:
    """The card in a bound pod's annotation."""
    pod = wait_for(
        lambda: (p := bench.get(name))["spec"].get("nodeName") and p, f"{name} bound", PATIENCE
    )
    card: str = pod["metadata"]["annotations"][IDX]
    return card


@scenario("real")
def tightest_card(bench: Bench) -> None:
    """With 12207, 8138, 4069 and 16276 MiB free on four cards, a pod of 8138 gets the second one."""
    bench.node("n1", 4, 16276)
    for card, used in enumerate([16276 - 12207, 16276 - 8138, 16276 - 4069]):
        bench.placed_pod(f"held{card}", used, "n1", card)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    bench.pod("asked", 8138)
    check(card_of(bench, "asked") == "1", "not the card that it fits exactly")
    bench.pod("next", 8138)  # the least free card that still fits
    check(card_of(bench, "next") == "0", "not the next tightest card")
    bench.pod("whole", 16276)
    check(card_of(bench, "whole") == "3", "not the empty card")
    bench.verify(daemon)


@scenario("real")
def one_card_first(bench: Bench) -> None:
    """Three pods of 2 on two cards of 16 share one card; the sum of a pod's containers counts."""
    bench.node("n1", 2, 16)
    daemon = bench.cardpack()
    for name in ("a", "b", "c"):
        bench.pod(name, 2)
        check(card_of(bench, name) == "0", f"{name} is on another card")
    bench.pod("two", [5, None, 4])  # 9 of the 10 that are left
    check(card_of(bench, "two") == "0", "two containers are on another card")
    init = {
        "name": "i",
        "image": "example.invalid/none",
        "resources": {"limits": {"aliyun.com/gpu-mem": "16"}},
    }
    bench.pod("init", 2, spec={"initContainers": [init]})
    check(card_of(bench, "init") == "1", "an init container's 16 are on another card")
    bench.verify(daemon)


def event_of(bench: Bench, name: str, part: str) -> str:
    """Waits for kube-scheduler's event that the pod is not scheduled because of this; its message."""

    def told() -> str:
        path = f"/api/v1/namespaces/{bench.namespace}/events"
        for event in bench.cluster.list_all(path):
            ours = event["involvedObject"]["name"] == name and event["reason"] == "FailedScheduling"
            if ours and part in event["message"]:
                return str(event["message"])
        return ""

    return wait_for(told, f"{part!r} in an event of {name}")


@scenario("real")
def no_card_fits(bench: Bench) -> None:
    """A node's sum has room and no card has: the pod stays pending, and users see the reason."""
    bench.node("n1", 2, 8)
    bench.placed_pod("h0", 5, "n1", 0)
    bench.placed_pod("h1", 5, "n1", 1)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    bench.pod("asked", 5)
    wait_for(lambda: NO_CARD in message(bench.get("asked")), "the reason in the condition")
    event_of(bench, "asked", NO_CARD)
    # The pod only needs room on one card, and the deletion makes it. But if the scheduler's watch is
    # ahead of cardpack's, the scheduler's retry comes too early, and it needs another event.
    bench.cluster.delete_pod("h1", bench.namespace)
    agree(daemon, bench.truth)
    until = time.monotonic() + 10
    while not bench.get("asked")["spec"].get("nodeName") and time.monotonic() < until:
        time.sleep(0.1)
    if not bench.get("asked")["spec"].get("nodeName"):
        bench.kick()
    check(card_of(bench, "asked") == "1", "not on the card that became free")
    bench.verify(daemon)


@scenario("real")
def compute_without_memory(bench: Bench) -> None:
    """A pod that requests only compute is not bound; its event says which limit to add."""
    bench.cluster.create_node("n1", {GPU_MEM: 8, GPU_COUNT: 1, CORES: 100})
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    bench.pod("asked", None, resources={CORES: 30})
    told = event_of(bench, "asked", CORES)
    check(f'{CORES}: "30" without {GPU_MEM}: add a limit {GPU_MEM}' in told, told)
    bench.pod("mended", 4, resources={CORES: 30})
    check(card_of(bench, "mended") == "0", "mended")
    check(not bench.get("asked")["spec"].get("nodeName"), "asked is bound")
    bench.verify(daemon)


@scenario("real")
def percent_sign_in_a_reason(bench: Bench) -> None:
    """kube-scheduler uses a reason as a format: what an annotation has reaches the user readable."""
    bench.node("n1", 1, 8)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    bench.pod("quarter", 1, annotations={"cardpack.io/gpu-mem-percent": "25%"})
    told = event_of(bench, "quarter", "cardpack.io/gpu-mem-percent")
    rule = '"25 percent" must be a whole number from 1 to 100, without a percent sign'
    # kube-scheduler sends the event and the condition beside each other.
    said = wait_for(lambda: message(bench.get("quarter")), "the condition")
    for text in (told, said):
        check(rule in text and "MISSING" not in text and "%!" not in text, text)
    check(not bench.get("quarter")["spec"].get("nodeName"), "quarter is bound")
    bench.verify(daemon)


@scenario("real")
def pods_without_cards(bench: Bench) -> None:
    """A pod without a request for cards is ignored; a pod that requests 0 is bound without a card."""
    bench.node("n1", 1, 8)
    daemon = bench.cardpack()
    bench.cluster.create_pod("plain", bench.namespace)
    zero = bench.pod("zero", 0)
    wait_for(lambda: bench.get("plain")["spec"].get("nodeName"), "plain bound", PATIENCE)
    wait_for(lambda: bench.get("zero")["spec"].get("nodeName"), "zero bound", PATIENCE)
    check(IDX not in bench.get("zero")["metadata"].get("annotations", {}), "zero has a card")
    check(daemon.bind(zero, "n1") == "", "bound again there")
    mine = bench.cluster.create_pod("mine", bench.namespace, scheduler_name=NOBODY)
    check(daemon.bind(mine, "n1") == "", "a pod that wants nothing")
    check(bench.get("mine")["spec"].get("nodeName") == "n1", "mine is not bound")
    bench.verify(daemon)
