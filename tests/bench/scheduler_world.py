"""A control plane to measure kube-scheduler on: nodes, pods in a burst or at a steady rate, and their
costs.

Nodes and pods are the same each time. The pods of a burst are created while no scheduler runs, so that
their creation does not affect the measurement.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import scheduler_config  # noqa: E402
from cluster import GPU_MEM, ControlPlane  # noqa: E402
from component import Ports, wait_for  # noqa: E402
from pod_watch import PodWatch  # noqa: E402

Json = Any

ROOT = Path(__file__).resolve().parents[2]
GPU_COUNT = "aliyun.com/gpu-count"
CARDS, CARD_SIZE = 8, 16
SIZES = (2, 4, 8)  # of the pods, in turn
PODS = "/api/v1/namespaces/default/pods"
HANDS = 12  # parallel requests while nodes and pods are created
PATIENCE = 600.0
_TICK = os.sysconf("SC_CLK_TCK")
_COUNTED = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def processor_seconds(pid: int) -> float:
    """The CPU time of all threads of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


class BindWatch(PodWatch):
    """When each pod was first seen bound, and its node."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.when: dict[str, float] = {}
        self.node: dict[str, str] = {}
        self.carded: set[str] = set()  # pods bound by cardpack, which writes the card
        self.there: set[str] = set()
        self.at: dict[int, Callable[[], None]] = {}  # called before that many pods count as bound
        super().__init__(cluster)

    def forget(self) -> None:
        """Called before pods of the same names are created again; none may exist."""
        self.when, self.node, self.carded, self.at = {}, {}, set(), {}

    def listed(self, pods: list[Json], version: int) -> None:
        """See PodWatch."""
        self.there = set()
        for pod in pods:
            self.changed("ADDED", pod)

    def changed(self, kind: str, pod: Json) -> None:
        """See PodWatch."""
        name = pod["metadata"]["name"]
        if kind == "DELETED":
            self.there.discard(name)
            return
        self.there.add(name)
        node = pod["spec"].get("nodeName")
        if node is None or name in self.when:
            return
        self.node[name] = node
        if "ALIYUN_COM_GPU_MEM_IDX" in pod["metadata"].get("annotations", {}):
            self.carded.add(name)
        now = time.monotonic()
        if (call := self.at.get(len(self.when) + 1)) is not None:
            call()
        self.when[name] = now


class World:
    """etcd and kube-apiserver with nodes; kube-scheduler for a round at a time."""

    def __init__(self, version: str, workdir: Path) -> None:
        self.version = version
        # The audit log costs time for every request, and this test does not read it.
        self.cluster = ControlPlane(version, workdir, apiserver_args=("--audit-log-path=",))
        self.ports = Ports()
        self.plain_port = self.ports.take()
        self.extender_port = self.ports.take()
        self.nodes = 0
        self.hands = ThreadPoolExecutor(HANDS)
        self.watch: BindWatch | None = None

    def __enter__(self) -> World:
        self.cluster.__enter__()
        try:
            token = self.cluster.cardpack_token()
            self.kubeconfig = self.cluster.workdir / "cardpack.kubeconfig"
            self.cluster.write_kubeconfig(self.kubeconfig, token)
            self.token_file = self.cluster.workdir / "cardpack.token"
            self.token_file.touch(mode=0o600)
            self.token_file.write_text(token)
            self.watch = BindWatch(self.cluster)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all programs."""
        if self.watch is not None:
            self.watch.close()
        self.hands.shutdown(cancel_futures=True)
        self.cluster.close()
        self.ports.close()

    def grow(self, nodes: int) -> None:
        """Creates nodes until there are `nodes`."""
        made = self.hands.map(self._make_node, range(self.nodes, nodes))
        self.nodes += sum(1 for _ in made)

    def _make_node(self, i: int) -> None:
        """Creates it as a registering kubelet does: with its status."""
        name = f"node-{i:05}"
        sizes = {
            "cpu": "64",
            "memory": "512Gi",
            "pods": "110",
            GPU_MEM: str(CARDS * CARD_SIZE),
            GPU_COUNT: str(CARDS),
        }
        self.cluster.must(
            "POST",
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {
                    "capacity": sizes,
                    "allocatable": sizes,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
        )

    def make_pods(self, first: int, count: int) -> None:
        """Creates many pods, as fast as possible."""
        for _ in self.hands.map(self._make_pod, range(first, first + count)):
            pass

    def _make_pod(self, i: int) -> tuple[str, float]:
        """Creates a pod; returns its name, and the time of the request."""
        name = f"pod-{i:05}"
        began = time.monotonic()
        self.cluster.create_pod(name, gpu_mem=SIZES[i % len(SIZES)])
        return name, began

    def pace_pods(self, first: int, count: int, rate: float) -> dict[str, float]:
        """
        Creates `rate` pods a second, without waiting for their binds; returns the time of each
        request.
        """
        began = time.monotonic()
        made = []
        for i in range(count):
            time.sleep(max(0.0, began + i / rate - time.monotonic()))
            made.append(self.hands.submit(self._make_pod, first + i))
        return dict(one.result() for one in made)

    def wait_bound(self, count: int) -> None:
        """Waits until the watch has seen `count` pods bound."""
        try:
            wait_for(
                lambda: len(self.seen().when) >= count, f"{count} pods bound", PATIENCE, poll=0.05
            )
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {len(self.seen().when)} are") from None

    def seen(self) -> BindWatch:
        """The watch, which must not have failed."""
        assert self.watch is not None
        if self.watch.broken:
            raise RuntimeError(self.watch.broken)
        return self.watch

    def clear_pods(self) -> None:
        """Deletes all pods and their events."""
        watch = self.seen()
        self.cluster.must("DELETE", PODS, {"gracePeriodSeconds": 0}, timeout=PATIENCE)
        self.cluster.must("DELETE", "/api/v1/namespaces/default/events", timeout=PATIENCE)
        wait_for(lambda: not watch.there, "all pods gone", PATIENCE, poll=0.05)
        watch.forget()

    def start_scheduler(self, extender: bool, verbs: Sequence[str]) -> None:
        """kube-scheduler with the shipped configuration, or without its extender.

        Of the optional verbs it calls those in `verbs`.
        """
        url = f"http://127.0.0.1:{self.extender_port}/gpushare-scheduler" if extender else None
        config = scheduler_config.render(
            self.version,
            self.cluster.scheduler_kubeconfig,
            url,
            plain_port=self.plain_port if self.version == "1.20.2" else 0,
        )
        for verb in {"prioritize", "preempt"} - set(verbs):
            config = re.sub(rf"^  {verb}Verb:.*\n", "", config, flags=re.MULTILINE)
        # Does not wait for readiness: that would affect the measurement.
        self.cluster.start_scheduler(config=config, args=(), wait=False)

    def stop_scheduler(self) -> None:
        """Ends kube-scheduler at once."""
        if self.cluster.scheduler is not None:
            self.cluster.scheduler.kill()

    def processor(self, extender: int | None) -> dict[str, float]:
        """The CPU time of each process so far."""
        pids: Mapping[str, int | None] = {
            "etcd": self.cluster.etcd.pid,
            "apiserver": self.cluster.apiserver.pid,
            "scheduler": self.cluster.scheduler.pid if self.cluster.scheduler else None,
            "extender": extender,
            "this": os.getpid(),
        }
        return {name: processor_seconds(pid) for name, pid in pids.items() if pid is not None}

    def writes(self) -> Counter[str]:
        """The API server's write requests so far: "POST pods/binding" and how often."""
        found: Counter[str] = Counter()
        _, text = self.cluster.api("GET", "/metrics", timeout=PATIENCE)
        for labels, value in _COUNTED.findall(text):
            label = dict(_LABEL.findall(labels))
            if label["verb"] in ("POST", "PUT", "PATCH", "APPLY"):
                what = label["resource"] + ("/" if label["subresource"] else "")
                found[f"{label['verb']} {what}{label['subresource']}"] += int(float(value))
        return found

    def settled_writes(self) -> Counter[str]:
        """The same, after the scheduler has written its events, which it does after the binding."""
        before = self.writes()
        for _ in range(20):
            time.sleep(0.5)
            now = self.writes()
            if now["POST events"] == before["POST events"]:
                return now
            before = now
        return before
