"""Preemption: which pods the scheduler evicts for a card, and which pod gets it then."""

from __future__ import annotations

from bench import PATIENCE, Bench, agree, check, message, scenario
from cluster import Json
from component import wait_for
from daemon import Daemon
from scenarios.budgets import knows, put
from share_truth import EXCLUSIVE
from truth import BY_HAND, IDX

HIGH, MIDDLE, LOW = "e2e-high", "e2e-middle", "e2e-low"
DECISION = "preemption"
KEPT = "Room on GPU devices is kept for pods of the same or a higher priority"


def _classes(bench: Bench) -> None:
    for name, value in ((HIGH, 1000), (MIDDLE, 50), (LOW, 10)):
        path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}"
        if bench.cluster.api("GET", path)[0] == 404:
            bench.cluster.create_priority_class(name, value)


def _held(
    bench: Bench, name: str, mem: int, place: tuple[str, int], weight: str, app: str = "none"
) -> Json:
    """A pod that the test binds to a card without cardpack."""
    node, card = place
    return bench.pod(
        name,
        mem,
        node_name=node,
        priority_class=weight,
        annotations={IDX: str(card)},
        labels={BY_HAND: "yes", "app": app},
    )


def _bound(bench: Bench, name: str) -> tuple[str, str]:
    """The pod's node and card."""
    pod = wait_for(
        lambda: (p := bench.get(name))["spec"].get("nodeName") and p, f"{name} bound", PATIENCE
    )
    return pod["spec"]["nodeName"], pod["metadata"]["annotations"][IDX]


def _names(bench: Bench) -> set[str]:
    pods = bench.cluster.list_all(f"/api/v1/namespaces/{bench.namespace}/pods")
    return {pod["metadata"]["name"] for pod in pods}


def _victims(daemon: Daemon, pod: Json, node: str, given: list[Json]) -> list[str]:
    """The victims' UIDs in cardpack's answer for one node."""
    uids = [{"UID": one["metadata"]["uid"]} for one in given]
    victims = {node: {"Pods": uids, "NumPDBViolations": 0}}
    ask = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    answer = daemon.verb("preempt", ask)["NodeNameToMetaVictims"]
    return [one["UID"] for one in answer.get(node, {"Pods": []})["Pods"]]


@scenario("real")
def fewest_victims(bench: Bench) -> None:
    """Of two nodes, the one whose card has the cheaper victims; then the other one, card by card."""
    if not bench.modern:
        return
    _classes(bench)
    bench.node("n1", 2, 16)
    bench.node("n2", 2, 16)
    for name, card, weight in (("a", 0, LOW), ("b", 0, MIDDLE), ("c", 1, LOW), ("d", 1, MIDDLE)):
        _held(bench, name, 8, ("n1", card), weight)
    _held(bench, "e", 12, ("n2", 0), LOW)
    _held(bench, "f", 4, ("n2", 0), LOW)
    _held(bench, "g", 16, ("n2", 1), HIGH)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    # On n1 the scheduler would evict a and c, half of each card; a with b, or c with d, frees a card.
    bench.pod("first", 16, priority_class=HIGH)
    check(_bound(bench, "first") == ("n2", "0"), "first has another card")
    check(_names(bench) == {"a", "b", "c", "d", "g", "first"}, _names(bench))
    bench.pod("second", 16, priority_class=HIGH)
    check(_bound(bench, "second") == ("n1", "0"), "second has another card")
    check(_names(bench) == {"d", "g", "first", "second"}, _names(bench))
    check(len(daemon.log(DECISION)) >= 2, daemon.log(DECISION))
    bench.verify(daemon)


@scenario("real")
def whole_card_of_the_other_plugin(bench: Bench) -> None:
    """kube-scheduler preempts for nvidia.com/gpu on nodes without shared cards as without cardpack."""
    _classes(bench)
    bench.cluster.create_node("n1", {EXCLUSIVE: 1})
    bench.cardpack()
    for name, weight in (("low", LOW), ("high", HIGH)):
        bench.pod(name, None, resources={EXCLUSIVE: 1}, priority_class=weight)
        node = wait_for(lambda n=name: bench.get(n)["spec"].get("nodeName"), f"{name} bound", PATIENCE)
        check(node == "n1", f"{name} is on {node}")
        check(IDX not in bench.get(name)["metadata"].get("annotations", {}), f"{name} has a card")
    check(_names(bench) == {"high"}, _names(bench))
    bench.verify(None)  # truth.py knows no nodes without shared cards


