"""Checks every kind of request against the cards that hold it, without cardpack's code.

A pod's request comes from its spec, labels and annotations; its cards from the annotations of its
Binding; the sizes of the cards from the node. The checks: no card holds more memory or compute than it
has; each container has what it requests, on as many cards as it requests; the pod's conditions on
cards (model, uuid, groups, whole cards, no exclusive card) are met.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from truth import (
    ANNOTATIONS,
    ASSIGNED,
    BY_HAND,
    DEV,
    GPU_COUNT,
    IDX,
    POD,
    index_of,
    name_of,
    place_of,
    whole,
)

from cluster import GPU_MEM

Json = Any
Grants = dict[int, dict[int, int]]  # container: card: amount

CORES = "aliyun.com/gpu-core.percentage"
EXCLUSIVE = "nvidia.com/gpu"
ALLOCATION = "scheduler.framework.gpushare.allocation"
CORE_ALLOCATION = "gpushare.alibabacloud.com/core-percentage"
COUNT_LABEL = "aliyun.com/gpu-count"
PLACEMENT = "ack.gpushare.placement"
WHOLE = "require-whole-device"
PERCENT = "cardpack.io/gpu-mem-percent"
MODEL = "cardpack.io/card-model"
UUID = "cardpack.io/card-uuid"
ENFORCING = ("driver-limits", "mps", "mig")
AFFINITY = "cardpack.io/card-affinity-group"
ANTI_AFFINITY = "cardpack.io/card-anti-affinity-group"
CARDS = "cardpack.io/cards"
CORDONED = "cardpack.io/cordoned-cards"
EXCLUSIVE_CARDS = "cardpack.io/exclusive-cards"
MAX_PODS = "ack.node.gpu.max-pod"


def _notes(item: Json) -> dict[str, str]:
    notes: dict[str, str] = item["metadata"].get("annotations") or {}
    return notes


def _labels(item: Json) -> dict[str, str]:
    labels: dict[str, str] = item["metadata"].get("labels") or {}
    return labels


def live(pod: Json) -> bool:
    """Bound, and neither succeeded nor failed."""
    return bool(place_of(pod)) and pod["status"].get("phase") not in ("Succeeded", "Failed")


# ---- what a pod asks for --------------------------------------------------------------------


@dataclass(frozen=True)
class Container:
    """One container's limits."""

    index: int  # the number in allocations: init containers come after the others
    kind: str  # main, init, sidecar
    mem: int
    cores: int
    exclusive: int


@dataclass(frozen=True)
class Ask:
    """A pod's request; its init containers in their order, then the others."""

    containers: tuple[Container, ...]
    count: int  # of cards; 0: not given
    whole: bool
    percent: int  # of each card; 0: not given
    initialized: bool

    @property
    def shared(self) -> bool:
        """Whether it requests a share of a card."""
        return bool(self.kubelet_mem() or self.percent or self.total("cores"))

    @property
    def plain(self) -> bool:
        """Memory of one container on one card: the only request that the first gpushare had."""
        several = sum(c.mem > 0 for c in self.containers) > 1 or self.count > 1
        return not (several or self.whole or self.percent or self.total("cores"))

    def peaks(self, shrink: bool) -> bool:
        """Whether its init containers count; shrink: the setting shrink-after-init."""
        over = shrink and self.initialized
        return not over and any(c.mem for c in self.containers if c.kind == "init")

    def total(self, what: str) -> int:
        """The formula of kubelet and scheduler since Kubernetes has sidecars."""
        together = sidecars = peak = 0
        for container in self.containers:
            amount: int = getattr(container, what)
            if container.kind == "init":
                peak = max(peak, sidecars + amount)
                continue
            together += amount
            sidecars += amount if container.kind == "sidecar" else 0
        return max(together, peak)

    def kubelet_mem(self) -> int:
        """What the kubelet subtracts from the node's sum."""
        return self.total("mem")

    def stays(self) -> list[Container]:
        """The containers that run as long as the pod does, by index."""
        return sorted((c for c in self.containers if c.kind != "init"), key=lambda c: c.index)


