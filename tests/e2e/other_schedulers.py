"""The schedulers of the dialects' projects, played by the rules of their source.

    peer = PEERS["tencent"](cluster, agents)
    peer.account()            # what it counts after a start: {node: {card: (memory, compute)}}
    peer.place(pod)           # its filter and its bind, with each write that it sends

GA is tkestack/gpu-admission@47d56ae9, ES elastic-ai/elastic-gpu-scheduler@09b010d5, VO
volcano-sh/volcano@ed72c7c8, HA Project-HAMi/HAMi@4707fb02. They know the API server's objects, and nothing of
cardpack. Their choice among several nodes or cards is not played, unless their agent depends on it: they take
the first that has room. OTHER_SCHEDULERS names a folder with the real programs that there are
(scripts/agents); these choose by themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from other_agents import ENDED, SIZE, WHOLE, Agent, Family, limit_of, notes_of, numbers
from truth import place_of

from cluster import ControlPlane

Json = Any
Amount = tuple[int, int]  # memory, compute
Account = dict[str, dict[int, Amount]]
Want = tuple[int, int, int]  # of a container: cards, and memory and compute of each
MERGE = "application/merge-patch+json"


class Peer:
    """One project's scheduler, and its nodes' agents by the nodes' names."""

    program = ""  # its name in OTHER_SCHEDULERS
    name = "default-scheduler"  # the schedulerName of its pods

    def __init__(self, cluster: ControlPlane, agents: Mapping[str, Agent]) -> None:
        self.cluster = cluster
        self.agents = agents
        self.agent = next(iter(agents.values()))

    # ---- what it counts -----------------------------------------------------------------

    def account(self) -> Account:
        """What it counts when it has read the API server's objects."""
        return _account(self, self.charges)

    def complete(self) -> Account:
        """The same with all that the containers have, also where its rules count less."""
        return _account(self, self.amounts)

    def amounts(self, pod: Json, node: str) -> Iterator[tuple[int, int, int]]:
        """What the pod's containers have: charges() of a scheduler that counts right."""
        return self.charges(pod, node)

    def pods(self) -> list[Json]:
        """All pods."""
        return self.cluster.list_all("/api/v1/pods")

    def home(self, pod: Json) -> str:
        """The node that it charges with the pod."""
        return place_of(pod) or ""

    def charges(self, pod: Json, node: str) -> Iterator[tuple[int, int, int]]:
        """What the pod takes: card, memory, compute."""
        for name, cards in self.agents[node].said(pod).items():
            _, mem, cores = self.wants(pod).get(name, (0, 0, 0))
            for card in cards:
                yield card, mem, cores

    def add(self, used: Amount, mem: int, cores: int) -> Amount:
        """One more entry of a card."""
        return used[0] + mem, used[1] + cores

    def wants(self, pod: Json) -> dict[str, Want]:
        """What it reads of the pod's request: of each container with cards."""
        found = {}
        for c in pod["spec"]["containers"]:
            mem, cores = limit_of(c, self.agent.mem), limit_of(c, self.agent.cores)
            if cores >= WHOLE:
                found[c["name"]] = (cores // WHOLE, SIZE, WHOLE)
            elif mem or cores:
                found[c["name"]] = (1, mem, cores)
        return found

    # ---- what it does -------------------------------------------------------------------

    def place(self, pod: Json, bind: bool = True) -> str:
        """Places the pod, and returns the node; "": no node has room. bind=False: it stops before the Binding."""
        for node, used in sorted(self.account().items()):
            cards = self.choose(dict(used), pod)
            if cards is not None:
                self.write(pod, node, cards, bind)
                return node
        return ""

    def choose(self, used: dict[int, Amount], pod: Json) -> dict[str, list[int]] | None:
        """The cards of each container; None: there is no room."""
        chosen: dict[str, list[int]] = {}
        for name, (count, mem, cores) in self.wants(pod).items():
            room = [c for c in self.order(used) if used[c][0] + mem <= SIZE and used[c][1] + cores <= WHOLE]
            if len(room) < count:
                return None
            chosen[name] = room[:count]
            for card in chosen[name]:
                used[card] = self.add(used[card], mem, cores)
        return chosen

    def order(self, used: dict[int, Amount]) -> list[int]:
        """The cards in the order in which it tries them."""
        return sorted(used)

    def notes(self, pod: Json, node: str, cards: dict[str, list[int]]) -> dict[str, str]:
        """The annotations that say where the containers are."""
        raise NotImplementedError

    def write(self, pod: Json, node: str, cards: dict[str, list[int]], bind: bool) -> None:
        """The annotations, and then the Binding."""
        self.patch(pod, {"annotations": self.notes(pod, node, cards)})
        if bind:
            self.bind(pod, node)

    def path(self, pod: Json) -> str:
        metadata = pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    def patch(self, pod: Json, metadata: Json) -> None:
        self.cluster.must("PATCH", self.path(pod), {"metadata": metadata}, content_type=MERGE)

    def bind(self, pod: Json, node: str, notes: dict[str, str] | None = None) -> None:
        """The Binding; the API server puts its annotations on the pod."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        metadata = {"name": pod["metadata"]["name"], "annotations": notes or {}}
        self.cluster.must("POST", f"{self.path(pod)}/binding", {"metadata": metadata, "target": target})


def _account(
    peer: Peer,
    charges: Callable[[Json, str], Iterator[tuple[int, int, int]]],
    sees: Callable[[Json], bool] = lambda pod: True,
) -> Account:
    used: Account = {name: {card: (0, 0) for card in range(agent.cards)} for name, agent in peer.agents.items()}
    for pod in peer.pods():
        node = peer.home(pod)
        if node in used and pod["status"].get("phase") not in ENDED and sees(pod):
            for card, mem, cores in charges(pod, node):
                used[node][card] = peer.add(used[node][card], mem, cores)
    return used


class GpuAdmission(Peer):
    """Tencent's gpu-admission."""

    program = "gpu-admission"

    def home(self, pod: Json) -> str:
        """GA:pkg/predicate/gpu_predicate.go, ListPodsOnNode: also the node that it has only written down."""
        return place_of(pod) or notes_of(pod).get("tencent.com/predicate-node", "")

    def add(self, used: Amount, mem: int, cores: int) -> Amount:
        """GA:pkg/device/deviceInfo.go, AddUsedResources: what does not fit is left out."""
        total = super().add(used, mem, cores)
        return total if total[0] <= SIZE and total[1] <= WHOLE else used

    def wants(self, pod: Json) -> dict[str, Want]:
        """GA:pkg/util/util.go, IsGPURequiredContainer: compute, and memory beside less than a card."""
        return {name: its for name, its in super().wants(pod).items() if its[2] and its[1]}

    def order(self, used: dict[int, Amount]) -> list[int]:
        """GA:pkg/algorithm/share.go: the least free compute, memory and index, as the agent chooses, too."""
        return sorted(used, key=lambda card: (-used[card][1], -used[card][0], card))

    def notes(self, pod: Json, node: str, cards: dict[str, list[int]]) -> dict[str, str]:
        """GA:pkg/algorithm/allocate.go, Allocate."""
        found = {
            f"tencent.com/predicate-gpu-idx-{i}": ",".join(map(str, cards[c["name"]]))
            for i, c in enumerate(pod["spec"]["containers"])
            if c["name"] in cards
        }
        when = {"tencent.com/gpu-assigned": "false", "tencent.com/predicate-time": str(time.time_ns())}
        return {**found, **when, "tencent.com/predicate-node": node}


class ElasticScheduler(Peer):
    """elastic-gpu-scheduler with -mode gpushare."""

    program = "elastic-gpu-scheduler"
    label = "elasticgpu.io/assumed"

    def at_start(self) -> Account:
        """
        ES:pkg/scheduler/scheduler.go, NewGPUUnitScheduler: it begins with the pods that have its label. The
        others are added one each second, by pkg/controller/controller.go.
        """
        return _account(self, self.charges, lambda pod: pod["metadata"].get("labels", {}).get(self.label) == "true")

    def charges(self, pod: Json, node: str) -> Iterator[tuple[int, int, int]]:
        """ES:pkg/scheduler/allocate.go: -1 of each for a container without cards, which has an annotation, too."""
        yield from self.amounts(pod, node)
        for name, cards in self.agents[node].said(pod).items():
            if name not in self.wants(pod):
                yield cards[0], -1, -1

    def amounts(self, pod: Json, node: str) -> Iterator[tuple[int, int, int]]:
        return super().charges(pod, node)

    def notes(self, pod: Json, node: str, cards: dict[str, list[int]]) -> dict[str, str]:
        """ES:pkg/scheduler/pod.go, GetUpdatedPodAnnotationSpec: of every container."""
        every = {c["name"]: [0] for c in pod["spec"]["containers"]} | cards
        found = {f"elasticgpu.io/container-{name}": ",".join(map(str, its)) for name, its in every.items()}
        return {**found, self.label: "true"}

    def write(self, pod: Json, node: str, cards: dict[str, list[int]], bind: bool) -> None:
        """ES:pkg/scheduler/scheduler.go, Bind."""
        self.patch(pod, {"annotations": self.notes(pod, node, cards), "labels": {self.label: "true"}})
        if bind:
            self.bind(pod, node)


class VolcanoShare(Peer):
    """Volcano's plugin deviceshare with deviceshare.GPUSharingEnable."""

    name = "volcano"

    def wants(self, pod: Json) -> dict[str, Want]:
        """VO:d/gpushare/share.go, getGPUMemoryOfPod: one amount for the whole pod, on one card."""
        mems = [limit_of(c, self.agent.mem) for c in pod["spec"]["containers"]]
        inits = [limit_of(c, self.agent.mem) for c in pod["spec"].get("initContainers", [])]
        first = next(c["name"] for c, mem in zip(pod["spec"]["containers"], mems, strict=True) if mem)
        return {first: (1, max(sum(mems), *inits, 0), 0)}

    def notes(self, pod: Json, node: str, cards: dict[str, list[int]]) -> dict[str, str]:
        """VO:d/gpushare/share.go, gpuIndexAnnotations."""
        index = ",".join(str(card) for its in cards.values() for card in its)
        return {"volcano.sh/predicate-time": str(time.time_ns()), "volcano.sh/gpu-index": index}

    def write(self, pod: Json, node: str, cards: dict[str, list[int]], bind: bool) -> None:
        """VO:pkg/scheduler/cache/cache.go: the Binding has the annotations."""
        if bind:
            self.bind(pod, node, self.notes(pod, node, cards))


class FamilyPeer(Peer):
    """What the schedulers of HAMi and of Volcano's vGPU have in common."""

    agent: Family

    def wants(self, pod: Json) -> dict[str, Want]:
        found = {}
        for c in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            count, mem = limit_of(c, self.agent.count), limit_of(c, self.agent.mem)
            percent = limit_of(c, self.agent.percent) or (0 if mem else 100)
            if count:
                found[c["name"]] = (count, mem or SIZE * percent // 100, limit_of(c, self.agent.cores))
        return found

    def devices(self, pod: Json, node: str, cards: dict[str, list[int]], containers: list[Json]) -> str:
        """The list of these containers' cards."""
        agent, wants = self.agents[node], self.wants(pod)
        assert isinstance(agent, Family)
        return agent.encode(
            [[(agent.uuid(card), *wants[c["name"]][1:]) for card in cards.get(c["name"], [])] for c in containers]
        )


class VolcanoVgpu(FamilyPeer):
    """Volcano's plugin deviceshare with deviceshare.VGPUEnable."""

    name = "volcano"

    def charges(self, pod: Json, node: str) -> Iterator[tuple[int, int, int]]:
        """VO:d/vgpu/hamicore.go, AddPod: the first entry of a pod on a card."""
        seen = set()
        agent = self.agents[node]
        assert isinstance(agent, Family)
        for part in agent.decode(notes_of(pod).get(agent.listed, "")):
            for uuid, mem, cores in part:
                if uuid not in seen:
                    yield agent.card(uuid), mem, cores
                seen.add(uuid)

    def notes(self, pod: Json, node: str, cards: dict[str, list[int]]) -> dict[str, str]:
        """VO:d/vgpu/device_info.go, Allocate: of the containers with cards alone."""
        its = [c for c in pod["spec"]["containers"] if c["name"] in cards]
        devices, now = self.devices(pod, node, cards, its), str(int(time.time()))
        places = {"volcano.sh/vgpu-ids-new": devices, "volcano.sh/devices-to-allocate": devices}
        times = {"volcano.sh/vgpu-time": now, "volcano.sh/bind-time": now, "volcano.sh/bind-phase": "allocating"}
        return {**places, **times, "volcano.sh/vgpu-node": node}

    def write(self, pod: Json, node: str, cards: dict[str, list[int]], bind: bool) -> None:
        """VO:pkg/scheduler/cache/cache.go: the Binding has the annotations."""
        if bind:
            self.bind(pod, node, self.notes(pod, node, cards))


class HamiScheduler(FamilyPeer):
    """HAMi's scheduler. Its webhook has written the request and the schedulerName before."""

    program = "hami-scheduler"
    name = "hami-scheduler"

    def home(self, pod: Json) -> str:
        """HA:pkg/scheduler/scheduler.go, onAddPod: the annotation, also of a pod that is not bound."""
        return notes_of(pod).get("hami.io/vgpu-node", "")

    def charges(self, pod: Json, node: str) -> Iterator[tuple[int, int, int]]:
        """HA:pkg/device/initContainer.go: the largest init container, or the sum of the others."""
        inits = len(pod["spec"].get("initContainers", []))
        agent = self.agents[node]
        assert isinstance(agent, Family)
        first: dict[int, Amount] = {}
        then: dict[int, Amount] = {}
        for i, part in enumerate(agent.decode(notes_of(pod).get(agent.listed, ""))):
            for uuid, mem, cores in part:
                card = agent.card(uuid)
                if i < inits:
                    had = first.get(card, (0, 0))
                    first[card] = max(had[0], mem), max(had[1], cores)
                else:
                    then[card] = self.add(then.get(card, (0, 0)), mem, cores)
        for card in {*first, *then}:
            one, other = first.get(card, (0, 0)), then.get(card, (0, 0))
            yield card, max(one[0], other[0]), max(one[1], other[1])

    def amounts(self, pod: Json, node: str) -> Iterator[tuple[int, int, int]]:
        """What its containers have at once."""
        return self.agents[node].charges(pod)

    def notes(self, pod: Json, node: str, cards: dict[str, list[int]]) -> dict[str, str]:
        """
        HA:pkg/scheduler/scheduler.go, Filter: init containers first. pkg/scheduler/score.go adds the empty parts to a
        list of the card's model, not of NVIDIA: so those without cards are left out.
        """
        every = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        every = [c for c in every if c["name"] in cards]
        devices = self.devices(pod, node, cards, every)
        places = {"hami.io/vgpu-devices-allocated": devices, "hami.io/vgpu-devices-to-allocate": devices}
        return {**places, "hami.io/vgpu-node": node, "hami.io/vgpu-time": str(int(time.time()))}

    def write(self, pod: Json, node: str, cards: dict[str, list[int]], bind: bool) -> None:
        """HA:pkg/scheduler/scheduler.go, Filter, then Bind: the lock, the phase and the Binding."""
        self.patch(pod, {"annotations": self.notes(pod, node, cards)})
        if not bind:
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        metadata = pod["metadata"]
        self.agents[node].annotate_node({"hami.io/mutex.lock": f"{stamp},{metadata['namespace']},{metadata['name']}"})
        self.patch(
            pod,
            {"annotations": {"hami.io/bind-phase": "allocating", "hami.io/bind-time": str(int(time.time()))}},
        )
        self.bind(pod, node)


PEERS: dict[str, type[Peer]] = {
    "tencent": GpuAdmission,
    "elastic": ElasticScheduler,
    "volcano": VolcanoShare,
    "volcano-vgpu": VolcanoVgpu,
    "hami": HamiScheduler,
}
