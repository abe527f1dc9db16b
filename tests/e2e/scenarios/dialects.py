"""Device plugins other than gpushare's (docs/dialects.md): their agents on nodes of one cluster.

Each agent is played by the rules of its source (other_agents.py). What counts is what a container
really gets: its cards are those of its pod's annotations, and by each agent's own count no card has
more than it is.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from bench import MANIFESTS, PATIENCE, Bench, check, dice, scenario
from component import wait_for
from daemon import Daemon
from gpushare import limits_of
from other_agents import AGENTS, SIZE, WHOLE, Agent, Mismatch, Refused, Tencent, limit_of, notes_of, numbers
from truth import ASSIGNED, ASSUME_TIME, GPU_COUNT, IDX, place_of

from cluster import GPU_MEM

Json = Any
CARDS = 4
ALL = ",".join(["gpushare", *AGENTS])
RIGHTS = str(MANIFESTS / "components" / "node-lock" / "rbac.yaml")


class Gpushare(Agent):
    """gpushare's device plugin, allocate.go: the first pod whose containers sum up to the amount."""

    mem, count = GPU_MEM, GPU_COUNT

    def said(self, pod: Json) -> dict[str, list[int]]:
        cards = numbers(notes_of(pod).get(IDX, ""))
        return {c["name"]: cards for c in pod["spec"]["containers"]}

    def allocate(self, pod: Json, container: Json) -> list[int]:
        asked = limit_of(container, self.mem)
        waiting = [
            p
            for p in self.here()
            if p["status"].get("phase", "Pending") == "Pending" and notes_of(p).get(ASSIGNED) == "false"
        ]
        waiting.sort(key=lambda p: int(notes_of(p)[ASSUME_TIME]))
        for p in waiting:
            if limits_of(p) == asked:
                self.annotate(p, {ASSIGNED: "true", ASSUME_TIME: str(time.time_ns())})
                return numbers(notes_of(p)[IDX])
        raise Refused("no pod")

    def limits(self, luck: random.Random) -> list[dict[str, str]]:
        return [{self.mem: str(luck.choice([2, 3, 4, 4, 6, 8]))}]

    def bound_by_its_scheduler(self, cards: list[int]) -> dict[str, str]:
        return {IDX: str(cards[0]), ASSIGNED: "false", ASSUME_TIME: str(time.time_ns())}


KINDS: dict[str, type[Agent]] = {"gpushare": Gpushare, **AGENTS}


