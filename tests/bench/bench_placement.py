"""The share of all card memory that the real kube-scheduler with cardpack allocates, beside what
cardpack-sim says of the same pods in the same order; see scripts/bench-placement.

Every Nth node of a trace becomes a Node without a kubelet. Pods are drawn from the trace, each at most
once as long as there are enough, until the next one would pass --fill percent of the card memory. They
arrive one after another. A pod that is bound runs and stays; one that fits nowhere is deleted.

A run is POLICY/SHORTLIST[/WEIGHT]. Without a shortlist (0) kube-scheduler adds its own scores to those of
cardpack, with the weight of config/kube-scheduler.yaml or with the given one. Pods that ask for no card are left out in both
worlds, because cardpack is not asked about them; with --others they are there, and in the real world
kube-scheduler alone places them.

The daemon learns on a timer, and cardpack-sim at once. With --settled a pod waits until the daemon
knows all that cardpack-sim knows.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
sys.dont_write_bytecode = True

import scheduler_config  # noqa: E402
from arrivals import (  # noqa: E402
    NO_LESSON,
    Arrival,
    Arriving,
    Lesson,
    Trace,
    make_node,
    read_nodes,
    read_pods,
    share_at,
    simulate,
)
from cluster import ControlPlane, available_versions  # noqa: E402
from component import Ports, wait_for  # noqa: E402
from daemon import Daemon  # noqa: E402
from share_truth import ShareTruth  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
VERSION = "1.36.3"
HANDS = 8
NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass(frozen=True)
class Form:
    """A run's settings."""

    policy: str
    shortlist: int
    weight: int  # of cardpack's scores in kube-scheduler; 0: that of config/kube-scheduler.yaml
    settled: bool

    def __str__(self) -> str:
        short = f"shortlist {self.shortlist}" if self.shortlist else "no shortlist"
        short += f", weight {self.weight}" if self.weight else ""
        return f"{self.policy}, {short}" + (", settled" if self.settled else "")


@dataclass
class Result:
    """What a run did."""

    form: Form
    places: list[str]
    simulated: list[str]
    lessons: list[Lesson]
    seconds: float

    @property
    def elsewhere(self) -> int:
        """The pods that went to another node than in the simulation."""
        return sum(a != b for a, b in zip(self.places, self.simulated, strict=True))

    @property
    def first_elsewhere(self) -> int:
        """The number of the first of them; 0: there is none."""
        both = zip(self.places, self.simulated, strict=True)
        return next((i for i, (a, b) in enumerate(both, 1) if a != b), 0)


def draw(options: argparse.Namespace) -> Trace:
    """The smaller cluster, and its pods in a random order."""
    nodes = read_nodes(options.nodes)[:: options.every]
    pods = [pod for pod in read_pods(options.pods) if pod.cards or options.others]
    dice = random.Random(options.seed)
    order = pods[:]
    dice.shuffle(order)
    trace = Trace(nodes, [])
    most = trace.capacity * options.fill // 100
    taken: list[Arrival] = []
    total = 0
    while True:
        pod = order[len(taken)] if len(taken) < len(order) else dice.choice(pods)
        if total + pod.size > most:
            return Trace(nodes, taken)
        taken.append(pod)
        total += pod.size


