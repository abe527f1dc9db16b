"""Pods a second, latency, processor time and writes of the real kube-scheduler; see scripts/bench-scheduler.

The forms run by turns on the same nodes with the same pods; kube-scheduler is restarted for each:
  a  no extender: the scheduler itself checks the node's sum of gpu-mem
  b  an extender that does no work: it returns the request's names, and sends a plain Binding
  f  the same, but it returns only the first names, as many as the shortlist has
  c  cardpack that answers with every feasible node
  d  cardpack that answers with a shortlist
  e  cardpack as shipped: c, with prioritize and preempt (only if --forms names it)
In b, f, c and d the scheduler calls filter and bind.

A round begins with a burst: all pods are created before the scheduler starts, and a watch measures
from the first Binding to the last one. Then pods are created at a steady rate, which measures the time
from the request for a pod until a watch shows it bound.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from scheduler_report import Report  # noqa: E402
from scheduler_world import ROOT, World  # noqa: E402

from cluster import VERSIONS, available_versions  # noqa: E402  isort:skip
from component import Component  # noqa: E402  isort:skip
from daemon import Daemon  # noqa: E402  isort:skip

FORMS = "abfcde"
FREE = "bf"  # the forms with the free extender
PAUSE_SECONDS = 1.0  # so that background work of creating the pods can end


@dataclass
class Size:
    """The amount of work for a number of nodes."""

    nodes: int
    pods: int  # of the burst
    paced: int  # at the steady rate
    rate: float


@dataclass
class Round:
    """The measurements of one run of one form."""

    rate: float  # pods a second
    latencies: list[float]  # seconds
    processor: dict[str, float]  # CPU seconds per pod
    writes: Counter[str]  # of all pods
    pods: int
    nodes_used: int  # by the burst
    carded: int  # pods that cardpack bound
    asked: dict[str, int] = field(default_factory=dict)  # calls of the free extender


class Extender:
    """The extender of a form; in the form without one, a server that must get no request."""

    def __init__(self, world: World, options: argparse.Namespace, form: str) -> None:
        self.cardpack: Daemon | None = None
        self.process: Component
        self.port = world.extender_port
        if form == "a" or form in FREE:
            few = (str(options.shortlist),) if form == "f" else ()
            argv = (
                options.free, str(self.port), world.cluster.url,
                world.cluster.ca_file, world.token_file, *few,
            )  # fmt: skip
            self.process = Component("free-extender", argv, world.cluster.workdir, self._counts_come)
            self.process.start()
            return
        shortlist = str(options.shortlist if form == "d" else 0)
        args = ("--log-level", "info", "--shortlist", shortlist)
        self.cardpack = Daemon(
            options.binary, world.cluster.workdir, self.port, world.kubeconfig, args
        )
        self.process = self.cardpack.process
        self.cardpack.start()

    def _counts_come(self) -> bool:
        try:
            return bool(self.counts())
        except OSError:
            return False

    def counts(self) -> dict[str, int]:
        """How often the free extender was called."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/counts")
            answer: dict[str, int] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def stop(self) -> None:
        """cardpack must end without an error."""
        if self.cardpack is not None:
            self.cardpack.stop()
        else:
            self.process.terminate()


def measure(world: World, options: argparse.Namespace, form: str, size: Size) -> Round:
    """Runs one form once, and restores the world."""
    extender = Extender(world, options, form)
    try:
        world.make_pods(0, size.pods)
        time.sleep(PAUSE_SECONDS)
        found = burst_and_pace(world, extender, form, size)
        found.asked = extender.counts() if extender.cardpack is None else {}
    except BaseException:
        extender.process.kill()
        raise
    finally:
        world.stop_scheduler()
    extender.stop()
    world.clear_pods()
    return found


def burst_and_pace(world: World, extender: Extender, form: str, size: Size) -> Round:
    """Both parts of a round; the burst's pods exist already."""
    watch = world.seen()
    marks: list[tuple[float, dict[str, float]]] = []
    pid = None if form == "a" else extender.process.pid

    def mark() -> None:
        marks.append((time.monotonic(), world.processor(pid)))

    watch.at = {1: mark, size.pods: mark}
    before = world.writes()
    world.start_scheduler(form != "a", ("prioritize", "preempt") if form == "e" else ())
    world.wait_bound(size.pods)
    nodes_used = len(set(watch.node.values()))
    (began, idle), (ended, busy) = marks
    asked = world.pace_pods(size.pods, size.paced, size.rate)
    world.wait_bound(size.pods + size.paced)
    counted = size.pods - 1  # the clock starts at the first Binding
    return Round(
        rate=counted / (ended - began),
        latencies=[watch.when[name] - when for name, when in asked.items()],
        processor={name: (busy[name] - idle[name]) / counted for name in busy},
        writes=world.settled_writes() - before,
        pods=size.pods + size.paced,
        nodes_used=nodes_used,
        carded=len(watch.carded),
    )