class Cluster:
    """Nodes of these dialects, and pods that come, start and go."""

    def __init__(self, bench: Bench, nodes: int, seed: str, kinds: Sequence[str] = tuple(KINDS)) -> None:
        self.bench = bench
        self.luck = dice(seed)
        self.made = 0
        self.mismatches = 0
        self.seen: list[Json] = []
        self.agents: dict[str, Agent] = {}
        self.kind: dict[str, str] = {}
        for kind in kinds:
            for i in range(nodes):
                name = f"{kind}-{i}"
                agent = self.agents[name] = KINDS[kind](name, CARDS, self.list, self.annotate)
                agent.notes = partial(self._notes_of_node, name)
                agent.annotate_node = partial(self._annotate_node, name)
                bench.cluster.create_node(name, agent.capacity())
                if agent.register():
                    agent.annotate_node(agent.register())

    def list(self) -> list[Json]:
        """All pods."""
        return self.bench.cluster.must("GET", "/api/v1/pods")["items"] or []

    def _path(self, pod: Json) -> str:
        metadata = pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    def annotate(self, pod: Json, notes: dict[str, str]) -> None:
        """An agent's patch of a pod."""
        self._patch(self._path(pod), {"metadata": {"annotations": notes}})

    def _patch(self, path: str, body: Json) -> None:
        kind = "application/merge-patch+json"
        self.bench.cluster.must("PATCH", path, body, content_type=kind)

    def _notes_of_node(self, name: str) -> dict[str, str]:
        return notes_of(self.bench.cluster.must("GET", f"/api/v1/nodes/{name}"))

    def _annotate_node(self, name: str, notes: dict[str, str | None]) -> None:
        self._patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": notes}})

    def phase(self, pod: Json, phase: str) -> None:
        """The kubelet's status."""
        self._patch(f"{self._path(pod)}/status", {"status": {"phase": phase}})

    def end(self, pod: Json) -> None:
        """The pod's containers end by themselves."""
        self.phase(pod, "Succeeded")

    def bound_before(self, kind: str) -> None:
        """A pod that the dialect's own scheduler has bound, with half of a card of node 0."""
        agent = self.agents[f"{kind}-0"]
        self.make(kind, [agent.half()], agent.bound_by_its_scheduler([0]), agent.node)

    def make(
        self,
        kind: str,
        limits: Sequence[dict[str, str]] = (),
        notes: dict[str, str] | None = None,
        node: str = "",
        *,
        scheduler: str = "default-scheduler",
        inits: Sequence[dict[str, str]] = (),
    ) -> str:
        """A pod of that dialect with these containers, for a scheduler or bound to a node."""
        name = f"{kind}-{self.made:03}"
        self.made += 1
        if not limits:
            limits = self.agents[f"{kind}-0"].limits(self.luck)
            inits = self.agents[f"{kind}-0"].inits(self.luck)
        spec: Json = {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "schedulerName": scheduler,
            "containers": _containers("c", limits),
            "initContainers": _containers("i", inits),
        }
        if node:
            spec["nodeName"] = node
        metadata = {"name": name, "labels": {"kind": kind}, "annotations": notes or {}}
        body = {"metadata": metadata, "spec": spec}
        self.bench.cluster.must("POST", f"/api/v1/namespaces/{self.bench.namespace}/pods", body)
        return name

    def start_some(self) -> int:
        """
        The kubelets admit the pods that wait, in random order, and start them. Each container gets
        the cards that its pod's annotations name.
        """
        waiting = [
            pod
            for pod in self.list()
            if place_of(pod) in self.agents and pod["status"].get("phase", "Pending") == "Pending"
        ]
        self.luck.shuffle(waiting)
        started = []
        for pod in waiting:
            agent = self.agents[place_of(pod)]
            said = agent.said(pod)
            try:
                got = agent.start(pod)
            except Mismatch:
                # A pod has ended since the Binding, and left another card as gpu-manager's first.
                self.mismatches += 1
                self.phase(pod, "Failed")
                continue
            whole = any(limit_of(c, agent.cores) >= WHOLE for c in pod["spec"]["containers"])
            if not (isinstance(agent, Tencent) and whole):  # it says afterwards which it took
                named = {name: said.get(name) for name in got}
                check(got == named, f"{pod['metadata']['name']}: its agent gave {got}, not {said}")
            started.append(pod)
        for pod in started:
            self.phase(pod, "Running")
        return len(waiting)

    def end_some(self) -> None:
        """Some pods end, some are deleted."""
        for pod in self.list():
            if pod["status"].get("phase") != "Running" or self.luck.random() > 0.3:
                continue
            if self.luck.random() < 0.5:
                self.phase(pod, "Succeeded")
            else:
                self.bench.cluster.must("DELETE", f"{self._path(pod)}?gracePeriodSeconds=0")

    def judge(self) -> None:
        """By each agent's own count no card has more than it is."""
        for name, agent in self.agents.items():
            for card, (mem, cores) in agent.taken().items():
                check(mem <= SIZE and cores <= WHOLE, f"{name} card {card}: {mem} units, {cores} %")
        for pod in self.list():
            node = place_of(pod)
            if node:
                kind = pod["metadata"]["labels"]["kind"]
                check(node in (f"{kind}-0", f"{kind}-1"), f"{pod['metadata']['name']} is on {node}")
                check(self.agents[node].said(pod), f"{pod['metadata']['name']} has no card")

    def waiting(self) -> list[str]:
        """The pods without a node."""
        return [p["metadata"]["name"] for p in self.list() if not place_of(p)]


def _containers(prefix: str, limits: Sequence[dict[str, str]]) -> list[Json]:
    return [
        {
            "name": f"{prefix}{i}",
            "image": "example.invalid/none",
            "resources": {"limits": its, "requests": its},
        }
        for i, its in enumerate(limits)
    ]


def scheduler(bench: Bench) -> None:
    """kube-scheduler with the resources of all dialects, as docs/dialects.md says."""
    names: dict[str, bool] = {}
    for make in AGENTS.values():
        names |= make("", CARDS, list, lambda pod, notes: None).managed()
    entries = "".join(
        f"\n  - name: {name}\n    ignoredByScheduler: {str(ignored).lower()}"
        for name, ignored in names.items()
        if name != "nvidia.com/gpu"  # it is there anyway
    )
    bench.start_scheduler(overrides={"managedResources": entries})


