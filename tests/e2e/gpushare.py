"""gpushare-scheduler-extender and its device plugin, simulated by their rules without cardpack's code.

What each one reads and writes in the API server: the extender's bind (a patch of annotations, then a
Binding), its cache as it builds it at start, and its choice of a card; the device plugin's choice of
the pod of an Allocate call, and what it writes then. Neither knows annotations that begin with
cardpack.io/, nor allocations over several cards.
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
    """The sum of the limits of spec.containers: both programs read nothing else of a request."""
    limits = (c.get("resources", {}).get("limits") or {} for c in pod["spec"]["containers"])
    return sum(whole(limit.get(GPU_MEM, "0")) for limit in limits)


def _atoi(text: str) -> int:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) else NO_CARD


class Cache:
    """The extender's view after its start: {node: {card: {pod: memory}}}."""

    def __init__(self, nodes: Iterable[Json], pods: Iterable[Json]) -> None:
        self.size: dict[str, int] = {}
        self.cards: dict[str, dict[int, dict[str, int]]] = {}
        self.uncharged: list[str] = []  # pods that are bound without a card that it knows
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
        """The memory of the card's pods."""
        return sum(self.cards[node][card].values())

    def choose(self, node: str, mem: int) -> int:
        """The feasible card with the least free memory; of equal ones the lowest index."""
        free = {card: self.size[node] - self.used(node, card) for card in self.cards[node]}
        fits = [(room, card) for card, room in free.items() if room >= mem]
        return min(fits)[1] if fits else NO_CARD

    def inspect(self) -> dict[str, dict[int, tuple[int, int, frozenset[str]]]]:
        """Size, usage and pods of every card."""
        return {
            node: {
                card: (self.size[node], self.used(node, card), frozenset(pods))
                for card, pods in cards.items()
            }
            for node, cards in self.cards.items()
        }


def said_by(inspect: Json) -> dict[str, dict[int, tuple[int, int, frozenset[str]]]]:
    """The same from an answer of GET inspect."""
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
    """The extender's bind. Its pods name a scheduler that does not exist."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    def cache(self) -> Cache:
        """The cache as after a restart."""
        lists = [self.ground.must("GET", f"/api/v1/{kind}")["items"] for kind in ("nodes", "pods")]
        return Cache(*lists)

    def pod(self, name: str, *mems: int) -> Json:
        """Makes a pod that waits for this extender."""
        draft = self.ground.draft(name, mems, labels={BY_HAND: "yes"})
        draft["spec"]["schedulerName"] = "nobody"
        path = f"/api/v1/namespaces/{self.ground.namespace}/pods"
        return self.ground.must("POST", path, draft)

    def annotate(self, name: str, node: str) -> int:
        """The first half of its bind: the annotations."""
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
        """Both halves of its bind; returns the card."""
        card = self.annotate(name, node)
        if card != NO_CARD:
            path = f"/api/v1/namespaces/{self.ground.namespace}/pods/{name}/binding"
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            self.ground.must("POST", path, {"metadata": {"name": name}, "target": target})
        return card


class DevicePlugin:
    """
    The device plugin of one node: finds the pod of an Allocate call from the API server's objects
    alone.
    """

    def __init__(self, ground: Ground, node: str) -> None:
        self.ground = ground
        self.node = node

    def candidates(self) -> list[Json]:
        """Pods that wait for their card, the lowest ASSUME_TIME first."""
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
        """Returns the pod's name and the card for a container that requests `units`."""
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
    """
    Starts those pods in that order as the kubelet; returns the card that each pod's container really
    gets.
    """
    plugin = DevicePlugin(ground, node)
    got: defaultdict[str, int] = defaultdict(lambda: NO_CARD)
    for name in names:
        got[name] = plugin.allocate(limits_of(ground.get(name)))[1]
    return dict(got)


def as_bound(ground: Ground) -> None:
    """Removes what the plugins wrote: the checks compare with the annotations of the bind."""
    for pod in ground.must("GET", "/api/v1/pods")["items"]:
        if _notes(pod).get(ASSIGNED) == "true" and BY_HAND not in pod["metadata"].get("labels", {}):
            ground.annotate_pod(pod["metadata"]["name"], {ASSIGNED: "false"})
