"""The real device plugins of other projects on a node with a real kubelet: docs/dialects.md.

scripts/agents builds them; AGENT_PLUGINS names their folder. Without it these scenarios are skipped.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench import MANIFESTS, NOBODY, Bench, check, scenario
from component import wait_for
from daemon import Daemon
from plugins import KINDS, Plugin, card_uuid, programs
from worker import Container, Worker

Json = Any
SPREAD = {"cardpack.io/card-policy": "spread"}
VOLCANO = "volcano.sh/gpu-memory"
ELASTIC, ELASTIC_CORE = "elasticgpu.io/gpu-memory", "elasticgpu.io/gpu-core"
TENCENT, TENCENT_CORE = "tencent.com/vcuda-memory", "tencent.com/vcuda-core"
LOCK = "hami.io/mutex.lock"
VGPU = tuple(f"volcano.sh/vgpu-{name}" for name in ("number", "memory", "cores"))
HAMI = ("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores")
NO_NODE_HAS = HAMI[1:]
MERGE = "application/merge-patch+json"


class Node:
    """A node with the plugin, and its pods."""

    def __init__(self, bench: Bench, kind: str, cards: int, mib: int) -> None:
        programs()  # or skipped, before anything has started
        self.bench = bench
        self.worker: Worker = bench.worker("n1", cards=cards)
        self.plugin = Plugin(bench, self.worker, KINDS[kind], cards, mib)
        self.plugin.start()

    def pod(self, name: str, *limits: dict[str, int], notes: dict[str, str] | None = None, **fields: Any) -> None:
        """Makes a pod with a container for each of the limits; fields: of its spec."""
        containers = [
            self.worker.container(f"c{i}", {"limits": {key: str(value) for key, value in its.items()}})
            for i, its in enumerate(limits)
        ]
        spec = self.worker.spec() | {"containers": containers} | fields
        self.bench.pod(name, 0, spec=spec, annotations=SPREAD if notes is None else notes)

    def notes(self, name: str) -> dict[str, str]:
        """The annotations of a pod."""
        return self.bench.get(name)["metadata"].get("annotations") or {}

    def running(self, name: str, container: str = "c0") -> Container:
        """A container, once it runs. kube-scheduler 1.20 must be told to try a pod that waits again."""
        kicked = time.monotonic()

        def find() -> Container | None:
            nonlocal kicked
            found = self.worker.find(name, container)
            if found is None and time.monotonic() > kicked + 2:
                self.bench.kick()
                kicked = time.monotonic()
            return found

        found = wait_for(find, f"container {container} of {name}", 60, poll=0.05)
        assert found is not None
        return found

    def cards(self, name: str, container: str = "c0") -> list[int]:
        """The cards that a container really has."""
        return self.plugin.kind.cards(self.running(name, container))

    def rejected(self, name: str, why: str) -> None:
        """Waits until the kubelet has rejected a pod, because the plugin refused it."""
        status = wait_for(
            lambda: (found := self.bench.get(name)["status"]).get("phase") == "Failed" and found,
            f"{name} rejected",
            60,
        )
        check(why in status["message"], status)

    def annotate(self, key: str, value: str | None) -> None:
        """Writes an annotation of the Node object."""
        body = {"metadata": {"annotations": {key: value}}}
        self.bench.cluster.must("PATCH", "/api/v1/nodes/n1", body, content_type=MERGE)

    def annotation(self, key: str) -> str | None:
        """An annotation of the Node object."""
        node = self.bench.cluster.must("GET", "/api/v1/nodes/n1")
        found: str | None = node["metadata"].get("annotations", {}).get(key)
        return found

    def allocate(self, socket: str, ids: Sequence[str]) -> Json:
        """Asks the plugin in the place of the kubelet, which does not run."""
        path = self.worker.folder / "kubelet" / "device-plugins" / socket
        done = subprocess.run(
            [programs() / "allocate", path, *ids], capture_output=True, text=True, timeout=60, check=False
        )
        check(done.returncode == 0, done.stderr)
        return json.loads(done.stdout)


def with_cardpack(bench: Bench, resources: Sequence[str], play: Callable[[], None]) -> None:
    """kube-scheduler asks cardpack about these resources meanwhile."""
    programs()
    entries = "".join(
        f"\n  - name: {name}\n    ignoredByScheduler: {str(name in NO_NODE_HAS).lower()}"
        for name in resources
        if name != HAMI[0]  # the shipped configuration has it
    )
    bench.start_scheduler(overrides={"managedResources": entries})
    try:
        play()
    finally:
        bench.start_scheduler()


@scenario("node")
def real_volcano(bench: Bench) -> None:
    """Volcano's plugin: each container has the card and the memory of its pod, whatever the order."""
    with_cardpack(bench, [VOLCANO], lambda: play_volcano(bench))


