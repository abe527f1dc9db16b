"""Why a pod waits, and how many replicas would fit: the answers match what the schedulers do."""

from __future__ import annotations

import json
import select
from concurrent.futures import ThreadPoolExecutor

from bench import PATIENCE, Bench, Json, agree, check, message, scenario
from component import wait_for
from daemon import Daemon

VERBS = "/gpushare-scheduler"
NO_CARD = "Insufficient GPU Memory in one device"
GROUP = "cardpack.io/card-anti-affinity-group"
GRACE = 25.0  # shutdown-grace, as shipped


def explain(bench: Bench, daemon: Daemon, name: str) -> Json:
    """Explains an existing pod."""
    status, answer = daemon.call("GET", f"{VERBS}/explain/{bench.namespace}/{name}")
    check(status == 200, f"explain {name}: {status} {answer}")
    return answer


def fit(daemon: Daemon, pod: Json, replicas: int) -> Json:
    """How many replicas of a pod fit."""
    status, answer = daemon.call("POST", f"{VERBS}/fit", {"replicas": replicas, "pod": pod})
    check(status == 200, f"fit: {status} {answer}")
    return answer


def pending(bench: Bench, name: str) -> str:
    """The scheduler's message about a pending pod."""
    return wait_for(lambda: message(bench.get(name)), f"{name} refused", PATIENCE)


@scenario("real")
def explained_pods(bench: Bench) -> None:
    """
    For a pending pod explain, its condition and a failed bind give the same reason. For a bound pod
    explain names the node; for a contradictory pod it names the field.
    """
    bench.node("n1", 2, 8)
    bench.placed_pod("h0", 5, "n1", 0)
    bench.placed_pod("h1", 5, "n1", 1)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    pod = bench.pod("waits", 6)
    said = pending(bench, "waits")
    answer = explain(bench, daemon, "waits")
    (node,) = answer["verdicts"]
    check((answer["fit"], answer["refused"]) == (0, {"no_card_free": 1}), answer)
    check(node["reason"] == NO_CARD and NO_CARD in said, f"{said}: {answer}")
    check(answer["pod"]["state"] == "pending", answer["pod"])
    condition = answer["pod"]["condition"]
    check((condition["status"], condition["reason"]) == ("False", "Unschedulable"), condition)
    check(condition["message"] == message(bench.get("waits")), condition)
    cards = [card["reason"] for card in node["cards"]]
    check(cards == ["3 of 8 free, 6 asked"] * 2, cards)
    because = daemon.log("pod fits on no node")[-1]["because"]
    check(because == "no_card_free: 1", f"the log says {because}")
    error = daemon.bind(pod, "n1")
    check(all(part in error for part in (node["reason"], *cards)), error)

    bench.pod("contrary", 5, labels={"aliyun.com/gpu-count": "2"})
    said = pending(bench, "contrary")
    answer = explain(bench, daemon, "contrary")
    check("aliyun.com/gpu-count" in answer["error"], answer["error"])
    check(answer["error"] in said, f"{said}: {answer['error']}")

    bench.cluster.delete_pod("h1", bench.namespace)
    # kube-scheduler may ask before cardpack knows the change, and then not again for minutes.
    agree(daemon, bench.truth)
    bench.kick()
    wait_for(lambda: bench.get("waits")["spec"].get("nodeName"), "waits bound", PATIENCE)
    agree(daemon, bench.truth)
    answer = explain(bench, daemon, "waits")
    check(answer["pod"] | {"state": "bound", "node": "n1"} == answer["pod"], answer["pod"])
    check(answer["verdicts"][0]["placement"] == [{"card": 1, "memory": 6}], answer["verdicts"])
    check(answer["pod"]["placement"] == answer["verdicts"][0]["placement"], answer["pod"])
    condition = answer["pod"]["condition"]
    check(condition["status"] == "True" and condition["since"].startswith("20"), condition)


