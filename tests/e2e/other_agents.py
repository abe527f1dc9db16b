"""The node agents of dialects other than gpushare's, played by the rules of their source.

Each rule names the place where it was read: VD is volcano-sh/devices, EA elastic-ai/elastic-gpu-agent, GM
tkestack/gpu-manager, GA tkestack/gpu-admission, VV Project-HAMi/volcano-vgpu-device-plugin, VO
volcano-sh/volcano, HA Project-HAMi/HAMi. An agent knows the API server's objects and what the
kubelet asks it for; it does not know cardpack. scenarios/plugins.py drives the real programs.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from truth import place_of, whole

Json = Any
Annotate = Callable[[Json, dict[str, str]], None]
ENDED = ("Succeeded", "Failed")
SIZE = 16  # memory of a card, in the unit of each agent
WHOLE = 100


class Refused(Exception):
    """The agent answered Allocate with an error: the kubelet rejects the pod."""


class Mismatch(Refused):
    """gpu-manager would choose another card than the annotation's."""


def notes_of(pod: Json) -> dict[str, str]:
    notes: dict[str, str] = pod["metadata"].get("annotations") or {}
    return notes


def limit_of(container: Json, resource: str) -> int:
    return whole((container.get("resources", {}).get("limits") or {}).get(resource, "0"))