def play_volcano(bench: Bench) -> None:
    """Pods of two sizes at once, then two of one size for which the kubelet asks in the other order."""
    node = Node(bench, "volcano", 2, 1000)
    daemon = bench.cardpack("--dialects=volcano", "--swap-guard=require")
    sizes = {f"p{i}": 20 if i < 4 else 10 for i in range(6)}
    for name, size in sizes.items():
        node.pod(name, {VOLCANO: size})
    for name, size in sizes.items():
        env = node.running(name).env
        check(env["VOLCANO_GPU_ALLOCATED"] == str(size), env)
        check(env["VOLCANO_GPU_MEMORY_TOTAL"] == "1000", env)
        check(",".join(str(card) for card in node.cards(name)) == node.notes(name)["volcano.sh/gpu-index"], env)
        check(node.notes(name)["volcano.sh/gpu-assigned"] == "true", node.notes(name))
    node.worker.kubelet.kill()
    other_order(node, daemon, guarded=True)
    daemon.stop()
    for name in ("guarded-0", "guarded-1"):
        bench.cluster.delete_pod(name, bench.namespace)
    other_order(node, bench.cardpack("--dialects=volcano", "--swap-guard=off"), guarded=False)


def other_order(node: Node, daemon: Daemon, guarded: bool) -> None:
    """Two pods of one size are bound; the kubelet, which this plays, asks for the second one first."""
    first, second = (f"{'guarded' if guarded else 'swapped'}-{i}" for i in range(2))
    units = 600  # no card has room for two
    for name in (first, second):
        node.pod(name, {VOLCANO: units}, schedulerName=NOBODY)
    check(not daemon.bind(node.bench.get(first), "n1"), "not bound")
    ids = [f"0-{i}" for i in range(units)]
    if guarded:  # the second one is refused until the first has been served
        check("Waits" in daemon.bind(node.bench.get(second), "n1"), "bound beside its equal")
        served(node, first, ids)
        wait_for(lambda: not daemon.bind(node.bench.get(second), "n1"), "the second one bound", 60)
        served(node, second, ids)
        return
    check(not daemon.bind(node.bench.get(second), "n1"), "not bound")
    index = "volcano.sh/gpu-index"
    check(node.notes(first)[index] != node.notes(second)[index], "one card for both")
    got = node.allocate("volcano.sock", ids)["env"]["NVIDIA_VISIBLE_DEVICES"]
    check(got == node.notes(first)[index], f"the second one got {got}: the plugin serves the oldest")


def served(node: Node, name: str, ids: Sequence[str]) -> None:
    """The kubelet's call for the pod's container, and what it gets."""
    got = node.allocate("volcano.sock", ids)["env"]["NVIDIA_VISIBLE_DEVICES"]
    check(got == node.notes(name)["volcano.sh/gpu-index"], f"{name} got {got}: {node.notes(name)}")
    check(node.notes(name)["volcano.sh/gpu-assigned"] == "true", node.notes(name))


@scenario("node")
def real_elastic(bench: Bench) -> None:
    """elastic-gpu-agent: each container has the device nodes of its annotation, shared and whole."""
    with_cardpack(bench, [ELASTIC, ELASTIC_CORE], lambda: play_elastic(bench))


def play_elastic(bench: Bench) -> None:
    """Shared pods, one with two containers, and one with two whole cards."""
    node = Node(bench, "elastic", 4, 500)
    bench.cardpack("--dialects=elastic", "--swap-guard=require")
    node.pod("whole", {ELASTIC_CORE: 200})
    node.running("whole")
    for i in range(5):
        node.pod(f"p{i}", {ELASTIC: 100, ELASTIC_CORE: 10})
    node.pod("two", {ELASTIC: 50, ELASTIC_CORE: 20}, {ELASTIC: 80, ELASTIC_CORE: 30})
    every = ["whole", *(f"p{i}" for i in range(5)), "two"]
    for name, container in [*((name, "c0") for name in every), ("two", "c1")]:
        said = node.notes(name)[f"elasticgpu.io/container-{container}"]
        got = ",".join(str(card) for card in node.cards(name, container))
        check(got == said, f"{name} {container}: {got}, not {said}")
    check(len(node.cards("whole")) == 2, node.cards("whole"))


