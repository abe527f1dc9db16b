"""Two replicas: one leads, and the other takes over when the leader ends in any way."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import PATIENCE, Bench, agree, check, dice, scenario
from cluster import GPU_MEM
from component import wait_for
from daemon import Daemon
from front import Front
from replicas import HASTE, Replicas, seconds
from truth import GPU_COUNT

Json = Any

PODS = 2000
KILLS = 20
SIZES = [1, 1, 2, 2, 2, 3, 4, 4, 6, 8]
# As shipped: the printed times are measured with these settings.
SHIPPED = ("--start-settle=8s",)


def _tell(text: str) -> None:
    print(f"        {text}", flush=True)


@scenario("real")
def leader_killed_in_a_burst(bench: Bench) -> None:
    """
    2,000 pods through one address in front of two replicas; the leader is killed 20 times. All pods
    are bound, none twice, no card is over-committed, and there are never two leaders.
    """
    luck = dice("leader killed")
    sizes = [luck.choice(SIZES) for _ in range(PODS)]
    for i in range(14):
        capacity = {GPU_MEM: 8 * 80, GPU_COUNT: 8, "pods": 500}
        bench.cluster.create_node(f"n{i:02}", capacity)
    check(sum(sizes) <= 14 * 8 * (80 - max(SIZES) + 1), "the test itself does not fit")
    replicas = Replicas(bench, *HASTE)
    front = Front(bench.port, lambda: replicas.all)
    try:
        replicas.launch()
        names = [f"p{i:04}" for i in range(PODS)]
        maker = threading.Thread(target=bench.pods, args=(names, sizes), daemon=True)
        maker.start()
        for i in range(KILLS):
            bench.wait_bound(PODS * (i + 1) // (KILLS + 2), kicking=True)
            who = replicas.wait_leader()
            wait_for(lambda w=who: replicas.follows(replicas.all[1 - w]), "a follower", PATIENCE)
            replicas.kill(who)
            replicas.all[who].launch()
        maker.join()
        bench.wait_bound(PODS, kicking=True)
        leader = replicas.wait_leader()
        truth = bench.verify(replicas.all[leader], killed=True)
    finally:
        front.close()
    check(len(truth.bound()) == PODS, f"{len(truth.bound())} bound")
    replicas.judge_terms()
    terms = [term.at for term in replicas.terms()]
    gaps = [min(at for at in terms if at > kill) - kill for kill in replicas.killed]
    check(len(gaps) == KILLS, gaps)
    _tell(
        f"{KILLS} kills; with the shortest lease, from each to the next one that decides: "
        f"{min(gaps):.1f} to {max(gaps):.1f} s"
    )


def _line(replicas: Replicas, who: int, message: str, after: float) -> Json:
    """The first line of a replica's log with that message, later than a given time."""
    lines = [
        line for line in replicas.all[who].log(message) if seconds(line["time"]) >= after - 0.002
    ]
    check(lines, f"replica {who} never said {message!r}")
    return lines[0]


@scenario("real")
def fail_over(bench: Bench) -> None:
    """The leader is killed: the lease and its Bindings expire, and then the other replica leads."""
    bench.node("n1", 4, 40)
    replicas = Replicas(bench, *SHIPPED)
    replicas.launch()
    for i in range(3):
        old = replicas.wait_leader()
        new = 1 - old
        holder = replicas.lease()["holderIdentity"]
        replicas.until_bound(old, f"before{i}", "n1")
        began = replicas.kill(old)
        bound, errors = replicas.until_bound(new, f"after{i}", "n1")
        _tell(f"kill -9 to the first bind of the other: {bound - began:.1f} s")
        check(bound - began < 60, "that is no fail-over")
        check(any("leads, and this one follows it" in error for error in errors), errors)
        check(any("may still be under way" in error for error in errors), errors)
        order = [
            seconds(_line(replicas, new, text, began)["time"])
            for text in ("this replica leads", "deciding from now on", "bound")
        ]
        check(order == sorted(order), order)
        check(_line(replicas, new, "this replica leads", began)["handed_over"] is False, "released")
        check(replicas.lease()["holderIdentity"] not in ("", holder), replicas.lease())
        replicas.all[old].launch()
        wait_for(lambda o=old: replicas.follows(replicas.all[o]), "a follower")
    replicas.judge_terms()
    bench.verify(replicas.all[replicas.wait_leader()], killed=True)


