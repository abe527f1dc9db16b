"""All kinds of requests, each in a pod; and requests that contradict themselves."""

from __future__ import annotations

import json

from bench import check
from ground import NO_CARD, Ground, card, on_all_grounds
from share_truth import (
    AFFINITY,
    ALLOCATION,
    ANTI_AFFINITY,
    CORE_ALLOCATION,
    CORES,
    COUNT_LABEL,
    PERCENT,
    PLACEMENT,
    WHOLE,
)
from truth import DEV, IDX, POD

SPREAD = {"cardpack.io/card-policy": "spread"}


def note(ground: Ground, name: str, key: str) -> object:
    """A bound pod's annotation, parsed as JSON."""
    text = ground.get(name)["metadata"]["annotations"].get(key)
    return None if text is None else json.loads(text)


@on_all_grounds
def several_cards(ground: Ground) -> None:
    """N over M cards: N/M of memory and of compute on each of M different cards."""
    ground.node("n1", 4, 16)
    ground.cardpack()
    two = {COUNT_LABEL: "2"}
    cards = ground.placed("two", 16, cores=60, labels=two)
    check(len(cards) == 2, f"two is on {cards}")
    each = {str(index): 8 for index in cards}
    check(note(ground, "two", ALLOCATION) == {"0": each}, "two's allocation")
    half = {str(index): 30 for index in cards}
    check(note(ground, "two", CORE_ALLOCATION) == {"0": half}, "two's compute")
    check(ground.placed("four", 32, labels={COUNT_LABEL: "4"}) == [0, 1, 2, 3], "four's cards")
    # Two cards have 8 left, two have nothing.
    ground.turned_away("three", 12, NO_CARD, labels={COUNT_LABEL: "3"})
    ground.turned_away("five", 5, "fewer", labels={COUNT_LABEL: "5"})
    check(not {*ground.placed("full", 16, labels=two)} & {*cards}, "full")
    notes = ground.get("four")["metadata"]["annotations"]
    check((notes[IDX], notes[DEV], notes[POD]) == ("0,1,2,3", "16", "32"), notes)


@on_all_grounds
def whole_cards(ground: Ground) -> None:
    """Empty cards, held whole for any amount requested; the scheduler's sum counts N."""
    whole = {PLACEMENT: WHOLE}
    ground.node("n1", 4, 8)
    ground.cardpack()
    check(ground.placed("small", 2) == [0], "small")
    cards = ground.placed("whole", 12, labels=whole | {COUNT_LABEL: "2"})
    check(len(cards) == 2 and 0 not in cards, f"whole is on {cards}, small on 0")
    one = ground.placed("one", 1, labels=whole)
    check(len(one) == 1 and not {0, *cards} & {*one}, f"one is on {one}")
    ground.turned_away("none-empty", 1, "No whole GPU device is free", labels=whole)
    check(ground.placed("beside", 6) == [0], "beside small")
    ground.turned_away("nowhere", 2, NO_CARD)
    ground.delete("whole")
    ground.turned_away("too-large", 9, NO_CARD, labels=whole)
    check(ground.placed("again", 8, labels=whole)[0] in cards, "again")


@on_all_grounds
def compute_share(ground: Ground) -> None:
    """Compute, 100 for each card, next to memory: the scarcer one decides."""
    ground.node("n1", 2, 16)
    ground.cardpack()
    check(ground.placed("a", 4, cores=60) == [0], "a")
    check(note(ground, "a", CORE_ALLOCATION) == {"0": {"0": 60}}, "a's compute")
    check(note(ground, "a", ALLOCATION) == {"0": {"0": 4}}, "a's memory")
    check(ground.placed("b", 4, cores=50) == [1], "60 and 50 on one card")
    ground.turned_away("c", 1, "Insufficient GPU compute in one device", cores=51)
    check(ground.placed("d", [2, 2], cores=[25, 15]) == [0], "the containers' 40 beside 60")
    check(note(ground, "d", CORE_ALLOCATION) == {"0": {"0": 25}, "1": {"0": 15}}, "d's compute")
    check(ground.placed("e", 8) == [0], "memory alone, on a card without compute left")
    check(ground.placed("f", 12, cores=50) == [1], "f")


