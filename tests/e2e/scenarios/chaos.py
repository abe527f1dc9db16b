"""All faults at random; the printed seed repeats the plan."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import CARDPACK_USER, PATIENCE, Bench, agree, check, message, scenario
from churn import Churn
from cluster import GPU_MEM, PodWrites
from component import Component, wait_for
from daemon import Daemon, is_sanitized
from ledger import Bind, Ledger, NodeSize
from truth import GPU_COUNT, Truth, name_of, size_of

Json = Any

PODS = 2000
LONG = 60.0  # seconds of one freeze of cardpack, and later of one of the API server
MEGA = 1 << 20
# The shortest lease, to leave time for faults; all else as shipped.
SETTINGS = (
    "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms", "--start-settle=8s",
)  # fmt: skip


def _ns(entry: Json) -> int:
    """The time of a line of cardpack's log."""
    return int(datetime.fromisoformat(entry["time"]).timestamp() * 1e6) * 1000


class Cluster:
    """The nodes and their unhealthy cards; its own thread changes them at random."""

    def __init__(self, bench: Bench, ledger: Ledger, luck: random.Random) -> None:
        self.bench, self.ledger, self.luck = bench, ledger, luck
        self.up = threading.Lock()  # held by each writer, and by a fault that takes the API server away
        self.names = [f"n{i:02}" for i in range(14)]
        self.sick: list[tuple[str, int, int, int]] = []  # node, card, from, to
        self.changes = 0
        self.broken = ""
        self._sick_now: dict[str, tuple[int, int]] = {}
        self._stop = threading.Event()
        for name in self.names:
            self._make(name)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Starts the changes."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the changes; all cards become healthy."""
        self._stop.set()
        self._thread.join(60)
        check(not self.broken, self.broken)
        for name in list(self._sick_now):
            self._heal(name)

    def _figures(self) -> Json:
        count = self.luck.choice([2, 3, 4, 4, 6])
        size = self.luck.choice([10, 12, 16, 16, 24])
        return {GPU_MEM: count * size + self.luck.randrange(count), GPU_COUNT: count}

    def _make(self, name: str) -> None:
        self.ledger.node(self.bench.cluster.create_node(name, self._figures()))

    def _run(self) -> None:
        try:
            while not self._stop.wait(self.luck.random() * 2):
                change = self.luck.choice([self._resize, self._resize, self._remake, self._sicken])
                name = self.luck.choice(self.names)
                with self.up:
                    change(name)
                    self.changes += 1
        except Exception as error:
            self.broken = f"a change of a node: {type(error).__name__} {error}"

    def _resize(self, name: str) -> None:
        self.ledger.node(self.bench.cluster.set_node_status(name, self._figures()))

    def _remake(self, name: str) -> None:
        self.bench.cluster.must("DELETE", f"/api/v1/nodes/{name}")
        self._stop.wait(self.luck.random())
        self._make(name)

    def _sicken(self, name: str) -> None:
        if name in self._sick_now:
            self._heal(name)
            return
        card = self.luck.randrange(4)
        self._sick_now[name] = (card, time.time_ns())
        self.bench.unhealthy(name, str(card))

    def _heal(self, name: str) -> None:
        card, since = self._sick_now.pop(name)
        self.sick.append((name, card, since, time.time_ns()))
        self.bench.unhealthy(name, None)


