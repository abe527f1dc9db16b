"""Pods that arrive one after another at a real kube-scheduler, and the same ones at cardpack-sim.

A trace has nodes and pods as cardpack-sim reads them (docs/placement.md): a card has 1000 units of
memory. Real nodes and pods are made from it. A pod that kube-scheduler binds runs at once, and stays;
one that fits nowhere is deleted. No pod arrives before the previous one has its place.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import GPU_MEM, ControlPlane
from daemon import Daemon
from pod_watch import PodWatch

Json = Any

CARD_UNITS = 1000
GPU_COUNT = "aliyun.com/gpu-count"
MODEL_LABEL = "nvidia.com/gpu.product"
MODELS = "cardpack.io/card-model"
GATE = "cardpack.io/arrival"
PATIENCE = 120.0  # seconds that kube-scheduler may take for one pod
LEARNED = "policies learned"  # the daemon's log line


@dataclass(frozen=True)
class Node:
    """A row of a trace's nodes."""

    name: str
    cpu_milli: int
    memory_mib: int
    cards: int
    model: str


@dataclass(frozen=True)
class Arrival:
    """A row of a trace's pods."""

    cpu_milli: int
    memory_mib: int
    cards: int
    milli: int  # of each card
    models: str  # with | between them; empty: any

    @property
    def size(self) -> int:
        """Memory of all its cards."""
        return self.cards * self.milli


@dataclass(frozen=True)
class Trace:
    """Nodes, and pods in the order of their arrival."""

    nodes: Sequence[Node]
    pods: Sequence[Arrival]

    @property
    def capacity(self) -> int:
        """Memory of all cards."""
        return CARD_UNITS * sum(node.cards for node in self.nodes)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The two files that cardpack-sim reads."""
        folder.mkdir(parents=True, exist_ok=True)
        nodes, pods = folder / "nodes.csv", folder / "pods.csv"
        with nodes.open("w", newline="") as out:
            rows = csv.writer(out, lineterminator="\n")
            rows.writerow(("sn", "cpu_milli", "memory_mib", "gpu", "model"))
            for n in self.nodes:
                rows.writerow((n.name, n.cpu_milli, n.memory_mib, n.cards, n.model))
        with pods.open("w", newline="") as out:
            rows = csv.writer(out, lineterminator="\n")
            rows.writerow(("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"))
            for i, p in enumerate(self.pods):
                rows.writerow((name_of(i), p.cpu_milli, p.memory_mib, p.cards, p.milli, p.models))
        return nodes, pods


def name_of(i: int) -> str:
    """The name of the pod that arrives at place i."""
    return f"p{i:06}"


def read_nodes(path: Path) -> list[Node]:
    """The nodes of a trace's file."""
    with path.open(newline="") as text:
        return [
            Node(
                row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]),
                row["model"],
            )
            for row in csv.DictReader(text)
        ]  # fmt: skip


def read_pods(path: Path) -> list[Arrival]:
    """The pods of a trace's file."""
    with path.open(newline="") as text:
        return [
            Arrival(
                int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]),
                int(row["gpu_milli"]), row.get("gpu_spec") or "",
            )
            for row in csv.DictReader(text)
        ]  # fmt: skip


# ---- where the pods went -----------------------------------------------------------------


