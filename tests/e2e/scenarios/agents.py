"""cardpack-node on a real kubelet: the card that was promised is the card that is given."""

from __future__ import annotations

import fcntl
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

from agent import RESOURCE, Agent, Watching, card_line
from bench import Bench, check, dice, message, scenario
from cluster import Json
from component import wait_for
from worker import GONE, Worker

IDX = "ALIYUN_COM_GPU_MEM_IDX"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
# A kubelet that has just started has no devices yet, or still counts those of pods that have ended.
KUBELETS_OWN = ("devices unavailable", "unhealthy devices", "no healthy devices")


def annotation(pod: Json, key: str) -> str:
    return str(pod["metadata"].get("annotations", {}).get(key, ""))


def gpu_pod(
    bench: Bench, worker: Worker, name: str, *sizes: int, annotations: dict[str, str] | None = None
) -> Json:
    """A pod for kube-scheduler, whose containers run until it is deleted."""
    names = tuple(f"c{i}" for i in range(len(sizes)))
    return bench.pod(name, 0, spec=worker.spec(names, sizes), annotations=annotations)


def replace_rejected(bench: Bench, worker: Worker, names: list[str], units: int) -> None:
    """A kubelet that starts may reject pods before it has read any devices; a ReplicaSet replaces them."""
    for name in names:
        pod = bench.cluster.pod(name, bench.namespace)
        if pod is not None and pod["status"].get("reason") == "UnexpectedAdmissionError":
            check(any(text in pod["status"]["message"] for text in KUBELETS_OWN), pod["status"])
            bench.cluster.delete_pod(name, bench.namespace, grace=1)
            gpu_pod(bench, worker, name, units, annotations={"cardpack.io/card-policy": "spread"})


def all_run(bench: Bench, worker: Worker, names: list[str], timeout: float = 120, units: int = 4) -> None:
    """Waits until a container of each pod runs."""

    def run() -> bool:
        replace_rejected(bench, worker, names, units)
        bench.revive_scheduler()
        return {one.pod for one in worker.containers()} >= set(names)

    wait_for(
        run,
        f"{len(names)} pods to run",
        timeout,
        poll=0.2,
    )


def absent_resources(bench: Bench, worker: Worker) -> None:
    """Pods that name what the node does not have: the kubelet runs them, and gives them nothing."""
    names = {"gpu": "nvidia.com/gpu", "slice": "nvidia.com/mig-1g.5gb"}
    if bench.cluster.minor > 20:  # the kubelet 1.20 never starts a container with 0 of a plugin's resource
        names["zero"] = RESOURCE
    for name, resource in names.items():
        spec = worker.spec()
        spec["containers"][0]["resources"] = {"limits": {resource: "0" if resource == RESOURCE else "2"}}
        bench.pod(name, 0, spec=spec, node_name=worker.name, annotations={IDX: "0"})
    all_run(bench, worker, list(names))
    for name in names:
        check("NVIDIA_VISIBLE_DEVICES" not in worker.wait_container(name).env, name)


@scenario("node")
def promised_cards(bench: Bench) -> None:
    """Through kube-scheduler, cardpack, kubelet and containerd each container gets the pod's card."""
    worker = bench.worker("n1", cards=2)
    agent = Agent(bench, worker, (16, 16))
    agent.start()
    absent_resources(bench, worker)
    bench.cardpack()
    with Watching(agent.judge):
        gpu_pod(bench, worker, "one", 12)
        gpu_pod(bench, worker, "two", 12)
        gpu_pod(bench, worker, "pair", 2, 2)
        all_run(bench, worker, ["one", "two", "pair"])
        for name in ("one", "two"):
            found = worker.wait_container(name)
            pod = bench.get(name)
            card = annotation(pod, IDX)
            check(found.env["NVIDIA_VISIBLE_DEVICES"] == f"GPU-{card}", found.env)
            check(found.env[IDX] == card, found.env)
            check(found.env["ALIYUN_COM_GPU_MEM_POD"] == "12", found.env)
            check(found.env["ALIYUN_COM_GPU_MEM_CONTAINER"] == "12", found.env)
            check(found.env["ALIYUN_COM_GPU_MEM_DEV"] == "16", found.env)
            wait_for(lambda n=name: annotation(bench.get(n), ASSIGNED) == "true", f"{name} assigned", 30)
        second = worker.wait_container("pair", "c1")
        check(second.env["ALIYUN_COM_GPU_MEM_POD"] == "4", second.env)
        cards = {annotation(bench.get(name), IDX) for name in ("one", "two")}
        check(cards == {"0", "1"}, cards)