class World:
    """The control plane with the trace's nodes, and one run after another on it."""

    def __init__(self, options: argparse.Namespace, trace: Trace, workdir: Path) -> None:
        self.options = options
        self.trace = trace
        self.workdir = workdir
        self.ports = Ports()
        self.port = self.ports.take()
        # The audit log costs time for every request, and this test does not read it.
        self.cluster = ControlPlane(VERSION, workdir, apiserver_args=("--audit-log-path=",))

    def __enter__(self) -> World:
        self.cluster.__enter__()
        try:
            token = self.cluster.cardpack_token()
            self.kubeconfig = self.cluster.workdir / "cardpack.kubeconfig"
            self.cluster.write_kubeconfig(self.kubeconfig, token)
            with ThreadPoolExecutor(HANDS) as hands:
                list(hands.map(lambda node: make_node(self.cluster, node), self.trace.nodes))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all programs."""
        self.cluster.close()
        self.ports.close()

    def run(self, form: Form) -> Result:
        """Lets all pods arrive, checks the cards, and deletes the pods."""
        name = f"cardpack {form}".replace(",", "").replace(" ", "-")
        args = ("--node-policy", form.policy, "--card-policy", form.policy)
        args += ("--shortlist", str(form.shortlist), "--metrics-nodes", "0")
        daemon = Daemon(
            self.options.binary, self.workdir, self.port, self.kubeconfig, args, name=name
        )
        daemon.start()
        try:
            url = f"http://127.0.0.1:{self.port}/gpushare-scheduler"
            weight = {"weight": str(form.weight)} if form.weight else {}
            config = scheduler_config.render(
                VERSION, self.cluster.scheduler_kubeconfig, url, weight
            )
            self.cluster.start_scheduler(config=config, args=())
            result = self._arrive(form, daemon)
        except BaseException:
            daemon.process.kill()
            raise
        finally:
            self.cluster.end_scheduler()
        daemon.stop()
        self._clear()
        return result

    def _arrive(self, form: Form, daemon: Daemon) -> Result:
        simulated = simulate(self.options.sim, self.trace, form.policy, self.workdir / "trace")
        arriving = Arriving(self.cluster, NAMESPACE, daemon, form.settled)
        began = time.monotonic()
        places: list[str] = []
        try:
            for node in arriving.all(self.trace.pods):
                places.append(node)
                if not self.options.quiet and len(places) % 250 == 0:
                    seconds = time.monotonic() - began
                    print(f"  {form}: {len(places)} pods after {seconds:.0f} s", flush=True)
        finally:
            arriving.close()
        seconds = time.monotonic() - began
        truth = ShareTruth(self.cluster.list_all("/api/v1/nodes"), self.cluster.list_all(PODS))
        if wrong := truth.faults():
            raise AssertionError(f"{form}: {wrong}")
        return Result(form, places, simulated, list(arriving.lessons.look()), seconds)

    def _clear(self) -> None:
        self.cluster.must("DELETE", PODS, {"gracePeriodSeconds": 0}, timeout=600)
        self.cluster.must("DELETE", f"/api/v1/namespaces/{NAMESPACE}/events", timeout=600)
        wait_for(lambda: not self.cluster.list_all(PODS), "all pods gone", 600)


def show(trace: Trace, fill: int, results: Sequence[Result]) -> None:
    """Prints the table."""
    levels = [percent for percent in (100, fill) if percent <= fill]
    heads = "".join(f" | {f'real {p} %':>10} {f'sim {p} %':>10} {'diff':>6}" for p in levels)
    print(f"\n{'':34}{heads} | {'elsewhere':>9} {'first':>6} | {'lessons':>7} {'rejected':>8} {'s':>6}")
    for r in results:
        cells = ""
        for percent in levels:
            real, sim = (share_at(trace, places, percent) for places in (r.places, r.simulated))
            cells += f" | {real:10.2f} {sim:10.2f} {real - sim:+6.2f}"
        print(
            f"{r.form!s:34}{cells} | {r.elsewhere:9} {r.first_elsewhere or '-':>6} |"
            f" {len(r.lessons):7} {r.places.count(''):8} {r.seconds:6.0f}"
        )
    print(
        "real, sim: allocated card memory in percent when as much had arrived; elsewhere: pods on"
        " another\nnode than in the simulation, and the number of the first; lessons of the daemon\n",
        flush=True,
    )
    for r in results:
        if r.lessons and not r.form.settled:
            late = lateness(r.lessons)
            print(f"{r.form}: a lesson began {sum(late) / len(late):.1f} pods late, at most {max(late)}")


def lateness(lessons: Sequence[Lesson]) -> list[int]:
    """By how many pods each lesson's end was later than cardpack-sim's lesson would be."""
    before = [NO_LESSON, *lessons]
    return [one.pods + one.meanwhile - was.next_due for was, one in zip(before, lessons)]  # noqa: B905


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="bench-placement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=Path, required=True, help="a trace's nodes")
    parser.add_argument("--pods", type=Path, required=True, help="a trace's pods")
    parser.add_argument("--every", type=int, default=5, help="take each Nth node; default: 5")
    parser.add_argument("--seed", type=int, default=1, help="of the pods' order; default: 1")
    parser.add_argument("--fill", type=int, default=130, help="percent that arrives; default: 130")
    parser.add_argument("--runs", default="bid-price/1,binpack/1,bid-price/0", help="default: %(default)s")
    parser.add_argument("--settled", action="store_true", help="also each run with a shortlist so")
    parser.add_argument("--others", action="store_true", help="keep pods that ask for no card")
    parser.add_argument("--quiet", action="store_true", help="the table alone")
    parser.add_argument("--keep", action="store_true", help="keep the logs in any case")
    built = ROOT / "build-bench"
    parser.add_argument("--binary", type=Path, default=built / "cardpack")
    parser.add_argument("--sim", type=Path, default=built / "cardpack-sim")
    options = parser.parse_args(argv)
    if options.settled and options.others:
        parser.error("--settled and --others exclude each other")
    options.forms = []
    for one in options.runs.split(","):
        policy, shortlist, weight = (one + "/0").split("/")[:3] if "/" in one else (one, "", "")
        if not (shortlist.isdecimal() and weight.isdecimal()):
            parser.error(f'--runs "{one}": POLICY/SHORTLIST[/WEIGHT], such as bid-price/1')
        options.forms.append(Form(policy, int(shortlist), int(weight), False))
        if options.settled and int(shortlist) == 1:
            options.forms.append(Form(policy, 1, int(weight), True))
    return options


def main() -> int:
    """See the top of this file."""
    options = parse(sys.argv[1:])
    if VERSION not in available_versions():
        print(f"skipped: {VERSION} is not here, scripts/control-plane {VERSION} makes it")
        return 77
    trace = draw(options)
    cards = trace.capacity // 1000
    print(f"{len(trace.nodes)} nodes with {cards} cards, {len(trace.pods)} pods", flush=True)
    workdir = Path(tempfile.mkdtemp(prefix="cardpack-bench-"))
    results = []
    failed = 0
    with World(options, trace, workdir) as world:
        for form in options.forms:
            try:
                results.append(world.run(form))
                if not options.quiet:
                    show(trace, options.fill, results[-1:])
            except Exception:
                traceback.print_exc()
                failed += 1
                break
    if results:
        show(trace, options.fill, results)
    for r in results:
        if r.form.settled and r.elsewhere:
            print(f"FAILED {r.form}: {r.elsewhere} pods are not where cardpack-sim has them")
            failed += 1
    if failed or options.keep:
        print(f"logs are in {workdir}")
    else:
        shutil.rmtree(workdir)
    print(f"{len(results)} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