def ask_of(pod: Json) -> Ask:
    """The request, from the spec, the labels and the annotations."""
    spec = pod["spec"]
    mains = spec["containers"]
    containers = []
    for i, item in enumerate(spec.get("initContainers") or []):
        kind = "sidecar" if item.get("restartPolicy") == "Always" else "init"
        containers.append(_container(item, len(mains) + i, kind))
    containers += [_container(item, i, "main") for i, item in enumerate(mains)]
    is_whole = _labels(pod).get(PLACEMENT) == WHOLE
    count = int(_labels(pod).get(COUNT_LABEL, "0"))
    conditions = pod["status"].get("conditions") or []
    return Ask(
        tuple(containers),
        count=count or int(is_whole),
        whole=is_whole,
        percent=int(_notes(pod).get(PERCENT, "0")),
        initialized=any(c["type"] == "Initialized" and c["status"] == "True" for c in conditions),
    )


def _container(item: Json, index: int, kind: str) -> Container:
    limits = item.get("resources", {}).get("limits") or {}
    amounts = [whole(limits.get(name, "0")) for name in (GPU_MEM, CORES, EXCLUSIVE)]
    return Container(index, kind, *amounts)


# ---- which cards it has ---------------------------------------------------------------------


def read_grants(text: str) -> Grants:
    """Parses {"CONTAINER": {"CARD": AMOUNT}}; ValueError says what is invalid."""
    grants: Grants = {}
    for container, cards in json.loads(text).items():
        grants[_index(container)] = {_index(card): amount for card, amount in cards.items()}
        for amount in cards.values():
            if type(amount) is not int or amount < 0:
                raise ValueError(f"{amount!r} is no amount")
    return grants


def _index(text: str) -> int:
    if not (text.isascii() and text.isdigit() and str(int(text)) == text):
        raise ValueError(f"{text!r} is no index")
    return int(text)


