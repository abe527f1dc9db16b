"""
From each dialect's own scheduler to cardpack in its place, while pods run, and back: docs/migration-schedulers.md.

The other scheduler is played by the rules of its source (other_schedulers.py), and is the real program where
OTHER_SCHEDULERS has it. The agents are played, too (other_agents.py); the scenarios real-* have the real ones of
AGENT_PLUGINS. What is compared is each card's memory and compute: in the other scheduler's count, in cardpack's, and
in the agent's own. After each step they are the same, and no card has more than it is.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench import MANIFESTS, PATIENCE, ROOT, Bench, check, message, scenario
from component import wait_for
from daemon import Daemon
from other_agents import AGENTS, ENDED, SIZE, WHOLE, Family, limit_of, notes_of
from other_schedulers import PEERS, Account, ElasticScheduler, Peer
from peer_programs import program_of
from plugins import KINDS, card_uuid
from scenarios.dialects import CARDS, Cluster
from scenarios.plugins import Node
from truth import place_of

Json = Any
Limits = dict[str, str]
RIGHTS = str(MANIFESTS / "components" / "node-lock" / "rbac.yaml")
FAMILY = ("hami", "volcano-vgpu")


@dataclass
class Guide:
    """What the document tells a user of one scheduler to do."""

    settings: str  # of cardpack
    resources: dict[str, bool]  # managedResources, and whether they are ignoredByScheduler
    profiles: list[str]  # the schedulerNames that kube-scheduler takes
    commands: list[str]  # the blocks of commands

    def configuration(self) -> dict[str, Any]:
        """What it says about kube-scheduler's configuration."""
        entries = "".join(
            f"\n  - name: {name}\n    ignoredByScheduler: {str(ignored).lower()}"
            for name, ignored in self.resources.items()
            if name != "nvidia.com/gpu"  # the shipped configuration has it
        )
        profiles = "".join(f"- schedulerName: {name}\n" for name in self.profiles)
        return {"overrides": {"managedResources": entries}, "extra": f"profiles:\n{profiles}" if profiles else ""}

    def command(self, word: str) -> str:
        """The only block of commands with that word."""
        (found,) = [text for text in self.commands if word in text]
        return found


def guide_of(dialect: str) -> Guide:
    """Reads its section of the document: the one that sets this dialect."""
    text = (ROOT / "docs" / "migration-schedulers.md").read_text()
    (section,) = [one for one in text.split("\n## ") if f"\ndialects: {dialect}\n" in one]
    entries = re.findall(r"- name: (\S+)\n *ignoredByScheduler: (true|false)\n", section)
    profiles = re.findall(r"^ *- schedulerName: (\S+)$", section, re.MULTILINE)
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", section, re.MULTILINE | re.DOTALL)
    (settings,) = re.findall(r"^```yaml\n(dialects:.*?)^```", section, re.MULTILINE | re.DOTALL)
    return Guide(settings, {name: value == "true" for name, value in entries}, profiles, blocks)