class Faults:
    """The faults of the three programs, one after the other."""

    def __init__(self, bench: Bench, daemon: Daemon, nodes: Cluster, luck: random.Random) -> None:
        assert bench.cluster.scheduler is not None
        self.bench, self.daemon, self.nodes, self.luck = bench, daemon, nodes, luck
        self.api, self.scheduler = bench.cluster.apiserver, bench.cluster.scheduler
        self.times: list[str] = []
        self.doubtful: list[tuple[float, float]] = []  # times for which the audit log is incomplete
        self.suicides = 0
        self.rss = 0

    def plan(self) -> list[Callable[[], None]]:
        """Each fault once, some again during others, in the seed's order."""
        plan = [
            self.kill_cardpack,
            self.kill_api_server,
            self.kill_scheduler,
            self.freeze_cardpack,
            self.freeze_api_server,
            self.freeze_scheduler,
            self.compact_unseen,
            self.freeze_cardpack_long,
            self.freeze_api_server_long,
        ]
        self.luck.shuffle(plan)
        return plan

    def run(self, fault: Callable[[], None]) -> None:
        """Runs one fault."""
        name = fault.__name__
        began = time.monotonic()
        fault()
        self.times.append(f"{name} {time.monotonic() - began:.0f} s")
        self.alive()
        self.supervise()

    def supervise(self) -> bool:
        """
        kube-scheduler 1.36.3 ends itself ("cache is corrupted") if a pod was deleted and made again
        while it had no watch. This method starts it again, as its supervisor would.
        """
        if not self.scheduler.alive:
            self.suicides += 1
            self.scheduler.start()
        return True

    def alive(self) -> None:
        """Checks that cardpack runs unless the test killed it, and checks its memory."""
        check(self.daemon.process.alive, f"cardpack ended: {self.daemon.process.tail()}")
        self.rss = max(self.rss, self.daemon.peak_rss())

    def open_files(self) -> int:
        """How many files cardpack has open now."""
        return len(list(Path(f"/proc/{self.daemon.process.pid}/fd").iterdir()))

    # ---- SIGKILL ------------------------------------------------------------------------

    def _kill_cardpack(self) -> None:
        self.alive()
        began = time.time()
        self.daemon.kill()
        check(self.daemon.process.status == -9, f"status {self.daemon.process.status}")
        self._doubt(began)

    def _ready(self) -> None:
        wait_for(self.daemon.ready, "cardpack to be ready", PATIENCE)

    def kill_cardpack(self) -> None:
        """Kills cardpack and starts it again after a moment."""
        self._kill_cardpack()
        time.sleep(self.luck.random())
        self.daemon.launch()
        self._ready()

    def kill_api_server(self) -> None:
        """
        Kills the API server and starts it after a moment, with a new watch cache: old watches get 410.
        """
        with self.nodes.up:
            began = time.time()
            self.api.kill()
            time.sleep(self.luck.random() * 3)
            self.api.start()
            self._doubt(began)

    def kill_scheduler(self) -> None:
        """Kills kube-scheduler with binds in flight: it never gets their answers."""
        self.scheduler.kill()
        time.sleep(self.luck.random())
        self.scheduler.start()

    # ---- SIGSTOP ------------------------------------------------------------------------

    def _freeze(self, what: Component, seconds: float) -> None:
        what.pause()
        try:
            time.sleep(seconds)
        finally:
            what.resume()

    def _short(self) -> float:
        return 0.5 + self.luck.random() * 3

    def freeze_cardpack(self) -> None:
        """Freezes cardpack for less time than any client's timeout."""
        self._freeze(self.daemon.process, self._short())

    def freeze_scheduler(self) -> None:
        """Freezes kube-scheduler; its requests are answered meanwhile."""
        self._freeze(self.scheduler, self._short())

    def freeze_api_server(self) -> None:
        """Freezes the API server: it answers Bindings late."""
        with self.nodes.up:
            began = time.time()
            self._freeze(self.api, self._short())
            self._doubt(began)

    def freeze_cardpack_long(self) -> None:
        """
        Freezes cardpack while the cluster changes, the history is compacted and the scheduler dies.
        """
        ends = time.monotonic() + LONG
        lists = len(self.daemon.log("list is in"))
        self.daemon.process.pause()
        try:
            time.sleep(5 + self.luck.random() * 5)
            self.run(self.kill_api_server)
            self.run(self.kill_scheduler)
            time.sleep(5)  # cardpack's dead connections can't buffer writes from now on
            self._compact()
            time.sleep(max(0.0, ends - time.monotonic()))
        finally:
            self.daemon.process.resume()
        self._lists_again(lists, 3)

    def freeze_api_server_long(self) -> None:
        """
        Freezes the API server longer than every timeout. cardpack dies meanwhile; its Bindings are in
        the API server's receive buffers, and the API server carries them out later.
        """
        died = self.luck.random() * LONG / 2
        with self.nodes.up:
            began = time.time()
            self.api.pause()
            try:
                time.sleep(died)
                self._kill_cardpack()
                self.daemon.launch()
                time.sleep(LONG - died)
            finally:
                self.api.resume()
            self._doubt(began)
        self.run(self.kill_scheduler)  # without a restart it would take up to a minute to retry
        self._ready()

    # ---- compaction ---------------------------------------------------------------------

    def compact_unseen(self) -> None:
        """Compacts the history while cardpack has no connection."""
        lists = len(self.daemon.log("list is in"))
        self._compact()
        self._lists_again(lists, 1)  # a watch may resume if the last event was the last of its kind

    def _compact(self) -> None:
        with self.nodes.up:
            began = time.time()
            self.api.kill()
            self.bench.cluster.compact()
            self.api.start()
            self._doubt(began)

    def _lists_again(self, before: int, more: int) -> None:
        """Waits until a watch from before the compaction was refused, and cardpack listed again."""
        wanted = before + more
        wait_for(lambda: len(self.daemon.log("list is in")) >= wanted, "new lists", 60, poll=0.5)

    def _doubt(self, began: float) -> None:
        """
        Records a time for which the audit log is in doubt: if the client or the server of a request
        died, it says 504 or nothing, whether or not the write happened.
        """
        self.doubtful.append((began - 3, time.time() + 1))


