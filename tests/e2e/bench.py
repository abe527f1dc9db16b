"""What a scenario gets: a cluster (real or fake), and the means to start cardpack.

A scenario is a function with the decorator @scenario; `run` finds it in SCENARIOS. All scenarios of
one Kubernetes release share one real control plane. Each scenario has its own namespace; the test
deletes nodes and pods between scenarios.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import GPU_MEM, ApiError, ControlPlane, PodWrites
from component import Ports, wait_for
from daemon import Daemon
from machine import Unsuited
from truth import BY_HAND, GPU_COUNT, History, Truth, place_of, size_of
from worker import Worker

Json = Any

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"
OBJECTS = MANIFESTS / "base" / "objects"
CARDPACK_USER = "system:serviceaccount:kube-system:cardpack"
QUOTA_MAP = "cardpack-quota"  # the ConfigMap in kube-system
NOBODY = "nobody"  # the schedulerName of pods that only the test binds
PATIENCE = 180.0  # seconds; for steps that take a few seconds on an idle machine
# For scenarios in which no request may fail: a leader that can't renew its lease in time refuses all. With the
# shipped lease it does so after four to six seconds without a CPU or an API server.
LEADS_ON = ("--leader-elect-lease-duration=21s", "--leader-elect-renew-deadline=14s")


def check(good: object, what: object) -> None:
    """An assert that `python3 -O` does not remove."""
    if not good:
        raise AssertionError(str(what))


class Skipped(Exception):
    """The scenario can't run here, for the given reason."""


@dataclass
class Options:
    """The command line's options."""

    binary: Path
    plain: Path  # the binary without sanitizers
    seed: int = 0  # of all random choices
    soak: float = 0.0  # minutes of chaos; 0: one round of each fault
    update: bool = False  # write golden texts anew
    pods: int = 60  # of node_load


class Lab:
    """Starts cardpack processes, and checks that each one ends without an error."""

    def __init__(self, options: Options, workdir: Path) -> None:
        workdir.mkdir(parents=True, exist_ok=True)
        self.options = options
        self.workdir = workdir
        self.scenario = "none"
        self.ports = Ports()
        self.port = self.ports.take()  # one for all: kube-scheduler knows a single port
        self.daemons: list[Daemon] = []

    def close(self) -> None:
        """Kills the processes that still run."""
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
        """Starts cardpack for that API server and waits until it is ready. It ends with the scenario."""
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
        """Ends a scenario that has not failed so far."""
        for daemon in self.daemons:
            daemon.stop()
        self.daemons.clear()

    def abandon(self) -> None:
        """Ends a scenario that failed."""
        for daemon in self.daemons:
            daemon.process.kill()
        self.daemons.clear()


def budgets_path(bench: Bench, namespace: str = "") -> str:
    """The path of PodDisruptionBudgets in the API server; 1.21 was the first release with policy/v1."""
    version = "v1" if bench.modern else "v1beta1"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/policy/{version}{within}/poddisruptionbudgets"