def sees(worker: Worker, pod: str, container: str = "c0") -> set[str]:
    """The indices of the cards that a container's variables name, by UUID."""
    env = worker.wait_container(pod, container).env
    cards = {one.removeprefix("GPU-") for one in env["NVIDIA_VISIBLE_DEVICES"].split(",")}
    check(cards == set(env[IDX].split(",")), env)
    return cards


@scenario("node")
def pods_of_each_shape(bench: Bench) -> None:
    """Without late binding: init containers, a sidecar, two cards, whole cards, a percentage."""
    worker = bench.worker("n1", cards=4)
    agent = Agent(bench, worker, (16, 16, 16, 16))
    agent.start()
    bench.cardpack()
    init = worker.container("init", {"limits": {RESOURCE: "6"}}, ["/bin/true"])
    beside = worker.container("beside", {"limits": {RESOURCE: "2"}})
    sidecars = bench.cluster.minor >= 29
    for name, lasting in (("before", []), ("sidecar", [beside | {"restartPolicy": "Always"}])):
        if lasting and not sidecars:
            continue
        bench.pod(name, 0, spec=worker.spec(("c0",), (4,)) | {"initContainers": [init, *lasting]})
    bench.pod("pair", 0, spec=worker.spec(("c0",), (8,)), labels={"aliyun.com/gpu-count": "2"})
    gpu_pod(bench, worker, "quarter", 4, annotations={"cardpack.io/gpu-mem-percent": "25"})
    bench.pod("whole", 0, spec=worker.spec(("c0",), (16,)), labels={"ack.gpushare.placement": "require-whole-device"})
    names = ["before", "pair", "quarter", "whole", *(["sidecar"] if sidecars else [])]
    all_run(bench, worker, names)
    for name in names:
        wait_for(lambda n=name: annotation(bench.get(n), ASSIGNED) == "true", f"{name} assigned", 30)
    for name in names:
        if name != "pair":
            check(sees(worker, name) == {annotation(bench.get(name), IDX)}, bench.get(name)["metadata"])
    check(len(sees(worker, "pair")) == 2, "two cards")
    others = set().union(*(sees(worker, name) for name in names if name != "whole"))
    check(sees(worker, "whole").isdisjoint(others), f"the whole card is among {others}")
    if sidecars:
        check(sees(worker, "sidecar", "beside") == sees(worker, "sidecar"), "the sidecar")


@scenario("node")
def hundred_thousand_devices(bench: Bench) -> None:
    """As many devices as cardpack-node offers: the kubelet counts them, and a pod gets most of a card.

    After its start kubelet 1.36 looks for the pod of each device among all devices of pods, one by one, and
    starts no pod meanwhile: with so many devices that takes many minutes (docs/node.md). So only an older one
    is restarted.
    """
    size, most = 25_000, 23_456
    worker = bench.worker("n1", cards=4)
    agent = Agent(bench, worker, (size,) * 4, "--memory-unit=MiB", mib=1)
    began = time.monotonic()
    agent.start()
    listed = time.monotonic() - began
    bench.cardpack()
    with Watching(agent.judge):
        for turn in range(2):
            began = time.monotonic()
            gpu_pod(bench, worker, f"large{turn}", most)
            found = worker.wait_container(f"large{turn}", timeout=60)
            runs = time.monotonic() - began
            card = annotation(bench.get(f"large{turn}"), IDX)
            check(found.env["NVIDIA_VISIBLE_DEVICES"] == f"GPU-{card}", found.env)
            check(found.env["ALIYUN_COM_GPU_MEM_POD"] == str(most), found.env)
            print(f"# a pod with {most} devices runs after {runs:.1f} s", flush=True)
        if bench.cluster.minor < 36:
            worker.kubelet.kill()
            worker.kubelet.start()
            gpu_pod(bench, worker, "large2", most)
            all_run(bench, worker, ["large0", "large1", "large2"], units=most)
    print(f"# {4 * size} devices: capacity {listed:.1f} s after the start of cardpack-node", flush=True)


