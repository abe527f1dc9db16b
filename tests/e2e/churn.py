"""2,000 pods in a cluster that changes: created in waves, deleted, started, ended, and replaced during
a bind by pods of the same name.

Three threads: one makes pods for kube-scheduler; one plays the kubelet and the device plugin of all
nodes; one sends binds to cardpack for pods that it deletes and creates again at the same time. The API
server dies or freezes meanwhile: the threads retry their requests.
"""

from __future__ import annotations

import heapq
import http.client
import itertools
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from bench import NOBODY, Bench
from cluster import ApiError
from daemon import Daemon
from ledger import Bind, Ledger
from truth import ASSIGNED, ASSUME_TIME

Json = Any
T = TypeVar("T")

SIZES = [1, 1, 2, 2, 2, 3, 4, 4, 6, 8]
KUBELETS = 2
# Statuses of an API server that starts or shuts down.
_AGAIN = {401, 403, 408, 429, 500, 502, 503, 504}


class Stopped(Exception):
    """The thread was told to stop before its request got an answer."""


class Churn:
    """Starts its threads at once; total is the number of pods that it creates."""

    def __init__(
        self, bench: Bench, daemon: Daemon, ledger: Ledger, seed: int, total: int, nodes: list[str]
    ) -> None:
        self.bench, self.daemon, self.ledger = bench, daemon, ledger
        self.total, self.nodes = total, nodes
        self.made = 0
        self.made_again = 0
        self.unsure: set[str] = set()  # names of pods whose deletion got no answer
        self.promised: list[tuple[Json, str]] = []  # metadata and node of binds that succeeded
        self.broken: list[str] = []
        self._seed = seed
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        ledger.on_bind(self._bound)
        hands = [self._make, self._race] + [self._play] * KUBELETS
        self._threads = [
            threading.Thread(target=self._guard, args=(hand,), daemon=True) for hand in hands
        ]
        for thread in self._threads:
            thread.start()

    def luck(self, of: str) -> random.Random:
        """A random generator for one thread."""
        return random.Random(f"{self._seed} {of}")

    def done(self) -> bool:
        """Whether all pods were made, or a thread failed."""
        return self.made >= self.total or bool(self.broken)

    def stop(self) -> None:
        """Stops all threads; after this the test writes nothing."""
        self._stop.set()
        for thread in self._threads:
            thread.join(90)
        # The operation that the stop interrupted.
        pods = f"/api/v1/namespaces/{self.bench.namespace}/pods"
        for pod in self.bench.cluster.list_all(pods, fieldSelector="spec.nodeName="):
            if pod["spec"]["schedulerName"] == NOBODY:
                self.bench.cluster.delete_pod(pod["metadata"]["name"], self.bench.namespace)

    # ---- asking an API server that may be gone ------------------------------------------

    def ask(self, call: Callable[[], T], unsure: str = "") -> T | None:
        """
        Repeats the call until it gets an answer; None: the object does not exist, or exists already.
        """
        while not self._stop.is_set():
            try:
                return call()
            except ApiError as error:
                if error.status not in _AGAIN:
                    if error.status in (404, 409, 422):
                        return None
                    raise
            except (OSError, http.client.HTTPException):
                pass
            if unsure:
                self.unsure.add(unsure)
            self._stop.wait(0.3)
        raise Stopped

    def create(self, name: str, size: int, own: bool = False) -> Json:
        """Creates a pod and counts it once it exists."""
        make = self.bench.own_pod if own else self.bench.pod
        pod = self.ask(lambda: make(name, size))
        with self._lock:
            self.made += 1
        return pod

    def delete(self, name: str, uid: str = "") -> None:
        """Deletes the pod at once, without a grace period; with a UID, only the pod that has it."""
        path = f"/api/v1/namespaces/{self.bench.namespace}/pods/{name}"
        options: Json = {"gracePeriodSeconds": 0}
        if uid:
            options["preconditions"] = {"uid": uid}
        full = f"{self.bench.namespace}/{name}"
        answer = self.ask(lambda: self.bench.cluster.must("DELETE", path, options), unsure=full)
        if answer is not None:
            self.ledger.last_seen(answer)

    # ---- hands --------------------------------------------------------------------------

    def _guard(self, hand: Callable[[], None]) -> None:
        try:
            hand()
        except Stopped:
            pass
        except Exception as error:
            self.broken.append(f"{hand.__name__}: {type(error).__name__} {error}")

    def _make(self) -> None:
        """Makes waves of pods, unless too many still wait; deletes some early, and makes some again."""
        luck = self.luck("make")
        names = itertools.count()
        while self.made < self.total and not self._stop.is_set():
            for _ in range(min(luck.randint(10, 90), self.total - self.made)):
                name = f"p{next(names):05}"
                size = luck.choice(SIZES)
                self.create(name, size)
                if luck.random() < 0.08:
                    again = luck.choice([size, luck.choice(SIZES)])
                    self._later(luck.random() * 0.5, lambda n=name, s=again: self._again(n, s))
                elif luck.random() < 0.04:
                    self._later(luck.random(), lambda n=name: self.delete(n))
            self._stop.wait(luck.random())
            while self.ledger.pending() > 120 and not self._stop.wait(0.1):
                pass

    def _again(self, name: str, size: int) -> None:
        """Deletes the pod and makes another one of that name, in any state of the first one's bind."""
        self.delete(name)
        self.create(name, size)
        self.made_again += 1

    def _race(self) -> None:
        """
        Sends binds to cardpack, without kube-scheduler, for pods that it makes again during the bind.
        """
        luck = self.luck("race")
        for i in itertools.count():
            if self._stop.wait(luck.random() * 0.6) or self.made >= self.total:
                return
            name, size = f"race{i:04}", luck.choice(SIZES)
            pod = self.create(name, size, own=True)
            if pod is None:
                continue
            binding = threading.Thread(target=self._bind, args=(pod, luck.choice(self.nodes)))
            binding.start()
            time.sleep(luck.random() * 0.015)
            if luck.random() < 0.7:
                self.delete(name)
                second = self.create(name, luck.choice([size, luck.choice(SIZES)]), own=True)
                self.made_again += 1
                if second is not None:
                    self._bind(second, luck.choice(self.nodes))
            binding.join()
            # The kubelet thread ends bound pods. Only this thread would bind the others.
            left = self.ask(lambda n=name: self.bench.cluster.pod(n, self.bench.namespace))
            if left and not left["spec"].get("nodeName"):
                self.delete(name)

    def _bind(self, pod: Json, node: str) -> None:
        """Sends a bind and accepts any outcome."""
        try:
            if self.daemon.bind(pod, node, timeout=40) == "":
                self.promised.append((pod["metadata"], node))
        except (OSError, http.client.HTTPException):
            pass  # cardpack was killed, or is frozen
        except AssertionError as error:
            self.broken.append(str(error))

    # ---- the kubelet --------------------------------------------------------------------

    def _bound(self, bind: Bind) -> None:
        """Called in the ledger's thread: a pod was bound to a node."""
        luck = random.Random(f"{self._seed} {bind.uid}")
        name, uid = bind.name.partition("/")[2], bind.uid
        life = 1 + luck.expovariate(1 / 5)
        self._later(luck.random() * 0.3, lambda: self._start(name, uid))
        if luck.random() < 0.3:
            self._later(life, lambda: self.delete(name, uid))
            return
        phase = luck.choice(["Succeeded", "Succeeded", "Failed"])
        self._later(life, lambda: self._phase(name, uid, phase))
        if luck.random() < 0.9:
            self._later(life + 1 + luck.random() * 3, lambda: self.delete(name, uid))

    def _start(self, name: str, uid: str) -> None:
        """Does what the device plugin's Allocate and then the kubelet do."""
        notes = {ASSIGNED: "true", ASSUME_TIME: str(time.time_ns())}
        self._patch(name, {"metadata": {"uid": uid, "annotations": notes}})
        self._phase(name, uid, "Running")

    def _phase(self, name: str, uid: str, phase: str) -> None:
        self._patch(name, {"metadata": {"uid": uid}, "status": {"phase": phase}}, "/status")

    def _patch(self, name: str, patch: Json, part: str = "") -> None:
        path = f"/api/v1/namespaces/{self.bench.namespace}/pods/{name}{part}"
        kind = "application/merge-patch+json"
        self.ask(lambda: self.bench.cluster.must("PATCH", path, patch, content_type=kind))

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        with self._lock:
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), call))

    def _play(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                due = self._due and self._due[0][0] <= time.monotonic()
                call = heapq.heappop(self._due)[2] if due else None
            if call is None:
                self._stop.wait(0.02)
            else:
                call()