@scenario("node")
def real_gpu_manager(bench: Bench) -> None:
    """gpu-manager chooses the cards that cardpack has predicted, and the containers have them."""
    with_cardpack(bench, [TENCENT, TENCENT_CORE], lambda: play_tencent(bench))


def play_tencent(bench: Bench) -> None:
    """A whole card, shared pods of equal and of other sizes, and one with two containers."""
    node = Node(bench, "tencent", 4, 2048)
    bench.cardpack("--dialects=tencent", "--swap-guard=require")
    node.pod("whole", {TENCENT_CORE: 100, TENCENT: 8})
    node.running("whole")
    for i in range(4):
        node.pod(f"p{i}", {TENCENT: 3, TENCENT_CORE: 40 if i < 3 else 30})
    node.pod("two", {TENCENT: 1, TENCENT_CORE: 20}, {TENCENT: 2, TENCENT_CORE: 25})
    every = ["whole", *(f"p{i}" for i in range(4)), "two"]
    for name, index in [*((name, 0) for name in every), ("two", 1)]:
        got = ",".join(str(card) for card in node.cards(name, f"c{index}"))
        wait_for(lambda n=name: node.notes(n)["tencent.com/gpu-assigned"] == "true", f"{name} acknowledged", 60)
        said = node.notes(name)[f"tencent.com/predicate-gpu-idx-{index}"]
        check(got == said, f"{name} c{index}: {got}, not {said}")


# ---- HAMi's two plugins -------------------------------------------------------------------------------


@scenario("node")
def real_vgpu(bench: Bench) -> None:
    """Volcano's vGPU plugin: each container has the cards and the limits of its pod's annotation."""
    with_cardpack(bench, VGPU, lambda: play_family(bench, "vgpu", "volcano-vgpu", VGPU, "volcano.sh/vgpu-ids-new"))


@scenario("node")
def real_hami(bench: Bench) -> None:
    """HAMi's plugin: likewise, and its lock is released in the end."""
    key = "hami.io/vgpu-devices-allocated"
    with_cardpack(bench, HAMI, lambda: play_family(bench, "hami", "hami", HAMI, key))


def play_family(bench: Bench, kind: str, dialect: str, resources: Sequence[str], key: str) -> None:
    """Pods of one card at once, one with two cards, and one whose second container has the card."""
    bench.cluster.kubectl("apply", "-f", str(MANIFESTS / "components" / "node-lock" / "rbac.yaml"))
    node = Node(bench, kind, 2, 1000)
    bench.cardpack(f"--dialects={dialect}", "--swap-guard=require")

    def limits(count: int, mem: int, cores: int) -> dict[str, int]:
        return dict(zip(resources, (count, mem, cores), strict=True))

    if dialect == "volcano-vgpu":  # a copy of a pod's annotations, which no scheduler places: it is not served
        text = segment((0, 1, 1))
        notes = {"vgpu-node": "n1", "vgpu-time": str(int(time.time()) - 100), "vgpu-ids-new": text,
                 "devices-to-allocate": text, "bind-phase": "allocating"}  # fmt: skip
        notes = {f"volcano.sh/{name}": value for name, value in notes.items()}
        node.pod("copy", limits(1, 1, 1), notes=notes, schedulerName=NOBODY)
    asked = {f"p{i}": (1, 100 + 10 * i, 10 + i) for i in range(4)} | {"pair": (2, 50, 5), "second": (1, 60, 6)}
    for name, its in asked.items():
        node.pod(name, *([{}] if name == "second" else []), limits(*its))
    for name, (_, mem, cores) in asked.items():
        found = node.running(name, "c1" if name == "second" else "c0")
        said = [one.split(",") for one in node.notes(name)[key].replace(";", "").split(":") if one]
        check([uuid for uuid, *_ in said] == found.env["NVIDIA_VISIBLE_DEVICES"].split(","), (said, found.env))
        check(len(said) == asked[name][0] and all(one[2:] == [str(mem), str(cores)] for one in said), said)
        has(found, node.plugin.kind.cards(found), *((int(one[0][4:12], 16), mem, cores) for one in said))
        phase = key.partition("/")[0] + "/bind-phase"
        wait_for(lambda n=name: node.notes(n)[phase] == "success", f"{name} acknowledged", 30)
    if dialect == "hami":
        several(node, key, [limits(1, 70, 7), {}, limits(2, 40, 4), limits(1, 30, 3)])
        before_others(node, key, limits)
    for lock in (LOCK, "hamivgpu"):
        wait_for(lambda one=lock: node.annotation(one) is None, "the lock released", 30)


