"""DRA for a test: a driver that publishes ResourceSlices, claims, and the truth about both uses of a card.

The in-tree scheduler allocates the claims. No kubelet and no controller runs, so the test does what the
controller of claims does when a pod is gone: it removes the reservation and the allocation.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pod_watch import PodWatch
from truth import IDX

from cluster import ControlPlane

Json = Any

GROUP = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.example.com"
MERGE = "application/merge-patch+json"


def uuid_of(node: str, card: int) -> str:
    """The UUID of a card, as the node's table and the driver say it."""
    return f"GPU-{node}-{card}"


def table_of(node: str, cards: int, size: int) -> str:
    """The annotation cardpack.io/cards."""
    rows = [{"index": i, "memory": size, "uuid": uuid_of(node, i)} for i in range(cards)]
    return json.dumps(rows)


class Driver:
    """Publishes the devices of nodes, one slice and pool each, as NVIDIA's driver does."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.cluster = cluster
        self.slices: list[str] = []
        self.classes: list[str] = []

    def publish(self, node: str, cards: int, size: int, **device: Json) -> None:
        """device: more fields of each device."""
        devices = [
            {
                "name": f"gpu-{i}",
                "attributes": {
                    "uuid": {"string": uuid_of(node, i)},
                    "type": {"string": "gpu"},
                },
                "capacity": {"memory": {"value": f"{size}Gi"}},
                **device,
            }
            for i in range(cards)
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        self.cluster.must(
            "POST", f"{GROUP}/resourceslices", {"metadata": {"name": f"{node}-gpus"}, "spec": spec}
        )
        self.slices.append(f"{node}-gpus")

    def withdraw(self, node: str) -> None:
        """What the kubelet does when the driver of the node is gone."""
        self.cluster.must("DELETE", f"{GROUP}/resourceslices/{node}-gpus")
        self.slices.remove(f"{node}-gpus")

    def device_class(self, name: str, uuids: Iterable[str] | None = None, **spec: Json) -> None:
        """A class of all devices, or of those with these UUIDs."""
        rule = f'device.driver == "{DRIVER}"'
        if uuids is not None:
            rule += f' && device.attributes["{DRIVER}"].uuid in {json.dumps(list(uuids))}'
        full = {"selectors": [{"cel": {"expression": rule}}], **spec}
        self.cluster.must(
            "POST", f"{GROUP}/deviceclasses", {"metadata": {"name": name}, "spec": full}
        )
        self.classes.append(name)

    def close(self) -> None:
        """Deletes what it has made."""
        for name in self.slices:
            self.cluster.must("DELETE", f"{GROUP}/resourceslices/{name}")
        for name in self.classes:
            self.cluster.must("DELETE", f"{GROUP}/deviceclasses/{name}")


def claim(cluster: ControlPlane, namespace: str, name: str, class_name: str) -> None:
    """A claim for one device."""
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    cluster.must(
        "POST",
        f"{GROUP}/namespaces/{namespace}/resourceclaims",
        {"metadata": {"name": name}, "spec": spec},
    )


def claiming_pod(cluster: ControlPlane, namespace: str, name: str, claim_name: str) -> None:
    """A pod of the in-tree scheduler that uses the claim."""
    container = {
        "name": "c",
        "image": "example.invalid/none",
        "resources": {"claims": [{"name": "gpu"}]},
    }
    spec = {
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}],
    }
    cluster.must(
        "POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec}
    )


def release(cluster: ControlPlane, namespace: str, name: str) -> None:
    """Does what the controller of claims does after the last pod is gone, and deletes the claim."""
    path = f"{GROUP}/namespaces/{namespace}/resourceclaims/{name}"
    empty = {"status": {"allocation": None, "reservedFor": None}}
    cluster.must("PATCH", f"{path}/status", empty, content_type=MERGE)
    cluster.must("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
    cluster.api("DELETE", path)


def devices_of(item: Json) -> list[tuple[str, int]]:
    """The cards that a claim holds, as node and index: a pool is a node here."""
    results = (item.get("status") or {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [(r["pool"], int(r["device"].removeprefix("gpu-"))) for r in results]


@dataclass
class Change:
    """One version of a pod or a claim, and which cards it held from then on."""

    version: int
    seen: float  # when the test's watch brought it
    kind: str  # "pod" or "claim"
    name: str
    cards: list[tuple[str, int]]


@dataclass
class Twice:
    """A card that was given to a second user while it had a first one."""

    card: tuple[str, int]
    first: Change
    second: Change

    @property
    def apart(self) -> float:
        """The seconds between the two."""
        return self.second.seen - self.first.seen


@dataclass
class Story:
    """All versions of pods and claims. Both are in one etcd, so their versions are in one order."""

    changes: list[Change] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, item: Json, kind: str, cards: list[tuple[str, int]]) -> None:
        """Records one version."""
        meta = item["metadata"]
        change = Change(
            int(meta["resourceVersion"]), time.monotonic(), kind, meta["uid"], cards
        )
        with self.lock:
            self.changes.append(change)

    def used_twice(self) -> list[Twice]:
        """Walks the versions in the order in which etcd took them."""
        holds: dict[str, Change] = {}
        found = []
        for now in sorted(self.changes, key=lambda c: c.version):
            before = holds.get(now.name)
            holds[now.name] = now if before is None or before.cards != now.cards else before
            for card in now.cards:
                if before is not None and card in before.cards:
                    continue
                found += [
                    Twice(card, other, now)
                    for other in holds.values()
                    if other.kind != now.kind and card in other.cards
                ]
        return found

    def held(self, kind: str) -> int:
        """How many pods or claims held a card at some time."""
        return len({c.name for c in self.changes if c.kind == kind and c.cards})


class _Pods(PodWatch):
    def __init__(self, cluster: ControlPlane, story: Story) -> None:
        self.story = story
        super().__init__(cluster)

    def listed(self, pods: list[Json], version: int) -> None:
        for pod in pods:
            self.changed("ADDED", pod)

    def changed(self, kind: str, pod: Json) -> None:
        index = pod["metadata"].get("annotations", {}).get(IDX, "")
        node = pod["spec"].get("nodeName", "")
        ended = kind == "DELETED" or pod["status"].get("phase") in ("Succeeded", "Failed")
        cards = [(node, int(i)) for i in index.split(",") if i] if node and not ended else []
        self.story.add(pod, "pod", cards)


class _Claims(PodWatch):
    path = f"{GROUP}/resourceclaims"

    def __init__(self, cluster: ControlPlane, story: Story) -> None:
        self.story = story
        super().__init__(cluster)

    def listed(self, pods: list[Json], version: int) -> None:
        for item in pods:
            self.changed("ADDED", item)

    def changed(self, kind: str, pod: Json) -> None:
        self.story.add(pod, "claim", [] if kind == "DELETED" else devices_of(pod))


class Witness:
    """Records all versions of pods and claims while it is open."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.story = Story()
        self.watches: list[PodWatch] = [_Pods(cluster, self.story), _Claims(cluster, self.story)]

    def close(self) -> Story:
        """The story so far; AssertionError if a watch lost history."""
        for watch in self.watches:
            if watch.broken or watch.lists != 1:
                raise AssertionError(watch.broken or f"{watch.path}: {watch.lists} lists")
            watch.close()
        return self.story