class Checks:
    """Checks that must pass at any speed."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, good: bool, what: str) -> None:
        """Counts a check, and names it if it fails."""
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAILED {what}", flush=True)

    def round(self, where: str, form: str, got: Round) -> None:
        """Each pod was bound once, by the program that the form names."""
        bindings = got.writes["POST pods/binding"]
        self.check(bindings == got.pods, f"{where}: {bindings} Bindings for {got.pods} pods")
        by_cardpack = got.pods if form in "cde" else 0
        self.check(
            got.carded == by_cardpack, f"{where}: {got.carded} of {got.pods} pods have a card"
        )
        patches = sum(n for what, n in got.writes.items() if what.startswith("PATCH pods"))
        self.check(patches == 0, f"{where}: {patches} patches of pods")
        if form == "a" or form in FREE:
            often = got.pods if form in FREE else 0
            expected = {"filter": often, "bind": often, "refused": 0}
            self.check(got.asked == expected, f"{where}: the extender was asked {got.asked}")

    def forms(self, where: str, rounds: dict[str, list[Round]]) -> None:
        """With a shortlist cardpack packs; with all names the scheduler spreads."""
        if {"c", "d"} <= set(rounds):
            packed = max(one.nodes_used for one in rounds["d"])
            spread = min(one.nodes_used for one in rounds["c"])
            self.check(packed < spread, f"{where}: a shortlist used {packed} nodes, all {spread}")


class Bench:
    """Everything that the command line selects."""

    def __init__(self, options: argparse.Namespace, workdir: Path) -> None:
        self.options = options
        self.workdir = workdir
        self.checks = Checks()

    def run(self) -> None:
        """Runs release by release; the nodes of a smaller number stay for the larger one."""
        for version in self.options.releases:
            try:
                with World(version, self.workdir / version) as world:
                    for nodes in sorted(self.options.nodes):
                        self.size(world, self.size_of(nodes))
            except Exception:
                traceback.print_exc()
                self.checks.check(False, f"{version}: see above")

    def size_of(self, nodes: int) -> Size:
        """The amount of work for that many nodes in a reasonable time."""
        options = self.options
        many = nodes > 2000
        if options.quick:
            size = Size(nodes, 60, 12, 12)
        else:
            size = Size(nodes, 300, 24, 3) if many else Size(nodes, 800, 60, 15)
        size.pods = options.pods or size.pods
        size.rate = options.rate or size.rate
        return size

    def size(self, world: World, size: Size) -> None:
        """Runs all forms by turns; the first one alternates."""
        began = time.monotonic()
        world.grow(size.nodes)
        where = f"{world.version}, {size.nodes} nodes"
        self.say(f"{where} are there after {time.monotonic() - began:.1f} s")
        rounds: dict[str, list[Round]] = {form: [] for form in self.options.forms}
        for i in range(self.options.rounds):
            turn = i % len(self.options.forms)
            for form in self.options.forms[turn:] + self.options.forms[:turn]:
                began = time.monotonic()
                got = measure(world, self.options, form, size)
                rounds[form].append(got)
                self.checks.round(f"{where}, form {form}", form, got)
                self.say(
                    f"{where}, round {i + 1}, form {form}: {got.rate:.1f} pods/s, "
                    f"p50 {statistics.median(got.latencies) * 1000:.1f} ms, "
                    f"took {time.monotonic() - began:.0f} s"
                )
        self.checks.forms(where, rounds)
        Report(world.version, size.nodes, self.options.shortlist, rounds).show()

    def say(self, what: str) -> None:
        """Prints the progress."""
        if not self.options.quiet:
            print(what, flush=True)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="bench-scheduler",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commas = {"type": lambda text: text.split(","), "metavar": "X,Y"}
    parser.add_argument("--releases", **commas, help="default: all that are here")
    parser.add_argument(
        "--nodes", type=lambda text: [int(n) for n in text.split(",")], metavar="N,M",
        help="default: 1000,5000",
    )  # fmt: skip
    parser.add_argument("--pods", type=int, help="of a burst; default: 800, of many nodes 300")
    parser.add_argument("--rate", type=float, help="pods a second after it; default: 15 or 3")
    parser.add_argument("--rounds", type=int, help="default: 5")
    parser.add_argument("--forms", help="default: abfcd")
    parser.add_argument("--shortlist", type=int, default=10, help="form d's and f's; default: 10")
    parser.add_argument("--quick", action="store_true", help="shows that it works, in a minute")
    parser.add_argument("--quiet", action="store_true", help="the tables alone")
    parser.add_argument("--keep", action="store_true", help="keep the logs in any case")
    parser.add_argument("--binary", type=Path, default=ROOT / "build-bench" / "cardpack")
    parser.add_argument(
        "--free", type=Path, default=ROOT / "build-bench" / "tests" / "bench" / "free_extender"
    )
    options = parser.parse_args(argv)
    options.quick = options.quick or "BENCH_QUICK" in os.environ
    options.nodes = options.nodes or ([100] if options.quick else [1000, 5000])
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.forms = options.forms or "abfcd"
    for form in options.forms:
        if form not in FORMS or options.forms.count(form) > 1:
            parser.error(f'--forms "{options.forms}": some of {FORMS}, each once')
    if options.pods is not None and options.pods < 2:
        parser.error(f'--pods "{options.pods}": at least 2, a first and a last')
    for version in options.releases or ():
        if version not in VERSIONS:
            parser.error(f'--releases "{version}": {" or ".join(VERSIONS)}')
    return options


def main() -> int:
    """See the top of this file."""
    options = parse(sys.argv[1:])
    here = available_versions()
    for version in options.releases or VERSIONS:
        if version not in here:
            print(f"skipped: {version} is not here, scripts/control-plane {version} makes it")
    options.releases = [v for v in options.releases or here if v in here]
    if not options.releases:
        return 77
    workdir = Path(tempfile.mkdtemp(prefix="cardpack-bench-"))
    bench = Bench(options, workdir)
    bench.run()
    if bench.checks.failed or options.keep:
        print(f"logs are in {workdir}")
    else:
        shutil.rmtree(workdir)
    print(f"{bench.checks.passed} passed, {bench.checks.failed} failed")
    return int(bench.checks.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
