"""Reads the API server as kubectl-inspect-gpushare does, to compare it with cardpack's GET inspect.

Both must show the same for every card. kubectl-inspect's rules: it counts the active pods of a node
whose containers' limits have a sum above 0. It first adds up the allocation {"CONTAINER": {"CARD":
MEMORY}} by card. If the allocation is absent, empty or invalid, all of the limits are on the card of
IDX. If IDX is invalid too, they are on card -1, which it prints as PENDING. It ignores init
containers.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from share_truth import ALLOCATION, ShareTruth, ask_of, charges_of
from truth import IDX, name_of, place_of, whole

from cluster import GPU_MEM

Json = Any
PENDING = -1


def _number(text: str) -> int | None:
    """Parses like Go's strconv.Atoi."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) else None


def _allocated(text: str) -> dict[int, int]:
    """The allocation by card; empty if any part of it is invalid."""
    cards: defaultdict[int, int] = defaultdict(int)
    try:
        for container, grants in json.loads(text).items():
            if _number(container) is None:
                return {}
            for card, mem in (grants or {}).items():
                index = _number(card)
                if index is None or type(mem) is not int:
                    return {}
                cards[index] += mem
    except (ValueError, AttributeError):
        return {}
    return dict(cards)


def read_pod(pod: Json) -> dict[int, int]:
    """The memory by card that kubectl-inspect shows for the pod."""
    if pod["status"].get("phase") in ("Succeeded", "Failed") or not place_of(pod):
        return {}
    total = sum(
        whole((c.get("resources", {}).get("limits") or {}).get(GPU_MEM, "0"))
        for c in pod["spec"]["containers"]
    )
    if total <= 0:
        return {}
    notes = pod["metadata"].get("annotations") or {}
    if allocated := _allocated(notes.get(ALLOCATION, "{}")):
        return allocated
    index = _number(notes.get(IDX, ""))
    return {PENDING if index is None else index: total}


def read_nodes(nodes: Iterable[Json], pods: Iterable[Json]) -> dict[str, dict[int, int]]:
    """The columns of kubectl-inspect: the allocated memory of each card, by node."""
    read: dict[str, defaultdict[int, int]] = {}
    for node in nodes:
        if whole(node["status"].get("allocatable", {}).get(GPU_MEM, "0")) > 0:
            read[node["metadata"]["name"]] = defaultdict(int)
    for pod in pods:
        for card, mem in read_pod(pod).items():
            if place_of(pod) in read:
                read[place_of(pod)][card] += mem
    return {name: {card: mem for card, mem in cards.items() if mem} for name, cards in read.items()}


def knows_all_of(pod: Json, shrink: bool = False) -> bool:
    """
    Whether kubectl-inspect can know all of the pod's usage. It can't if init containers count, if the
    pod has sidecars and no allocation lists them, or if the pod requests a percentage and has no
    limit.
    """
    ask = ask_of(pod)
    mains = sum(c.mem for c in ask.containers if c.kind == "main")
    sidecars = any(c.mem for c in ask.containers if c.kind == "sidecar")
    listed = ALLOCATION in (pod["metadata"].get("annotations") or {})
    return mains > 0 and not ask.peaks(shrink) and (listed or not sidecars)


def differences(
    nodes: list[Json], pods: list[Json], inspect: Json, shrink: bool = False
) -> list[str]:
    """The differences between cardpack's inspect, kubectl-inspect and the truth."""
    truth = ShareTruth(nodes, pods, shrink)
    read = read_nodes(nodes, [pod for pod in pods if knows_all_of(pod, shrink)])
    found = []
    for pod in truth.pods.values():
        charges = {card: mem for card, mem in charges_of(pod, shrink).items() if mem}
        known = knows_all_of(pod, shrink) and place_of(pod) in read
        if known and read_pod(pod) != charges and (charges or PENDING not in read_pod(pod)):
            found.append(f"{name_of(pod)}: kubectl-inspect {read_pod(pod)}, truth {charges}")
        if not knows_all_of(pod, shrink) and place_of(pod) in read:
            for card, mem in charges.items():
                read[place_of(pod)][card] = read[place_of(pod)].get(card, 0) + mem
    said = {node["name"]: node for node in inspect["nodes"]}
    for name, cards in read.items():
        if name not in said:
            found.append(f"{name}: inspect does not know it")
        else:
            found += _differs(truth, name, cards, said[name])
    return found


def _differs(truth: ShareTruth, name: str, read: dict[int, int], said: Json) -> list[str]:
    """Compares one node: every card's size, usage and pods, and the sum."""
    found = []
    used = {dev["id"]: dev["usedGPU"] for dev in said["devs"] if dev["usedGPU"]}
    if used != read:
        found.append(f"{name}: inspect {used}, kubectl-inspect {read}")
    if said["usedGPU"] != sum(read.values()):
        found.append(f"{name}: inspect {said['usedGPU']} in sum, kubectl-inspect {read}")
    sizes = {dev["id"]: dev["totalGPU"] for dev in said["devs"] if dev["id"] != PENDING}
    if sizes != {index: card.size for index, card in truth.cards[name].items()}:
        found.append(f"{name}: inspect has cards of {sizes}")
    for dev in said["devs"]:
        names = sorted(f"{pod['namespace']}/{pod['name']}" for pod in dev["pods"])
        card = truth.cards[name].get(dev["id"])
        if card is not None and names != sorted(card.pods):
            found.append(f"{name} card {dev['id']}: inspect has {names}")
        if sum(pod["usedGPU"] for pod in dev["pods"]) != dev["usedGPU"]:
            found.append(f"{name} card {dev['id']}: {dev['usedGPU']} is not the sum of its pods")
    return found
