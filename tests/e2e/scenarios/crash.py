"""cardpack or the API server dies during a burst or a bind."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from bench import LEADS_ON, PATIENCE, Bench, agree, check, dice, scenario
from component import wait_for
from daemon import Daemon

SIZES = [1, 2, 2, 3, 4, 6, 8]


def _nodes(bench: Bench) -> list[str]:
    """Nodes with room for 250 pods of SIZES, with any choice of cards."""
    return [bench.node(f"n{i}", 2 + i, 40) for i in range(6)]


@scenario("real")
def killed_in_a_burst(bench: Bench) -> None:
    """Several SIGKILLs and starts: all pods are bound, none twice, no card is over-committed."""
    luck = dice("killed")
    _nodes(bench)
    daemon = bench.cardpack()
    count = 200
    sizes = [luck.choice(SIZES) for _ in range(count)]
    check(sum(sizes) <= 27 * (40 - 8 + 1), "the test itself does not fit")
    maker = threading.Thread(
        target=bench.pods, args=([f"p{i:03}" for i in range(count)], sizes)
    )
    maker.start()
    for bound in (10, 40, 80, 120, 160):
        bench.wait_bound(bound, kicking=True)
        daemon.kill()
        daemon.launch()
    maker.join()
    bench.wait_bound(count, kicking=True)
    wait_for(daemon.ready, "ready")
    bench.verify(daemon, killed=True)
    check(daemon.kills == 5, "not killed")


@scenario("real")
def killed_with_binds_under_way(bench: Bench) -> None:
    """
    The API server commits Bindings of a killed cardpack after the next cardpack has started: that one
    does not give their cards to other pods.
    """
    bench.node("n1", 2, 16)
    daemon = bench.cardpack()
    old = [bench.own_pod(f"old{i}", 7) for i in range(2)]
    new = [bench.own_pod(f"new{i}", 9) for i in range(6)]
    agree(daemon, bench.truth)
    with ThreadPoolExecutor(len(old)) as hands:
        bench.cluster.apiserver.pause()
        asked = [hands.submit(_bind_quietly, daemon, pod) for pod in old]
        # A node has one Binding in flight: the second waits for the first.
        wait_for(lambda: _reserved(daemon) == 14, "both to have a card")
        daemon.kill()
        for one in asked:
            one.result()
    daemon.launch()
    time.sleep(0.5)
    bench.cluster.apiserver.resume()
    wait_for(daemon.ready, "ready", PATIENCE, poll=0.001)
    errors = [daemon.bind(pod, "n1") for pod in [*new, *old]]
    truth = bench.verify(daemon, killed=True)
    check(any(not error for error in errors), errors)
    check(sum(truth.nodes["n1"].used) <= 32, truth.nodes)


def _bind_quietly(daemon: Daemon, pod: object) -> None:
    try:
        daemon.bind(pod, "n1")
    except (OSError, AssertionError):
        pass  # cardpack was killed
    except Exception as error:
        check("RemoteDisconnected" in type(error).__name__, error)


@scenario("real")
def api_server_away(bench: Bench) -> None:
    """
    The API server is away for half a minute during a burst. A cardpack without a Lease stays ready,
    shows its state, answers binds with an error, and recovers by itself.
    """
    luck = dice("away")
    nodes = [*_nodes(bench), bench.node("spare", 1, 8)]
    bench.cordon("spare")
    daemon = bench.cardpack("--bind-timeout", "10s", "--leader-elect=false")
    count = 150
    waiting = [bench.own_pod(f"own{i}", 1) for i in range(8)]
    bench.pods([f"p{i:03}" for i in range(count)], [luck.choice(SIZES) for _ in range(count)])
    bench.wait_bound(count // 3, kicking=True)
    bench.cluster.apiserver.kill()
    gone = time.monotonic()
    try:
        with ThreadPoolExecutor(len(waiting)) as hands:
            asked = [
                hands.submit(daemon.bind, pod, "spare", timeout=30) for pod in waiting
            ]
            errors = [one.result() for one in asked]
        check(all(errors), f"bound without an API server: {errors}")
        where = [f"{pod['metadata']['name']} to node" for pod in waiting]
        check(all(text in error for text, error in zip(where, errors, strict=True)), errors)
        while time.monotonic() < gone + 30:
            check(daemon.ready(), "not ready while the API server is away")
            check(len(daemon.inspect()["nodes"]) == len(nodes), "inspect forgot nodes")
            check(daemon.fitting(waiting[0], nodes) != [], "filter refuses everything")
            time.sleep(0.5)
    finally:
        bench.cluster.apiserver.start()
    assert bench.cluster.scheduler is not None
    bench.cluster.scheduler.restart()  # without a restart it would take up to a minute to retry
    bench.wait_bound(count, kicking=True)
    for pod in waiting:
        check(daemon.bind(pod, "spare") == "", "a bind after the return")
    bench.verify(daemon, killed=True)


@scenario("real")
def api_server_frozen(bench: Bench) -> None:
    """
    The API server accepts requests and answers none: binds end with an error. After it thaws, cardpack
    knows, charges and acknowledges the Bindings that it did commit.
    """
    bench.node("n1", 2, 16)
    daemon = bench.cardpack("--bind-timeout", "2s", *LEADS_ON)
    pods = [bench.own_pod(f"p{i}", 6) for i in range(6)]
    agree(daemon, bench.truth)
    bench.cluster.apiserver.pause()
    try:
        with ThreadPoolExecutor(len(pods)) as hands:
            errors = list(hands.map(lambda pod: daemon.bind(pod, "n1", timeout=60), pods))
        check(all(errors), f"bound by a frozen API server: {errors}")
        check(daemon.ready(), "not ready while the API server is frozen")
    finally:
        bench.cluster.apiserver.resume()
    # Four of six fit. The Bindings in the frozen server are among them, or they free the card.
    for pod in pods:
        wait_for(lambda p=pod: _final(daemon, p), "a final answer", PATIENCE, poll=0.2)
    # The frozen API server may commit its Bindings in any order.
    truth = bench.verify(daemon, killed=True, ordered=False)
    check(len(truth.bound()) == 4, f"{len(truth.bound())} of 4 bound")


def _final(daemon: Daemon, pod: object) -> bool:
    error = daemon.bind(pod, "n1")
    return error == "" or "nsufficient" in error


@scenario("real")
def terminated_in_a_burst(bench: Bench) -> None:
    """SIGTERM: binds in flight get true answers, and cardpack ends with status 0."""
    bench.node("n1", 4, 16)
    bench.node("n2", 4, 16)
    daemon = bench.cardpack(*LEADS_ON)
    pods = [bench.own_pod(f"p{i}", 3) for i in range(12)]
    agree(daemon, bench.truth)
    with ThreadPoolExecutor(len(pods)) as hands:
        bench.cluster.apiserver.pause()
        asked = [
            hands.submit(daemon.bind, pod, f"n{1 + i % 2}") for i, pod in enumerate(pods)
        ]
        wait_for(lambda: _reserved(daemon) == 3 * len(pods), "all binds to be under way")
        ender = threading.Thread(target=daemon.process.terminate)
        ender.start()
        wait_for(lambda: daemon.log("shutting down"), "the signal to arrive")
        bench.cluster.apiserver.resume()
        errors = [one.result() for one in asked]
        ender.join()
    check(daemon.process.status == 0, f"status {daemon.process.status}")
    check(errors == [""] * len(pods), errors)
    truth = bench.verify(None)
    check(len(truth.bound()) == len(pods), f"{len(truth.bound())} bound")


def _reserved(daemon: Daemon) -> int:
    """The memory that cardpack holds on all nodes, for bound pods and reservations."""
    return sum(node["usedGPU"] for node in daemon.inspect()["nodes"])


@scenario("real")
def terminated_and_replaced(bench: Bench) -> None:
    """A rolling restart under load loses no pod and binds none twice."""
    luck = dice("replaced")
    _nodes(bench)
    daemon = bench.cardpack()
    count = 120
    maker = threading.Thread(
        target=bench.pods,
        args=([f"p{i:03}" for i in range(count)], [luck.choice(SIZES) for _ in range(count)]),
    )
    maker.start()
    for bound in (20, 60):
        bench.wait_bound(bound, kicking=True)
        daemon.stop()
        daemon.launch()
        wait_for(daemon.listens, "cardpack to listen")
    maker.join()
    bench.wait_bound(count, kicking=True)
    wait_for(daemon.ready, "ready")
    bench.verify(daemon)