class OnNode:
    """A node with the dialect's real device plugin, where a kubelet starts what is bound: as Cluster."""

    mismatches = 0

    def __init__(self, bench: Bench, dialect: str) -> None:
        kind = "vgpu" if dialect == "volcano-vgpu" else dialect
        self.bench = bench
        self.made = 0
        self.node = Node(bench, kind, CARDS, SIZE * KINDS[kind].block)
        agent = AGENTS[dialect]("n1", CARDS, self.list, lambda pod, notes: None)
        agent.annotate_node = self._annotate_node
        if isinstance(agent, Family):
            agent.uuid = card_uuid  # type: ignore[method-assign]
        self.agents = {"n1": agent}

    def _annotate_node(self, notes: dict[str, str | None]) -> None:
        for key, value in notes.items():
            self.node.annotate(key, value)

    def list(self) -> list[Json]:
        """All pods that have not ended."""
        every = self.bench.cluster.list_all(f"/api/v1/namespaces/{self.bench.namespace}/pods")
        return [pod for pod in every if pod["status"].get("phase") not in ENDED]

    def make(
        self, kind: str, limits: Sequence[Limits], *, scheduler: str = "default-scheduler", inits: object = ()
    ) -> str:
        """A pod with these containers."""
        name = f"{kind}-{self.made:03}"
        self.made += 1
        amounts = [{key: int(value) for key, value in its.items()} for its in limits]
        self.node.pod(name, *amounts, notes={}, schedulerName=scheduler, restartPolicy="Never")
        return name

    def start_some(self) -> None:
        """Waits until each bound pod runs: each of its containers has the cards of the annotations."""
        agent = self.agents["n1"]
        for pod in self.list():
            name = pod["metadata"]["name"]
            for c in pod["spec"]["containers"] if place_of(pod) else []:
                if any(limit_of(c, key) for key in (agent.mem, agent.cores, agent.count) if key):
                    got = self.node.cards(name, c["name"])
                    wait_for(lambda n=name: self._served(n), f"{name} acknowledged", 60)
                    said = agent.said(self.bench.get(name))[c["name"]]
                    check(sorted(got) == sorted(said), f"{name} {c['name']} has {got}, not {said}")

    def _served(self, name: str) -> bool:
        """gpu-manager writes the cards that it has chosen, a moment after the container's start."""
        return notes_of(self.bench.get(name)).get("tencent.com/gpu-assigned", "true") == "true"

    def judge(self) -> None:
        """By the agent's own count no card has more than it is."""
        for card, (mem, cores) in self.agents["n1"].taken().items():
            check(mem <= SIZE and cores <= WHOLE, f"card {card}: {mem} units, {cores} %")

    def waiting(self) -> list[str]:
        """The pods without a node."""
        return [pod["metadata"]["name"] for pod in self.list() if not place_of(pod)]

    def end(self, pod: Json) -> None:
        """
        Kills its containers, which do not start again. It is not deleted: kubelet 1.20 can ask the plugin for devices of
        a pod that it is deleting, and HAMi's plugin, which finds no such pod, lets that call and all others wait.
        """
        name = pod["metadata"]["name"]
        for container in wait_for(lambda: self._ids(name), f"{name} to say that it runs", 60):
            self.node.worker.ctr("tasks", "kill", "--signal", "SIGKILL", container.rpartition("//")[2])
        wait_for(lambda: self.bench.get(name)["status"].get("phase") in ENDED, f"{name} to end", 60)

    def _ids(self, name: str) -> list[str]:
        """The IDs of its containers, once the pod's status has all of them."""
        its = [one.get("containerID", "") for one in self.bench.get(name)["status"].get("containerStatuses", [])]
        return its if all(its) else []