def several(node: Node, key: str, asked: Sequence[dict[str, int]]) -> None:
    """A pod with cards in several containers: each has the cards and limits of its part of the list."""
    node.pod("several", *asked)
    for i, its in enumerate(asked):
        if not its:
            continue
        found = node.running("several", f"c{i}")
        part = node.notes("several")[key].split(";")[i]
        said = [one.split(",") for one in part.split(":") if one]
        count, mem, cores = its.values()
        check(len(said) == count and all(one[2:] == [str(mem), str(cores)] for one in said), said)
        has(found, node.plugin.kind.cards(found), *((int(one[0][4:12], 16), mem, cores) for one in said))
    phase = key.partition("/")[0] + "/bind-phase"
    wait_for(lambda: node.notes("several")[phase] == "success", "several acknowledged", 30)


def before_others(node: Node, key: str, limits: Callable[[int, int, int], dict[str, int]]) -> None:
    """
    A pod with cards in init containers, a sidecar and a container: each has the cards and limits of its
    part of the list, the init ones first. The parts of init containers may add up to more than the cards.
    """
    asked = {"i0": (2, 500, 50), "i1": (1, 30, 3), "i2": (1, 501, 51), "c0": (1, 90, 9)}
    made = {
        name: node.worker.container(name, {"limits": {at: str(n) for at, n in limits(*its).items()}},
                                    command=["sleep", "2"] if name in ("i0", "i2") else None)
        for name, its in asked.items()
    }  # fmt: skip
    made["i1"]["restartPolicy"] = "Always"
    empty = node.worker.container("none", {}, command=["true"])
    inits = [made["i0"], made["i1"], empty, made["i2"]]
    node.pod("inits", {}, initContainers=inits, containers=[made["c0"]])
    for name, (count, mem, cores) in asked.items():
        found = node.running("inits", name)
        parts = node.notes("inits")[key].split(";")
        part = parts[{"i0": 0, "i1": 1, "i2": 3, "c0": 4}[name]]
        said = [one.split(",") for one in part.split(":") if one]
        check(parts[2] == "" and len(said) == count, parts)
        check(all(one[2:] == [str(mem), str(cores)] for one in said), said)
        has(found, node.plugin.kind.cards(found), *((int(one[0][4:12], 16), mem, cores) for one in said))
    phase = key.partition("/")[0] + "/bind-phase"
    check(node.notes("inits")[phase] == "success", node.notes("inits"))


# ---- the same without cardpack: the annotations are written by hand, as their schedulers write them ----------


def segment(*cards: tuple[int, int, int]) -> str:
    """One container's cards: index, MiB, percent of the compute."""
    return "".join(f"{card_uuid(card)},NVIDIA,{mem},{cores}:" for card, mem, cores in cards)


def has(found: Container, kind_cards: list[int], *cards: tuple[int, int, int]) -> None:
    """The container has these cards, with these limits."""
    check(kind_cards == [card for card, _, _ in cards], found.env)
    for i, (_, mem, _) in enumerate(cards):
        check(found.env[f"CUDA_DEVICE_MEMORY_LIMIT_{i}"] == f"{mem}m", found.env)
    check(found.env["CUDA_DEVICE_SM_LIMIT"] == str(cards[0][2]), found.env)