@scenario("node")
def backlog_after_a_restart(bench: Bench) -> None:
    """A kubelet and an agent that start on a backlog of equal pods: no container on a wrong card.

    Half of the units: a kubelet that has just started still counts the devices of pods that ended.
    """
    worker = bench.worker("n1", cards=4)
    agent = Agent(bench, worker, (16, 16, 16, 16))
    agent.start()
    bench.cardpack()
    random = dice("backlog")
    exchanged = 0.0
    with Watching(agent.judge) as watching:
        for turn in range(2):
            worker.kubelet.kill()
            if turn == 1:
                agent.program.kill()
            names = [f"b{turn}-{i}" for i in range(8)]
            random.shuffle(names)
            for name in names:
                gpu_pod(bench, worker, name, 4, annotations={"cardpack.io/card-policy": "spread"})
            wait_for(
                lambda want=names: all(bench.get(n)["spec"].get("nodeName") for n in want),
                "all to be bound",
                60,
            )
            if turn == 1:
                agent.program.launch()  # ready when the kubelet is there
            worker.kubelet.start()
            all_run(bench, worker, names, 180)
            exchanged += agent.metric("cardpack_node_exchanged_total")
            agent.program.kill()  # kill -9: containers go on, and it starts again
            agent.start()
            for name in names:
                bench.cluster.delete_pod(name, bench.namespace, grace=1)
            wait_for(
                lambda want=names: not any(bench.cluster.pod(n, bench.namespace) for n in want),
                "all to be gone",
                GONE,
            )
        print(f"# {watching.moments} moments, {exchanged:g} pods exchanged")


@scenario("node")
def faults_of_a_node(bench: Bench) -> None:
    """The API server away while the kubelet and the agent start, and a node that loses power."""
    worker = bench.worker("n1", cards=3)
    agent = Agent(bench, worker, (16, 16, 16))
    agent.start()
    bench.cardpack()
    names = [f"p{i}" for i in range(6)]
    with Watching(agent.judge) as watching:
        for name in names[:3]:
            gpu_pod(bench, worker, name, 4, annotations={"cardpack.io/card-policy": "spread"})
        all_run(bench, worker, names[:3])
        worker.kubelet.kill()
        for name in names[3:]:
            gpu_pod(bench, worker, name, 4, annotations={"cardpack.io/card-policy": "spread"})
        wait_for(
            lambda: all(bench.get(n)["spec"].get("nodeName") for n in names), "all to be bound", 60
        )
        bench.cluster.apiserver.kill()
        agent.program.kill()
        agent.program.launch()
        worker.kubelet.launch()
        time.sleep(5)  # the kubelet and the agent run without an API server
        bench.cluster.apiserver.start()
        all_run(bench, worker, names, 180)
        agent.program.wait_ready()
        check(watching.moments > 5, watching.trouble)
    worker.cut_power()
    worker.machine.close()
    worker.start_runtime()
    agent.program.launch()
    with Watching(agent.judge):
        worker.kubelet.start()
        all_run(bench, worker, names, 180)
        agent.program.wait_ready()


