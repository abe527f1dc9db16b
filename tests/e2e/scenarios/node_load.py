"""Many short-lived pods of one size on a real kubelet, while all that can go wrong on a node does."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from threading import Event, Thread

from agent import Agent, Watching
from bench import Bench, check, dice, scenario
from cluster import Json
from component import StartError, wait_for
from worker import Worker

from scenarios.agents import KUBELETS_OWN

CARDS, CARD_GIB, SHARE = 8, 16, 4  # 32 pods have room
ALIVE = 28  # pods that exist at a time
STUCK_S = 30.0  # a kubelet starts a container soon after it was created
AWAY_S = 30.0  # how long the API server is away
# A call that is under way when the agent is killed is lost, and the kubelet fails its pod.
CUT = ("transport is closing", "client connection is closing", "error reading from server", "connection refused")


@dataclass
class Load:
    """Makes pods and deletes them, until so many have run."""

    bench: Bench
    worker: Worker
    wanted: int
    ran: set[str] = field(default_factory=set)  # names of pods whose container was seen
    made: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = dice("node-load")
        self.trouble: Counter[str] = Counter()
        self._since: dict[str, float] = {}
        self._created: dict[str, float] = {}
        self._end = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(60)

    def finish(self, timeout: float) -> None:
        """Waits until all have run."""
        wait_for(lambda: len(self.ran) >= self.wanted or self.wrong, f"{self.wanted} pods to run", timeout, poll=1)
        check(not self.wrong, self.wrong[:3])

    def waiting(self) -> int:
        """How many pods are bound and have not started."""
        return sum(1 for pod in self.pods() if pod["spec"].get("nodeName") and pod["metadata"]["name"] not in self.ran)

    def pods(self) -> list[Json]:
        return self.bench.cluster.list_all(f"/api/v1/namespaces/{self.bench.namespace}/pods")

    def see(self) -> None:
        """Notes the containers that run."""
        self.ran |= {one.pod for one in self.worker.containers()}

    def _run(self) -> None:
        while not self._end.wait(0.2):
            try:
                self._turn()
            except (OSError, RuntimeError, HTTPException) as why:  # the API server is away
                self.trouble[str(why)[:60]] += 1
            except Exception as why:  # the thread may not end unnoticed
                self.wrong.append(repr(why))

    def _turn(self) -> None:
        pods = self.pods()
        for pod in pods:
            self._tend(pod)
        missing = self.wanted - len(self.ran | {pod["metadata"]["name"] for pod in pods})
        for _ in range(min(ALIVE - len(pods), max(missing, 0))):
            self._make()

    def _make(self) -> None:
        """One ends by itself, the other when it is deleted; names have no order."""
        self.made += 1
        spec = self.worker.spec(("c0",), (SHARE,))
        if self.random.random() < 0.5:
            seconds = self.random.uniform(2, 8)
            spec["containers"][0]["command"] = ["/bin/sh", "-c", f"sleep {seconds:.1f}"]
        spec["restartPolicy"] = "Never"
        name = f"p{self.random.randrange(16**6):06x}-{self.made}"
        self.bench.pod(name, 0, spec=spec, annotations={"cardpack.io/card-policy": "spread"})

    def _tend(self, pod: Json) -> None:
        """Deletes a pod that has ended, or has run for a while."""
        meta, status = pod["metadata"], pod["status"]
        name = meta["name"]
        if meta.get("deletionTimestamp"):
            return
        if status.get("phase") in ("Succeeded", "Failed"):
            self._judge_end(name, status)
            self.bench.cluster.delete_pod(name, self.bench.namespace, grace=1)
            return
        if self._is_stuck(name, status):
            self.rejected["created, and never started by the kubelet"] += 1
            self.bench.cluster.delete_pod(name, self.bench.namespace, grace=1)
        elif name in self.ran:
            since = self._since.setdefault(name, time.monotonic() + self.random.uniform(1, 8))
            if time.monotonic() > since:
                self.bench.cluster.delete_pod(name, self.bench.namespace, grace=1)

    def _is_stuck(self, name: str, status: Json) -> bool:
        """A container that was created when the power went: without restarts kubelet 1.36 never starts it."""
        created = [one for one in status.get("containerStatuses", []) if one.get("containerID")]
        if not created or status.get("phase") != "Pending" or name in self.ran:
            return False
        return time.monotonic() > self._created.setdefault(name, time.monotonic()) + STUCK_S

    def _judge_end(self, name: str, status: Json) -> None:
        message = status.get("message", "")
        if status.get("reason") != "UnexpectedAdmissionError":
            return
        self.rejected[message[:60]] += 1
        if not any(text in message for text in KUBELETS_OWN + CUT):
            self.wrong.append(f"{name}: {message}")


class Faults:
    """What goes wrong; each returns when the node is whole again."""

    def __init__(self, bench: Bench, worker: Worker, agent: Agent, load: Load) -> None:
        self.bench, self.worker, self.agent, self.load = bench, worker, agent, load

    def all(self) -> list[Callable[[], None]]:
        return [self.kubelet_restarts, self.agent_is_killed, self.api_is_away, self.node_reboots, self.both_restart]

    def backlog(self) -> None:
        """Waits until some pods wait for the kubelet, if so many are still to come."""
        end = time.monotonic() + 20
        while self.load.waiting() < 4 and time.monotonic() < end:
            time.sleep(0.2)

    def start_kubelet(self) -> None:
        """As systemd does: again, if containerd was not ready for it."""
        for turn in range(10):
            try:
                self.worker.kubelet.start()
                return
            except StartError as why:
                if "server is not initialized yet" not in str(why) or turn == 9:
                    raise
                time.sleep(1)

    def kubelet_restarts(self) -> None:
        self.worker.kubelet.kill()
        self.backlog()
        self.start_kubelet()

    def agent_is_killed(self) -> None:
        self.agent.program.kill()
        time.sleep(dice(f"pause {self.load.made}").uniform(0, 2))
        self.agent.program.launch()

    def api_is_away(self) -> None:
        self.bench.cluster.apiserver.kill()
        time.sleep(AWAY_S)
        self.bench.cluster.apiserver.start()

    def node_reboots(self) -> None:
        self.worker.cut_power()
        self.worker.machine.close()
        self.worker.start_runtime()
        self.agent.program.launch()
        self.start_kubelet()

    def both_restart(self) -> None:
        self.worker.kubelet.kill()
        self.agent.program.kill()
        self.backlog()
        self.agent.program.launch()
        self.start_kubelet()


@scenario("node")
def node_load(bench: Bench) -> None:
    """Pods that come and go in random order, through restarts, kills, outages and a reboot.

    At no moment may a container run on another card than annotated, or a card be over its size.
    """
    worker = bench.worker("n1", cards=CARDS)
    agent = Agent(bench, worker, (CARD_GIB,) * CARDS)
    agent.start()
    bench.cardpack()
    load = Load(bench, worker, bench.options.pods)
    faults = Faults(bench, worker, agent, load)
    began = time.monotonic()

    def look() -> list[str]:
        load.see()
        return agent.judge()

    with Watching(look) as watching, load:
        plan = faults.all() * max(1, load.wanted // 400)
        dice("faults").shuffle(plan)
        for i, fault in enumerate(plan):
            due = load.wanted * (i + 1) // (len(plan) + 2)
            wait_for(lambda n=due: len(load.ran) >= n or load.wrong, f"{due} pods to run", 60 + 8 * due, poll=0.2)
            print(f"# {time.monotonic() - began:.0f} s, {len(load.ran)} pods: {fault.__name__}", flush=True)
            fault()
        load.finish(120 + 8 * load.wanted)
        agent.program.wait_ready()
    check(watching.moments > load.wanted, (watching.moments, watching.trouble[:3]))
    print(
        f"# {len(load.ran)} pods ran in {time.monotonic() - began:.0f} s, {load.made} made, rejected {dict(load.rejected)}; "
        f"{watching.moments} moments, {agent.metric('cardpack_node_exchanged_total'):g} exchanged since the last start",
        flush=True,
    )