@scenario("real")
def hand_over(bench: Bench) -> None:
    """SIGTERM with binds in flight: they get true answers, and the other replica leads."""
    bench.node("n1", 4, 40)
    bench.node("n2", 4, 40)
    replicas = Replicas(bench, *SHIPPED)
    replicas.launch()
    for i in range(3):
        old = replicas.wait_leader()
        new = 1 - old
        pods = [bench.own_pod(f"p{i}-{j}", 1) for j in range(24)]
        with ThreadPoolExecutor(len(pods)) as hands:
            asked = [
                hands.submit(_ask, replicas, old, pod, f"n{1 + j % 2}")
                for j, pod in enumerate(pods)
            ]
            began = time.time()
            ender = threading.Thread(target=replicas.all[old].stop)
            ender.start()
            bound, _ = replicas.until_bound(new, f"after{i}", "n1")
            ender.join()
            answers = [one.result() for one in asked]
        _tell(f"SIGTERM to the first bind of the other: {bound - began:.2f} s, "
              f"{answers.count('')} of {len(pods)} under way were bound")  # fmt: skip
        check(replicas.all[old].process.status == 0, replicas.all[old].process.status)
        check(bound - began < 60, "that is no hand-over")
        check(_line(replicas, new, "this replica leads", began)["handed_over"] is True, "expired")
        for j, (pod, answer) in enumerate(zip(pods, answers, strict=True)):
            node = bench.get(pod["metadata"]["name"])["spec"].get("nodeName", "")
            check(answer != "" or node == f"n{1 + j % 2}", f"{pod['metadata']['name']}: {node!r}")
            check(replicas.all[new].bind(pod, f"n{1 + j % 2}") == "", "a bind that was asked again")
        replicas.all[old].launch()
        wait_for(lambda o=old: replicas.follows(replicas.all[o]), "a follower")
    replicas.judge_terms()
    bench.verify(replicas.all[replicas.wait_leader()])


def _ask(replicas: Replicas, who: int, pod: Json, node: str) -> str:
    """The answer's Error; another text if there is no answer."""
    try:
        return replicas.all[who].bind(pod, node, timeout=120)
    except AssertionError:
        raise
    except Exception as error:
        return f"no answer: {type(error).__name__}"


@scenario("real")
def leader_frozen(bench: Bench) -> None:
    """
    The leader is frozen for half a minute, with Bindings in its queue and binds that it has not read.
    When it resumes, another replica leads, and it sends none of them.
    """
    bench.node("n1", 2, 16)
    bench.node("n2", 2, 16)
    # The shipped bind-timeout would have passed in any case.
    replicas = Replicas(bench, *SHIPPED, "--bind-timeout=50s")
    replicas.launch()
    old = replicas.wait_leader()
    new = 1 - old
    agree(replicas.all[old], bench.truth)
    turn = [bench.own_pod(f"turn{i}", 5) for i in range(5)]
    unread = [bench.own_pod(f"unread{i}", 5) for i in range(5)]
    with ThreadPoolExecutor(10) as hands:
        # A node has one Binding in flight: the API server holds it, the others wait.
        bench.cluster.apiserver.pause()
        asked = [hands.submit(_ask, replicas, old, pod, "n1") for pod in turn]
        wait_for(lambda: replicas.all[old].inspect("n1")["nodes"][0]["usedGPU"] == 25, "cards")
        replicas.all[old].process.pause()
        frozen = time.time()
        bench.cluster.apiserver.resume()
        asked += [hands.submit(_ask, replicas, old, pod, "n1") for pod in unread]
        try:
            bound, _ = replicas.until_bound(new, "first", "n2")
            took = [replicas.all[new].bind(pod, "n1") for pod in unread]
            time.sleep(max(0.0, frozen + 30 - time.time()))
        finally:
            replicas.all[old].process.resume()
        awake = time.time()
        errors = [one.result() for one in asked]
    _tell(f"SIGSTOP to the first bind of the other: {bound - frozen:.1f} s")
    wait_for(lambda: replicas.follows(replicas.all[old]), "the old one to follow")
    check(replicas.leader() == new, "the new one does not lead any more")
    # Only the Bindings that the API server held at the freeze, and no later one.
    late = [one for one in replicas.accepted() if one.replica == old and one.done > awake - 25]
    check(not late, f"sent after it was replaced: {late}")
    mine = [one for one in replicas.accepted() if one.replica == old and one.done > frozen]
    check(len(mine) <= 1, f"more than was under way: {mine}")
    check(all(errors[len(turn) :]), f"a follower bound: {errors}")
    check(took.count("") >= 4, took)
    replicas.judge_terms()
    truth = bench.verify(replicas.all[new], killed=True, ordered=False)
    check(len(truth.bound()) == took.count("") + len(mine) + 1, truth.bound())
    agree(replicas.all[old], bench.truth)