class Limits:
    """The double's driver with limits of memory: what it keeps, and what a container should have."""

    def __init__(self, worker: Worker, agent: Agent) -> None:
        self.agent = agent
        self.kept = agent.world.with_name(agent.world.name + ".limits")
        self.cards = [card_line(0, 16), card_line(1, 16)]
        self.worker = worker

    def show(self, *lines: str) -> None:
        """What the driver says of limits: nothing, that it has them, ..."""
        self.agent.show([*(f"{line}\n" for line in lines), *self.cards])

    def of(self, bench: Bench, pod: str) -> dict[str, int]:
        """The limits in MiB of the pod's container that the driver keeps, by the card's UUID."""
        statuses = bench.get(pod)["status"].get("containerStatuses", [])
        ids = [s.get("containerID", "").rpartition("//")[2] for s in statuses]
        if not self.kept.exists():
            return {}
        with self.kept.open() as kept:
            fcntl.flock(kept, fcntl.LOCK_SH)  # the double empties the file before it writes it anew
            lines = [one.split(" ", 3) for one in kept.read().splitlines()]
        return {line[0]: int(line[2]) >> 20 for line in lines if line[3].rpartition("/")[2] in ids}

    def preset(self, mib: int) -> None:
        """As if the container runtime set it: the containers have the limit of a cgroup above them."""
        tree = (self.worker.folder / "cgroup").resolve()
        text = "".join(f"GPU-{n} {mib << 20} {mib << 20} {tree}\n" for n in range(2))
        fresh = self.kept.with_name(self.kept.name + ".new")
        fresh.write_text(text)
        fresh.rename(self.kept)


def told_of(bench: Bench, reason: str, text: str = "") -> list[Json]:
    """Waits for events with this reason and text, which are written after what they tell of; returns them."""

    def told() -> list[Json]:
        events = bench.cluster.list_all("/api/v1/events")
        return [event for event in events if event["reason"] == reason and text in event["message"]]

    return wait_for(told, f"an event {reason}", 30)


def isolation(bench: Bench) -> str:
    """The node's label."""
    node = bench.cluster.must("GET", "/api/v1/nodes/n1")
    return str(node["metadata"].get("labels", {}).get("cardpack.io/isolation", ""))


def allocatable_is(worker: Worker, units: int) -> None:
    """Waits until the kubelet offers so many units."""
    wait_for(lambda: worker.capacity(RESOURCE, "allocatable") == units, f"{units} units", 60, poll=0.2)


def with_own_limit(spec: Json) -> Json:
    """The same, of a container that sets the variable of its limit by itself."""
    spec["containers"][0].setdefault("env", []).append({"name": "NVIDIA_GPU_MEMORY_LIMIT", "value": "16384"})
    return spec


