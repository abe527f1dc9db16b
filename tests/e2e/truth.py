"""The truth about cards from the API server's objects alone, without cardpack's code.

A naive recount: the spec gives the memory, the annotation the card, nodeName says whether the pod
counts, and the phase whether it still does. History also records every pod as a watch shows it, for
the rules that hold in every version: no pod is seen on a node without its annotations, and on each
node ASSUME_TIME grows from bind to bind.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cluster import GPU_MEM, ControlPlane
from pod_watch import PodWatch

Json = Any

GPU_COUNT = "aliyun.com/gpu-count"
IDX = "ALIYUN_COM_GPU_MEM_IDX"
DEV = "ALIYUN_COM_GPU_MEM_DEV"
POD = "ALIYUN_COM_GPU_MEM_POD"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ASSUME_TIME = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
ANNOTATIONS = (IDX, DEV, POD, ASSIGNED, ASSUME_TIME)
BY_HAND = "by-hand"  # the label of pods that a test bound without cardpack
_SUFFIX = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def whole(quantity: str) -> int:
    """Parses a quantity that the API server writes as a whole number."""
    digits = quantity.rstrip("kMGi")
    return int(digits) * _SUFFIX.get(quantity[len(digits) :], 1)


def size_of(pod: Json) -> int:
    """
    The gpu-mem of a pod without sidecars: the sum of its containers, or the largest init container.
    """

    def limit(container: Json) -> int:
        return whole(container.get("resources", {}).get("limits", {}).get(GPU_MEM, "0"))

    spec = pod["spec"]
    together = sum(limit(c) for c in spec["containers"])
    return max([together, *(limit(c) for c in spec.get("initContainers", []))])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def index_of(text: str) -> int:
    """The index of a card in each form that a plugin may read: blanks around it, a sign. -1: none."""
    text = text.strip(" \t\n\v\f\r")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not _is_number(digits) or len(digits) > 18 or int(digits) >= 2**31:
        return -1
    return -1 if text[0] == "-" and int(digits) > 0 else int(digits)


def place_of(pod: Json) -> str:
    """The name of the pod's node; empty if it has none."""
    name: str = pod["spec"].get("nodeName", "")
    return name