@on_all_grounds
def containers_apart(ground: Ground) -> None:
    """A pod's containers share a card if they fit, else each gets its own."""
    ground.node("n1", 2, 8)
    ground.cardpack()
    check(ground.placed("apart", [6, None, 5]) == [0, 1], "apart")
    check(note(ground, "apart", ALLOCATION) == {"0": {"0": 6}, "2": {"1": 5}}, "apart's")
    check(ground.placed("together", [1, 1]) == [0], "together")
    check(note(ground, "together", ALLOCATION) == {"0": {"0": 1}, "1": {"0": 1}}, "together's")
    ground.delete("together")
    # 2 and 3 are left.
    ground.turned_away("one-card", [2, 2], NO_CARD, labels={COUNT_LABEL: "1"})
    ground.turned_away("too-large", [1, 4], NO_CARD)
    check(ground.placed("rest", [2, 3]) == [0, 1], "rest")


@on_all_grounds
def percent_of_a_card(ground: Ground) -> None:
    """A percentage of the chosen card's size, rounded up; the limit is the minimum."""
    ground.node("n1", [card(0, 10), card(1, 24)])
    ground.cardpack()
    quarter = {PERCENT: "25"}
    check(ground.placed("small", 1, notes=quarter) == [0], "small")
    check(note(ground, "small", ALLOCATION) == {"0": {"0": 3}}, "a quarter of 10 is 3")
    check(ground.placed("least", 5, notes={PERCENT: "10"}) == [0], "least")
    check(note(ground, "least", ALLOCATION) == {"0": {"0": 5}}, "10 % of 10, and 5 at least")
    check(ground.placed("large", 1, notes=quarter) == [1], "large: 2 of 10 are left")
    check(note(ground, "large", ALLOCATION) == {"0": {"1": 6}}, "a quarter of 24")
    both = ground.placed("both", 2, notes={PERCENT: "20"}, labels={COUNT_LABEL: "2"})
    check(both == [0, 1], "both")
    check(note(ground, "both", ALLOCATION) == {"0": {"0": 2, "1": 5}}, "a fifth of each")
    ground.turned_away("most", 1, NO_CARD, notes={PERCENT: "60"})
    check(ground.placed("rest", 1, notes={PERCENT: "50"}) == [1], "rest")


@on_all_grounds
def init_containers_keep(ground: Ground) -> None:
    """A node's reboot runs init containers again, so no other pod gets their memory."""
    ground.node("n1", 2, 8)
    daemon = ground.cardpack()
    check(ground.placed("first", 2, init=[8, 3]) == [0], "first")
    check(ground.placed("second", 6) == [1], "second beside an init container of 8")
    ground.initialized("first")
    used = {dev["id"]: dev["usedGPU"] for dev in daemon.inspect("n1")["nodes"][0]["devs"]}
    check(used == {0: 8, 1: 6}, f"after the init containers: {used}")
    check(ground.placed("third", 2, notes=SPREAD) == [1], "third")


@on_all_grounds
def init_containers_end(ground: Ground) -> None:
    """With shrink-after-init their extra memory is free after they end: on the card, not in the sum."""
    ground.node("n1", 2, 8)
    daemon = ground.cardpack("--shrink-after-init=true")
    check(ground.placed("first", 2, init=[8, 3]) == [0], "first")
    check(ground.placed("second", 6) == [1], "second beside an init container of 8")
    probe = ground.pod("probe", 2, notes=SPREAD)  # 2 are left in the sum, all on card 1
    check(ground.cards("probe") == [1], "probe is on the init container's card")
    ground.delete("probe")
    ground.initialized("first")
    used = {dev["id"]: dev["usedGPU"] for dev in daemon.inspect("n1")["nodes"][0]["devs"]}
    check(used == {0: 2, 1: 6}, f"after the init containers: {used}")
    check(ground.placed("third", 2, notes=SPREAD) == [0], "third")
    # The sum of the scheduler and of the kubelet is now 16 of 16: cardpack offers no more either.
    probe = ground.pod("probe", 1)
    check(daemon.reason(probe, "n1") != "", "offered past the kubelet's sum")
    ground.delete("probe")