@scenario("node")
def real_vgpu_by_hand(bench: Bench) -> None:
    """Volcano's vGPU plugin: what it needs on the pod, what it writes back, and which pod it serves."""
    node = Node(bench, "vgpu", 2, 1000)
    key = "volcano.sh/"
    check(
        node.annotation(f"{key}node-vgpu-register")
        == "".join(f"{card_uuid(i)},10,1000,NVIDIA-NVIDIA A100,true,hami-core:" for i in range(2)),
        node.annotation(f"{key}node-vgpu-register"),
    )
    now = int(time.time())

    def pod(name: str, text: str, *limits: tuple[int, int, int], age: int = 0, **fields: Any) -> None:
        when = str(now - age)
        names = ("number", "memory", "cores")
        notes = {"vgpu-node": "n1", "vgpu-time": when, "vgpu-ids-new": text, "devices-to-allocate": text,
                 "bind-phase": "allocating", "bind-time": when}  # fmt: skip
        node.pod(
            name,
            *({f"{key}vgpu-{n}": amount for n, amount in zip(names, its, strict=True) if amount} for its in limits),
            notes={key + name: value for name, value in notes.items()},
            **({"nodeName": "n1"} | fields),
        )

    pod("one", segment((1, 300, 30)), (1, 300, 30))
    has(node.running("one"), node.cards("one"), (1, 300, 30))
    wait_for(lambda: node.notes("one")[f"{key}bind-phase"] == "success", "acknowledged", 30)
    check(node.notes("one")[f"{key}devices-to-allocate"] == "", node.notes("one"))
    check(node.notes("one")[f"{key}vgpu-time"] == str(2**64 - 1), node.notes("one"))

    pod("pair", segment((1, 100, 10), (0, 100, 10)), (2, 100, 10))
    has(node.running("pair"), node.cards("pair"), (1, 100, 10), (0, 100, 10))
    pod("second", ";" + segment((1, 50, 5)), (0, 0, 0), (1, 50, 5))
    has(node.running("second", "c1"), node.cards("second", "c1"), (1, 50, 5))
    pod("apart", segment((1, 50, 5)) + ";" + segment((0, 50, 5)), (1, 50, 5), (1, 50, 5))
    node.rejected("apart", "cannot get valid pod")
    bench.cluster.delete_pod("apart", bench.namespace)

    # An older pod with as many cards is served in its place, whatever its amounts, even without a node.
    pod("older", segment((0, 10, 1)), (1, 10, 1), age=100, nodeName=None, schedulerName=NOBODY)
    pod("younger", segment((1, 50, 5)), (1, 50, 5))
    has(node.running("younger"), node.cards("younger"), (0, 10, 1))
    check(node.notes("younger")[f"{key}devices-to-allocate"] == segment((1, 50, 5)), node.notes("younger"))


@scenario("node")
def real_hami_by_hand(bench: Bench) -> None:
    """HAMi's plugin: what it needs on the pod and the node, what it writes back, and its lock."""
    node = Node(bench, "hami", 2, 1000)
    table = json.loads(node.annotation("hami.io/node-nvidia-register") or "[]")
    check({one["id"]: (one.get("index", 0), one["devmem"], one["count"]) for one in table}
          == {card_uuid(i): (i, 1000, 10) for i in range(2)}, table)  # fmt: skip

    def pod(name: str, text: str, *limits: tuple[int, int, int], locks: str = "") -> None:
        when, names = str(int(time.time())), ("gpu", "gpumem", "gpucores")
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        node.annotate(LOCK, f"{stamp},{bench.namespace},{locks or name}")
        notes = {"vgpu-node": "n1", "vgpu-time": when, "vgpu-devices-to-allocate": text,
                 "vgpu-devices-allocated": text, "bind-phase": "allocating", "bind-time": when}  # fmt: skip
        node.pod(
            name,
            *({f"nvidia.com/{n}": amount for n, amount in zip(names, its, strict=True) if amount} for its in limits),
            notes={f"hami.io/{name}": value for name, value in notes.items()},
            nodeName="n1",
        )

    pod("one", segment((1, 300, 30)) + ";", (1, 300, 30))
    has(node.running("one"), node.cards("one"), (1, 300, 30))
    wait_for(lambda: node.notes("one")["hami.io/bind-phase"] == "success", "acknowledged", 30)
    check("NVIDIA" not in node.notes("one")["hami.io/vgpu-devices-to-allocate"], node.notes("one"))
    check(node.notes("one")["hami.io/vgpu-devices-allocated"] == segment((1, 300, 30)) + ";", node.notes("one"))
    wait_for(lambda: node.annotation(LOCK) is None, "the lock released", 30)

    pod("apart", segment((1, 100, 10)) + ";" + segment((0, 50, 5)) + ";", (1, 100, 10), (1, 50, 5))
    has(node.running("apart"), node.cards("apart"), (1, 100, 10))
    has(node.running("apart", "c1"), node.cards("apart", "c1"), (0, 50, 5))
    pod("pair", ";" + segment((1, 100, 10), (0, 100, 10)) + ";", (0, 0, 0), (2, 100, 10))
    has(node.running("pair", "c1"), node.cards("pair", "c1"), (1, 100, 10), (0, 100, 10))

    # The lock alone says for which pod a call is: a wrong one costs the pod, and the other its phase.
    pod("other", segment((0, 50, 5)) + ";", (1, 50, 5), locks="one")
    node.rejected("other", "no pending device allocation found")
    wait_for(lambda: node.notes("one")["hami.io/bind-phase"] == "failed", "the phase of the other pod", 30)
    pod("lost", segment((0, 50, 5)) + ";", (1, 50, 5), locks="gone")
    node.rejected("lost", '"gone" not found')
    check(node.annotation(LOCK) is not None, "the lock of a pod that is gone was released")
