"""gpushare-scheduler-extender and its device plugin, played by their rules and by nothing of ours.

What each reads and writes on the API server's objects: the extender's bind (annotations by a patch,
then a Binding), its cache as it builds it at start, its choice of a card; the device plugin's choice
of the pod that an Allocate is for, and what it writes then. Neither knows a word that begins with
cardpack.io/, nor allocations of several cards.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ground import Ground
from truth import ASSIGNED, ASSUME_TIME, BY_HAND, DEV, GPU_COUNT, IDX, POD, name_of, place_of, whole

from cluster import GPU_MEM

Json = Any
ENDED = ("Succeeded", "Failed")
NO_CARD = -1


def _notes(pod: Json) -> dict[str, str]:
    notes: dict[str, str] = pod["metadata"].get("annotations") or {}
    return notes


def limits_of(pod: Json) -> int:
    """The sum of the limits of spec.containers: all that either of them knows of a request."""
    limits = (c.get("resources", {}).get("limits") or {} for c in pod["spec"]["containers"])
    return sum(whole(limit.get(GPU_MEM, "0")) for limit in limits)


def _atoi(text: str) -> int:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) else NO_CARD


class Cache:
    """The extender's view after its start: {node: {card: {pod: memory}}}."""

    def __init__(self, nodes: Iterable[Json], pods: Iterable[Json]) -> None:
        self.size: dict[str, int] = {}
        self.cards: dict[str, dict[int, dict[str, int]]] = {}
        self.uncharged: list[str] = []  # bound, and on no card that it knows of
        for node in nodes:
            capacity = node["status"].get("capacity", {})
            total, count = whole(capacity.get(GPU_MEM, "0")), whole(capacity.get(GPU_COUNT, "0"))
            if count:
                name = node["metadata"]["name"]
                self.size[name] = total // count
                self.cards[name] = {index: {} for index in range(count)}
        for pod in pods:
            self._add(pod)

    def _add(self, pod: Json) -> None:
        if not place_of(pod) or pod["status"].get("phase") in ENDED or not limits_of(pod):
            return
        card = _atoi(_notes(pod).get(IDX, ""))
        cards = self.cards.get(place_of(pod), {})
        if card in cards:
            cards[card][name_of(pod)] = _atoi(_notes(pod).get(POD, ""))
        else:
            self.uncharged.append(name_of(pod))

    def used(self, node: str, card: int) -> int:
        """The sum of its pods."""
        return sum(self.cards[node][card].values())

    def choose(self, node: str, mem: int) -> int:
        """The card that fits most tightly, the lowest of equal ones."""
        free = {card: self.size[node] - self.used(node, card) for card in self.cards[node]}
        fits = [(room, card) for card, room in free.items() if room >= mem]
        return min(fits)[1] if fits else NO_CARD

    def inspect(self) -> dict[str, dict[int, tuple[int, int, frozenset[str]]]]:
        """Size, use and pods of every card."""
        return {
            node: {
                card: (self.size[node], self.used(node, card), frozenset(pods))
                for card, pods in cards.items()
            }
            for node, cards in self.cards.items()
        }


def said_by(inspect: Json) -> dict[str, dict[int, tuple[int, int, frozenset[str]]]]:
    """The same of an answer of GET inspect."""
    return {
        node["name"]: {
            dev["id"]: (
                dev["totalGPU"],
                dev["usedGPU"],
                frozenset(f"{pod['namespace']}/{pod['name']}" for pod in dev["pods"]),
            )
            for dev in node["devs"]
        }
        for node in inspect["nodes"]
    }


class Extender:
    """Its bind. Pods that it is to bind have a scheduler that nobody is."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    def cache(self) -> Cache:
        """As after a restart."""
        lists = [self.ground.must("GET", f"/api/v1/{kind}")["items"] for kind in ("nodes", "pods")]
        return Cache(*lists)

    def pod(self, name: str, *mems: int) -> Json:
        """One that waits for it."""
        draft = self.ground.draft(name, mems, labels={BY_HAND: "yes"})
        draft["spec"]["schedulerName"] = "nobody"
        path = f"/api/v1/namespaces/{self.ground.namespace}/pods"
        return self.ground.must("POST", path, draft)

    def annotate(self, name: str, node: str) -> int:
        """The first half of its bind."""
        cache = self.cache()
        mem = limits_of(self.ground.get(name))
        card = cache.choose(node, mem)
        if card != NO_CARD:
            notes = {
                IDX: str(card),
                DEV: str(cache.size[node]),
                POD: str(mem),
                ASSIGNED: "false",
                ASSUME_TIME: str(time.time_ns()),
            }
            self.ground.annotate_pod(name, notes)
        return card

    def bind(self, name: str, node: str) -> int:
        """Both halves; the card."""
        card = self.annotate(name, node)
        if card != NO_CARD:
            path = f"/api/v1/namespaces/{self.ground.namespace}/pods/{name}/binding"
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            self.ground.must("POST", path, {"metadata": {"name": name}, "target": target})
        return card


class DevicePlugin:
    """One node's: which pod an Allocate is for, by the API server's objects alone."""

    def __init__(self, ground: Ground, node: str) -> None:
        self.ground = ground
        self.node = node

    def candidates(self) -> list[Json]:
        """Pods that wait for their card, those assumed first in front."""
        found = [
            pod
            for pod in self.ground.must("GET", "/api/v1/pods")["items"]
            if place_of(pod) == self.node
            and pod["status"].get("phase", "Pending") == "Pending"
            and limits_of(pod) > 0
            and ASSUME_TIME in _notes(pod)
            and _notes(pod).get(ASSIGNED) == "false"
        ]
        return sorted(found, key=lambda pod: _time(_notes(pod)[ASSUME_TIME]))

    def allocate(self, units: int) -> tuple[str, int]:
        """The pod's name and the card for a container that asks for so much."""
        for pod in self.candidates():
            if limits_of(pod) == units:
                name = pod["metadata"]["name"]
                notes = {ASSIGNED: "true", ASSUME_TIME: str(time.time_ns())}
                self.ground.annotate_pod(name, notes)
                return name, _atoi(_notes(pod).get(IDX, ""))
        return "", NO_CARD


def _time(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]+", text, re.ASCII) and int(text) < 2**64 else 0


def cards_by_plugin(ground: Ground, node: str, names: Iterable[str]) -> dict[str, int]:
    """The kubelet starts those pods in that order: which card the container of each really gets."""
    plugin = DevicePlugin(ground, node)
    got: defaultdict[str, int] = defaultdict(lambda: NO_CARD)
    for name in names:
        got[name] = plugin.allocate(limits_of(ground.get(name)))[1]
    return dict(got)


def as_bound(ground: Ground) -> None:
    """What the plugins wrote is taken back: the judges want the annotations of the bind."""
    for pod in ground.must("GET", "/api/v1/pods")["items"]:
        if _notes(pod).get(ASSIGNED) == "true" and BY_HAND not in pod["metadata"].get("labels", {}):
            ground.annotate_pod(pod["metadata"]["name"], {ASSIGNED: "false"})