@scenario("real")
def fit_comes_true(bench: Bench) -> None:
    """
    Exactly as many replicas as fit are scheduled, in whatever order; the next one waits with the given
    reason.
    """
    bench.node("n1", 4, 16)
    bench.node("n2", 4, 16)
    bench.placed_pod("h0", 5, "n1", 0)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    for prefix, mem, expected, notes in (
        ("single", 2, 8, {GROUP: "g"}),
        ("many", 5, 15, {}),
    ):
        replica = bench.own_pod(f"{prefix}-asked", mem, annotations=notes)
        answer = fit(daemon, replica, 100)
        k = answer["fit"]
        check(k == expected, f"{prefix}: {answer}")
        check(sum(node["replicas"] for node in answer["nodes"]) == k, answer["nodes"])
        bound = bench.bound_count()
        names = [f"{prefix}-{i}" for i in range(k)]
        bench.pods(names, [mem] * k, annotations=notes)
        bench.wait_bound(bound + k, kicking=True)
        agree(daemon, bench.truth)
        check(fit(daemon, replica, 1)["fit"] == 0, f"more of {prefix} fit")
        bench.pod(f"{prefix}-next", mem, annotations=notes)
        said = pending(bench, f"{prefix}-next")
        reason = answer["stopped"]["message"].removeprefix("2 nodes: ")
        check(reason in said, f"{said}, not {reason}")
        bench.cluster.delete_pod(f"{prefix}-next", bench.namespace)
    bench.verify(daemon)


@scenario("real")
def explain_waits_for_nobody(bench: Bench) -> None:
    """
    With a silent API server cardpack drops requests of clients that left, and shutdown answers at
    once.
    """
    bench.node("n1", 2, 8)
    daemon = bench.cardpack()
    bench.own_pod("asked", 5)
    path = f"{VERBS}/explain/{bench.namespace}/asked"
    check(daemon.call("GET", path)[0] == 200, "explain")
    with ThreadPoolExecutor(1) as hands:
        bench.cluster.apiserver.pause()
        try:
            for _ in range(20):
                connection = daemon.connection()
                connection.request("GET", path)
                connection.close()
            asked = daemon.connection()
            asked.request("GET", path)
            # cardpack accepts in order: when it answers a later request, it has that one.
            check(daemon.call("GET", "/livez")[0] == 200, "/livez")
            check(not select.select([asked.sock], [], [], 0.5)[0], "it has been answered")
            stopped = hands.submit(daemon.stop)
            # At once, and not when shutdown-grace is over.
            check(select.select([asked.sock], [], [], GRACE / 2)[0], "no answer at the shutdown")
            response = asked.getresponse()
            answer = response.status, json.loads(response.read())
            check(answer == (503, {"error": "cardpack is shutting down"}), answer)
        finally:
            bench.cluster.apiserver.resume()
        stopped.result()


@scenario("real")
def explain_unready(bench: Bench) -> None:
    """Before cardpack has its first lists, explain answers 503 with the reason of /readyz."""
    pod = bench.own_pod("asked", 5)
    daemon = bench.cardpack(started=False)
    bench.cluster.apiserver.pause()
    try:
        daemon.launch()
        wait_for(daemon.listens, "cardpack to listen", PATIENCE)
        status, missing = daemon.call("GET", "/readyz")
        check(status == 503 and missing.endswith("\n"), f"it is ready: {status} {missing}")
        for method, path, body in (
            ("GET", f"/explain/{bench.namespace}/asked", None),
            ("POST", "/explain", pod),
            ("POST", "/fit", {"replicas": 1, "pod": pod}),
        ):
            got = daemon.call(method, VERBS + path, body)
            check(got == (503, {"error": missing.strip()}), f"{method} {path}: {got}, not {missing}")
    finally:
        bench.cluster.apiserver.resume()
    wait_for(daemon.ready, "cardpack ready", PATIENCE)
    check(explain(bench, daemon, "asked")["nodes"] == 0, "nodes")