class Rehearsal:
    """
    One cluster with the agents of one dialect, its scheduler, and cardpack. node: one node with the real device
    plugin, and not two with doubles.
    """

    def __init__(self, bench: Bench, dialect: str, node: OnNode | None = None) -> None:
        self.bench = bench
        self.dialect = dialect
        self.guide = guide_of(dialect)
        self.small = node is not None
        self.world = node or Cluster(bench, 2, f"rehearsal {dialect}", [dialect])
        self.peer: Peer = PEERS[dialect](bench.cluster, self.world.agents)
        self.program = program_of(bench, self.peer)
        self.agent = self.peer.agent

    # ---- pods ---------------------------------------------------------------------------

    def share(self, mem: int, cores: int = 0, count: int = 1) -> Limits:
        """The limits of a container with a share of a card, or of some."""
        asked = {self.agent.mem: mem, self.agent.cores: cores}
        if self.dialect in FAMILY:
            asked[self.agent.count] = count
        return {name: str(amount) for name, amount in asked.items() if name and amount}

    def whole(self, cards: int) -> Limits:
        """The limits of a container with whole cards."""
        if self.dialect in FAMILY:
            return {self.agent.count: str(cards), self.agent.cores: str(WHOLE)}
        beside = {self.agent.mem: str(SIZE)} if self.dialect == "tencent" else {}
        return {self.agent.cores: str(cards * WHOLE), **beside}

    def kinds(self) -> list[tuple[Sequence[Limits], Sequence[Limits]]]:
        """Pods of each kind that the other scheduler places: containers, init containers."""
        share, found = self.share, [[self.share(6, 30)], [self.share(5, 20)]]
        if self.small:
            return [(one, ()) for one in self.few()]
        if self.dialect == "volcano":
            return [(one, ()) for one in found] + [([share(2)], [share(4)])]
        found += [[self.whole(1)]]
        if self.dialect in FAMILY:
            found += [[share(4, 10, count=2)], [{}, share(3, 10)], [{self.agent.count: "1", self.agent.percent: "25"}]]
        else:
            found += [[share(3, 10), share(2, 15)], [self.whole(2)]]
        if self.dialect == "elastic":
            found += [[share(4)], [share(0, 30)], [share(3, 10), {}]]
        pods: list[tuple[Sequence[Limits], Sequence[Limits]]] = [(one, ()) for one in found]
        if self.dialect == "hami":
            pods += [([share(2, 5), share(3, 10)], ()), ([share(2, 5)], [share(4, 10)]), ([share(1, 5)], [{}])]
        return pods

    def few(self) -> list[list[Limits]]:
        """Some of them, for four cards and real containers."""
        share, shared = self.share, [self.share(6, 30)]
        if self.dialect == "volcano":
            return [shared, [share(5)]]
        if self.dialect in FAMILY:
            twice = [share(4, 10, count=2)]
            return [shared, [self.whole(1)], twice, [{}, share(3, 10)]]
        return [shared, [self.whole(1)], [share(3, 10), share(2, 15)]]

    def make(self, *limits: Limits, **more: Any) -> Json:
        """A pod for kube-scheduler, or another."""
        return self.bench.get(self.world.make(self.dialect, limits, **more))

    def of_peer(self, *limits: Limits, inits: Sequence[Limits] = ()) -> Json:
        """A pod that the other scheduler has bound."""
        pod = self.make(*limits, inits=inits, scheduler=self.peer.name)
        check(self.place(pod), f"no room for {limits}")
        return self.bench.get(pod["metadata"]["name"])

    def place(self, pod: Json) -> bool:
        """The other scheduler places the pod; False: it has no room."""
        if not self.program:
            return bool(self.peer.place(pod))
        name = pod["metadata"]["name"]
        wait_for(lambda: place_of(self.bench.get(name)) or message(self.bench.get(name)), f"{name} placed", 60)
        return bool(place_of(self.bench.get(name)))

    def serve(self) -> None:
        """The kubelets start what waits; each container has the cards of its annotations."""
        self.world.start_some()
        self.world.judge()
        check(not self.world.mismatches, "an agent refused a pod")

    def settle(self) -> None:
        """All pods are placed by kube-scheduler with cardpack, and run."""

        def none_waits() -> bool:
            self.bench.kick()
            self.serve()
            return not self.world.waiting()

        wait_for(none_waits, f"a node for each pod: {self.world.waiting()}", PATIENCE, poll=0.2)
        self.serve()

    def miscounted(self) -> list[Json]:
        """The pods for which the other scheduler counts less than they have."""
        peer = self.peer
        here = [pod for pod in peer.pods() if place_of(pod) and pod["status"].get("phase") not in ENDED]
        return [p for p in here if [*peer.charges(p, place_of(p))] != [*peer.amounts(p, place_of(p))]]

    # ---- what is compared ---------------------------------------------------------------

    def same(self, daemon: Daemon) -> None:
        """Waits until cardpack counts for each card what the containers have by the other scheduler's rules."""

        def differences() -> list[str]:
            mine, its = seen(daemon), self.peer.complete()
            return [
                f"{node} card {card}: cardpack {mine[node].get(card)}, the other one {its[node].get(card)}"
                for node in its
                for card in {*its[node], *mine[node]}
                if mine[node].get(card) != its[node].get(card)
            ]

        try:
            wait_for(lambda: not differences(), "the same count", 20, poll=0.1)
        except TimeoutError:
            raise AssertionError("\n".join(differences())) from None


def seen(daemon: Daemon) -> Account:
    """cardpack's count of each card."""
    status, answer = daemon.call("GET", "/gpushare-scheduler/cards")
    check(status == 200, answer)
    return {
        node["name"]: {dev["id"]: (dev["usedGPU"], dev.get("compute", 0)) for dev in node["devs"]}
        for node in answer["nodes"]
    }


def rehearse(bench: Bench, dialect: str, node: OnNode | None = None) -> None:
    """In its place while pods run, and back."""
    if dialect in FAMILY:
        bench.cluster.kubectl("apply", "-f", RIGHTS)
    bench.cluster.end_scheduler()
    try:
        there_and_back(Rehearsal(bench, dialect, node))
    finally:
        if dialect in FAMILY:
            bench.cluster.kubectl("delete", "-f", RIGHTS)
        bench.start_scheduler()