def grants_of(pod: Json, ask: Ask) -> Grants:
    """From the allocation; if it is absent or invalid, all on the card of IDX; empty without a card."""
    notes = _notes(pod)
    try:
        if ALLOCATION in notes:
            return read_grants(notes[ALLOCATION])
    except (ValueError, AttributeError):
        pass
    cards = [card for card in map(index_of, notes.get(IDX, "").split(",")) if card >= 0]
    parts = len(cards) if len(cards) == ask.count else 1
    return {c.index: {card: -(-c.mem // parts) for card in cards} for c in ask.stays()} if cards else {}


def charges_of(pod: Json, shrink: bool = False) -> dict[int, int]:
    """
    The pod's current memory by card. Init containers use the card of the first main or sidecar
    container.
    """
    ask = ask_of(pod)
    grants = grants_of(pod, ask)
    stays = {c.index for c in ask.stays()}
    charges: defaultdict[int, int] = defaultdict(int)
    for index, cards in grants.items():
        for card, mem in cards.items():
            charges[card] += mem if index in stays else 0
    if not grants or not ask.peaks(shrink):
        return dict(charges)
    first = next(
        (grants[c.index] for c in ask.containers if c.index in grants and c.index in stays),
        grants[min(grants)],
    )
    for card in first:
        beside = 0
        for container in ask.containers:
            if container.kind == "sidecar" and card in grants.get(container.index, {}):
                beside += -(-container.mem // len(grants[container.index]))
            elif container.kind == "init":
                charges[card] = max(charges[card], beside + -(-container.mem // len(first)))
    return dict(charges)


def cores_of(pod: Json) -> dict[int, int]:
    """The pod's compute by card."""
    cores: defaultdict[int, int] = defaultdict(int)
    for cards in read_grants(_notes(pod).get(CORE_ALLOCATION, "{}")).values():
        for card, percent in cards.items():
            cores[card] += percent
    return dict(cores)


# ---- the cards ------------------------------------------------------------------------------


@dataclass
class Card:
    """One card, and the pods on it."""

    size: int
    model: str = ""
    uuid: str = ""
    healthy: bool = True  # by the card table
    used: int = 0
    cores: int = 0
    pods: list[str] = field(default_factory=list)


def cards_of(node: Json) -> dict[int, Card]:
    """From the node's card table; without one, gpu-count cards of equal size."""
    table = _notes(node).get(CARDS)
    model = _labels(node).get("nvidia.com/gpu.product", "")
    if table is not None:
        return {
            row["index"]: Card(
                row["memory"],
                row.get("model", model),
                row.get("uuid", ""),
                row.get("health") in (None, True, "Healthy"),
            )
            for row in json.loads(table)
        }
    capacity = node.get("status", {}).get("capacity", {})
    total, count = whole(capacity.get(GPU_MEM, "0")), whole(capacity.get(GPU_COUNT, "0"))
    return {i: Card(total // count, model) for i in range(count)} if total and count else {}


class ShareTruth:
    """All nodes and pods; faults are reported as sentences."""

    def __init__(
        self, nodes: Iterable[Json], pods: Iterable[Json], shrink: bool = False
    ) -> None:
        self.shrink = shrink
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.cards = {name: cards_of(node) for name, node in self.nodes.items()}
        self.pods = {name_of(pod): pod for pod in pods if live(pod)}
        self._unplaced: list[str] = []
        for name, pod in self.pods.items():
            self._charge(name, pod)

    def _charge(self, name: str, pod: Json) -> None:
        cards = self.cards.get(place_of(pod), {})
        charges = charges_of(pod, self.shrink)
        for index, mem in charges.items():
            card = cards.get(index)
            if card is None:
                self._unplaced.append(f"{name}: {place_of(pod)} has no card {index}")
                continue
            card.used += mem
            card.cores += cores_of(pod).get(index, 0)
            card.pods.append(name)

    def faults(self) -> list[str]:
        """All faults."""
        return [*self._unplaced, *self._overcommitted(), *self._in_pods(), *self._in_groups()]

    def room_for(self, pod: Json) -> list[str]:
        """The cards with room for the pod, if it requests only memory on one card."""
        ask, found = ask_of(pod), []
        wishes = {MODEL, UUID, AFFINITY, ANTI_AFFINITY} & _notes(pod).keys()
        if not ask.plain or ask.total("exclusive") or wishes:
            return []
        for name, node in self.nodes.items():
            here = [p for p in self.pods.values() if place_of(p) == name]
            asked = sum(ask_of(p).kubelet_mem() for p in here)
            usable = whole(node["status"].get("allocatable", {}).get(GPU_MEM, "0"))
            held = sum(card.used for card in self.cards[name].values())
            apart = any(ask_of(p).total("exclusive") for p in here)
            total = whole(node["status"].get("capacity", {}).get(GPU_MEM, "0"))
            mem = ask.kubelet_mem()
            if apart or asked + mem > usable or held + mem > total:
                continue
            most = int(_labels(node).get(MAX_PODS, 2**31))
            out = [_notes(node).get(key, "") for key in (CORDONED, EXCLUSIVE_CARDS)]
            closed = {int(i) for text in out for i in text.split(",") if i.strip()}
            found += [
                f"{name} card {index}"
                for index, card in self.cards[name].items()
                if card.size - card.used >= mem and len(card.pods) < most
                and card.healthy and index not in closed
            ]  # fmt: skip
        return found

    # ---- cards and nodes ----------------------------------------------------------------

    def _overcommitted(self) -> Iterator[str]:
        for name, node in self.nodes.items():
            here = [pod for pod in self.pods.values() if place_of(pod) == name]
            for index, card in self.cards[name].items():
                if card.used > card.size:
                    yield f"{name} card {index}: {card.used} of {card.size}: {card.pods}"
                if card.cores > 100:
                    yield f"{name} card {index}: {card.cores} % of its compute: {card.pods}"
                most = int(_labels(node).get(MAX_PODS, len(card.pods)))
                if len(card.pods) > most:
                    yield f"{name} card {index}: more than {most} pods: {card.pods}"
            total = whole(node["status"].get("capacity", {}).get(GPU_MEM, "0"))
            asked = sum(ask_of(pod).kubelet_mem() for pod in here)
            if asked > total:
                yield f"{name}: {asked} of {total}"
            yield from self._mixed(name, node, here)

    def _mixed(self, name: str, node: Json, here: list[Json]) -> Iterator[str]:
        """Cards that hold both shared and exclusive pods."""
        shared = [pod for pod in here if ask_of(pod).shared]
        alone = [name_of(pod) for pod in here if ask_of(pod).total("exclusive")]
        if EXCLUSIVE_CARDS not in _notes(node):
            if shared and alone:
                yield f"{name}: {[name_of(pod) for pod in shared]} share cards beside {alone}"
            return
        apart = {int(i) for i in _notes(node)[EXCLUSIVE_CARDS].split(",")}
        for pod in shared:
            if both := apart & charges_of(pod).keys():
                yield f"{name_of(pod)}: on the cards {both} of another plugin"

    # ---- each pod -----------------------------------------------------------------------

    def _in_pods(self) -> Iterator[str]:
        for name, pod in self.pods.items():
            if BY_HAND in _labels(pod):
                continue
            cards = self.cards.get(place_of(pod), {})
            try:
                wrong = [*_wrong_annotations(pod, cards), *_wrong_cards(pod, cards)]
                if place_of(pod) in self.nodes:
                    wrong += _unisolated(pod, self.nodes[place_of(pod)])
            except (KeyError, ValueError) as error:
                wrong = [f"{type(error).__name__}: {error}"]
            yield from (f"{name} on {place_of(pod)}: {text}" for text in wrong)

    def _in_groups(self) -> Iterator[str]:
        yield from self._pairs(AFFINITY, lambda a, b: not a & b, "on no card with")
        yield from self._pairs(ANTI_AFFINITY, lambda a, b: bool(a & b), "on a card with")

    def _pairs(
        self, key: str, bad: Callable[[set[Any], set[Any]], bool], text: str
    ) -> Iterator[str]:
        """The faults of any two pods of a group; groups are per namespace."""
        groups: defaultdict[tuple[str, str], list[Json]] = defaultdict(list)
        for pod in self.pods.values():
            if key in _notes(pod):
                groups[pod["metadata"]["namespace"], _notes(pod)[key]].append(pod)
        for pods in groups.values():
            for one, other in itertools.combinations(pods, 2):
                has = [{(place_of(pod), card) for card in charges_of(pod)} for pod in (one, other)]
                if bad(*has):
                    yield f"{name_of(one)}: {text} {name_of(other)}: {key}"


def _wrong_annotations(pod: Json, cards: dict[int, Card]) -> Iterator[str]:
    """Checks the annotations: cardpack's own, and the five of gpushare."""
    ask, notes = ask_of(pod), _notes(pod)
    ours = {key for key in (*ANNOTATIONS, ALLOCATION, CORE_ALLOCATION) if key in notes}
    if not ask.shared:
        if ours:
            yield f"asks for nothing and has {sorted(ours)}"
        return
    has = sorted({card for grant in grants_of(pod, ask).values() for card in grant})
    wanted = set(ANNOTATIONS)
    wanted |= {ALLOCATION} if not ask.plain or len(has) > 1 else set()
    wanted |= {CORE_ALLOCATION} if ask.total("cores") else set()
    if ours != wanted:
        yield f"has {sorted(ours)}, not {sorted(wanted)}"
        return
    expected = {
        IDX: ",".join(str(card) for card in has),
        DEV: str(cards[has[0]].size) if has and has[0] in cards else "of a card",
        POD: str(ask.kubelet_mem()),
        ASSIGNED: "false",
    }
    for key, value in expected.items():
        if notes[key] != value:
            yield f"{key} is {notes[key]!r}, not {value!r}"


def _wrong_cards(pod: Json, cards: dict[int, Card]) -> Iterator[str]:
    """Each container has what it requests, and the pod has cards that meet its conditions."""
    ask = ask_of(pod)
    grants = grants_of(pod, ask)
    if not ask.shared:
        return
    if not grants:
        yield "has no card"
    known = {c.index for c in ask.containers}
    several = max(ask.count, 1)
    odd = [Container(index, "unknown", 0, 0, 0) for index in grants.keys() - known]
    counted = ask.stays() + odd
    for index, grant in grants.items():
        if len(grant) != several:
            yield f"container {index} is on {len(grant)} cards, not {several}"
    if ask.count and len({tuple(sorted(grant)) for grant in grants.values()}) > 1:
        yield f"its containers are not on the same cards: {grants}"
    if ask.whole or ask.percent:
        yield from _wrong_shares(name_of(pod), ask, grants, cards)
    else:
        yield from _wrong_grants(counted, grants, "mem", several)
    percent = read_grants(_notes(pod).get(CORE_ALLOCATION, "{}"))
    yield from _wrong_grants(counted, percent, "cores", several)
    for index, grant in percent.items():
        if grant.keys() != grants.get(index, grant).keys():
            yield f"container {index} computes on {sorted(grant)}, not where its memory is"
    for index in {index for grant in grants.values() for index in grant}:
        yield from _unwanted(pod, index, cards[index])


def _wrong_grants(
    containers: list[Container], grants: Grants, what: str, several: int
) -> Iterator[str]:
    """
    Each container has an equal part of its limit on each of its cards; no other container has memory.
    """
    grants = {c.index: grants[c.index] for c in containers if c.index in grants}
    wanted = {c.index: getattr(c, what) for c in containers if getattr(c, what)}
    has = {index: sum(grant.values()) for index, grant in grants.items()}
    if {index: amount for index, amount in has.items() if amount} != wanted:
        yield f"{what} of its containers is {has}, not {wanted}"
    for index, grant in grants.items():
        if any(amount * several != wanted.get(index, 0) for amount in grant.values()):
            yield f"{what} of container {index} is {grant}: not equal"


def _wrong_shares(
    name: str, ask: Ask, grants: Grants, cards: dict[int, Card]
) -> Iterator[str]:
    """A whole card, or a percentage of the card's size; the limit is the minimum."""
    has: defaultdict[int, int] = defaultdict(int)
    for grant in grants.values():
        for card, mem in grant.items():
            has[card] += mem
    least = sum(c.mem for c in ask.stays()) // max(ask.count, 1)
    for index, mem in has.items():
        card = cards[index]
        wanted = card.size if ask.whole else max(-(-card.size * ask.percent // 100), least)
        if mem != wanted:
            yield f"card {index}: {mem}, not {wanted}"
        if ask.whole and card.pods != [name]:
            yield f"card {index} is to be whole, and holds {card.pods}"
        if card.size < least:
            yield f"card {index} has {card.size}, and {least} are asked for"


def _unisolated(pod: Json, node: Json) -> Iterator[str]:
    """A node that does not enforce shares, under a pod that requires it."""
    how = _labels(node).get("cardpack.io/isolation")
    several = _labels(pod).get(COUNT_LABEL, "1") not in ("", "1")
    enforced = how in ENFORCING and not (how == "mps" and several)
    if _notes(pod).get("cardpack.io/require-isolation") == "true" and not enforced:
        yield f"it requires isolation, and its node has {how!r}"


def _unwanted(pod: Json, index: int, card: Card) -> Iterator[str]:
    """A card that the pod's conditions exclude."""
    for key, value in ((MODEL, card.model), (UUID, card.uuid)):
        words = [word.strip() for word in _notes(pod).get(key, "").split(",")]
        only = [word for word in words if word and not word.startswith("!")]
        never = [word[1:] for word in words if word.startswith("!")]
        if only and not any(_like(value, word) for word in only):
            yield f"card {index} is {value!r}, wanted is {key} {only}"
        if any(_like(value, word) for word in never):
            yield f"card {index} is {value!r}, never wanted is {key} {never}"


def _like(value: str, pattern: str) -> bool:
    """An asterisk matches any text; case is ignored; no other character is special."""
    quoted = pattern.lower().replace("[", "[[]").replace("?", "[?]")
    return fnmatch.fnmatchcase(value.lower(), quoted)