@scenario("real")
def dialects_on_one_cluster(bench: Bench) -> None:
    """
    Nodes with the agents of gpushare, Volcano, elastic-gpu, gpu-manager, HAMi and Volcano's vGPU, pods that their own
    schedulers have bound, and pods of all of them that come and go, while cardpack is killed: each pod is on a node of its own agent, each container
    gets the cards of its annotations, and no card is over-committed by its agent's own count.
    """
    total = int(os.environ.get("DIALECT_PODS", "80"))
    bench.cluster.kubectl("apply", "-f", RIGHTS)
    scheduler(bench)
    try:
        cluster = Cluster(bench, 2, f"dialects {bench.options.seed}")
        for kind in [*KINDS, *KINDS]:
            cluster.bound_before(kind)
            cluster.start_some()
        daemon = bench.cardpack(f"--dialects={ALL}", "--swap-guard=require")
        play(bench, cluster, daemon, total)
        check(daemon.kills >= 2, "cardpack was not killed")
        check(cluster.mismatches <= total // 10, f"{cluster.mismatches} mismatches")
        daemon.stop()
    finally:
        bench.cluster.kubectl("delete", "-f", RIGHTS)
        bench.start_scheduler()


@scenario("real")
def locked_nodes(bench: Bench) -> None:
    """
    A lock of another program on one node of three: whole nodes are given out on the two others at once, with the
    shortlist that would try the locked node each time. The pod that waits for it is bound when the lock is gone. Locks
    that can't be true keep no pod away.
    """
    bench.cluster.kubectl("apply", "-f", RIGHTS)
    scheduler(bench)
    try:
        cluster = Cluster(bench, 3, f"locked nodes {bench.options.seed}", ["hami", "volcano-vgpu"])
        daemon = bench.cardpack(f"--dialects={ALL}", "--shortlist=1")
        for kind in ("hami", "volcano-vgpu"):
            bind_beside_locks(cluster, kind)
        daemon.stop()
    finally:
        bench.cluster.kubectl("delete", "-f", RIGHTS)
        bench.start_scheduler()


def bind_beside_locks(cluster: Cluster, kind: str) -> None:
    agents = [cluster.agents[f"{kind}-{i}"] for i in range(3)]
    whole = [{agents[0].count: str(CARDS), agents[0].cores: str(WHOLE)}]
    lock = agents[0].lock

    def left() -> list[str]:
        cluster.start_some()
        return [n for n in cluster.waiting() if n.startswith(kind)]

    agents[0].annotate_node({lock: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))})
    for _ in range(3):
        cluster.make(kind, whole)
    began = time.monotonic()
    wait_for(lambda: len(left()) == 1, "the pods beside the locked node", PATIENCE)
    check(time.monotonic() - began < 10, "a bind has waited for the lock")
    said = "Waits: another pod has the lock of the node"
    wait_for(lambda: said in str([p["status"] for p in cluster.list() if not place_of(p)]), said, PATIENCE)
    agents[0].annotate_node({lock: "x"})

    def done() -> bool:
        cluster.bench.kick()
        return not left()

    wait_for(done, "the pod on the node whose lock is odd", PATIENCE, poll=1)
    for pod in cluster.list():
        if pod["metadata"]["labels"].get("kind") == kind:
            cluster.bench.cluster.must("DELETE", f"{cluster._path(pod)}?gracePeriodSeconds=0")
    for agent, odd in zip(agents, ("2100-01-01T00:00:00Z", "2100-01-01T00:00:00Z,ns,p", ",,"), strict=True):
        agent.annotate_node({lock: odd})
        cluster.make(kind, whole)
    wait_for(done, "the pods on nodes whose locks are odd", PATIENCE, poll=1)


def play(bench: Bench, cluster: Cluster, daemon: Daemon, total: int) -> None:
    """Makes `total` pods in waves of eight, and waits until all of them have run."""
    killed = {total // 3, 2 * total // 3}
    while cluster.made < total:
        for _ in range(min(8, total - cluster.made)):
            cluster.make(cluster.luck.choice(list(KINDS)))
        settle(bench, cluster, 12)
        cluster.end_some()
        cluster.judge()
        if any(mark <= cluster.made for mark in killed):
            killed = {mark for mark in killed if mark > cluster.made}
            daemon.kill()
            daemon.launch()
            wait_for(daemon.ready, "ready", PATIENCE)
    wait_for(lambda: settle(bench, cluster, 0) == 0, "all pods bound", PATIENCE)
    cluster.judge()


def settle(bench: Bench, cluster: Cluster, most: int) -> int:
    """Starts and ends pods until at most so many have no node; returns how many."""
    def few() -> bool:
        bench.kick()
        cluster.start_some()
        cluster.judge()
        left = cluster.waiting()
        if len(left) > most:
            cluster.end_some()
        return len(cluster.waiting()) <= most

    wait_for(few, f"at most {most} pods without a node: {cluster.waiting()}", PATIENCE, poll=0.2)
    return len(cluster.waiting())
