"""What a scenario finds: cardpack to start, and a cluster for it, real or fake.

A scenario is a function with the decorator @scenario; `run` finds it in SCENARIOS.
A real control plane serves all scenarios of its release, each with a namespace
of its own; nodes and pods are cleared away in between.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import GPU_MEM, ControlPlane, PodWrites
from component import Ports, wait_for
from daemon import Daemon
from truth import BY_HAND, GPU_COUNT, History, Truth, place_of, size_of

Json = Any

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"
OBJECTS = MANIFESTS / "base" / "objects"
CARDPACK_USER = "system:serviceaccount:kube-system:cardpack"
QUOTA_MAP = "cardpack-quota"  # the ConfigMap in kube-system
NOBODY = "nobody"  # the schedulerName of pods that the test schedules itself
PATIENCE = 180.0  # for what takes seconds on a machine with nothing else to do


def check(good: object, what: object) -> None:
    """An assert that -O leaves in."""
    if not good:
        raise AssertionError(str(what))


class Skipped(Exception):
    """The scenario can't be run here, for the reason given."""


@dataclass
class Options:
    """Of the command line."""

    binary: Path
    plain: Path  # built without sanitizers
    seed: int = 0  # of what is left to chance
    soak: float = 0.0  # minutes of chaos, 0: one round of each fault


class Lab:
    """Starts cardpacks, and sees to it that each comes to a clean end."""

    def __init__(self, options: Options, workdir: Path) -> None:
        workdir.mkdir(parents=True, exist_ok=True)
        self.options = options
        self.workdir = workdir
        self.scenario = "none"
        self.ports = Ports()
        self.port = self.ports.take()  # the same for each, as kube-scheduler knows one
        self.daemons: list[Daemon] = []

    def close(self) -> None:
        """Kills what still runs."""
        self.abandon()
        self.ports.close()

    def daemon(
        self,
        kubeconfig: Path,
        *args: str,
        binary: Path | None = None,
        started: bool = True,
        **options: Any,
    ) -> Daemon:
        """cardpack for that API server, ready; it is stopped when the scenario ends."""
        daemon = Daemon(
            binary or self.options.binary,
            self.workdir,
            self.port,
            kubeconfig,
            args,
            name=f"cardpack-{self.scenario}",
            **options,
        )
        self.daemons.append(daemon)
        if started:
            daemon.start()
        return daemon

    def finish(self) -> None:
        """The end of a scenario that went well so far."""
        for daemon in self.daemons:
            daemon.stop()
        self.daemons.clear()

    def abandon(self) -> None:
        """The end of a scenario that failed."""
        for daemon in self.daemons:
            daemon.process.kill()
        self.daemons.clear()


def budgets_path(bench: Bench, namespace: str = "") -> str:
    """Where the API server has PodDisruptionBudgets; 1.21 was the first with policy/v1."""
    version = "v1" if bench.modern else "v1beta1"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/policy/{version}{within}/poddisruptionbudgets"