def name_of(item: Json) -> str:
    """namespace/name."""
    metadata = item["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


@dataclass
class NodeTruth:
    """One node: the size of its cards, and the usage of each."""

    cards: list[int]
    total: int = 0  # of all cards, with the remainder of an even split
    limit: int = 0  # the most that the kubelet would admit
    used: list[int] = field(default_factory=list)
    pods: list[list[str]] = field(default_factory=list)
    unplaced: int = 0
    unplaced_pods: list[str] = field(default_factory=list)
    unhealthy: set[int] = field(default_factory=set)

    def fits(self, mem: int) -> bool:
        """Whether a card and the node's sum have that much room."""
        if sum(self.used) + self.unplaced + mem > self.limit:
            return False
        return any(
            size - used >= mem
            for i, (size, used) in enumerate(zip(self.cards, self.used, strict=True))
            if i not in self.unhealthy
        )


class Truth:
    """The usage of all nodes, from lists of nodes and pods."""

    def __init__(self, nodes: Iterable[Json], pods: Iterable[Json]) -> None:
        self.nodes = {node["metadata"]["name"]: _node(node) for node in nodes}
        self.pods = {name_of(pod): pod for pod in pods}
        for pod in self.pods.values():
            self._charge(pod)

    def _charge(self, pod: Json) -> None:
        mem = size_of(pod)
        if not place_of(pod) or not mem or pod["status"].get("phase") in ("Succeeded", "Failed"):
            return
        node = self.nodes.setdefault(place_of(pod), NodeTruth([]))
        notes = pod["metadata"].get("annotations", {})
        listed = notes.get(IDX, "").split(",")
        if len(listed) > 1 and "scheduler.framework.gpushare.allocation" in notes:
            listed = []  # share_truth.py has the parts of the cards
        cards = {index_of(card) for card in listed} - {-1}
        for card in cards or {-1}:
            if 0 <= card < len(node.cards):
                node.used[card] += mem
                node.pods[card].append(name_of(pod))
            else:
                node.unplaced += mem
                node.unplaced_pods.append(name_of(pod))

    def overcommitted(self) -> list[str]:
        """Every card and every node whose usage exceeds its size."""
        found = []
        for name, node in self.nodes.items():
            for i, (size, used) in enumerate(zip(node.cards, node.used, strict=True)):
                if used > size:
                    found.append(f"{name} card {i}: {used} of {size}: {node.pods[i]}")
            if sum(node.used) + node.unplaced > node.total:
                found.append(f"{name}: {sum(node.used)} + {node.unplaced} of {node.total}")
        return found

    def bound(self) -> list[Json]:
        """The pods that want a card and have a node."""
        return [pod for pod in self.pods.values() if size_of(pod) and place_of(pod)]

    def pending(self) -> list[Json]:
        """The pods that want a card and have no node."""
        return [pod for pod in self.pods.values() if size_of(pod) and not place_of(pod)]

    def room_for(self, mem: int) -> list[str]:
        """The nodes that have a card with that much room."""
        return [name for name, node in self.nodes.items() if node.fits(mem)]

    def bad_annotations(self) -> list[str]:
        """Bound pods with a wrong value in one of the five annotations."""
        found = []
        for pod in self.bound():
            if BY_HAND in pod["metadata"].get("labels", {}):
                continue
            node = self.nodes[place_of(pod)]
            if wrong := _wrong(pod["metadata"].get("annotations", {}), node, size_of(pod)):
                found.append(f"{name_of(pod)} on {place_of(pod)}: {wrong}")
        return found

    def differs(self, inspect: Json) -> list[str]:
        """The differences from inspect's answer."""
        said = {node["name"]: _said(node) for node in inspect["nodes"]}
        truth = {
            name: _shown(node)
            for name, node in self.nodes.items()
            if node.total or any(node.pods) or node.unplaced
        }
        return [
            f"{name}: {fault}"
            for name in sorted(said.keys() | truth.keys())
            for fault in _differing(said.get(name), truth.get(name))
        ]


def _differing(said: Json, true: Json) -> list[str]:
    """Only the differences of one node, so that they also fit in a truncated log."""
    if said is None or true is None:
        return [] if said is true else [f"inspect {said}, the API server {true}"]
    found = [
        f"{what}: inspect {a}, the API server {b}"
        for what, a, b in zip(("total", "used"), said, true, strict=False)
        if a != b
    ]
    for card in sorted(said[2].keys() | true[2].keys()):
        a, b = said[2].get(card, (0, 0, [])), true[2].get(card, (0, 0, []))
        if a == b:
            continue
        more, less = sorted(set(a[2]) - set(b[2])), sorted(set(b[2]) - set(a[2]))
        found.append(
            f"card {card}: inspect {a[1]} of {a[0]}, the API server {b[1]} of {b[0]}; "
            f"only inspect has {more}, only the API server {less}"
        )
    return found


def _node(node: Json) -> NodeTruth:
    capacity = node.get("status", {}).get("capacity", {})
    total, count = whole(capacity.get(GPU_MEM, "0")), whole(capacity.get(GPU_COUNT, "0"))
    usable = whole(node.get("status", {}).get("allocatable", {}).get(GPU_MEM, str(total)))
    cards = [total // count] * count if total and count else []
    return NodeTruth(
        cards,
        total=total,
        limit=min(total, usable) if cards else 0,
        used=[0] * len(cards),
        pods=[[] for _ in cards],
    )


def _wrong(annotations: Json, node: NodeTruth, mem: int) -> str:
    """Which of the five annotations is wrong."""
    card = annotations.get(IDX, "")
    if not _is_number(card) or str(int(card)) != card or int(card) >= len(node.cards):
        return f"{IDX} {card!r} of {len(node.cards)} cards"
    expected = {DEV: str(node.cards[int(card)]), POD: str(mem), ASSIGNED: "false"}
    for key, value in expected.items():
        if annotations.get(key) != value:
            return f"{key} is {annotations.get(key)!r}, not {value!r}"
    when = annotations.get(ASSUME_TIME, "")
    return "" if _is_number(when) and len(when) == 19 else f"{ASSUME_TIME} is {when!r}"


def _said(node: Json) -> Json:
    devs = {
        dev["id"]: (
            dev["totalGPU"],
            dev["usedGPU"],
            sorted(f"{pod['namespace']}/{pod['name']}" for pod in dev["pods"]),
        )
        for dev in node["devs"]
    }
    return node["totalGPU"], node["usedGPU"], devs


def _shown(node: NodeTruth) -> Json:
    devs = {
        i: (size, node.used[i], sorted(node.pods[i])) for i, size in enumerate(node.cards)
    }
    if node.unplaced:
        devs[-1] = (0, node.unplaced, sorted(node.unplaced_pods))
    return node.total, sum(node.used) + node.unplaced, devs


# ---- the history ----------------------------------------------------------------------------


@dataclass
class Bound:
    """The first time that the watch showed a pod on a node."""

    name: str
    node: str
    version: int  # of the write that bound it, 0 if a relist hides it
    annotations: dict[str, str]
    mem: int
    by_hand: bool


class History(PodWatch):
    """All binds, and the states that no version may show."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._lock = threading.Lock()
        self._bound: dict[str, Bound] = {}  # by UID
        self._faults: list[str] = []
        super().__init__(cluster)

    def bound(self, namespace: str) -> dict[str, Bound]:
        """The pods of a namespace that were ever seen bound, by UID."""
        with self._lock:
            return {
                uid: bound
                for uid, bound in self._bound.items()
                if bound.name.startswith(namespace + "/")
            }

    def faults(self, namespace: str, ordered: bool = True) -> list[str]:
        """The states that no version may show; ordered: also checks ASSUME_TIME."""
        with self._lock:
            found = [fault for fault in self._faults if fault.startswith(namespace + "/")]
        return found + (_disorder(self.bound(namespace).values()) if ordered else [])

    # ---- its thread ---------------------------------------------------------------------

    def listed(self, pods: list[Json], version: int) -> None:
        for pod in pods:
            self._see(pod, exact=False)

    def changed(self, kind: str, pod: Json) -> None:
        self._see(pod, exact=True)

    def _see(self, pod: Json, exact: bool) -> None:
        mem = size_of(pod)
        if not mem or not place_of(pod):
            return
        metadata = pod["metadata"]
        annotations = metadata.get("annotations", {})
        by_hand = BY_HAND in metadata.get("labels", {})
        with self._lock:
            if not by_hand and (missing := [k for k in ANNOTATIONS if k not in annotations]):
                self._faults.append(f"{name_of(pod)} was on {place_of(pod)} without {missing}")
            known = self._bound.get(metadata["uid"])
            if known is None:
                version = int(metadata["resourceVersion"]) if exact else 0
                self._bound[metadata["uid"]] = Bound(
                    name_of(pod), place_of(pod), version, annotations, mem, by_hand
                )
            elif known.node != place_of(pod):
                self._faults.append(f"{name_of(pod)} moved from {known.node} to {place_of(pod)}")
            elif not by_hand and any(
                known.annotations.get(k) != annotations.get(k) for k in (IDX, DEV, POD)
            ):
                self._faults.append(f"{name_of(pod)}: its card changed")


def _disorder(bound: Iterable[Bound]) -> list[str]:
    """Binds of a node whose ASSUME_TIME is not greater than that of the bind before."""
    found = []
    last: dict[str, tuple[int, str]] = {}
    exact = [b for b in bound if b.version and not b.by_hand]
    for one in sorted(exact, key=lambda b: b.version):
        when = int(one.annotations.get(ASSUME_TIME) or 0)
        before, name = last.get(one.node, (0, ""))
        if when <= before:
            found.append(f"{one.name} on {one.node}: ASSUME_TIME {when}, {before} of {name}")
        last[one.node] = (when, one.name)
    return found