class Bench(Lab):
    """A real control plane with kube-scheduler, whose extender is the cardpack on `port`."""

    def __init__(self, options: Options, workdir: Path, version: str) -> None:
        super().__init__(options, workdir)
        self.version = version
        self.cluster = ControlPlane(version, workdir)
        self.minor = self.cluster.minor
        self.modern = self.minor > 22  # the API server checks a Binding's UID as a precondition
        self.history: History | None = None
        self.users = [CARDPACK_USER]  # all users that may bind
        self.namespace = "none"
        self.workers: list[Worker] = []  # nodes that run containers
        self._kicks = 0

    def open(self) -> None:
        """Starts the control plane; cardpack's ServiceAccount and its rights come from manifests/."""
        self.cluster.__enter__()
        self.token = token = self.cluster.cardpack_token()
        self.kubeconfig = self.cluster.write_kubeconfig(self.workdir / "cardpack.kubeconfig", token)
        self.start_scheduler()
        self.history = History(self.cluster)

    def start_scheduler(self, scheme: str = "http", extra: str = "", **render: Any) -> None:
        """Starts kube-scheduler with the shipped configuration, in place of one that runs."""
        self.cluster.end_scheduler()
        self.cluster.start_scheduler(
            f"{scheme}://127.0.0.1:{self.port}/gpushare-scheduler",
            extra=f"podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 2\n{extra}",
            **render,
        )

    def close(self) -> None:
        super().close()
        if self.history is not None:
            self.history.close()
        self.cluster.close()

    def begin(self, name: str) -> None:
        """Begins a scenario: makes its namespace. kube-scheduler runs, however the scenario before ended."""
        self.scenario = name
        self.revive_scheduler()
        scheduler = self.cluster.scheduler
        if scheduler is not None and not scheduler.alive:
            scheduler.start()
        self.namespace = "e2e-" + name
        self.cluster.create_namespace(self.namespace)

    def clear(self) -> None:
        """
        Cleans up after a scenario: deletes pods, nodes and the test's ConfigMaps; the API server keeps
        running.
        """
        if not self.cluster.apiserver.alive:
            self.cluster.apiserver.start()
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        waiting = False
        for pod in self.cluster.list_all(pods):
            if pod["metadata"].get("finalizers"):
                self.patch_pod(pod["metadata"]["name"], {"metadata": {"finalizers": None}})
            asks = pod["spec"].get("schedulerName") != NOBODY
            waiting = waiting or (asks and not pod["spec"].get("nodeName"))
        self._delete_all(pods, {"gracePeriodSeconds": 0})
        for pod in self.cluster.list_all("/api/v1/pods"):  # no kubelet ends those of DaemonSets
            metadata = pod["metadata"]
            self.cluster.api("DELETE", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                             "?gracePeriodSeconds=0")  # fmt: skip
        self._delete_all("/api/v1/nodes")
        maps = "/api/v1/namespaces/kube-system/configmaps"
        for item in self.cluster.list_all(maps):
            if item["metadata"]["name"].startswith(("unhealthy-gpu-", QUOTA_MAP)):
                self.cluster.must("DELETE", f"{maps}/{item['metadata']['name']}")
        wait_for(lambda: not self.cluster.list_all(pods), "the namespace to be empty", PATIENCE)
        if waiting:
            self.forget()

    def _delete_all(self, path: str, body: Json = None) -> None:
        """Deletes a collection. The API server ends a request after a minute, on a slow machine before the end."""

        def deleted() -> bool:
            status, answer = self.cluster.api("DELETE", path, body, timeout=120)
            if status not in (200, 504):
                raise ApiError(f"DELETE {path}", status, answer)
            return status == 200

        wait_for(deleted, f"{path} to be deleted", PATIENCE)

    def forget(self) -> None:
        """
        Makes kube-scheduler forget its state. kube-scheduler 1.20.2 puts a pod back into its queue if
        the pod is deleted during scheduling, and keeps room for the pod on its nominated node. The
        next scenario has a node of the same name.
        """
        scheduler = self.cluster.scheduler
        if scheduler is not None and scheduler.alive:
            scheduler.restart()

    def revive_scheduler(self) -> None:
        """
        Starts kube-scheduler again, as a kubelet does, if kube-scheduler has ended itself for a fault of its own:
        1.36.3 reads "deleted, and created again under the same name" as one update if its watch was away
        meanwhile (pkg/scheduler/eventhandlers.go compares no UIDs), and exits. Any other end is a failure.
        """
        scheduler = self.cluster.scheduler
        if scheduler is None or not scheduler.ended_itself:
            return
        said = scheduler.tail().rpartition("---- ")[2]  # of this run
        check("Pod updated on a different node than previously added to" in said, said)
        scheduler.start()

    def finish(self) -> None:
        super().finish()
        self._end_workers()

    def abandon(self) -> None:
        super().abandon()
        self._end_workers()

    def _end_workers(self) -> None:
        while self.workers:
            self.workers.pop().close()

    def worker(self, name: str, cards: int = 0, *images: Path, cdi: bool | None = None) -> Worker:
        """Starts a node with a real kubelet and these images. It ends with the scenario."""
        worker = self.launch_worker(name, cards, *images, cdi=cdi)
        worker.wait_ready()
        return worker

    def launch_worker(
        self, name: str, cards: int = 0, *images: Path, cdi: bool | None = None
    ) -> Worker:
        """Starts a node, without waiting for its kubelet: for several nodes."""
        folder = self.workdir / f"{self.scenario}-{name}"
        try:
            worker = Worker(self.cluster, name, folder, cards, cdi)
        except Unsuited as why:
            raise Skipped(str(why)) from None
        self.workers.append(worker)
        try:
            worker.start_runtime()
        except Unsuited as why:
            raise Skipped(str(why)) from None
        for archive in images:
            worker.import_image(archive)
        worker.kubelet.launch()
        return worker

    # ---- cardpack -----------------------------------------------------------------------

    def cardpack(self, *args: str, **options: Any) -> Daemon:
        """Starts cardpack under its ServiceAccount."""
        return self.daemon(self.kubeconfig, *args, **options)

    # ---- objects ------------------------------------------------------------------------

    def node(self, name: str, cards: int, size: int, remainder: int = 0) -> str:
        """
        Makes a node with `cards` cards of `size` each; `remainder` adds memory that belongs to no
        card.
        """
        capacity = {GPU_MEM: cards * size + remainder, GPU_COUNT: cards}
        self.cluster.create_node(name, capacity)
        return name

    def resize(self, name: str, **capacity: int) -> None:
        """
        Sets gpu_mem= and gpu_count= in capacity and allocatable; keys that are not named keep their
        values.
        """
        keys = {"gpu_mem": GPU_MEM, "gpu_count": GPU_COUNT}
        self.cluster.set_node_status(name, {keys[key]: value for key, value in capacity.items()})

    def cordon(self, name: str) -> None:
        """Makes the node unschedulable: kube-scheduler binds no pod to it."""
        self.cluster.must(
            "PATCH",
            f"/api/v1/nodes/{name}",
            {"spec": {"unschedulable": True}},
            content_type="application/merge-patch+json",
        )

    def pod(self, name: str, mem: int | str | Sequence[int | str | None], **options: Any) -> Json:
        """Makes a pod for kube-scheduler."""
        return self.cluster.create_pod(name, self.namespace, mem, **options)

    def own_pod(self, name: str, mem: int | str, **options: Any) -> Json:
        """Makes a pod that only the test binds."""
        return self.pod(name, mem, scheduler_name=NOBODY, **options)

    def placed_pod(self, name: str, mem: int, node: str, card: int | None, **options: Any) -> Json:
        """Makes a pod that the test binds without cardpack, with a card or without one."""
        notes = {} if card is None else {"ALIYUN_COM_GPU_MEM_IDX": str(card)}
        return self.pod(
            name, mem, node_name=node, annotations=notes, labels={BY_HAND: "yes"}, **options
        )

    def pods(self, names: Iterable[str], sizes: Iterable[int], **options: Any) -> list[Json]:
        """Makes many pods, from several threads."""
        with ThreadPoolExecutor(4) as hands:
            made = [
                hands.submit(self.pod, name, size, **options)
                for name, size in zip(names, sizes, strict=True)
            ]
            return [one.result() for one in made]

    def patch_pod(self, name: str, patch: Json) -> None:
        """Applies a merge patch to the pod."""
        self.cluster.must(
            "PATCH",
            f"/api/v1/namespaces/{self.namespace}/pods/{name}",
            patch,
            content_type="application/merge-patch+json",
        )

    def get(self, name: str) -> Json:
        """Returns the pod, which must exist."""
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
        Makes kube-scheduler retry all pending pods now. Without a change in the cluster 1.20.2 waits
        for a minute before it retries a pod whose extender call failed.
        """
        self._kicks += 1
        name = f"kick-{self._kicks}"
        self.cluster.create_node(name, ready=False)
        self.cluster.must("DELETE", f"/api/v1/nodes/{name}")

    # ---- what is true -------------------------------------------------------------------

    def truth(self) -> Truth:
        """The truth from lists that are read now."""
        pods = self.cluster.list_all("/api/v1/pods")
        return Truth(self.cluster.list_all("/api/v1/nodes"), pods)

    def bound_count(self) -> int:
        """How many of the scenario's pods the watch has shown bound."""
        assert self.history is not None
        return len(self.history.bound(self.namespace))

    def wait_bound(self, count: int, kicking: bool = False) -> None:
        """Waits until `count` of the scenario's pods are bound."""
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
        Checks everything that must hold when the cluster is idle: no card is over-committed, all
        annotations are exact and were present in every version, ASSUME_TIME is in order, each pod has
        one write of the right kind, and cardpack's inspect agrees.

        killed: cardpack or the API server was killed, so the audit log is incomplete.
        ordered: False if the API server may have committed a Binding long after cardpack sent it.
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
        """The part of verify() that checks every version of the objects, and which clients wrote them."""
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
        If the client of a write was killed, or etcd was held up until the write's deadline, the audit log
        says 504 whether or not the write happened. If the API server was killed, its audit log lacks its
        last writes.
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
                # After an unknown result the Binding may be sent again, and is then refused if it exists.
                unknown = entry.bindings_unknown > 0
                least = expected - unknown
                good = least <= entry.bindings <= expected and (unknown or not entry.bindings_refused)
                check(good, f"{name}: {entry}, not {expected}")


def agree(daemon: Daemon, truth: Callable[[], Truth]) -> None:
    """
    Waits until cardpack's view equals the API server's objects. cardpack holds the card of a Binding
    in doubt for 75 s, even if the pod is gone (bind_step.h).
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
    """The message of the pod's PodScheduled condition; empty if the condition has another reason."""
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == reason:
            text: str = condition.get("message", "")
            return text
    return ""


def dice(scenario: str) -> random.Random:
    """A random generator with the same numbers in each run (seed and scenario name)."""
    return random.Random(f"cardpack {scenario}")


Scenario = Callable[[Any], None]
SCENARIOS: dict[str, tuple[str, Scenario]] = {}


def scenario(kind: str) -> Callable[[Scenario], Scenario]:
    """Registers a function(bench); kind "real", "fake", "node" or "valgrind" says when it runs."""

    def add(function: Scenario) -> Scenario:
        name = function.__name__.replace("_", "-")
        assert name not in SCENARIOS
        SCENARIOS[name] = (kind, function)
        return function

    return add
