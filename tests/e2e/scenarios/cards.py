"""The cards of a node: card tables, unusable cards, and pods that cardpack did not bind."""

from __future__ import annotations

import json

from bench import check
from ground import NO_CARD, Ground, card, on_all_grounds
from share_truth import (
    ALLOCATION,
    CARDS,
    CORDONED,
    CORES,
    COUNT_LABEL,
    EXCLUSIVE,
    EXCLUSIVE_CARDS,
    MAX_PODS,
)
from truth import DEV, IDX

from cluster import GPU_MEM

SIZES = [card(0, 16), card(2, 8), card(5, 24)]


@on_all_grounds
def table_of_cards(ground: Ground) -> None:
    """Cards of different sizes, with gaps between their indices."""
    ground.node("n1", SIZES)
    ground.cardpack()
    check(ground.placed("large", 20) == [5], "large")
    check(ground.get("large")["metadata"]["annotations"][DEV] == "24", "large's card has 24")
    check(ground.placed("exact", 8) == [2], "exact")
    check(ground.get("exact")["metadata"]["annotations"][DEV] == "8", "exact's card has 8")
    ground.turned_away("huge", 17, NO_CARD)
    check(ground.placed("both", 8, labels={COUNT_LABEL: "2"}) == [0, 5], "both")
    notes = ground.get("both")["metadata"]["annotations"]
    check((notes[IDX], notes[DEV]) == ("0,5", "16"), notes)
    # The table changes: bound pods keep their cards, and a new card is usable at once.
    ground.annotate_node("n1", annotations={CARDS: json.dumps([*SIZES, card(7, 4)])})
    ground.settle()
    check(ground.placed("new", 4) == [7], "the tightest card is the new one")


BAD_TABLES = (
    ("[{", ""),
    ('{"index":0,"memory":8}', ""),
    ('[{"index":0}]', "memory"),
    ('[{"index":0,"memory":"much"}]', "memory"),
    ('[{"index":0,"memory":-8}]', "memory"),
    ('[{"memory":8}]', "index"),
    ('[{"index":-1,"memory":8}]', "index"),
    ('[{"index":0,"memory":8},{"index":0,"memory":8}]', "index"),
    ('[{"index":0,"memory":8,"health":"Soso"}]', "health"),
    ('[{"index":0,"memory":8,"numa":"left"}]', "numa"),
)


@on_all_grounds
def bad_tables(ground: Ground) -> None:
    """An invalid table: the node takes no pods, and the reason names the field."""
    ground.node("n1", 1, 8)
    ground.cardpack()
    for table, field in BAD_TABLES:
        ground.annotate_node("n1", annotations={CARDS: table})
        ground.comes_to_refuse("n1", 8, CARDS, field)
        ground.annotate_node("n1", annotations={CARDS: None})
        ground.comes_to_fit("n1", 8)
    ground.annotate_node("n1", annotations={CARDS: "[{}]"})
    ground.comes_to_refuse("n1", 8, CARDS)
    ground.pod("waits", 8)
    ground.refused("waits", CARDS, "index")
    ground.must("DELETE", f"/api/v1/namespaces/{ground.namespace}/pods/waits")
    ground.annotate_node("n1", annotations={CARDS: None})
    ground.comes_to_fit("n1", 8)
    check(ground.placed("after", 8) == [0], "after")


@on_all_grounds
def cards_left_out(ground: Ground) -> None:
    """Cards that are cordoned, unhealthy by the table, or unhealthy by the ConfigMap get no new pods."""
    table = [card(i, 8, health="Unhealthy" if i == 2 else "Healthy") for i in range(5)]
    ground.node("n1", table, notes={CORDONED: "0, 4"})
    ground.unhealthy("n1", "1")
    ground.cardpack()
    check(ground.placed("only", 4) == [3], "only card 3 is to be used")
    ground.turned_away("more", 5, NO_CARD)
    ground.turned_away("two", 4, "fewer", labels={COUNT_LABEL: "2"})
    # Pods on a cordoned card stay; after the uncordon the card gets new pods again.
    ground.annotate_node("n1", annotations={CORDONED: "3"})
    ground.comes_to_fit("n1", 8)
    check(ground.placed("next", 4) == [0], "the lowest card that is not cordoned any more")


