"""The usage of the cards after every write, from a watch of the test's own, checked write by write.

The rule for each Binding of cardpack, at its version: the card that it names holds no more than the
size that cardpack assumed (the annotation DEV). That size is the card's size, or was its size until a
change of the node that cardpack could not know yet.

Where the watch has a gap (the API server died, the history was compacted) the lists before and after
the gap are checked instead: no card holds more than the largest size in the Bindings of its pods.

There is one exception: an API server before 1.27 ignores the UID of a Binding. If a pod is deleted and
made again during its bind, the new pod is bound with the annotations of the old one. Such a pod counts
with the smaller of both sizes.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cluster import GPU_MEM, ControlPlane
from pod_watch import PodWatch
from truth import (
    ASSUME_TIME,
    DEV,
    GPU_COUNT,
    IDX,
    POD,
    name_of,
    place_of,
    size_of,
    whole,
)

Json = Any


@dataclass
class Bind:
    """The first time that the watch shows a pod on a node."""

    name: str
    uid: str
    node: str
    card: int
    mem: int  # the request in the pod's spec
    said: int  # the request in the Binding's annotations
    size: int  # the card's, in the Binding's annotations
    assumed: int  # the time of the decision, in ns
    version: int  # of the write, 0 if a gap of the watch hides it
    live: bool = True

    @property
    def weight(self) -> int:
        """The memory that it counts for; both figures differ only in the one exception."""
        return min(self.mem, self.said)


@dataclass
class NodeSize:
    """A node's figures from a version on."""

    version: int
    total: int
    count: int
    when: int = field(default_factory=time.time_ns)  # when the write was answered

    def size(self, card: int) -> int:
        """The size of that card; 0 if it does not exist."""
        return self.total // self.count if 0 <= card < self.count else 0


