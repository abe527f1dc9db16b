"""The second scheduler's pod twice, kube-scheduler and cardpack in each: of both one decides."""

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
LATE = 5  # once the old leader has ended
SIZES = [1, 2, 2, 3, 4, 6]


class Pod:
    """One replica of overlays/second-scheduler; of the network, only the ports are other ones."""

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
        """Both containers at a time, as a kubelet does it."""
        self.daemon.launch()
        self.scheduler.launch()

    def kill(self) -> None:
        """Its machine is gone."""
        self.scheduler.kill()
        self.daemon.kill()

    def end(self) -> None:
        """It is deleted, or drained: SIGTERM to both at a time, and time enough for it."""
        both = [self.scheduler.terminate, self.daemon.stop]
        hands = [threading.Thread(target=one, args=(float(self.grace),)) for one in both]
        for hand in hands:
            hand.start()
        for hand in hands:
            hand.join()
        check(self.daemon.process.status == 0, f"cardpack: {self.daemon.process.status}")
        check(not self.scheduler.alive, "kube-scheduler is still there")

    def leads(self) -> bool:
        """Whether its scheduler has won the election since it was started."""
        text = self.scheduler.log.read_text().rpartition("---- ")[2]
        return "uccessfully acquired lease" in text

    def binds(self) -> list[float]:
        """When cardpack was told that a Binding is accepted."""
        return [seconds(line["time"]) for line in self.daemon.log("bound")]


class Burst:
    """Some more pods for the second scheduler, made by another hand."""

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
        """Until so many of it are bound."""
        self.bench.wait_bound(self.before + count, kicking=True)

    def ends(self) -> None:
        """All are."""
        self.hand.join()
        self.reaches(self.count)


def _tell(text: str) -> None:
    print(f"        {text}", flush=True)


def _bound_by(pods: list[Pod], who: int, since: float, ended: float, what: str) -> None:
    """From its end on nobody else has bound, and it is who leads; prints how long it took."""
    check(not [at for at in pods[1 - who].binds() if at > ended + 1], f"{what}: the other one bound")
    later = [at for at in pods[who].binds() if at > since]
    check(later and pods[who].daemon.ready(), f"{what}: the lease has not followed the scheduler")
    _tell(f"{what}, to the first bind: {min(later) - since:.1f} s")


def _terms(pods: list[Pod]) -> None:
    """Nobody binds once another has begun to decide."""
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
    In a burst each: the leading pod is killed; it is ended as a kubelet ends it; of the leading one
    cardpack alone is killed. The scheduler that is active binds all, by the cardpack of its own pod.
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
    """A leader may have bound all of the burst, or, asked to end, finish all that is under way."""
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

    # The other cardpack may have the lease for a while, and gives it back when its scheduler is idle.
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