@scenario("node")
def memory_limits(bench: Bench) -> None:
    """The driver's limits: set by the runtime, set by the agent, and not to be had at all."""
    worker = bench.worker("n1", cards=2)
    agent = Agent(bench, worker, (16, 16), f"--cgroup-root={worker.folder / 'cgroup'}")
    limits = Limits(worker, agent)
    limits.show("limits")
    agent.start()
    wait_for(lambda: isolation(bench) == "driver-limits", "the label driver-limits", 30)
    bench.cardpack()
    asks = {"cardpack.io/require-isolation": "true"}
    limits.preset(4096)
    gpu_pod(bench, worker, "there", 4, annotations=asks)
    all_run(bench, worker, ["there"])
    wait_for(lambda: agent.metric('cardpack_node_limits{state="enforced"}') == 1, "a limit", 30)
    check(agent.metric("cardpack_node_limits_set_late_total") == 0, "the agent has set a limit")
    found = worker.wait_container("there")
    check(found.env["NVIDIA_GPU_MEMORY_LIMIT"] == "4096" and found.env["NVIDIA_GPU_MEMORY_REQUEST"] == "0", found.env)
    limits.kept.unlink()  # from here on the runtime is too old
    gpu_pod(bench, worker, "late", 6, annotations=asks)
    all_run(bench, worker, ["late"])
    wait_for(lambda: 6144 in limits.of(bench, "late").values(), "the agent to set a limit", 30)
    check(set(limits.of(bench, "late")) == {f"GPU-{annotation(bench.get('late'), IDX)}"}, limits.of(bench, "late"))
    wait_for(lambda: agent.metric("cardpack_node_limits_set_late_total") == 1, "the count of limits set late", 30)
    agent.program.kill()  # containers go on; after its start each is checked again
    limits.kept.unlink()
    agent.start()
    wait_for(lambda: limits.of(bench, "late") and limits.of(bench, "there"), "both limits again", 30)
    limits.show("limits", "limits-ignored")
    limits.kept.unlink()
    gpu_pod(bench, worker, "never", 2, annotations=asks)
    all_run(bench, worker, ["never"])
    allocatable_is(worker, 16)
    card = annotation(bench.get("never"), IDX)
    unhealthy = bench.cluster.must("GET", "/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-n1")
    check(unhealthy["data"]["gpus"] == card, unhealthy)
    said = told_of(bench, "GPUMemoryLimitMissing")
    check([e["involvedObject"]["name"] for e in said] == ["never"], said)
    check("2048 MiB" in said[0]["message"], said)
    check(worker.wait_container("never").proc.exists(), "it goes on")
    for name in ("never", "there", "late"):
        bench.cluster.delete_pod(name, bench.namespace, grace=1)
    allocatable_is(worker, 32)
    wait_for(lambda: isolation(bench) == "none", "the label none", 30)
    agent.program.kill()
    agent.start()  # the limits of containers that run are checked before the label says more than it said
    check(isolation(bench) == "none", isolation(bench))
    wait_for(lambda: isolation(bench) == "driver-limits", "the label driver-limits again", 60)
    own = bench.pod("own", 0, spec=with_own_limit(worker.spec(("c0",), (2,))))
    all_run(bench, worker, ["own"])
    allocatable_is(worker, 16)  # a pod that requires isolation may still come: not to this card
    check(isolation(bench) == "driver-limits", isolation(bench))
    bench.cluster.delete_pod(own["metadata"]["name"], bench.namespace, grace=1)
    allocatable_is(worker, 32)
    gpu_pod(bench, worker, "free", 2)  # it asks for no isolation: only the label says what is missing
    all_run(bench, worker, ["free"])
    wait_for(lambda: isolation(bench) == "none", "the label none for want of a limit", 60)
    check(agent.metric('cardpack_node_cards{health="unhealthy"}') == 0, "a card is unhealthy")
    allocatable_is(worker, 32)
    limits.show()  # another driver: no limits, and the label says so
    agent.program.kill()
    agent.start()
    wait_for(lambda: isolation(bench) == "none", "the label none", 30)
    gpu_pod(bench, worker, "refused", 1, annotations=asks)
    wait_for(lambda: "isolation" in message(bench.get("refused")), "no node that enforces", 30)