@on_all_grounds
def bound_past_cardpack(ground: Ground) -> None:
    """Pods bound by later releases of gpushare, or by hand: the allocation counts; without a valid
    one each card of the index does. Both must agree: a copied manifest carries another pod's annotations.
    """
    ground.node("n1", 3, 16)
    for name, mem, notes in (
        ("two-cards", 8, {ALLOCATION: '{"0":{"0":4,"2":4}}'}),
        ("allocation-first", 3, {ALLOCATION: '{"0":{"1":3}}', IDX: "1"}),
        ("odd-card", 5, {ALLOCATION: '{"0":{"x":5}}', IDX: "1"}),
        ("torn", 3, {ALLOCATION: '{"0":{"0"', IDX: "2"}),
        ("several", 2, {IDX: "0,1"}),
        ("nowhere", 1, {}),
    ):
        ground.bound_by_hand(name, mem, "n1", notes)
    daemon = ground.cardpack()
    used = {dev["id"]: dev["usedGPU"] for dev in daemon.inspect("n1")["nodes"][0]["devs"]}
    check(used == {0: 6, 1: 10, 2: 7, -1: 1}, used)
    ground.delete("several")  # gpushare's own inspect has it on no card
    ground.settle()
    check(ground.placed("first", 12) == [0], "first")
    ground.turned_away("second", 10, NO_CARD)
    check(ground.placed("third", 9) == [2], "third")
    # Annotations after the bind, as the later releases write them.
    ground.annotate_pod("nowhere", {IDX: "1"})
    ground.settle()
    check(ground.placed("fourth", 7) == [1], "fourth")  # the rest of the node's sum


@on_all_grounds
def pods_on_a_card(ground: Ground) -> None:
    """A card holds at most as many pods as the node's label says, whatever their size."""
    ground.node("n1", 2, 16, labels={MAX_PODS: "2"})
    ground.cardpack()
    check([ground.placed(f"p{i}", 1)[0] for i in range(4)] == [0, 0, 1, 1], "two on each card")
    ground.turned_away("fifth", 1, MAX_PODS)
    ground.delete("p2")
    check(ground.placed("next", 1) == [1], "the place of p2")


@on_all_grounds
def less_allocatable(ground: Ground) -> None:
    """cardpack offers no memory that the kubelet would not admit: allocatable is below capacity."""
    ground.node("n1", 2, 8, allocatable=10)
    daemon = ground.cardpack()
    check(ground.placed("a", 6) == [0], "a")
    check(ground.placed("b", 4) == [1], "b")
    probe = ground.pod("probe", 1)
    check("allocatable" in daemon.reason(probe, "n1"), daemon.reason(probe, "n1"))
    ground.refused("probe")  # a real scheduler refuses it itself: it sums like the kubelet
    ground.delete("probe")


@on_all_grounds
def shared_and_exclusive(ground: Ground) -> None:
    """Shared and exclusive pods: never on one node, or each on its own cards."""
    ground.node("n1", 2, 8, exclusive=2)
    ground.cardpack()
    check(ground.placed("first", 2) == [0], "first")
    ground.turned_away("beside-it", None, GPU_MEM, exclusive=1)
    ground.turned_away("no-memory", None, CORES, GPU_MEM, cores=30)
    ground.delete("first")
    ground.pod("alone", exclusive=1)
    check(IDX not in ground.bound("alone")["metadata"].get("annotations", {}), "alone has a card")
    ground.settle()
    ground.turned_away("beside-alone", 2, EXCLUSIVE)
    ground.delete("alone")
    ground.comes_to_fit("n1", 2)
    check(ground.placed("again", 2) == [0], "again")
    # One of the two cards now belongs to the other device plugin.
    ground.annotate_node("n1", annotations={EXCLUSIVE_CARDS: "1"})
    ground.comes_to_fit("n1", None, exclusive=1)
    ground.pod("divided", exclusive=1)
    ground.bound("divided")
    ground.turned_away("more", 7, NO_CARD)
    check(ground.placed("fits", 6) == [0], "fits")


@on_all_grounds
def exclusive_elsewhere(ground: Ground) -> None:
    """cardpack ignores exclusive pods on a node without shared cards: they are bound as usual."""
    ground.node("n1", 0, exclusive=2)
    ground.node("n2", 1, 8)
    daemon = ground.cardpack()
    ground.pod("alone", exclusive=2)
    check(ground.bound("alone")["spec"]["nodeName"] == "n1", "alone is not on n1")
    ground.settle()
    listed = [node["name"] for node in daemon.inspect()["nodes"]]
    check(listed == ["n2"], f"inspect lists {listed}, and n1 shares no card")
    check(ground.placed("shares", 8) == [0], "shares")
