"""Pods of one size, which gpushare's device plugin can't distinguish: docs/policy.md."""

from __future__ import annotations

import random

from bench import PATIENCE, check
from component import wait_for
from daemon import VERBS
from gpushare import as_bound, cards_by_plugin
from ground import Ground, on_all_grounds
from truth import ASSIGNED, ASSUME_TIME, DEV, IDX, POD, place_of

WAITS = "Waits: the device plugin has not yet acknowledged a pod of the same size"
SPREAD = {"cardpack.io/card-policy": "spread"}


def bound(ground: Ground, names: list[str]) -> list[str]:
    """The bound pods; on the fake API server these are all that fit."""
    if not ground.scheduled:
        for name in names:
            pod = ground.get(name)
            if not place_of(pod) and ground.daemon.fitting(pod, ["n1"]):
                error = ground.daemon.bind(pod, "n1")
                check(not error, f"{name}: {error}")
    return [name for name in names if place_of(ground.get(name))]


def touch(ground: Ground, names: list[str], turn: int) -> None:
    """
    Changes pods: old schedulers retry a pod only if it changes, not if another one is acknowledged.
    """
    if not ground.modern:
        for name in names:
            ground.annotate_pod(name, {"example.com/turn": str(turn)})


def card_of(ground: Ground, name: str) -> int:
    return int(ground.get(name)["metadata"]["annotations"][IDX])


@on_all_grounds
def equal_pods_wait(ground: Ground) -> None:
    """
    swap-guard: require. The kubelet admits the waiting pods in any order, turn after turn: each
    container gets its pod's card, and all pods are bound.
    """
    dice = random.Random(f"cardpack swaps {ground.seed}")
    ground.node("n1", 6, 8)
    daemon = ground.cardpack("--swap-guard=require")
    sizes = {f"p{i}": 4 if i < 6 else 3 for i in range(9)}
    for name, size in sizes.items():
        ground.pod(name, size, notes=SPREAD)
    left, turns = list(sizes), 0
    while left:
        touch(ground, left, turns)
        here = wait_for(lambda: bound(ground, left), f"one of {left} bound", PATIENCE)
        ground.settle()
        here = bound(ground, left)
        dice.shuffle(here)
        wanted = {name: card_of(ground, name) for name in here}
        for size in set(sizes.values()):
            cards = {wanted[name] for name in here if sizes[name] == size}
            check(len(cards) < 2, f"those of {size} wait on {cards}")
        got = cards_by_plugin(ground, "n1", here)
        check(got == wanted, f"--seed {ground.seed}: the plugin gives {got}, not {wanted}")
        left = [name for name in left if name not in here]
        turns += 1
    check(turns > 1, "none had to wait")
    used = {dev["id"]: dev["usedGPU"] for dev in daemon.inspect("n1")["nodes"][0]["devs"]}
    check(sum(used.values()) == sum(sizes.values()), used)
    as_bound(ground)


@on_all_grounds
def a_pod_waits_for_its_equal(ground: Ground) -> None:
    """
    It is refused with that reason. If the plugin acknowledges nothing, it waits until the first pod runs.
    """
    ground.node("n1", 2, 4)
    ground.cardpack("--swap-guard=require")
    check(ground.placed("first", 4) == [0], "first")
    ground.turned_away("second", 4, WAITS)
    check(ground.placed("other", 3) == [1], "another size")
    ground.delete("other")
    ground.running("first")
    check(ground.placed("third", 4) == [1], "third: the first one runs")


@on_all_grounds
def equal_pods_are_swapped(ground: Ground) -> None:
    """swap-guard: off, and the kubelet admits the second pod first: the swap that the guard prevents."""
    ground.node("n1", 2, 4)
    ground.cardpack("--swap-guard=off")
    check(ground.placed("first", 4) == [0], "first")
    check(ground.placed("second", 4) == [1], "second")
    got = cards_by_plugin(ground, "n1", ["second", "first"])
    check(got == {"second": 0, "first": 1}, f"the plugin gives {got}")
    as_bound(ground)


@on_all_grounds
def a_node_without_a_swap_is_preferred(ground: Ground) -> None:
    """Shortlist and prioritize prefer it among equally full nodes; a fuller node still comes first."""
    for name in ("a", "b", "c"):
        ground.node(name, 2, 8)
    notes = {IDX: "0", DEV: "8", POD: "8", ASSUME_TIME: "1"}
    ground.bound_by_hand("waits", 8, "a", notes | {ASSIGNED: "false"})
    ground.bound_by_hand("runs", 8, "b", notes | {ASSIGNED: "true"})
    asks = ground.draft("asks", 8)
    asks["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    names = ["a", "b", "c"]
    for guard, best, scores in (
        ("off", "a", {"a": 10, "b": 10, "c": 9}),
        ("prefer", "b", {"a": 9, "b": 10, "c": 8}),
        ("require", "b", {"a": 0, "b": 10, "c": 9}),
    ):
        daemon = ground.cardpack(f"--swap-guard={guard}", "--shortlist=1")
        ground.settle()
        check(daemon.fitting(asks, names) == [best], f"{guard}: {daemon.fitting(asks, names)}")
        ask = {"Pod": asks, "Nodes": None, "NodeNames": names}
        _, answer = daemon.call("POST", f"{VERBS}/prioritize", ask)
        said = {item["Host"]: item["Score"] for item in answer}
        check(said == scores, f"{guard}: {said}")
        daemon.stop()
    ground.cardpack()