def there_and_back(play: Rehearsal) -> None:
    bench, share = play.bench, play.share
    if play.program:
        play.program.start()
    for limits, inits in play.kinds():
        play.of_peer(*limits, inits=inits)
        play.serve()
    ended = play.of_peer(share(8, 40))
    play.serve()
    play.world.end(ended)
    play.of_peer(share(3, 10))  # bound, and not served when the schedulers change
    if play.program:
        play.program.stop()
    name = play.peer.name if play.peer.name in play.guide.profiles else "default-scheduler"
    half = play.make(share(7, 30), scheduler=name)
    play.peer.place(half, bind=False)

    bench.start_scheduler(**play.guide.configuration())
    settings = bench.workdir / f"{bench.scenario}.yaml"
    settings.write_text(play.guide.settings)
    daemon = bench.cardpack("--config", str(settings))
    for asked in ([share(4, 20)], [share(2, 10)], [] if play.dialect == "volcano" or play.small else [play.whole(1)]):
        if asked:
            play.make(*asked)
    play.settle()
    play.same(daemon)

    before = seen(daemon)
    daemon.stop()
    bench.cluster.end_scheduler()
    check(play.peer.complete() == before, f"it counts {play.peer.complete()}, cardpack {before}")
    for pod in play.miscounted():
        bench.cluster.must("DELETE", play.peer.path(pod))
    if isinstance(play.peer, ElasticScheduler):
        check(play.peer.at_start() != play.peer.account(), "the label is not needed")
        shell(bench, play.guide.command("assumed=true"))
        check(play.peer.at_start() == play.peer.account(), "pods without the label")
    if play.program:
        play.program.start()
    more = 0
    while play.place(pod := play.make(share(3, 10), scheduler=play.peer.name)):
        more += 1
        play.serve()
    if play.program:
        play.program.stop()
    bench.cluster.must("DELETE", play.peer.path(pod))
    check(more > (0 if play.small else 3), f"only {more} more")
    bench.start_scheduler(**play.guide.configuration())
    daemon.start()
    play.same(daemon)


def shell(bench: Bench, text: str) -> None:
    """Runs commands of the document."""
    path = f"{bench.cluster.programs}:{os.environ.get('PATH', os.defpath)}"
    env = {"PATH": path, "KUBECONFIG": str(bench.cluster.admin_kubeconfig), "HOME": str(bench.workdir)}
    subprocess.run(["bash", "-euo", "pipefail", "-c", text], env=env, check=True, timeout=60, stdin=subprocess.DEVNULL)


@scenario("real")
def rehearse_gpu_admission(bench: Bench) -> None:
    """From gpu-admission, with gpu-manager on the nodes, and back."""
    rehearse(bench, "tencent")


@scenario("real")
def rehearse_elastic_gpu_scheduler(bench: Bench) -> None:
    """From elastic-gpu-scheduler, with elastic-gpu-agent on the nodes, and back."""
    rehearse(bench, "elastic")


@scenario("real")
def rehearse_volcano_share(bench: Bench) -> None:
    """From Volcano's deviceshare with GPUSharingEnable, and back."""
    rehearse(bench, "volcano")


@scenario("real")
def rehearse_volcano_vgpu(bench: Bench) -> None:
    """From Volcano's deviceshare with VGPUEnable, and back."""
    rehearse(bench, "volcano-vgpu")


@scenario("real")
def rehearse_hami(bench: Bench) -> None:
    """From HAMi's scheduler, and back."""
    rehearse(bench, "hami")


# ---- the same with the real device plugins, on a node with a real kubelet --------------------------------
# The names are short: gpu-manager makes a socket in a folder of the scenario's name.


@scenario("node")
def real_peer_tencent(bench: Bench) -> None:
    """From gpu-admission, with the real gpu-manager, and back."""
    rehearse(bench, "tencent", OnNode(bench, "tencent"))


@scenario("node")
def real_peer_elastic(bench: Bench) -> None:
    """From elastic-gpu-scheduler, with the real elastic-gpu-agent, and back."""
    rehearse(bench, "elastic", OnNode(bench, "elastic"))


@scenario("node")
def real_peer_volcano(bench: Bench) -> None:
    """From Volcano's deviceshare, with Volcano's real device plugin, and back."""
    rehearse(bench, "volcano", OnNode(bench, "volcano"))


@scenario("node")
def real_peer_vgpu(bench: Bench) -> None:
    """From Volcano's deviceshare, with its real vGPU device plugin, and back."""
    rehearse(bench, "volcano-vgpu", OnNode(bench, "volcano-vgpu"))


@scenario("node")
def real_peer_hami(bench: Bench) -> None:
    """From HAMi's scheduler, with its real device plugin, and back."""
    rehearse(bench, "hami", OnNode(bench, "hami"))