class Ledger(PodWatch):
    """Follows all pods. The test reports each change of a node; nothing else changes nodes."""

    def __init__(self, cluster: ControlPlane, modern: bool) -> None:
        self._modern = modern
        self._lock = threading.Lock()
        self._binds: dict[str, Bind] = {}  # by UID, includes ended pods
        self._pods: dict[str, str] = {}  # existing pods: UID to name
        self._uids: defaultdict[str, set[str]] = defaultdict(set)  # all UIDs ever seen, by name
        self._cards: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._sizes: defaultdict[str, list[NodeSize]] = defaultdict(list)
        self._faults: list[str] = []
        self._heard: list[Callable[[Bind], None]] = []
        self.excepted = 0
        self.judged = 0
        super().__init__(cluster)

    # ---- what the test tells ------------------------------------------------------------

    def on_bind(self, hear: Callable[[Bind], None]) -> None:
        """Registers hear, which the watch's thread calls for each new bind."""
        self._heard.append(hear)

    def node(self, node: Json) -> Json:
        """Takes the answer to a write of a node."""
        capacity = node.get("status", {}).get("capacity", {})
        version = int(node["metadata"]["resourceVersion"])
        size = NodeSize(
            version, whole(capacity.get(GPU_MEM, "0")), whole(capacity.get(GPU_COUNT, "0"))
        )
        with self._lock:
            self._sizes[node["metadata"]["name"]].append(size)
        return node

    def last_seen(self, pod: Json) -> None:
        """Takes the answer to a delete, which a gap might hide."""
        if pod.get("kind") == "Pod":
            with self._lock:
                self._see(pod, exact=False)
                self._forget(pod["metadata"]["uid"])

    # ---- what it knows ------------------------------------------------------------------

    def binds(self) -> list[Bind]:
        """All binds, with those of ended pods."""
        with self._lock:
            return list(self._binds.values())

    def faults(self) -> list[str]:
        """Everything that was wrong at any version."""
        with self._lock:
            return list(self._faults) + ([f"the watch broke: {self.broken}"] if self.broken else [])

    def pending(self) -> int:
        """How many pods exist and were never bound."""
        with self._lock:
            return sum(uid not in self._binds for uid in self._pods)

    def incarnations(self, name: str) -> int:
        """How many pods of that name were ever seen."""
        with self._lock:
            return len(self._uids[name])

    def stale(self, knew: Callable[[str, NodeSize, int, int], bool]) -> tuple[int, list[str]]:
        """
        Returns how many binds carry an outdated size of their card, and a list of those that are
        faults. knew(node, change, since, until) says whether cardpack had received that change in that
        time.
        """
        excused, found = 0, []
        for bind in self.binds():
            sizes = self._sizes[bind.node]
            last = bisect.bisect_right([s.version for s in sizes], bind.version) - 1
            if not bind.version:
                last = len(sizes) - 1
            where = next(
                (i for i in range(last, -1, -1) if sizes[i].size(bind.card) == bind.size), None
            )
            if where is None:
                found.append(f"{bind}: its node never had such a card")
            elif bind.version and where < last:
                since = sizes[where].when
                if knew(bind.node, sizes[where + 1], since, bind.assumed):
                    found.append(f"{bind}: {sizes[where + 1]} was known")
                excused += 1
        return excused, found

    # ---- its thread ---------------------------------------------------------------------

    def listed(self, pods: list[Json], version: int) -> None:
        with self._lock:
            here = {pod["metadata"]["uid"] for pod in pods}
            for uid in [uid for uid in self._pods if uid not in here]:
                self._forget(uid)
            for pod in pods:
                self._see(pod, exact=False)
            for card in self._cards:
                self._judge_state(card, version)

    def changed(self, kind: str, pod: Json) -> None:
        with self._lock:
            self._see(pod, exact=True)
            if kind == "DELETED":
                self._forget(pod["metadata"]["uid"])

    def _see(self, pod: Json, exact: bool) -> None:
        uid = pod["metadata"]["uid"]
        if not size_of(pod):
            return
        self._pods[uid] = name_of(pod)
        self._uids[name_of(pod)].add(uid)
        if not place_of(pod):
            return
        ended = pod["status"].get("phase") in ("Succeeded", "Failed")
        known = self._binds.get(uid)
        if known is None:
            self._bound(pod, exact)
        elif known.node != place_of(pod):
            self._faults.append(f"{known}: moved to {place_of(pod)}")
        elif pod["metadata"].get("annotations", {}).get(IDX) != str(known.card):
            self._faults.append(f"{known}: its card changed")
        if ended:
            self._release(uid)

    def _bound(self, pod: Json, exact: bool) -> None:
        notes = pod["metadata"].get("annotations", {})
        try:
            card, size, said, assumed = (int(notes[k]) for k in (IDX, DEV, POD, ASSUME_TIME))
        except (KeyError, ValueError):
            self._faults.append(f"{name_of(pod)} on {place_of(pod)} with {notes}")
            return
        bind = Bind(
            name=name_of(pod),
            uid=pod["metadata"]["uid"],
            node=place_of(pod),
            card=card,
            mem=size_of(pod),
            said=said,
            size=size,
            assumed=assumed,
            version=int(pod["metadata"]["resourceVersion"]) if exact else 0,
        )
        self._binds[bind.uid] = bind
        if bind.mem != bind.said:
            if self._modern or len(self._uids[bind.name]) < 2:
                self._faults.append(f"{bind}: the wrong size")
            self.excepted += 1
        self._cards[bind.node, bind.card].add(bind.uid)
        if exact:
            self._judge_bind(bind)
        for hear in self._heard:
            hear(bind)

    def _judge_bind(self, bind: Bind) -> None:
        self.judged += 1
        used = self._used(bind.node, bind.card)
        if used > bind.size:
            on_it = [self._binds[uid] for uid in self._cards[bind.node, bind.card]]
            self._faults.append(f"{bind}: now {used} on a card of {bind.size}: {on_it}")

    def _judge_state(self, card: tuple[str, int], version: int) -> None:
        self.judged += 1
        on_it = [self._binds[uid] for uid in self._cards[card]]
        largest = max((bind.size for bind in on_it), default=0)
        if self._used(*card) > largest:
            self._faults.append(f"{card} at {version}: {self._used(*card)}: {on_it}")

    def _used(self, node: str, card: int) -> int:
        return sum(self._binds[uid].weight for uid in self._cards[node, card])

    def _forget(self, uid: str) -> None:
        self._release(uid)
        self._pods.pop(uid, None)

    def _release(self, uid: str) -> None:
        bind = self._binds.get(uid)
        if bind is not None:
            bind.live = False
            self._cards[bind.node, bind.card].discard(uid)