@scenario("real")
def chaos(bench: Bench) -> None:
    """
    2,000 pods come and go while cardpack, the API server and kube-scheduler are killed and frozen, the
    history is compacted, and nodes change: no card is ever over-committed, and in the end all pods
    that fit are bound.
    """
    seed = bench.options.seed
    luck = random.Random(f"{seed} plan")
    ledger = Ledger(bench.cluster, bench.modern)
    nodes = Cluster(bench, ledger, random.Random(f"{seed} nodes"))
    daemon = bench.cardpack(*SETTINGS)
    faults = Faults(bench, daemon, nodes, luck)
    ends = time.monotonic() + bench.options.soak * 60
    total = PODS if not bench.options.soak else 1 << 30
    print(f"        chaos: --seed {seed}", flush=True)
    churn = Churn(bench, daemon, ledger, seed, total, nodes.names)
    nodes.start()
    try:
        while True:
            for fault in faults.plan():
                time.sleep(luck.random() * 2)
                faults.run(fault)
                _sound(ledger, churn, nodes)
            if time.monotonic() >= ends:
                break
        if bench.options.soak:
            churn.total = churn.made
        _wait_done(faults, churn, ledger)
    finally:
        churn.stop()
        nodes.stop()
    try:
        _sound(ledger, churn, nodes)
        faults.alive()
        _judge(Evidence(bench, daemon, ledger, churn, faults, nodes))
    finally:
        ledger.close()


def _wait_done(faults: Faults, churn: Churn, ledger: Ledger) -> None:
    """Waits until all pods were made, for which others must be bound. How long that takes is up to the machine."""
    made, since = -1, time.monotonic()
    while not (faults.supervise() and churn.done()):
        if churn.made > made:
            made, since = churn.made, time.monotonic()
        late = time.monotonic() > since + PATIENCE
        check(not late, f"{made} made, {ledger.pending()} wait, and none was made for {PATIENCE:g} s")
        time.sleep(0.5)


def _sound(ledger: Ledger, churn: Churn, nodes: Cluster) -> None:
    check(not ledger.faults(), "\n".join(ledger.faults()[:20]))
    check(not churn.broken, churn.broken)
    check(not nodes.broken, nodes.broken)


# ---- the end --------------------------------------------------------------------------------


@dataclass
class Evidence:
    """The state when nothing changes any more."""

    bench: Bench
    daemon: Daemon
    ledger: Ledger
    churn: Churn
    faults: Faults
    nodes: Cluster


def _judge(e: Evidence) -> None:
    truth = _settle(e.bench, e.faults)
    seen = {pod["metadata"]["uid"] for pod in truth.bound()}
    wait_for(lambda: seen <= {bind.uid for bind in e.ledger.binds()}, "the ledger")
    _sound(e.ledger, e.churn, e.nodes)
    assert e.bench.history is not None
    shown = e.bench.history.faults(e.bench.namespace, ordered=False)
    check(not shown, shown)
    began = time.monotonic()
    agree(e.daemon, lambda: truth)
    agreed = time.monotonic() - began
    _judge_answers(e)
    excused = _judge_sizes(e)
    _judge_health(e)
    missing = _judge_writes(e)
    sanitized = is_sanitized(e.bench.options.binary)
    check(e.faults.rss < (1024 if sanitized else 48) * MEGA, f"{e.faults.rss} bytes of memory")
    files = e.faults.open_files()
    check(files < 64, f"{files} open files, and nothing is under way")
    binds = e.ledger.binds()
    print(
        f"        {e.churn.made} pods made ({e.churn.made_again} in the place of another), "
        f"{len(binds)} bound ({sum(not b.version for b in binds)} unwatched), "
        f"{len(truth.pending())} fit nowhere\n"
        f"        {', '.join(e.faults.times)}\n"
        f"        {len(e.faults.times)} faults, {e.nodes.changes} changes of nodes, "
        f"{e.faults.suicides} ends of a scheduler by itself\n"
        f"        {e.ledger.judged} judgements, {excused} binds to a size that had just changed, "
        f"{e.ledger.excepted} with the figures of the pod before, {missing} not in the audit log\n"
        f"        at most {e.faults.rss / MEGA:.1f} MiB, {files} open files at the end, "
        f"inspect agreed after {agreed:.1f} s",
        flush=True,
    )