@scenario("real")
def lease_lost_with_the_api_server(bench: Bench) -> None:
    """An outage longer than the lease: no replica leads; afterwards exactly one does."""
    bench.node("n1", 4, 40)
    replicas = Replicas(bench, *SHIPPED)
    replicas.launch()
    old = replicas.wait_leader()
    replicas.until_bound(old, "before", "n1")
    pod = bench.own_pod("pod", 1)
    bench.cluster.apiserver.kill()
    gone = time.monotonic()
    try:
        wait_for(lambda: replicas.leader() is None, "the leader to end by itself", 30)
        ended = time.monotonic() - gone
        _tell(f"the API server's death to the leader's end: {ended:.1f} s")
        # The lease goes to a replica that was asked recently, and here both are. The test stops asking
        # before the API server is back, so that the lease stays with the replica that gets it.
        while time.monotonic() < gone + 25:
            check(replicas.leader() is None, "ready without a lease")
            if time.monotonic() < gone + 12:
                errors = [daemon.bind(pod, "n1") for daemon in replicas.all]
                check(all(errors), f"bound without a lease: {errors}")
            time.sleep(0.5)
    finally:
        bench.cluster.apiserver.start()
    who = replicas.wait_leader()
    began = time.monotonic()
    while time.monotonic() < began + 12:  # longer than the lease
        check(replicas.leader() == who, "another one leads")
        time.sleep(0.2)
    check(replicas.follows(replicas.all[1 - who]), "the other one does not follow")
    check(replicas.all[who].bind(pod, "n1") == "", "a bind after the return")
    check(replicas.all[1 - who].bind(bench.own_pod("more", 1), "n1") != "", "a follower bound")
    replicas.judge_terms()
    bench.verify(replicas.all[who], killed=True)


@scenario("real")
def no_right_to_leases(bench: Bench) -> None:
    """
    Without the right to leases cardpack never leads, and names the missing right; with it, it leads.
    """
    bench.node("n1", 2, 16)
    name = "cardpack-old"
    token = bench.cluster.service_account_token("kube-system", name, 6 * 3600)
    subject = f"--serviceaccount=kube-system:{name}"
    bench.cluster.kubectl(
        "create", "clusterrolebinding", name, "--clusterrole=cardpack", subject
    )
    for argv in (
        ("role", name, "--verb=list,watch", "--resource=configmaps"),
        ("rolebinding", name, f"--role={name}", subject),
    ):
        bench.cluster.kubectl("create", *argv, "--namespace=kube-system")
    bench.users = [*bench.users, f"system:serviceaccount:kube-system:{name}"]
    kubeconfig = bench.workdir / f"{name}.kubeconfig"
    bench.cluster.write_kubeconfig(kubeconfig, token)
    replicas = Replicas(bench, *HASTE, count=1)  # deletes the lease; this replica is not started
    pods = [bench.own_pod(f"p{i}", 3) for i in range(3)]
    denied = [
        Daemon(bench.options.binary, bench.workdir, bench.ports.take(), kubeconfig, HASTE,
               name=f"cardpack-{bench.scenario}-denied-{i}")
        for i in range(2)
    ]  # fmt: skip
    bench.daemons += denied
    for daemon in denied:
        daemon.launch()
    lease = "leases.coordination.k8s.io"
    for verb in ("get", "create", "update"):
        right = f'no right to {verb} {lease} "cardpack" in namespace "kube-system"'
        for daemon in denied:
            wait_for(lambda d=daemon, r=right: r in _unready(d), f"/readyz: {right}", PATIENCE)
            check(right in daemon.bind(pods[0], "n1"), "bind without a lease")
            check(right in daemon.filter(pods[0], ["n1"])["Error"], "filter without a lease")
        began = time.monotonic()
        while time.monotonic() < began + 9:  # three times the lease
            check(not any(daemon.ready() for daemon in denied), "it decides without a lease")
            time.sleep(0.2)
        for argv in (
            ("role", f"{name}-{verb}", f"--verb={verb}", f"--resource={lease}"),
            ("rolebinding", f"{name}-{verb}", f"--role={name}-{verb}", subject),
        ):
            bench.cluster.kubectl("create", *argv, "--namespace=kube-system")
    wait_for(lambda: any(daemon.ready() for daemon in denied), "one of them to lead", PATIENCE)
    leader = denied[0] if denied[0].ready() else denied[1]
    check(leader.bind(pods[0], "n1") == "", "bind as the leader")
    replicas.all[0].launch()
    for daemon in (*denied, *replicas.all):
        if daemon is not leader:
            wait_for(lambda d=daemon: replicas.follows(d), "the others to follow")
            check("leads" in daemon.bind(pods[1], "n1"), "two decide")
    check(leader.bind(pods[2], "n1") == "", "bind beside followers")
    bench.verify(leader)


