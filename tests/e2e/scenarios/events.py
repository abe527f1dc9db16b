"""Events on pods: few, true, and nothing depends on them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from bench import LEADS_ON, NOBODY, Bench, Json, agree, check, scenario
from component import wait_for

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def told(bench: Bench, name: str) -> list[Json]:
    """cardpack's events on a pod."""
    return [
        event
        for event in bench.cluster.list_all(f"/api/v1/namespaces/{bench.namespace}/events")
        if event["involvedObject"].get("name") == name
        and event["source"].get("component") == "cardpack"
    ]


def full_node(bench: Bench) -> None:
    """Makes a node whose sum has room for 5, but no card has."""
    bench.node("n1", 2, 8)
    bench.placed_pod("h0", 5, "n1", 0)
    bench.placed_pod("h1", 5, "n1", 1)


@scenario("real")
def failed_binds_are_told(bench: Bench) -> None:
    """One Warning names the cards; repetitions raise its count."""
    full_node(bench)
    daemon = bench.cardpack()
    pod = bench.own_pod("asked", 5)
    error = daemon.bind(pod, "n1")
    check("card 0: 3 of 8 free, 5 asked; card 1: 3 of 8 free, 5 asked" in error, error)
    wait_for(lambda: told(bench, "asked"), "an event on the pod")
    event = told(bench, "asked")[0]
    check(event["type"] == "Warning" and event["reason"] == "FailedBinding", event)
    check(event["message"] == error and event["count"] == 1, event)
    check(event["involvedObject"]["uid"] == pod["metadata"]["uid"], event)
    check(event["reportingComponent"] == "cardpack", event)
    check(event["firstTimestamp"] == event["lastTimestamp"], event)

    for _ in range(3):
        check(daemon.bind(pod, "n1") == error, "another error")
    wait_for(lambda: told(bench, "asked")[0]["count"] == 4, "the count of all four")
    nobody = {"metadata": dict(pod["metadata"], name="nobody", uid="none")}
    check("does not exist" in daemon.bind(nobody, "n1"), "a pod that is not there")
    check(daemon.bind(pod, "n1") == error, "another error")
    daemon.stop()
    events = told(bench, "asked")
    check(len(events) == 1 and events[0]["count"] == 5, events)
    check(events[0]["firstTimestamp"] == event["firstTimestamp"], events)
    check(not told(bench, "nobody"), told(bench, "nobody"))

    # cardpack creates an event again that the API server has deleted.
    daemon = bench.cardpack()
    check(daemon.bind(pod, "n1") == error, "another error")
    wait_for(lambda: len(told(bench, "asked")) == 2, "an event of the new process")
    path = f"/api/v1/namespaces/{bench.namespace}/events"
    bench.cluster.must("DELETE", path)
    check(daemon.bind(pod, "n1") == error, "another error")
    wait_for(lambda: told(bench, "asked"), "the event again")
    events = told(bench, "asked")
    check(len(events) == 1 and events[0]["count"] == 2, events)

    bench.cluster.delete_pod("h1", bench.namespace)
    wait_for(lambda: daemon.bind(pod, "n1") == "", "the bind")
    bench.verify(daemon)


@scenario("real")
def last_events_are_sent(bench: Bench) -> None:
    """At shutdown cardpack sends the pending events, more than one batch, to a slow API server."""
    full_node(bench)
    daemon = bench.cardpack(*LEADS_ON)
    names = [f"asked{i}" for i in range(60)]
    pods = bench.pods(names, [5] * len(names), scheduler_name=NOBODY)
    bench.placed_pod("last", 1, "n1", 1)
    agree(daemon, bench.truth)  # with the last pod, so the watch has shown the others before it
    with ThreadPoolExecutor(1) as hand:
        bench.cluster.apiserver.pause()
        try:
            for pod in pods:
                error = daemon.bind(pod, "n1")
                check("card 0: 3 of 8 free" in error, error)
            stopped = hand.submit(daemon.stop)
            time.sleep(0.5)
        finally:
            bench.cluster.apiserver.resume()
        stopped.result()
    lost = [name for name in names if len(told(bench, name)) != 1]
    check(not lost, f"no event on {lost}")


@scenario("real")
def similar_events_are_combined(bench: Bench) -> None:
    """A pod that fails with ever new reasons gets ten events and not more."""
    bench.node("n1", 1, 20)
    daemon = bench.cardpack()
    pod = bench.own_pod("asked", 20)
    for i in range(14):
        bench.placed_pod(f"h{i}", 1, "n1", 0)
        free = f"card 0: {19 - i} of 20 free"
        agree(daemon, bench.truth)  # one bind each: a pod has a budget of 25 events
        error = daemon.bind(pod, "n1")
        check(free in error, error)
    daemon.stop()
    events = told(bench, "asked")
    combined = [e for e in events if e["message"].startswith("(combined from similar events): ")]
    check(len(events) == 10 and len(combined) == 1, [e["message"] for e in events])
    check("card 0: 6 of 20 free" in combined[0]["message"], combined)
    check(combined[0]["count"] == 5, combined)
    bench.verify(None)


@scenario("real")
def events_forbidden(bench: Bench) -> None:
    """
    With the rights of an older version binds work as before, and one log line names the missing right.
    """
    role = bench.cluster.must("GET", f"{ROLES}/cardpack")
    rules = [rule for rule in role["rules"] if rule["resources"] != ["events"]]
    check(len(rules) == len(role["rules"]) - 1, "the rule of events was not found")
    bench.cluster.api("DELETE", f"{ROLES}/cardpack-mute")
    bench.cluster.must("POST", ROLES, {"metadata": {"name": "cardpack-mute"}, "rules": rules})
    token = bench.cluster.service_account_token("kube-system", "cardpack-mute", 6 * 3600)
    subject = "--serviceaccount=kube-system:cardpack-mute"
    for argv in (
        ("clusterrolebinding", "cardpack-mute", "--clusterrole=cardpack-mute", subject),
        ("rolebinding", "cardpack-mute", "--role=cardpack", "--namespace=kube-system", subject),
    ):
        bench.cluster.kubectl("create", *argv)
    bench.users.append("system:serviceaccount:kube-system:cardpack-mute")
    kubeconfig = bench.cluster.write_kubeconfig(bench.workdir / "mute.kubeconfig", token)

    full_node(bench)
    daemon = bench.daemon(kubeconfig)
    for i in range(3):
        error = daemon.bind(bench.own_pod(f"asked{i}", 5), "n1")
        check("card 0: 3 of 8 free" in error, error)
    check(daemon.bind(bench.own_pod("fits", 3), "n1") == "", "a bind that has room")
    bench.verify(daemon)
    daemon.stop()
    lines = daemon.log("events on pods can't be written")
    check(len(lines) == 1 and "403" in lines[0]["error"], lines)
    check(not any(told(bench, f"asked{i}") for i in range(3)), "an event all the same")