def simulate(program: Path, trace: Trace, policy: str, folder: Path) -> list[str]:
    """The node of each pod in cardpack-sim; empty: it fitted nowhere."""
    nodes, pods = trace.write(folder)
    places = folder / f"places-{policy}.csv"
    subprocess.run(
        [
            program, "replay", "--nodes", nodes, "--pods", pods, "--policy", policy,
            "--in-order", "--ties", "name", "--places", places,
        ],
        check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    with places.open(newline="") as text:
        return [row["node"] for row in csv.DictReader(text)]


def share_of(trace: Trace, places: Sequence[str]) -> float:
    """The allocated share of all card memory in the end, in percent."""
    placed = (pod.size for pod, node in zip(trace.pods, places, strict=True) if node)
    return 100 * sum(placed) / trace.capacity


def share_at(trace: Trace, places: Sequence[str], percent: int) -> float:
    """
    The allocated share of all card memory, in percent: the mean over the arrivals after which the
    arrived share rounds to `percent`, as `cardpack-sim replay` has it.
    """
    arrived = allocated = 0
    seen = []
    for pod, node in zip(trace.pods, places, strict=True):
        arrived += pod.size
        allocated += pod.size if node else 0
        if int(100 * arrived / trace.capacity + 0.5) == percent:
            seen.append(100 * allocated / trace.capacity)
    if not seen:
        raise ValueError(f"no arrival at {percent} %")
    return sum(seen) / len(seen)


# ---- the real cluster --------------------------------------------------------------------


def make_node(cluster: ControlPlane, node: Node) -> None:
    """Makes the node, ready and without a limit of pods that would count here."""
    cluster.create_node(
        node.name,
        {
            "cpu": f"{node.cpu_milli}m",
            "memory": f"{node.memory_mib}Mi",
            "pods": 1000,
            GPU_MEM: node.cards * CARD_UNITS,
            GPU_COUNT: node.cards,
        },
        labels={MODEL_LABEL: node.model} if node.model else {},
    )


class Seen(PodWatch):
    """The latest state of each pod of one namespace, and a way to wait for it."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self._namespace = namespace
        self._pods: dict[str, Json] = {}
        self._news = threading.Condition()
        super().__init__(cluster)

    def listed(self, pods: list[Json], version: int) -> None:
        """See PodWatch."""
        with self._news:
            self._pods.clear()
        for pod in pods:
            self.changed("ADDED", pod)

    def changed(self, kind: str, pod: Json) -> None:
        """See PodWatch."""
        metadata = pod["metadata"]
        if metadata["namespace"] != self._namespace:
            return
        with self._news:
            if kind == "DELETED":
                self._pods.pop(metadata["name"], None)
            else:
                self._pods[metadata["name"]] = pod
            self._news.notify_all()

    def wait(self, name: str, good: Callable[[Json | None], object], what: str) -> Json | None:
        """Waits until good(the pod, or None where it is gone)."""
        with self._news:
            if not self._news.wait_for(
                lambda: self.broken or good(self._pods.get(name)), timeout=PATIENCE
            ):
                raise TimeoutError(f"{name}: not {what} within {PATIENCE:g} s")
            if self.broken:
                raise RuntimeError(self.broken)
            return self._pods.get(name)


def refusal(pod: Json) -> str:
    """Why kube-scheduler found no node; empty: it has not said so."""
    for one in pod["status"].get("conditions", []):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            if one["reason"] == "SchedulerError":
                raise RuntimeError(f"{pod['metadata']['name']}: {one['message']}")
            if one["reason"] == "Unschedulable":
                return str(one["message"])
    return ""


@dataclass(frozen=True)
class Lesson:
    """The daemon has learned from that many pods."""

    pods: int
    meanwhile: int  # pods that came while it did
    next_due: int  # the number of pods with which the next lesson begins


# Before the first lesson: FIRST_ARRIVALS of core/market.
NO_LESSON = Lesson(0, 0, 32)


class Lessons:
    """What the daemon's log says of its lessons; its level must be debug."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._at = 0
        self.all: list[Lesson] = []

    def look(self) -> list[Lesson]:
        """All so far."""
        with self._log.open("rb") as text:
            text.seek(self._at)
            for line in text:
                if not line.endswith(b"\n"):
                    break
                self._at += len(line)
                if LEARNED.encode() in line:
                    entry = json.loads(line)
                    self.all.append(Lesson(entry["pods"], entry["pods_meanwhile"], entry["next"]))
        return self.all

    def due(self) -> int:
        """The number of pods with which the next lesson begins."""
        return (self.look() or [NO_LESSON])[-1].next_due


class Arriving:
    """Lets pods arrive at a cluster whose kube-scheduler asks `daemon`.

    settled: a pod is made with a scheduling gate, which is removed once the daemon has seen the pod,
    and has learned if a lesson is due with it. So the daemon decides with what cardpack-sim knows,
    which has no delays. This needs Kubernetes 1.27. Pods that ask for no card can't settle.
    """

    def __init__(
        self, cluster: ControlPlane, namespace: str, daemon: Daemon, settled: bool
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.daemon = daemon
        self.settled = settled
        self.lessons = Lessons(daemon.process.log)
        self.refusals: dict[int, str] = {}
        self._seen = Seen(cluster, namespace)

    def close(self) -> None:
        """Ends the watch."""
        self._seen.close()

    def all(self, pods: Sequence[Arrival]) -> Iterator[str]:
        """The node of each pod, one after the other; empty: it fitted nowhere."""
        for i, pod in enumerate(pods):
            yield self._one(i, pod)

    def _one(self, i: int, pod: Arrival) -> str:
        name = name_of(i)
        self._create(name, pod)
        if self.settled:
            self._settle(name, i + 1)
        decided = self._seen.wait(
            name, lambda p: p and (p["spec"].get("nodeName") or refusal(p)), "decided"
        )
        assert decided is not None
        node: str = decided["spec"].get("nodeName", "")
        if node:
            self.cluster.set_pod_phase(name, "Running", self.namespace)
            self._seen.wait(name, lambda p: p and p["status"]["phase"] == "Running", "running")
        else:
            self.refusals[i] = refusal(decided)
            self.cluster.delete_pod(name, self.namespace)
            self._seen.wait(name, lambda p: p is None, "gone")
            if self.settled:
                self._wait(lambda: self._pending() == 0, f"the end of {name} in the daemon")
        return node

    def _create(self, name: str, pod: Arrival) -> None:
        spec = {"schedulingGates": [{"name": GATE}]} if self.settled else {}
        self.cluster.create_pod(
            name,
            self.namespace,
            pod.size or None,
            labels={GPU_COUNT: str(pod.cards)} if pod.cards > 1 else {},
            annotations={MODELS: pod.models.replace("|", ",")} if pod.models else {},
            resources={"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"},
            spec=spec,
        )

    def _settle(self, name: str, arrived: int) -> None:
        self._wait(lambda: self._pending() == 1, f"the daemon's look at {name}")
        if arrived >= self.lessons.due():
            self._wait(lambda: self.lessons.due() > arrived, f"a lesson with {name}")
        self.cluster.must(
            "PATCH",
            f"/api/v1/namespaces/{self.namespace}/pods/{name}",
            {"spec": {"schedulingGates": None}},
            content_type="application/merge-patch+json",
        )

    @staticmethod
    def _wait(good: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE
        while not good():
            if time.monotonic() > until:
                raise TimeoutError(f"{what}: not within {PATIENCE:g} s")
            time.sleep(0.002)

    def _pending(self) -> int:
        """The pods that the daemon knows and that have no node; it sees events in their order."""
        _, text = self.daemon.call("GET", "/metrics")
        found = re.search(r'^cardpack_pods\{state="pending"\} (\d+)$', text, re.MULTILINE)
        assert found is not None
        return int(found[1])
