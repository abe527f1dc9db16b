"""Two pods of the second scheduler, each with kube-scheduler and cardpack: one pod is active."""

from __future__ import annotations

import threading
import time
from typing import Any

from bench import PATIENCE, Bench, check, dice, scenario
from component import wait_for
from daemon import Daemon
from renderings import container, kustomize, local_args, objects, overlay, template
from replicas import LEASE, seconds

from scenarios.beside import plain_default, second
from scenarios.overlays import take_away

Json = Any

PODS = 60  # of each burst
LATE = 5  # pods made after the old leader has ended
SIZES = [1, 2, 2, 3, 4, 6]


class Pod:
    """One replica of overlays/second-scheduler; of its network, only the ports differ."""

    def __init__(self, bench: Bench, found: list[Json], number: int) -> None:
        port = bench.ports.take()
        args = local_args(bench, container(found, "cardpack")["args"], port)
        self.daemon = Daemon(
            bench.options.binary, bench.workdir, port, bench.kubeconfig,
            ["--start-settle=8s", *args], name=f"cardpack-{bench.scenario}-{number}",
        )  # fmt: skip
        bench.daemons.append(self.daemon)
        self.scheduler = second(bench, found, bench.token, f"scheduler-{number}", port)
        self.grace: int = template(found)["spec"]["terminationGracePeriodSeconds"]

    def launch(self) -> None:
        """Starts both containers together, as a kubelet does."""
        self.daemon.launch()
        self.scheduler.launch()

    def kill(self) -> None:
        """Kills both: the machine is lost."""
        self.scheduler.kill()
        self.daemon.kill()

    def end(self) -> None:
        """Ends it as a deletion or a drain does: SIGTERM to both together, with enough time."""
        both = [self.scheduler.terminate, self.daemon.stop]
        hands = [threading.Thread(target=one, args=(float(self.grace),)) for one in both]
        for hand in hands:
            hand.start()
        for hand in hands:
            hand.join()
        check(self.daemon.process.status == 0, f"cardpack: {self.daemon.process.status}")
        check(not self.scheduler.alive, "kube-scheduler is still there")

    def leads(self) -> bool:
        """Whether its scheduler has won the election since its start."""
        text = self.scheduler.log.read_text().rpartition("---- ")[2]
        return "uccessfully acquired lease" in text

    def binds(self) -> list[float]:
        """The times at which cardpack learned that a Binding was accepted."""
        return [seconds(line["time"]) for line in self.daemon.log("bound")]


class Burst:
    """More pods for the second scheduler, made by another thread."""

    made = 0

    def __init__(self, bench: Bench, count: int = PODS) -> None:
        self.bench = bench
        self.count = count
        self.before = self.made
        sizes = [dice(f"two pods {self.before}").choice(SIZES) for _ in range(count)]
        names = [f"p{self.before + i:03}" for i in range(count)]
        self.made = Burst.made = self.before + count
        self.hand = threading.Thread(
            target=bench.pods, args=(names, sizes), kwargs={"scheduler_name": "cardpack"},
            daemon=True,
        )  # fmt: skip
        self.hand.start()

    def reaches(self, count: int) -> None:
        """Waits until `count` of its pods are bound."""
        self.bench.wait_bound(self.before + count, kicking=True)

    def ends(self) -> None:
        """Waits until all its pods are bound."""
        self.hand.join()
        self.reaches(self.count)


def _tell(text: str) -> None:
    print(f"        {text}", flush=True)


def _bound_by(pods: list[Pod], who: int, since: float, ended: float, what: str) -> None:
    """Checks that after the end only the new leader has bound pods; prints how long it took."""
    check(not [at for at in pods[1 - who].binds() if at > ended + 1], f"{what}: the other one bound")
    later = [at for at in pods[who].binds() if at > since]
    check(later and pods[who].daemon.ready(), f"{what}: the lease has not followed the scheduler")
    _tell(f"{what}, to the first bind: {min(later) - since:.1f} s")


def _terms(pods: list[Pod]) -> None:
    """No cardpack binds after another one has become the leader."""
    terms = sorted(
        (seconds(line["time"]), i)
        for i, pod in enumerate(pods)
        for line in pod.daemon.log("deciding from now on")
    )
    for i, pod in enumerate(pods):
        for at in pod.binds():
            before = [who for began, who in terms if began <= at]
            check(before and before[-1] == i, f"{i} bound at {at}: {terms}")


@scenario("real")
def second_scheduler_in_two_pods(bench: Bench) -> None:
    """
    In one burst each: the leading pod is killed; a kubelet ends it; only the leading pod's cardpack is
    killed. The active scheduler binds all pods through the cardpack of its own pod.
    """
    text = kustomize(overlay(bench, "second-scheduler"))
    found = objects(bench, text)
    for name in (LEASE, f"{LEASE}-scheduler"):
        bench.cluster.api("DELETE", name)
    for i in range(6):
        bench.node(f"n{i}", 4, 40)
    bench.cluster.kubectl("apply", "-f", "-", stdin=text)
    Burst.made = 0
    pods = [Pod(bench, found, i) for i in range(2)]
    try:
        with plain_default(bench):
            _three_ends(bench, pods)
        _terms(pods)
        truth = bench.truth()
        check(len(truth.bound()) == 3 * (PODS + LATE), f"{len(truth.bound())} bound")
        check(not truth.overcommitted(), truth.overcommitted())
        check(not truth.bad_annotations(), truth.bad_annotations())
        assert bench.history is not None
        faults = bench.history.faults(bench.namespace, True)
        check(not faults, faults)
        for pod in pods:
            log = pod.scheduler.log.read_text().lower()
            check("forbidden" not in log, pod.scheduler.tail())
    finally:
        for pod in pods:
            pod.scheduler.kill()
        take_away(bench, found)


def _and_late_ones(bench: Bench, burst: Burst) -> None:
    """The old leader may have bound the whole burst, or finished all binds in flight at its end."""
    burst.ends()
    Burst(bench, LATE).ends()


def _three_ends(bench: Bench, pods: list[Pod]) -> None:
    pods[0].launch()
    wait_for(pods[0].leads, "the first scheduler to lead", PATIENCE)
    pods[1].launch()

    burst = Burst(bench)
    burst.reaches(PODS // 4)
    began = time.time()
    pods[0].kill()
    ended = time.time()
    _and_late_ones(bench, burst)
    _bound_by(pods, 1, began, ended, "kill -9 of the leading pod")

    pods[0].launch()
    pods[0].scheduler.wait_ready()
    burst = Burst(bench)
    burst.reaches(PODS // 4)
    began = time.time()
    pods[1].end()
    ended = time.time()
    _and_late_ones(bench, burst)
    _bound_by(pods, 0, began, ended, "SIGTERM to the leading pod")

    # The other cardpack may hold the lease for a while; it gives it back when its scheduler is idle.
    pods[1].launch()
    pods[1].scheduler.wait_ready()
    burst = Burst(bench)
    burst.reaches(PODS // 4)
    began = time.time()
    pods[0].daemon.kill()
    ended = time.time()
    pods[0].daemon.launch()
    _and_late_ones(bench, burst)
    check(not pods[1].leads(), "the scheduler has failed over as well")
    _bound_by(pods, 0, began, ended, "kill -9 of the leading pod's cardpack alone")
