"""Requests that are late, repeated, or name a pod that has changed."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import Bench, agree, check, dice, scenario
from component import wait_for
from share_truth import PERCENT, ShareTruth

Json = Any

MERGE = "application/merge-patch+json"


@scenario("real")
def bind_asked_again(bench: Bench) -> None:
    """The same pod and node again: success, one write. Another node, or a wrong UID: refused."""
    bench.node("n1", 2, 8)
    bench.node("n2", 2, 8)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    pod = bench.own_pod("p", 3)
    with ThreadPoolExecutor(8) as hands:
        errors = list(hands.map(lambda _: daemon.bind(pod, "n1"), range(8)))
    check(errors == [""] * 8, errors)
    check(daemon.bind(pod, "n1") == "", "bind again")
    error = daemon.bind(pod, "n2")
    check('"n1"' in error and "p" in error, f"to another node: {error}")
    other = bench.own_pod("other", 3)
    wrong = "00000000-0000-4000-8000-000000000000"
    error = daemon.bind(other, "n1", uid=wrong)
    check(wrong in error and other["metadata"]["uid"] in error, f"a wrong uid: {error}")
    error = daemon.bind(other, "n1", uid=pod["metadata"]["uid"])
    check("other" in error, f"the uid of another pod: {error}")
    check(not bench.get("other")["spec"].get("nodeName"), "bound with a wrong uid")
    nil = {"metadata": {"name": "nil", "namespace": bench.namespace, "uid": "u"}}
    error = daemon.bind(nil, "n1")
    check("does not exist" in error, f"no such pod: {error}")
    error = daemon.bind(other, "n9")
    check('"n9" not found' in error, f"no such node: {error}")
    bench.verify(daemon)


@scenario("real")
def bind_before_the_watch(bench: Bench) -> None:
    """A pod that was just created, and that the watch may not have shown yet, is bound."""
    for i in range(4):
        bench.node(f"n{i}", 4, 16)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)

    def make_and_bind(i: int) -> str:
        return daemon.bind(bench.own_pod(f"p{i:02}", 1 + i % 3), f"n{i % 4}")

    with ThreadPoolExecutor(8) as hands:
        errors = list(hands.map(make_and_bind, range(60)))
    check(errors == [""] * 60, [error for error in errors if error])
    bench.verify(daemon)


@scenario("real")
def contended_cards(bench: Bench) -> None:
    """Many binds at once for few cards: as many succeed as fit, and the others get a reason."""
    bench.node("n1", 3, 10)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    pods = [bench.own_pod(f"p{i:02}", 4) for i in range(20)]
    with ThreadPoolExecutor(20) as hands:
        errors = list(hands.map(lambda pod: daemon.bind(pod, "n1"), pods))
    check(errors.count("") == 6, f"{errors.count('')} of 6 bound: {errors}")
    check(all("can't hold pod" in e for e in errors if e), errors)
    bench.verify(daemon)


@scenario("real")
def made_again_in_flight(bench: Bench) -> None:
    """
    Pods are deleted and created again under the same names during their binds. An API server before
    1.27 ignores the UID of a Binding, so there the new pods have the same size: otherwise a new pod
    would be bound with the old one's figures.
    """
    luck = dice("again")
    for i in range(3):
        bench.node(f"n{i}", 2, 12)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    ends = {"": 0, "refused": 0}
    lead = [0.0]  # seconds from the deletion to the bind; it follows the outcomes, so that there are both anywhere

    def play(i: int) -> None:
        size = 1 + i % 4
        name = f"p{i}"
        pod = bench.own_pod(name, size)
        pause = luck.random() * 0.01 + max(0.0, -lead[0])
        again = threading.Thread(target=make_again, args=(name, size, pause))
        again.start()
        threading.Event().wait(max(0.0, lead[0]))
        error = daemon.bind(pod, f"n{i % 3}")
        again.join()
        ends["refused" if error else ""] += 1
        lead[0] += -0.003 if error else 0.003
        second = bench.get(name)
        if not second["spec"].get("nodeName"):
            daemon.bind(second, f"n{(i + 1) % 3}")

    def make_again(name: str, size: int, pause: float) -> None:
        threading.Event().wait(pause)
        bench.cluster.delete_pod(name, bench.namespace)
        bench.own_pod(name, 1 + size % 4 if bench.modern else size)

    with ThreadPoolExecutor(4) as hands:
        list(hands.map(play, range(32)))
    check(all(ends.values()), f"the race had one outcome only: {ends}")
    agree(daemon, bench.truth)
    truth = bench.truth()
    check(not truth.overcommitted(), truth.overcommitted())
    check(not truth.bad_annotations(), truth.bad_annotations())
    # No reservation is left: without pods all memory is free.
    bench.cluster.must(
        "DELETE", f"/api/v1/namespaces/{bench.namespace}/pods", {"gracePeriodSeconds": 0}
    )
    wait_for(lambda: not any(n["usedGPU"] for n in daemon.inspect()["nodes"]), "all to be free")


@scenario("real")
def edited_in_flight(bench: Bench) -> None:
    """
    The authors of pods change the percentage that their pods ask for, again and again until the pods are
    bound. No card gets more than it has: a pod is bound with the request that was reserved, or not at
    all. An API server before 1.27 ignores the version in a Binding, so there this can't be promised.
    """
    for i in range(2):
        bench.node(f"n{i}", 4, 100)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    pods = f"/api/v1/namespaces/{bench.namespace}/pods"

    def edit(pod: Json, began: threading.Event, done: threading.Event) -> None:
        """Each edit is for the version before, so none comes after the Binding."""
        for percent in itertools.cycle(("90", "15")):
            metadata = {
                "resourceVersion": pod["metadata"]["resourceVersion"],
                "annotations": {PERCENT: percent},
            }
            path = f"{pods}/{pod['metadata']['name']}"
            status, answer = bench.cluster.api("PATCH", path, {"metadata": metadata}, content_type=MERGE)
            check(status in (200, 409), answer)
            began.set()
            if status == 409 or done.is_set():
                return
            pod = answer

    def play(i: int) -> str:
        began, done = threading.Event(), threading.Event()
        pod = bench.own_pod(f"p{i:03}", 1, annotations={PERCENT: "15"})
        author = threading.Thread(target=edit, args=(pod, began, done))
        author.start()
        began.wait()
        error = daemon.bind(pod, f"n{i % 2}")
        done.set()
        author.join()
        return error

    errors: list[str] = []
    for turn in range(40 if bench.modern else 1):
        with ThreadPoolExecutor(4) as hands:
            errors += hands.map(play, range(8 * turn, 8 * turn + 8))
        bound = [pod for pod in bench.cluster.list_all(pods) if pod["spec"].get("nodeName")]
        faults = ShareTruth(bench.cluster.list_all("/api/v1/nodes"), bound).faults()
        check(not faults or not bench.modern, faults)
        bench.cluster.must("DELETE", pods, {"gracePeriodSeconds": 0})
        wait_for(lambda: not any(n["usedGPU"] for n in daemon.inspect()["nodes"]), "all to be free")
        refused = daemon.metric('cardpack_bindings_total{result="outdated"}')
        if refused >= 3 and "" in errors:
            return
    check(not bench.modern, f"{refused} Bindings met an edit: {errors}")


@scenario("real")
def filter_is_pure(bench: Bench) -> None:
    """filter changes no state, and its answer keeps the order and form of the request."""
    bench.node("n1", 2, 8)
    bench.node("n2", 1, 4)
    bench.cluster.create_node("plain")
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    pod = bench.own_pod("p", 6)
    names = ["n2", "n1", "plain", "none"]
    first = daemon.filter(pod, names)
    check(first["NodeNames"] == ["n1"] and first["Nodes"] is None, first)
    check(set(first["FailedNodes"]) == {"n2", "plain", "none"}, first)
    check(all(daemon.filter(pod, names) == first for _ in range(20)), "another answer")
    nodes = bench.cluster.list_all("/api/v1/nodes")
    whole = daemon.verb("filter", {"Pod": pod, "Nodes": {"items": nodes}, "NodeNames": None})
    check([n["metadata"]["name"] for n in whole["Nodes"]["items"]] == ["n1"], whole)
    check(whole["NodeNames"] is None, whole)
    check(whole["Nodes"]["items"][0] in nodes, "a node came back changed")
    lower = daemon.verb("filter", {"pod": pod, "nodenames": names})
    check(lower == first, "keys in lower case, as schedulers before 1.17 sent them")
    agree(daemon, bench.truth)