class Agent:
    """One node's agent. `pods` lists all pods of the cluster, as the agent's own LIST does."""

    mem = ""
    cores = ""
    count = ""

    def __init__(
        self, node: str, cards: int, pods: Callable[[], list[Json]], annotate: Annotate
    ) -> None:
        self.node, self.cards, self.pods, self.annotate = node, cards, pods, annotate
        self.notes: Callable[[], dict[str, str]] = dict
        self.annotate_node: Callable[[dict[str, str | None]], None] = lambda notes: None

    def capacity(self) -> dict[str, object]:
        """What the kubelet reports for the agent's devices."""
        amounts: dict[str, object] = {self.mem: self.cards * SIZE}
        if self.cores:
            amounts[self.cores] = self.cards * WHOLE
        if self.count:
            amounts[self.count] = self.cards
        return amounts

    def managed(self) -> dict[str, bool]:
        """The resources that kube-scheduler asks about, and whether no node has them."""
        return {name: False for name in (self.mem, self.cores) if name}

    def half(self) -> dict[str, str]:
        """The limits of a container with half of a card."""
        return {self.mem: str(SIZE // 2)} | ({self.cores: str(WHOLE // 2)} if self.cores else {})

    def register(self) -> dict[str, str | None]:
        """What the agent writes to its node."""
        return {}

    def here(self) -> list[Json]:
        """The pods of the node that count."""
        return [
            pod
            for pod in self.pods()
            if place_of(pod) == self.node and pod["status"].get("phase") not in ENDED
        ]

    def start(self, pod: Json) -> dict[str, list[int]]:
        """
        Plays the kubelet: asks for each container's devices, in order, and returns the cards that each
        container really gets.
        """
        got = {}
        for container in pod["spec"]["containers"]:
            if limit_of(container, self.mem) or (self.cores and limit_of(container, self.cores)):
                got[container["name"]] = self.allocate(pod, container)
        return got

    def allocate(self, pod: Json, container: Json) -> list[int]:
        """The cards for one container."""
        raise NotImplementedError

    def said(self, pod: Json) -> dict[str, list[int]]:
        """The cards that the annotations name for each container."""
        raise NotImplementedError

    def taken(self) -> dict[int, tuple[int, int]]:
        """Memory and compute that its own scheduler counts on each card."""
        used = {card: (0, 0) for card in range(self.cards)}
        for pod in self.here():
            for card, mem, cores in self.charges(pod):
                used[card] = (used[card][0] + mem, used[card][1] + cores)
        return used

    def charges(self, pod: Json) -> Iterator[tuple[int, int, int]]:
        """What the pod takes: card, memory, compute."""
        cards = self.said(pod)
        for container in pod["spec"]["containers"]:
            mem = limit_of(container, self.mem)
            cores = limit_of(container, self.cores) if self.cores else 0
            for card in cards.get(container["name"], []):
                yield (card, SIZE, WHOLE) if cores >= WHOLE else (card, mem, cores)

    def limits(self, dice: random.Random) -> list[dict[str, str]]:
        """A random pod: the limits of its containers."""
        raise NotImplementedError

    def inits(self, dice: random.Random) -> list[dict[str, str]]:
        """The same of its init containers."""
        del dice
        return []

    def bound_by_its_scheduler(self, cards: list[int]) -> dict[str, str]:
        """What its own scheduler writes for a pod whose containers are on these cards."""
        raise NotImplementedError


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


class Volcano(Agent):
    """volcano-sh/devices with --gpu-strategy=share."""

    mem, count = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
    index, assigned, when = "volcano.sh/gpu-index", "volcano.sh/gpu-assigned", "volcano.sh/predicate-time"

    def said(self, pod: Json) -> dict[str, list[int]]:
        cards = numbers(notes_of(pod).get(self.index, ""))
        return {c["name"]: cards for c in pod["spec"]["containers"] if limit_of(c, self.mem)}

    def allocate(self, pod: Json, container: Json) -> list[int]:
        """VD:pkg/plugin/nvidia/server.go, Allocate: any pod with a container of that many devices."""
        asked = limit_of(container, self.mem)
        waiting = [
            p
            for p in self.here()
            if p["status"].get("phase", "Pending") == "Pending"
            and notes_of(p).get(self.assigned) != "true"
        ]
        waiting.sort(key=lambda p: int(notes_of(p).get(self.when, str(2**64 - 1))))
        for p in waiting:
            if any(limit_of(c, self.mem) == asked for c in p["spec"]["containers"]):
                cards = numbers(notes_of(p).get(self.index, ""))
                if not cards or any(card >= self.cards for card in cards):
                    raise Refused("failed to find gpu ids")
                self.annotate(p, {self.assigned: "true"})
                return cards
        raise Refused("failed to find candidate pod")

    def limits(self, dice: random.Random) -> list[dict[str, str]]:
        return [{self.mem: str(dice.choice([2, 3, 4, 4, 6, 8]))}]

    def bound_by_its_scheduler(self, cards: list[int]) -> dict[str, str]:
        """VO:pkg/scheduler/api/devices/nvidia/gpushare/share.go: no gpu-assigned."""
        return {self.index: str(cards[0]), self.when: str(time.time_ns())}


class Elastic(Agent):
    """elastic-gpu-agent with -gpuPluginName=gpushare."""

    mem, cores = "elasticgpu.io/gpu-memory", "elasticgpu.io/gpu-core"

    def said(self, pod: Json) -> dict[str, list[int]]:
        prefix = "elasticgpu.io/container-"
        return {
            key.removeprefix(prefix): numbers(value)
            for key, value in notes_of(pod).items()
            if key.startswith(prefix)
        }

    def allocate(self, pod: Json, container: Json) -> list[int]:
        """EA:pkg/plugins/gpushare.go, PreStartContainer: the pod and container of the device IDs."""
        if "elasticgpu.io/assumed" not in notes_of(pod):
            raise Refused("annotation elasticgpu.io/assumed is not there")
        name = container["name"]
        cards = self.said(pod).get(name)
        if not cards:
            raise Refused(f"container {name} isn't assumed")
        if limit_of(container, self.mem) and len(cards) > 1:
            raise Refused(f"{cards} is no index")  # the memory plugin reads one number
        return cards

    def limits(self, dice: random.Random) -> list[dict[str, str]]:
        if dice.random() < 0.15:
            return [{self.cores: str(100 * dice.randint(1, 2))}]
        return [
            {self.mem: str(dice.choice([2, 3, 4, 6])), self.cores: str(dice.choice([10, 20, 35]))}
            for _ in range(dice.choice([1, 1, 2]))
        ]

    def bound_by_its_scheduler(self, cards: list[int]) -> dict[str, str]:
        """elastic-gpu-scheduler, pkg/scheduler/node.go."""
        notes = {f"elasticgpu.io/container-c{i}": str(card) for i, card in enumerate(cards)}
        return {"elasticgpu.io/assumed": "true", **notes}


class Tencent(Agent):
    """gpu-manager with --share-mode. Its cards are its own account, not the annotations."""

    mem, cores = "tencent.com/vcuda-memory", "tencent.com/vcuda-core"
    prefix, assigned, when = "tencent.com/predicate-gpu-idx-", "tencent.com/gpu-assigned", "tencent.com/predicate-time"

    def __init__(
        self, node: str, cards: int, pods: Callable[[], list[Json]], annotate: Annotate
    ) -> None:
        super().__init__(node, cards, pods, annotate)
        self.given: dict[tuple[str, str], tuple[list[int], int, int]] = {}

    def said(self, pod: Json) -> dict[str, list[int]]:
        return {
            container["name"]: numbers(notes_of(pod)[f"{self.prefix}{i}"])
            for i, container in enumerate(pod["spec"]["containers"])
            if f"{self.prefix}{i}" in notes_of(pod)
        }

    def _recycle(self) -> None:
        alive = {pod["metadata"]["uid"] for pod in self.here()}
        self.given = {key: value for key, value in self.given.items() if key[0] in alive}

    def _free(self, card: int) -> tuple[int, int]:
        mem, cores = SIZE, WHOLE
        for cards, its_mem, its_cores in self.given.values():
            if card in cards:
                mem, cores = mem - its_mem, cores - its_cores
        return cores, mem

    def _choose(self, cores: int, mem: int) -> list[int]:
        """GM:pkg/algorithm/nvidia/share.go; fragment.go and link.go take cards that are wholly free."""
        order = sorted(range(self.cards), key=lambda card: (*self._free(card), card))
        if cores >= WHOLE:
            free = [card for card in reversed(order) if self._free(card) == (WHOLE, SIZE)]
            return free[: cores // WHOLE] if len(free) >= cores // WHOLE else []
        for card in order:
            has_cores, has_mem = self._free(card)
            if has_cores >= cores and has_mem >= mem:
                return [card]
        return []

    def allocate(self, pod: Json, container: Json) -> list[int]:
        """GM:pkg/services/allocator/nvidia/allocator.go, allocateOne; PreStartContainer patches."""
        self._recycle()
        asked = limit_of(container, self.cores)
        waiting = [p for p in self.here() if notes_of(p).get(self.assigned) == "false"]
        waiting.sort(key=lambda p: int(notes_of(p).get(self.when, "0")))
        for p in waiting:
            uid = p["metadata"]["uid"]
            for i, c in enumerate(p["spec"]["containers"]):
                if limit_of(c, self.cores) != asked or (uid, c["name"]) in self.given:
                    continue
                mem = 0 if asked >= WHOLE else limit_of(c, self.mem)
                cards = self._choose(asked, mem)
                if not cards:
                    raise Refused("no free node")
                if asked < WHOLE and notes_of(p).get(f"{self.prefix}{i}") != str(cards[0]):
                    raise Mismatch(f"Nvidia node mismatch: pick up {cards}, {notes_of(p)}")
                whole_card = asked >= WHOLE
                self.given[uid, c["name"]] = (cards, SIZE if whole_card else mem, min(asked, WHOLE))
                return cards
        raise Refused("candidate pod is not found")

    def start(self, pod: Json) -> dict[str, list[int]]:
        """
        GM:allocator.go, PreStartContainer: finds the container by the kubelet's checkpoint, refuses one
        that it has not served, and writes the cards that it really gave.
        """
        got = super().start(pod)
        notes = {self.assigned: "true"}
        for i, container in enumerate(pod["spec"]["containers"]):
            if container["name"] not in got:
                continue
            given = self.given.get((pod["metadata"]["uid"], container["name"]))
            if given is None or given[0] != got[container["name"]]:
                raise Refused(f"failed to get container {container['name']} from the cache")
            notes[f"{self.prefix}{i}"] = ",".join(str(card) for card in given[0])
        self.annotate(pod, notes)
        return got

    def limits(self, dice: random.Random) -> list[dict[str, str]]:
        if dice.random() < 0.15:
            return [{self.cores: str(100 * dice.randint(1, 2)), self.mem: str(SIZE)}]
        return [
            {self.mem: str(dice.choice([2, 3, 4, 6])), self.cores: str(dice.choice([10, 20, 35]))}
            for _ in range(dice.choice([1, 1, 2]))
        ]

    def bound_by_its_scheduler(self, cards: list[int]) -> dict[str, str]:
        """GA:pkg/algorithm/allocate.go and pkg/predicate/gpu_predicate.go."""
        notes = {f"{self.prefix}{i}": str(card) for i, card in enumerate(cards)}
        when = str(time.time_ns())
        return {**notes, self.assigned: "false", self.when: when, "tencent.com/predicate-node": self.node}


Device = tuple[str, int, int]  # UUID, memory, compute


class Family(Agent):
    """What HAMi's plugin and Volcano's, which comes from it, have in common."""

    percent = table = listed = todo = where = phase = when = bound = lock = ""
    split = 10

    def uuid(self, card: int) -> str:
        """The letters are not in the order of the cards."""
        return f"GPU-{self.node}-{'dbca'[card]}"

    def decode(self, text: str) -> list[list[Device]]:
        """VV:pkg/util/util.go, DecodePodDevices; HA:pkg/device/devices.go, DecodePodDevices."""
        parts = []
        for part in text.split(";"):
            fields = [one.split(",") for one in part.split(":") if "," in one]
            parts.append([(f[0], int(f[2]), int(f[3])) for f in fields])
        return parts

    def encode(self, parts: list[list[Device]]) -> str:
        """VV:pkg/util/util.go, EncodePodDevices; HA:pkg/device/devices.go, EncodePodSingleDevice."""
        raise NotImplementedError

    def card(self, uuid: str) -> int:
        """NVML's index of a UUID."""
        found = [card for card in range(self.cards) if self.uuid(card) == uuid]
        if not found:
            raise Refused(f"{uuid} is no device of this node")
        return found[0]

    def containers(self, pod: Json) -> list[Json]:
        """The containers in the order of the list."""
        its: list[Json] = pod["spec"]["containers"]
        return its

    def said(self, pod: Json) -> dict[str, list[int]]:
        parts = self.decode(notes_of(pod).get(self.listed, "").removesuffix(";"))
        its = self.containers(pod)
        if len(parts) < len(its):  # both schedulers leave out those without cards
            its = [c for c in its if limit_of(c, self.count)]
        return {
            c["name"]: [self.card(uuid) for uuid, _, _ in part]
            for c, part in zip(its, parts)
            if part
        }

    def charges(self, pod: Json) -> Iterator[tuple[int, int, int]]:
        """VO:d/vgpu/device_info.go, addResource. The plugin limits each container to these amounts."""
        for part in self.decode(notes_of(pod).get(self.listed, "")):
            for uuid, mem, cores in part:
                yield self.card(uuid), SIZE if cores == WHOLE else mem, cores

    def start(self, pod: Json) -> dict[str, list[int]]:
        return {c["name"]: self.allocate(pod, c) for c in self.containers(pod) if limit_of(c, self.count)}

    def pending(self, asked: int) -> Json | None:
        """The pod that the plugin takes the call for."""
        raise NotImplementedError

    def release(self, pod: Json) -> None:
        """Removes the node's lock."""
        raise NotImplementedError

    def failed(self, pod: Json, why: str) -> Refused:
        """PodAllocationFailed."""
        self.annotate(pod, {self.phase: "failed", self.when: str(2**64 - 1)})
        self.release(pod)
        return Refused(why)

    def allocate(self, pod: Json, container: Json) -> list[int]:
        """VV:pkg/plugin/server.go, Allocate; HA:dp/server.go, Allocate."""
        asked = limit_of(container, self.count)
        current = self.pending(asked)
        if current is None:
            raise Refused("no pending pod found on node")
        parts = self.decode(notes_of(current).get(self.todo, ""))
        first = next((i for i, part in enumerate(parts) if part), None)
        if first is None or len(parts[first]) != asked:
            raise self.failed(current, f"device number not matched: {parts}, not {asked}")
        cards = [self.card(uuid) for uuid, _, _ in parts[first]]
        parts[first] = []
        rest = self.encode(parts)
        self.annotate(current, {self.todo: rest})
        if "GPU" not in rest:
            self.annotate(current, {self.phase: "success", self.when: str(2**64 - 1)})
            self.release(current)
        return cards

    def limits(self, dice: random.Random) -> list[dict[str, str]]:
        return [self.limits_of_one(dice)]

    def limits_of_one(self, dice: random.Random) -> dict[str, str]:
        """The limits of one container."""
        asked = {self.count: str(dice.choice([1, 1, 1, 2]))}
        kind = dice.random()
        if kind < 0.7:
            asked[self.mem] = str(dice.choice([2, 3, 4, 6, 8]))
        elif kind < 0.9:
            asked[self.percent] = str(dice.choice([10, 25, 50]))
        if dice.random() < 0.6:
            asked[self.cores] = str(dice.choice([10, 20, 35, 100]))
        return asked

    def half(self) -> dict[str, str]:
        return {self.count: "1"} | super().half()

    def bound_by_its_scheduler(self, cards: list[int]) -> dict[str, str]:
        """VO:d/vgpu/device_info.go, Allocate; HA:pkg/scheduler/scheduler.go, Filter and Bind."""
        devices = self.encode([[(self.uuid(card), SIZE // 2, WHOLE // 2)] for card in cards])
        now = str(int(time.time()))
        return {
            self.listed: devices,
            self.todo: devices,
            self.where: self.node,
            self.when: now,
            self.phase: "allocating",
            self.bound: now,
        }


class VolcanoVgpu(Family):
    """Volcano's vGPU device plugin."""

    mem, cores, count = "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-number"
    percent, table = "volcano.sh/vgpu-memory-percentage", "volcano.sh/node-vgpu-register"
    listed, todo = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
    where, when = "volcano.sh/vgpu-node", "volcano.sh/vgpu-time"
    phase, bound, lock = "volcano.sh/bind-phase", "volcano.sh/bind-time", "hamivgpu"

    def capacity(self) -> dict[str, object]:
        return super().capacity() | {self.count: self.cards * self.split}

    def managed(self) -> dict[str, bool]:
        return {self.count: False, self.mem: False, self.cores: False, self.percent: True}

    def register(self) -> dict[str, str | None]:
        """VV:pkg/util/util.go, EncodeNodeDevices."""
        cards = range(self.cards)
        return {
            self.table: "".join(
                f"{self.uuid(card)},{self.split},{SIZE},NVIDIA-A10,true,hami-core:" for card in cards
            )
        }

    def encode(self, parts: list[list[Device]]) -> str:
        return ";".join("".join(f"{u},NVIDIA,{m},{c}:" for u, m, c in part) for part in parts)

    def pending(self, asked: int) -> Json | None:
        """VV:pkg/util/util.go, getOldestPod: every pod of the cluster, whatever its phase."""
        found = [
            p
            for p in self.pods()
            if notes_of(p).get(self.where) == self.node
            and sum(map(len, self.decode(notes_of(p).get(self.todo, "")))) == asked
        ]
        return min(found, key=lambda p: int(notes_of(p).get(self.when, str(2**64 - 1))), default=None)

    def release(self, pod: Json) -> None:
        """VV:pkg/util/nodelock/nodelock.go, ReleaseNodeLock: of whichever pod."""
        if self.lock in self.notes():
            self.annotate_node({self.lock: None})


class Hami(Family):
    """HAMi's device plugin."""

    mem, cores, count = "nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpu"
    percent, table = "nvidia.com/gpumem-percentage", "hami.io/node-nvidia-register"
    listed, todo = "hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate"
    where, when = "hami.io/vgpu-node", "hami.io/vgpu-time"
    phase, bound, lock = "hami.io/bind-phase", "hami.io/bind-time", "hami.io/mutex.lock"

    def capacity(self) -> dict[str, object]:
        """Only the number of parts is a resource of the kubelet."""
        return {self.count: self.cards * self.split}

    def managed(self) -> dict[str, bool]:
        return {self.count: False, self.mem: True, self.cores: True, self.percent: True}

    def register(self) -> dict[str, str | None]:
        """HA:pkg/device/devices.go, MarshalNodeDevices: empty fields are left out, in any order."""
        cards = [
            {"id": self.uuid(card), "count": self.split, "devmem": SIZE, "devcore": WHOLE}
            | {"type": "NVIDIA A10", "mode": "hami-core", "health": True}
            | ({"index": card} if card else {})
            for card in reversed(range(self.cards))
        ]
        return {self.table: json.dumps(cards)}

    def encode(self, parts: list[list[Device]]) -> str:
        return "".join("".join(f"{u},NVIDIA,{m},{c}:" for u, m, c in part) + ";" for part in parts)

    def limits(self, dice: random.Random) -> list[dict[str, str]]:
        """
        Up to three containers, some without cards. They fit an empty node even if no two of them can share a card.
        """
        while True:
            its = [
                self.limits_of_one(dice) if i == 0 or dice.random() < 0.7 else {}
                for i in range(dice.choice([1, 1, 2, 3]))
            ][:: dice.choice([1, -1])]
            if sum(int(one.get(self.count, "0")) for one in its) <= self.cards:
                return its

    def containers(self, pod: Json) -> list[Json]:
        """HA:pkg/device/devices.go, Resourcereqs: init containers first."""
        return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]

    def inits(self, dice: random.Random) -> list[dict[str, str]]:
        """Mostly none; some without cards. They run one at a time, so each may have all cards."""
        if dice.random() < 0.6:
            return []
        return [self.limits_of_one(dice) if dice.random() < 0.7 else {} for _ in range(dice.choice([1, 1, 2]))]

    def charges(self, pod: Json) -> Iterator[tuple[int, int, int]]:
        """
        On each card the larger of all that last, and of an init container beside the sidecars before it. A part at
        the place of an init container that asks for no card is another's. HAMi counts sidecars as init containers.
        """
        asking = [c if limit_of(c, self.count) else None for c in pod["spec"].get("initContainers", [])]
        ends = [c is not None and c.get("restartPolicy") != "Always" for c in asking]
        first: dict[int, list[tuple[int, int]]] = {}
        then: dict[int, tuple[int, int]] = {}
        for i, part in enumerate(self.decode(notes_of(pod).get(self.listed, ""))):
            for uuid, mem, cores in part:
                card, had = self.card(uuid), then.get(self.card(uuid), (0, 0))
                now = had[0] + (SIZE if cores == WHOLE else mem), had[1] + cores
                if i < len(ends) and ends[i]:
                    first.setdefault(card, []).append(now)
                else:
                    then[card] = now
        for card in sorted({*first, *then}):
            moments = [*first.get(card, []), then.get(card, (0, 0))]
            yield card, max(mem for mem, _ in moments), max(cores for _, cores in moments)

    def pending(self, asked: int) -> Json | None:
        """HA:pkg/util/util.go, GetPendingPod: the lock's pod, else the first that waits here."""
        owner = self.notes().get(self.lock, "").split(",")
        for p in self.pods():
            metadata = p["metadata"]
            if len(owner) == 3 and owner[1:] == [metadata["namespace"], metadata["name"]]:
                return p
        if len(owner) == 3:
            raise Refused(f"pod {owner[2]} not found")
        for p in self.here():
            notes = notes_of(p)
            waits = p["status"].get("phase", "Pending") == "Pending" and self.bound in notes
            if waits and notes.get(self.phase) in ("allocating", "success") and self.where in notes:
                return p
        return None

    def release(self, pod: Json) -> None:
        """HA:pkg/util/nodelock/nodelock.go, ReleaseNodeLock: of that pod alone."""
        owner = f",{pod['metadata']['namespace']},{pod['metadata']['name']}"
        if self.notes().get(self.lock, "").endswith(owner):
            self.annotate_node({self.lock: None})


AGENTS: dict[str, type[Agent]] = {
    "volcano": Volcano,
    "elastic": Elastic,
    "tencent": Tencent,
    "volcano-vgpu": VolcanoVgpu,
    "hami": Hami,
}