def _unready(daemon: Daemon) -> str:
    try:
        status, text = daemon.call("GET", "/readyz")
        return str(text) if status == 503 else ""
    except OSError:
        return ""


# ---- a cardpack beside each kube-scheduler --------------------------------------------------


class Pairs:
    """Two kube-schedulers that elect a leader, each with its own cardpack."""

    ELECTION = "true\n  leaseDuration: 4s\n  renewDeadline: 3s\n  retryPeriod: 1s"
    LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"

    def __init__(self, bench: Bench, *args: str) -> None:
        self.bench = bench
        self.made = 0
        self.replicas = Replicas(bench, *args)
        bench.cluster.api("DELETE", self.LEASE)
        self.schedulers = [
            bench.cluster.make_scheduler(
                f"kube-scheduler-{i}",
                f"http://127.0.0.1:{daemon.port}/gpushare-scheduler",
                overrides={"leaderElect": self.ELECTION},
                extra="podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 2\n",
            )
            for i, daemon in enumerate(self.replicas.all)
        ]

    def leads(self, who: int) -> bool:
        """Whether that scheduler has won the election since its start."""
        text = self.schedulers[who].tail(100000).rpartition("---- ")[2]
        return "uccessfully acquired lease" in text

    def bound(self, who: int, began: float) -> float:
        """Makes a few more pods, which only that pair may bind; returns how long it took."""
        names = [f"p{self.made + i:03}" for i in range(20)]
        self.made += len(names)
        self.bench.pods(names, [1] * len(names))
        self.bench.wait_bound(self.made, kicking=True)
        took = time.time() - began
        mine = {f"{self.bench.namespace}/{name}" for name in names}
        by = {one.replica for one in self.replicas.accepted() if one.pod in mine}
        check(by == {who}, f"bound by {by}, not {who}")
        check(self.replicas.leader() == who, "the lease has not followed the scheduler")
        return took


@scenario("real")
def scheduler_and_cardpack_in_pairs(bench: Bench) -> None:
    """
    kube-scheduler fails over, and the lease moves to the cardpack that the active scheduler calls:
    once the other cardpack is alive and hands over, once both processes of a pair are killed.
    """
    for i in range(3):
        bench.node(f"n{i}", 4, 16)
    assert bench.cluster.scheduler is not None
    bench.cluster.scheduler.kill()
    pairs = Pairs(bench, *SHIPPED)
    replicas, schedulers = pairs.replicas, pairs.schedulers
    try:
        # At first the lease belongs to the cardpack whose scheduler does not lead.
        replicas.all[1].start()
        schedulers[0].start()
        wait_for(lambda: pairs.leads(0), "the first scheduler to lead", PATIENCE)
        schedulers[1].start()
        replicas.all[0].launch()
        wait_for(lambda: replicas.follows(replicas.all[0]), "a follower")
        took = pairs.bound(0, time.time())
        _tell(f"a scheduler asks a follower, to its pods bound: {took:.1f} s")
        began = time.time()
        schedulers[0].kill()
        _tell(f"kill -9 of the scheduler alone: {pairs.bound(1, began):.1f} s")
        schedulers[0].start()
        began = time.time()
        schedulers[1].kill()
        replicas.kill(1)
        _tell(f"kill -9 of scheduler and cardpack: {pairs.bound(0, began):.1f} s")
        replicas.all[1].launch()
        wait_for(lambda: replicas.follows(replicas.all[1]), "a follower")
        replicas.judge_terms()
        bench.verify(replicas.all[0], killed=True)
    finally:
        for scheduler in schedulers:
            scheduler.kill()
        bench.cluster.scheduler.start()