@scenario("real")
def budgets_choose_others(bench: Bench) -> None:
    """Because of a PodDisruptionBudget another pod of higher cost becomes the victim."""
    if not bench.modern:
        return
    _classes(bench)
    bench.node("n1", 2, 16)
    guarded = _held(bench, "guarded", 6, ("n1", 0), LOW, "web")
    given = [_held(bench, "x", 6, ("n1", 0), LOW), _held(bench, "y", 6, ("n1", 1), LOW)]
    weighty = _held(bench, "weighty", 6, ("n1", 1), MIDDLE)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    ask = bench.own_pod("ask", 16, priority_class=HIGH)
    uids = [one["metadata"]["uid"] for one in given]
    check(_victims(daemon, ask, "n1", given) == [*uids, guarded["metadata"]["uid"]], "no budget")
    put(bench, "web", 0)
    wait_for(lambda: knows(daemon, "web", 0), "the budget", PATIENCE)
    check(_victims(daemon, ask, "n1", given) == [*uids, weighty["metadata"]["uid"]], "a budget")
    check(_names(bench) == {"guarded", "x", "y", "weighty", "ask"}, "somebody is gone")
    bench.pod("high", 16, priority_class=HIGH)
    check(_bound(bench, "high") == ("n1", "1"), "high has another card")
    check(_names(bench) == {"guarded", "ask", "high"}, _names(bench))
    bench.verify(daemon)


@scenario("real")
def nominated_pods_are_waited_for(bench: Bench) -> None:
    """A card that preemption freed for a pod goes to no pod of lower priority before it."""
    if not bench.modern:
        return
    _classes(bench)
    bench.node("n1", 3, 16)
    _held(bench, "victim", 16, ("n1", 0), LOW)
    _held(bench, "h1", 12, ("n1", 1), HIGH)
    _held(bench, "h2", 12, ("n1", 2), HIGH)
    bench.patch_pod("victim", {"metadata": {"finalizers": ["example.com/kept"]}})
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    bench.pod("high", 16, priority_class=HIGH)
    wait_for(
        lambda: bench.get("high")["status"].get("nominatedNodeName") == "n1", "high nominated"
    )
    wait_for(
        lambda: bench.get("victim")["metadata"].get("deletionTimestamp"), "victim going", PATIENCE
    )
    scheduler = bench.cluster.scheduler
    assert scheduler is not None
    scheduler.pause()
    try:
        # 8 would fit on no other card, and the scheduler's sum has room for it beside high.
        middle = bench.own_pod("middle", 8, priority_class=MIDDLE)
        small = bench.own_pod("small", 4, priority_class=MIDDLE)
        bench.patch_pod("victim", {"metadata": {"finalizers": None}})
        wait_for(lambda: "victim" not in _names(bench), "victim gone", PATIENCE)
        agree(daemon, bench.truth)
        wait_for(lambda: KEPT in daemon.reason(middle, "n1"), "the card kept for high", PATIENCE)
        check(daemon.bind(middle, "n1") != "", "middle was bound to high's card")
        check(daemon.fitting(small, ["n1"]) == ["n1"], "small has room beside high")
        check(daemon.bind(small, "n1") == "", "small was not bound")
        check(_bound(bench, "small")[1] in ("1", "2"), "small has high's card")
    finally:
        scheduler.resume()
    check(_bound(bench, "high") == ("n1", "0"), "high has another card")
    reason = daemon.reason(middle, "n1")
    check(reason and KEPT not in reason, f"nothing is kept any more: {reason}")
    bench.verify(daemon)


@scenario("real")
def never_asked_by_the_old(bench: Bench) -> None:
    """1.20.2 accepts the verb in its configuration, never calls it, and works as before."""
    if bench.modern:
        return
    _classes(bench)
    bench.node("n1", 1, 16)
    _held(bench, "low", 16, ("n1", 0), LOW)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    bench.pod("high", 16, priority_class=HIGH)
    check(_bound(bench, "high") == ("n1", "0"), "high has another card")
    check(_names(bench) == {"high"}, "low is still there")
    check(not daemon.log(DECISION), daemon.log(DECISION))
    bench.pod("late", 1, priority_class=LOW)
    wait_for(lambda: message(bench.get("late")), "late refused", PATIENCE)
    bench.verify(daemon)