@on_all_grounds
def init_containers_alone(ground: Ground) -> None:
    """Only init containers request a card: one runs at a time, all on one card."""
    ground.node("n1", 3, 8)
    ground.cardpack()
    check([ground.placed(f"held{i}", 5 + i % 2)[0] for i in range(3)] == [0, 1, 2], "held")
    ground.turned_away("none", None, NO_CARD, init=[1, 4])
    check(ground.placed("fits", None, init=[1, 2])[0] == 1, "fits")


@on_all_grounds
def sidecars(ground: Ground) -> None:
    """Sidecars run as long as the main containers. 1.20 treats them as ordinary init containers."""
    ground.node("n1", 3, 8)
    ground.cardpack()
    check(ground.placed("one", 4, sidecars=[3], init=[2]) == [0], "one")
    notes = ground.get("one")["metadata"]["annotations"]
    check(notes[POD] == ("7" if ground.modern else "4"), notes)
    cards = ground.placed("apart", 5, sidecars=[6])
    allocation = note(ground, "apart", ALLOCATION)
    if ground.modern:
        check(cards == [1, 2], cards)
        places = ({"0": {"1": 5}, "1": {"2": 6}}, {"0": {"2": 5}, "1": {"1": 6}})
        check(allocation in places, allocation)
    else:
        check(cards == [1] and allocation == {"0": {"1": 5}}, (cards, allocation))


CONTRADICTIONS: dict[str, tuple[int | list[int], dict[str, object], tuple[str, ...]]] = {
    "not-divided": (8, {"labels": {COUNT_LABEL: "3"}}, (COUNT_LABEL, "3", "8")),
    "no-number": (8, {"labels": {COUNT_LABEL: "two"}}, (COUNT_LABEL, '"two"')),
    "no-cards": (8, {"labels": {COUNT_LABEL: "0"}}, (COUNT_LABEL, '"0"')),
    "half-a-card": (8, {"labels": {PLACEMENT: "half-device"}}, (PLACEMENT, '"half-device"')),
    "percent-over": (1, {"notes": {PERCENT: "101"}}, (PERCENT, '"101"')),
    "percent-negative": (1, {"notes": {PERCENT: "-5"}}, (PERCENT, '"-5"')),
    "percent-no-number": (1, {"notes": {PERCENT: "much"}}, (PERCENT, '"much"')),
    "cores-not-divided": (
        8,
        {"labels": {COUNT_LABEL: "2"}, "cores": 15},
        (COUNT_LABEL, CORES, "15"),
    ),
    "cores-over": (8, {"cores": 101}, (CORES, "101")),
    "cores-over-two": (
        8,
        {"labels": {COUNT_LABEL: "2"}, "cores": 202},
        (CORES, "202"),
    ),
    "same-and-another": (8, {"notes": {AFFINITY: "g", ANTI_AFFINITY: "g"}}, (ANTI_AFFINITY, '"g"')),
    "policy": (8, {"notes": {"cardpack.io/policy": "tight"}}, ("cardpack.io/policy", '"tight"')),
    "card-policy": (
        8,
        {"notes": {"cardpack.io/card-policy": "Spread!"}},
        ("cardpack.io/card-policy", '"Spread!"'),
    ),
}


@on_all_grounds
def contradictions(ground: Ground) -> None:
    """Refused on every node; users see the field and the value."""
    ground.node("n1", 4, 16)
    ground.node("n2", 4, 16)
    daemon = ground.cardpack()
    for name, (mem, options, _) in CONTRADICTIONS.items():
        ground.pod(name, mem, **options)  # type: ignore[arg-type]
    for name, (_, _, parts) in CONTRADICTIONS.items():
        ground.refused(name, *parts)
        failed = daemon.filter(ground.get(name), ["n1", "n2"])["FailedNodes"]
        check(failed.keys() == {"n1", "n2"}, f"{name}: {failed}")
    # A bind without filter refuses them too.
    error = daemon.bind(ground.get("no-number"), "n1")
    check(COUNT_LABEL in error, error)
    ground.delete(*CONTRADICTIONS)