def _judge_answers(e: Evidence) -> None:
    """A pod whose bind succeeded is bound to that node. If the API server ignores a Binding's UID, the
    pod that took its name meanwhile may be bound there instead.
    the pod is that has taken its name meanwhile.
    """
    places = {bind.uid: bind.node for bind in e.ledger.binds()}
    named = {(bind.name, bind.node) for bind in e.ledger.binds()}
    for pod, node in e.churn.promised:
        uid, name = pod["uid"], f"{pod['namespace']}/{pod['name']}"
        taken = not e.bench.modern and uid not in places and (name, node) in named
        found = f"is on {places.get(uid)}, its name on {[n for s, n in named if s == name]}"
        check(places.get(uid) == node or taken, f"{name} {uid}: bound to {node}, was said; {found}")


def _settle(bench: Bench, faults: Faults) -> Truth:
    """Waits until all pods that fit are bound, and kube-scheduler gives a reason for the others."""
    left: list[str] = []

    def hopeless() -> bool:
        faults.supervise()
        bench.kick()
        truth = bench.truth()
        left[:] = [
            f"{name_of(pod)} of {size_of(pod)}: {message(pod)!r}, {truth.room_for(size_of(pod))}"
            for pod in truth.pending()
            if "nsufficient" not in message(pod) or truth.room_for(size_of(pod))
        ]
        return not left

    try:
        wait_for(hopeless, "what is pending to be hopeless", PATIENCE, poll=1.0)
    except TimeoutError as error:
        raise AssertionError(f"{error}: {len(left)}: {left[:5]}") from None
    return bench.truth()


def _judge_sizes(e: Evidence) -> int:
    """No bind uses a card size that cardpack knew to be outdated."""
    heard: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for entry in e.daemon.log("node"):
        heard[entry["node"], entry["total"], entry["cards"]].append(_ns(entry))

    def knew(node: str, change: NodeSize, since: int, until: int) -> bool:
        times = heard[node, change.total, change.count]
        return any(since < when < until - 5_000_000 for when in times)

    excused, found = e.ledger.stale(knew)
    check(not found, "\n".join(found[:20]))
    return excused


def _judge_health(e: Evidence) -> None:
    """No bind uses a card that cardpack knew to be unhealthy."""
    log = [(line["node"], line["cards"], _ns(line)) for line in e.daemon.log("unhealthy cards")]
    by_card: defaultdict[tuple[str, int], list[Bind]] = defaultdict(list)
    for bind in e.ledger.binds():
        by_card[bind.node, bind.card].append(bind)
    for node, card, since, until in e.nodes.sick:
        seen = next((at for n, c, at in log if n == node and c == str(card) and at > since), until)
        for bind in by_card[node, card]:
            known = seen + 5_000_000 < bind.assumed < until
            check(not known, f"{bind}: the card was known to be unhealthy")


def _judge_writes(e: Evidence) -> int:
    """Each pod has one accepted Binding. Returns how many of them the audit log lacks."""
    writes = e.bench.cluster.bindings_in_audit(CARDPACK_USER)
    bound: defaultdict[str, list[Bind]] = defaultdict(list)
    for bind in e.ledger.binds():
        bound[bind.name].append(bind)
    missing = 0
    for name in bound.keys() | {n for n in writes if n.startswith(e.bench.namespace + "/")}:
        entry = writes.get(name, PodWrites())
        check(entry.patches == entry.updates == 0, f"{name}: {entry}")
        most = len(bound[name])
        if name in e.churn.unsure:  # one may have been deleted during a gap of the watch
            most = e.ledger.incarnations(name)
        check(entry.bindings <= most, f"{name}: {entry}, not {bound[name]}")
        doubtful = sum(
            any(a <= bind.assumed / 1e9 <= b for a, b in e.faults.doubtful)
            for bind in bound[name]
        )
        told = entry.bindings >= len(bound[name]) - doubtful
        check(told, f"{name}: {entry}, not {bound[name]}")
        missing += max(0, len(bound[name]) - entry.bindings)
    return missing