def mps_daemon(folder: Path, uuid: str) -> socket.socket:
    """A socket in place of the one of NVIDIA's control daemon: it accepts connections, and no more."""

    def accept() -> None:
        with suppress(OSError):  # until it is closed
            while True:
                daemon.accept()[0].close()

    for name in (uuid, f"{uuid}.shm"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    daemon = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    daemon.bind(str(folder / uuid / "control"))
    daemon.listen(64)
    Thread(target=accept, daemon=True).start()
    return daemon


@scenario("node")
def mps_clients(bench: Bench) -> None:
    """MPS: cards that a daemon serves, what containers get, and processes and pods past it."""
    worker = bench.worker("n1", cards=2)
    with tempfile.TemporaryDirectory(prefix="mps") as short:  # a socket's path has at most 107 bytes
        folder = Path(short)
        agent = Agent(bench, worker, (16, 16), "--isolation=mps", f"--mps-dir={folder}")
        lines = [card_line(n, 16).replace("\n", " compute-mode=3\n") for n in range(2)]
        agent.show(lines)
        agent.program.launch()
        wait_for(lambda: isolation(bench) == "none", "the label none", 30)  # no daemon answers
        allocatable_is(worker, 0)
        daemons = [mps_daemon(folder, "GPU-0")]
        wait_for(lambda: isolation(bench) == "mps", "the label mps", 30)
        allocatable_is(worker, 16)  # the other card has no daemon
        daemons.append(mps_daemon(folder, "GPU-1"))
        allocatable_is(worker, 32)
        agent.program.wait_ready()
        bench.cardpack()
        asks = {"cardpack.io/require-isolation": "true"}
        gpu_pod(bench, worker, "client", 6, annotations=asks)
        all_run(bench, worker, ["client"])
        found = worker.wait_container("client")
        uuid = f"GPU-{annotation(bench.get('client'), IDX)}"
        check(found.env["CUDA_MPS_PIPE_DIRECTORY"] == str(folder / uuid), found.env)
        check(found.env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=6144M", found.env)
        check(str(folder / uuid) in found.mounts(), found.mounts())
        check(found.mounts()["/dev/shm"].endswith(f"/{uuid}.shm"), found.mounts())
        for user in (1000, 2000):  # two tenants on one card, each a client under a UID of its own
            spec = worker.spec(("c0",), (2,))
            spec["containers"][0]["securityContext"] = {"runAsUser": user}
            bench.pod(f"of-{user}", 0, spec=spec, annotations={"cardpack.io/card-uuid": uuid})
            all_run(bench, worker, [f"of-{user}"])
            theirs = worker.wait_container(f"of-{user}")
            check(theirs.env["CUDA_MPS_PIPE_DIRECTORY"] == str(folder / uuid), theirs.env)
            check(theirs.env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=2048M", theirs.env)
        # without MPS it would take both cards from all others
        bench.pod("both", 0, spec=worker.spec(("c0",), (4,)), labels={"aliyun.com/gpu-count": "2"})
        wait_for(lambda: "MPS serves the GPU devices" in message(bench.get("both")), "no node for two cards", 30)
        # its first process uses the card, and is no client; then it is one
        pid = found.proc.name
        at = int(uuid.removeprefix("GPU-")) + 1
        agent.show([*lines[:at], f"process pid={pid} mib=1\n", *lines[at:]])
        allocatable_is(worker, 16)
        events = told_of(bench, "GPUProcessOutsideMPS")
        check([e["involvedObject"]["name"] for e in events] == ["client"], events)
        agent.show([*lines[:at], f"process pid={pid} mib=1\n", f"mps pid={pid} mib=1\n", *lines[at:]])
        allocatable_is(worker, 32)
        spec = worker.spec(("c0",), (2,))
        spec["containers"][0].setdefault("env", []).append(
            {"name": "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "value": "0=16G"}
        )
        bench.pod("greedy", 0, spec=spec)
        all_run(bench, worker, ["greedy"])
        allocatable_is(worker, 16)
        bench.cluster.delete_pod("greedy", bench.namespace, grace=1)
        allocatable_is(worker, 32)
        for daemon in daemons:
            daemon.shutdown(socket.SHUT_RDWR)  # wakes its thread
            daemon.close()
        wait_for(lambda: isolation(bench) == "none", "the label none again", 30)


@scenario("node")
def card_falls_ill(bench: Bench) -> None:
    """A card with a fatal XID gets no more pods; those on it go on."""
    worker = bench.worker("n1", cards=2)
    agent = Agent(bench, worker, (16, 16), "--cooldown=1h")
    agent.start()
    bench.cardpack()
    healthy = [card_line(0, 16), card_line(1, 16)]
    gpu_pod(bench, worker, "there", 4)
    all_run(bench, worker, ["there"])
    ill = int(annotation(bench.get("there"), IDX))
    agent.show([*healthy, f"event number=1 uuid=GPU-{ill} xid=79\n"])
    wait_for(lambda: worker.capacity(RESOURCE, "allocatable") == 16, "half of the units", 60, poll=0.2)
    gpu_pod(bench, worker, "beside", 8)
    all_run(bench, worker, ["beside", "there"])
    check(annotation(bench.get("beside"), IDX) == str(1 - ill), bench.get("beside")["metadata"])
    check(worker.wait_container("beside").env["NVIDIA_VISIBLE_DEVICES"] == f"GPU-{1 - ill}", "beside")
    told_of(bench, "CardUnhealthy", f"card {ill} (GPU-{ill}, NVIDIA A100) is unhealthy and gets no new pods: XID 79")