class Bench(Lab):
    """A real control plane with kube-scheduler, which asks the cardpack of `port`."""

    def __init__(self, options: Options, workdir: Path, version: str) -> None:
        super().__init__(options, workdir)
        self.version = version
        self.cluster = ControlPlane(version, workdir)
        self.minor = self.cluster.minor
        self.modern = self.minor > 22  # a Binding's UID is a precondition
        self.history: History | None = None
        self.users = [CARDPACK_USER]  # of all that may bind
        self.namespace = "none"
        self._kicks = 0

    def open(self) -> None:
        """Starts it all; the ServiceAccount and its rights come from manifests/."""
        self.cluster.__enter__()
        self.token = token = self.cluster.cardpack_token()
        self.kubeconfig = self.cluster.write_kubeconfig(self.workdir / "cardpack.kubeconfig", token)
        self.start_scheduler()
        self.history = History(self.cluster)

    def start_scheduler(self, scheme: str = "http", **render: Any) -> None:
        """kube-scheduler with the shipped configuration; one that runs is ended."""
        self.cluster.end_scheduler()
        self.cluster.start_scheduler(
            f"{scheme}://127.0.0.1:{self.port}/gpushare-scheduler",
            extra="podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 2\n",
            **render,
        )

    def close(self) -> None:
        super().close()
        if self.history is not None:
            self.history.close()
        self.cluster.close()

    def begin(self, name: str) -> None:
        """A scenario begins, in a namespace of its own."""
        self.scenario = name
        self.namespace = "e2e-" + name
        self.cluster.create_namespace(self.namespace)

    def clear(self) -> None:
        """After a scenario: no pods, no nodes, no ConfigMaps of ours; the API server runs."""
        if not self.cluster.apiserver.alive:
            self.cluster.apiserver.start()
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        waiting = False
        for pod in self.cluster.list_all(pods):
            if pod["metadata"].get("finalizers"):
                self.patch_pod(pod["metadata"]["name"], {"metadata": {"finalizers": None}})
            asks = pod["spec"].get("schedulerName") != NOBODY
            waiting = waiting or (asks and not pod["spec"].get("nodeName"))
        now = {"gracePeriodSeconds": 0}
        self.cluster.must("DELETE", pods, now, timeout=120)
        self.cluster.must("DELETE", "/api/v1/nodes", timeout=120)
        maps = "/api/v1/namespaces/kube-system/configmaps"
        for item in self.cluster.list_all(maps):
            if item["metadata"]["name"].startswith(("unhealthy-gpu-", QUOTA_MAP)):
                self.cluster.must("DELETE", f"{maps}/{item['metadata']['name']}")
        wait_for(lambda: not self.cluster.list_all(pods), "the namespace to be empty", PATIENCE)
        if waiting:
            self.forget()

    def forget(self) -> None:
        """
        A kube-scheduler that remembers nothing. 1.20.2 puts a pod that is deleted while it is
        being scheduled back into its queue, and keeps room for it on the node that it was
        nominated for: the next scenario has a node of the same name.
        """
        scheduler = self.cluster.scheduler
        if scheduler is not None and scheduler.alive:
            scheduler.restart()

    # ---- cardpack -----------------------------------------------------------------------

    def cardpack(self, *args: str, **options: Any) -> Daemon:
        """cardpack under its ServiceAccount."""
        return self.daemon(self.kubeconfig, *args, **options)

    # ---- objects ------------------------------------------------------------------------

    def node(self, name: str, cards: int, size: int, remainder: int = 0) -> str:
        """A node with so many cards of that size; the remainder belongs to none."""
        capacity = {GPU_MEM: cards * size + remainder, GPU_COUNT: cards}
        self.cluster.create_node(name, capacity)
        return name

    def resize(self, name: str, **capacity: int) -> None:
        """gpu_mem= and gpu_count=, in capacity and allocatable; the rest stays."""
        keys = {"gpu_mem": GPU_MEM, "gpu_count": GPU_COUNT}
        self.cluster.set_node_status(name, {keys[key]: value for key, value in capacity.items()})

    def cordon(self, name: str) -> None:
        """kube-scheduler leaves the node alone."""
        self.cluster.must(
            "PATCH",
            f"/api/v1/nodes/{name}",
            {"spec": {"unschedulable": True}},
            content_type="application/merge-patch+json",
        )

    def pod(self, name: str, mem: int | str | Sequence[int | str | None], **options: Any) -> Json:
        """A pod for kube-scheduler."""
        return self.cluster.create_pod(name, self.namespace, mem, **options)

    def own_pod(self, name: str, mem: int | str, **options: Any) -> Json:
        """A pod that nobody but the test schedules."""
        return self.pod(name, mem, scheduler_name=NOBODY, **options)

    def placed_pod(self, name: str, mem: int, node: str, card: int | None, **options: Any) -> Json:
        """A pod that is bound past cardpack, on a card or on none."""
        notes = {} if card is None else {"ALIYUN_COM_GPU_MEM_IDX": str(card)}
        return self.pod(
            name, mem, node_name=node, annotations=notes, labels={BY_HAND: "yes"}, **options
        )

    def pods(self, names: Iterable[str], sizes: Iterable[int], **options: Any) -> list[Json]:
        """Many pods, made by several hands at a time."""
        with ThreadPoolExecutor(4) as hands:
            made = [
                hands.submit(self.pod, name, size, **options)
                for name, size in zip(names, sizes, strict=True)
            ]
            return [one.result() for one in made]

    def patch_pod(self, name: str, patch: Json) -> None:
        """A merge patch."""
        self.cluster.must(
            "PATCH",
            f"/api/v1/namespaces/{self.namespace}/pods/{name}",
            patch,
            content_type="application/merge-patch+json",
        )

    def get(self, name: str) -> Json:
        """The pod, which must be there."""
        pod = self.cluster.pod(name, self.namespace)
        check(pod is not None, f"pod {name} is gone")
        return pod

    def unhealthy(self, node: str, gpus: str | None) -> None:
        """Writes the ConfigMap of a node's unhealthy cards; None deletes it."""
        maps = "/api/v1/namespaces/kube-system/configmaps"
        name = f"unhealthy-gpu-{node}"
        if gpus is None:
            self.cluster.must("DELETE", f"{maps}/{name}")
            return
        item = {"metadata": {"name": name}, "data": {"gpus": gpus}}
        if self.cluster.api("PUT", f"{maps}/{name}", item)[0] == 404:
            self.cluster.must("POST", maps, item)

    def kick(self) -> None:
        """
        Makes kube-scheduler try all pending pods again now: 1.20.2 lets a pod whose extender
        failed lie for a minute, unless the cluster changes.
        """
        self._kicks += 1
        name = f"kick-{self._kicks}"
        self.cluster.create_node(name, ready=False)
        self.cluster.must("DELETE", f"/api/v1/nodes/{name}")

    # ---- what is true -------------------------------------------------------------------

    def truth(self) -> Truth:
        """From lists of now."""
        pods = self.cluster.list_all("/api/v1/pods")
        return Truth(self.cluster.list_all("/api/v1/nodes"), pods)

    def bound_count(self) -> int:
        """How many of the scenario's pods the watch has seen bound."""
        assert self.history is not None
        return len(self.history.bound(self.namespace))

    def wait_bound(self, count: int, kicking: bool = False) -> None:
        """Until so many of the scenario's pods are bound."""
        kicked = time.monotonic()

        def enough() -> bool:
            nonlocal kicked
            if kicking and time.monotonic() > kicked + 2:
                self.kick()
                kicked = time.monotonic()
            return self.bound_count() >= count

        try:
            wait_for(enough, f"{count} pods bound", PATIENCE, poll=0.05)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {self.bound_count()} are") from None

    def verify(
        self, daemon: Daemon | None, *, killed: bool = False, ordered: bool = True
    ) -> Truth:
        """
        Everything that must hold once nothing moves: no card over-committed, all
        annotations exact, no moment without them, ASSUME_TIME in order, one write
        a pod and none of another kind, and cardpack of the same opinion.

        killed: cardpack or the API server was, and the audit log says less than all.
        ordered: False where a Binding may have been committed long after it was sent.
        """
        truth = self.truth()
        check(not truth.overcommitted(), truth.overcommitted())
        check(not truth.bad_annotations(), truth.bad_annotations())
        self.verify_history(truth, killed=killed, ordered=ordered)
        if daemon is not None:
            agree(daemon, lambda: truth)
        return truth

    def verify_history(
        self, truth: Truth, *, killed: bool = False, ordered: bool = True
    ) -> None:
        """Of verify() what was at every moment, and who wrote what."""
        assert self.history is not None
        uids = {pod["metadata"]["uid"] for pod in truth.bound()}
        wait_for(lambda: uids <= self._seen(), "the test's watch")
        faults = self.history.faults(self.namespace, ordered)
        check(not faults, faults)
        self._verify_writes(truth, killed)

    def _seen(self) -> set[str]:
        assert self.history is not None
        return set(self.history.bound(self.namespace))

    def _verify_writes(self, truth: Truth, killed: bool) -> None:
        """
        Of a writer that was killed the API server's audit says 504, whatever was written;
        and of writes just before its own death it says nothing.
        """
        writes = self.cluster.bindings_in_audit(*self.users)
        for name, pod in truth.pods.items():
            if not name.startswith(self.namespace + "/") or not size_of(pod):
                continue
            by_hand = BY_HAND in pod["metadata"].get("labels", {})
            expected = 1 if place_of(pod) and not by_hand else 0
            entry = writes.get(name, PodWrites())
            check(entry.patches == entry.updates == 0, f"{name}: {entry}")
            if killed:
                check(entry.bindings <= expected, f"{name}: {entry}, not {expected}")
            else:
                good = entry.bindings == expected and not entry.bindings_refused
                check(good, f"{name}: {entry}, not {expected}")


def agree(daemon: Daemon, truth: Callable[[], Truth]) -> None:
    """
    cardpack's own view comes to be that of the API server's objects. A card that a Binding of
    unknown outcome asked for is kept for 75 s, even if that pod is gone (bind_step.h).
    """
    differences: list[str] = []

    def same() -> bool:
        differences[:] = truth().differs(daemon.inspect())
        return not differences

    try:
        wait_for(same, "inspect to agree", PATIENCE, poll=0.1)
    except TimeoutError:
        raise AssertionError("\n".join(["inspect does not agree:", *differences])) from None


def message(pod: Json, reason: str = "Unschedulable") -> str:
    """The text of the pod's PodScheduled condition, empty unless it is for that reason."""
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == reason:
            text: str = condition.get("message", "")
            return text
    return ""


def dice(scenario: str) -> random.Random:
    """The same numbers each time."""
    return random.Random(f"cardpack {scenario}")


Scenario = Callable[[Any], None]
SCENARIOS: dict[str, tuple[str, Scenario]] = {}


def scenario(kind: str) -> Callable[[Scenario], Scenario]:
    """For a function(bench): kind "real", "fake" or "valgrind" says when it is run."""

    def add(function: Scenario) -> Scenario:
        name = function.__name__.replace("_", "-")
        assert name not in SCENARIOS
        SCENARIOS[name] = (kind, function)
        return function

    return add
