"""--evict-for-cards: the node's sum has room and no card has; evictions make room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import MANIFESTS, PATIENCE, Bench, budgets_path, check, scenario
from component import wait_for
from daemon import Daemon
from truth import place_of

from scenarios.events import told

Json = Any

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
OVERLAY = str(MANIFESTS / "components" / "evict-for-cards" / "rbac.yaml")
FLAGS = ("--evict-for-cards=true", "--evict-for-cards-after", "1s")
BEGUN = "evicting for cards"
FAILED = "no card for a pod by evictions"
# The parts of a pod's status, without a kubelet, that a budget needs to count the pod.
HEALTHY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
GRACE = {"terminationGracePeriodSeconds": 30}


@contextmanager
def _allowed(bench: Bench) -> Iterator[None]:
    """Gives cardpack the overlay's right, and removes it at the end."""
    bench.cluster.kubectl("apply", "-f", OVERLAY)
    try:
        yield
    finally:
        bench.cluster.kubectl("delete", "-f", OVERLAY)


def _classes(bench: Bench) -> None:
    for name, value, policy in (
        ("evict-high", 1000, "PreemptLowerPriority"),
        ("evict-never", 1000, "Never"),
        ("evict-middle", 500, "PreemptLowerPriority"),
    ):
        wanted = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        status, answer = bench.cluster.api("POST", CLASSES, wanted)
        check(status in (201, 409), answer)


def _high(bench: Bench, name: str, mem: int, which: str = "evict-high", **options: Any) -> Json:
    return bench.pod(name, mem, priority_class=which, **options)


def _runs(bench: Bench, name: str) -> None:
    """Plays the pod's kubelet: it runs and is ready."""
    bench.cluster.must(
        "PATCH",
        f"/api/v1/namespaces/{bench.namespace}/pods/{name}/status",
        {"status": HEALTHY},
        content_type="application/merge-patch+json",
    )


def _budget(bench: Bench, app: str, allowed: int) -> None:
    """A PodDisruptionBudget that allows `allowed` evictions of app=APP; no controller changes it."""
    path = budgets_path(bench, bench.namespace)
    budget = {
        "apiVersion": "/".join(path.split("/")[2:4]),
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }
    bench.cluster.must("POST", path, budget)
    figures = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1, **figures}
    bench.cluster.must(
        "PATCH",
        f"{path}/{app}/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )


def _guarded(bench: Bench, name: str, mem: int, card: int, app: str) -> None:
    """A pod of app=APP that the test binds, running and ready."""
    pod = bench.placed_pod(name, mem, "n1", card)
    labels = {**pod["metadata"]["labels"], "app": app}
    bench.patch_pod(name, {"metadata": {"labels": labels}})
    _runs(bench, name)


def _there(bench: Bench) -> set[str]:
    """The scenario's pods, with those that are being deleted."""
    pods = bench.cluster.list_all(f"/api/v1/namespaces/{bench.namespace}/pods")
    return {pod["metadata"]["name"] for pod in pods}


def _bound(bench: Bench, name: str) -> Json:
    wait_for(lambda: bench.get(name)["spec"].get("nodeName"), f"{name} bound", PATIENCE)
    return bench.get(name)


def _reasons(bench: Bench, name: str) -> list[str]:
    return [event["reason"] for event in told(bench, name)]


def _stays_as_it_is(
    bench: Bench, daemon: Daemon, pods: set[str], seconds: float = 6
) -> None:
    """Checks that cardpack evicts no pod for several times as long as an eviction would take."""
    before = len(daemon.log("evicted for cards"))
    wait_for(lambda: daemon.log("pod fits on no node"), "a refusal", PATIENCE)
    time.sleep(seconds)
    check(_there(bench) == pods, _there(bench))
    check(len(daemon.log("evicted for cards")) == before, daemon.log("evicted for cards"))


@scenario("real")
def evict_for_cards(bench: Bench) -> None:
    """12 units are free on the node, 6 on each card: cardpack evicts the single pod that suffices."""
    _classes(bench)
    bench.node("n1", 2, 16)
    bench.node("n2", 2, 16)
    for name, mem, node, card in (
        ("a", 5, "n1", 0), ("b", 5, "n1", 0), ("c", 10, "n1", 1), ("d", 10, "n2", 0),
    ):  # fmt: skip
        bench.placed_pod(name, mem, node, card)
    bench.placed_pod("e", 10, "n2", 1, priority_class="evict-middle")
    bench.cordon("n2")  # its cards can't be used
    with _allowed(bench):
        daemon = bench.cardpack(*FLAGS)
        pod = _high(bench, "wants", 12)
        bound = _bound(bench, "wants")
        check(place_of(bound) is not None, bound)
        check(_there(bench) == {"a", "b", "d", "e", "wants"}, _there(bench))
        check(bound["spec"]["nodeName"] == "n1", bound)
        wait_for(lambda: "EvictingForCards" in _reasons(bench, "wants"), "an event on the pod")
        wait_for(lambda: told(bench, "c"), "an event on the victim")
        check(_reasons(bench, "c") == ["EvictedForCards"], told(bench, "c"))
        check(pod["metadata"]["name"] in told(bench, "c")[0]["message"], told(bench, "c"))
        check(len(daemon.log(BEGUN)) == 1, daemon.log(BEGUN))
        bench.verify(daemon)


@scenario("real")
def victims_take_their_time(bench: Bench) -> None:
    """
    kube-scheduler asks while victims end, gets that as the reason, and asks again until there is room.
    """
    _classes(bench)
    bench.node("n1", 2, 16)
    bench.placed_pod("a", 10, "n1", 0, spec=GRACE)
    bench.placed_pod("b", 10, "n1", 1, priority_class="evict-middle")
    with _allowed(bench):
        daemon = bench.cardpack(*FLAGS)
        _high(bench, "wants", 12)
        wait_for(lambda: bench.get("a")["metadata"].get("deletionTimestamp"), "a going", PATIENCE)
        time.sleep(4)
        check(not bench.get("wants")["spec"].get("nodeName"), "bound beside its victim")
        bench.cluster.delete_pod("a", bench.namespace)
        began = time.monotonic()
        _bound(bench, "wants")
        check(not bench.modern or time.monotonic() < began + 30, "it lay for long")
        check(_evictions(bench) == ["a"], _evictions(bench))
        check(_there(bench) == {"b", "wants"}, _there(bench))
        bench.verify(daemon)


def _evictions(bench: Bench) -> list[str]:
    """The pods whose eviction was granted, without dry runs."""
    return [
        event["objectRef"]["name"]
        for event in bench.cluster.audit_events()
        if event.get("objectRef", {}).get("subresource") == "eviction"
        and event["objectRef"]["namespace"] == bench.namespace
        and "dryRun" not in event["requestURI"]
        and event["responseStatus"]["code"] == 201
    ]


@scenario("real")
def cards_are_kept_for_it(bench: Bench) -> None:
    """While the victim ends and for some time after, no pod of lower priority gets the kept room."""
    _classes(bench)
    bench.node("n1", 2, 16)
    bench.placed_pod("a", 8, "n1", 0, priority_class="evict-middle")
    bench.placed_pod("b", 5, "n1", 0, spec=GRACE)
    bench.placed_pod("c", 13, "n1", 1, priority_class="evict-middle")
    with _allowed(bench):
        daemon = bench.cardpack(*FLAGS, "--evict-for-cards-keep", "8s")
        wants = bench.own_pod("wants", 6, priority_class="evict-high")
        rival = bench.own_pod("rival", 4)
        check(not daemon.fitting(wants, ["n1"]), "it fits")
        wait_for(lambda: bench.get("b")["metadata"].get("deletionTimestamp"), "b going", PATIENCE)
        time.sleep(2)
        check(_there(bench) == {"a", "b", "c", "wants", "rival"}, _there(bench))
        check(_evictions(bench) == ["b"], _evictions(bench))
        check("are ending" in daemon.reason(wants, "n1"), daemon.reason(wants, "n1"))
        check(not daemon.fitting(rival, ["n1"]), "the rival fits")
        bench.cluster.delete_pod("b", bench.namespace)
        wait_for(lambda: daemon.reason(wants, "n1") == "", "room", PATIENCE)
        check("kept for pods of the same" in daemon.reason(rival, "n1"), "the rival is let in")
        check(daemon.bind(rival, "n1") != "", "the rival is bound")
        wait_for(lambda: "CardsKept" in _reasons(bench, "wants"), "an event", PATIENCE)
        # No scheduler binds the pod: cardpack gives up the kept room.
        wait_for(lambda: "CardsReleased" in _reasons(bench, "wants"), "another", PATIENCE)
        check(daemon.fitting(rival, ["n1"]) == ["n1"], daemon.reason(rival, "n1"))
        check(daemon.bind(wants, "n1") == "", "the pod itself")
        check(_evictions(bench) == ["b"], _evictions(bench))
        bench.verify(daemon)


@scenario("real")
def evictions_respect_budgets(bench: Bench) -> None:
    """Another pod is evicted; if budgets protect all pods, none is, and an event says so."""
    _classes(bench)
    bench.node("n1", 2, 16)
    _budget(bench, "web", 0)
    _guarded(bench, "a", 10, 0, "web")
    bench.placed_pod("b", 10, "n1", 1)
    with _allowed(bench):
        daemon = bench.cardpack(*FLAGS)
        _high(bench, "first", 12)
        _bound(bench, "first")
        check(_there(bench) == {"a", "first"}, _there(bench))

        bench.cluster.delete_pod("first", bench.namespace)
        _guarded(bench, "c", 10, 1, "web")
        _high(bench, "second", 12)
        wait_for(lambda: told(bench, "second"), "an event", PATIENCE)
        event = told(bench, "second")[0]
        check(event["reason"] == "EvictionForCardsFailed" and event["type"] == "Warning", event)
        check("PodDisruptionBudget" in event["message"], event)
        _stays_as_it_is(bench, daemon, {"a", "c", "second"}, 4)
        bench.verify(daemon)


@scenario("real")
def evictions_learn_of_budgets(bench: Bench) -> None:
    """Without the right to read budgets, the API server's answer to a dry run protects the pods."""
    _classes(bench)
    name = "cardpack-blind"
    role = bench.cluster.must("GET", f"{ROLES}/cardpack")
    rules = [rule for rule in role["rules"] if rule["apiGroups"] != ["policy"]]
    check(len(rules) == len(role["rules"]) - 1, "the rule of budgets was not found")
    bench.cluster.api("DELETE", f"{ROLES}/{name}")
    bench.cluster.must("POST", ROLES, {"metadata": {"name": name}, "rules": rules})
    token = bench.cluster.service_account_token("kube-system", name, 6 * 3600)
    subject = f"--serviceaccount=kube-system:{name}"
    with _allowed(bench):
        evicts = "cardpack-evict-for-cards"
        for argv in (
            ("clusterrolebinding", name, f"--clusterrole={name}", subject),
            ("clusterrolebinding", f"{name}-evict", f"--clusterrole={evicts}", subject),
            ("rolebinding", name, "--role=cardpack", "--namespace=kube-system", subject),
        ):
            bench.cluster.kubectl("create", *argv)
        bench.users.append(f"system:serviceaccount:kube-system:{name}")
        kubeconfig = bench.cluster.write_kubeconfig(bench.workdir / f"{name}.kubeconfig", token)

        bench.node("n1", 2, 16)
        _budget(bench, "web", 0)
        _guarded(bench, "a", 10, 0, "web")
        bench.placed_pod("b", 10, "n1", 1)
        daemon = bench.daemon(kubeconfig, *FLAGS)
        _high(bench, "first", 12)
        _bound(bench, "first")
        check(_there(bench) == {"a", "first"}, _there(bench))
        refused = daemon.log("an eviction was refused, and the pod is spared for a while")
        check([e["pod"] for e in refused] == ["a"] and "429" in refused[0]["error"], refused)

        bench.cluster.delete_pod("first", bench.namespace)
        _guarded(bench, "c", 10, 1, "web")
        _high(bench, "second", 12)
        wait_for(lambda: told(bench, "second"), "an event", PATIENCE)
        event = told(bench, "second")[0]
        check(event["reason"] == "EvictionForCardsFailed", event)
        check("disruption budget" in event["message"], event)
        check(_there(bench) == {"a", "c", "second"}, _there(bench))
        bench.verify(daemon)


@scenario("real")
def evicts_no_pod(bench: Bench) -> None:
    """No eviction by pods of equal priority or that never preempt, and none if the setting is off."""
    _classes(bench)
    bench.node("n1", 2, 16)
    bench.placed_pod("a", 10, "n1", 0, priority_class="evict-middle")
    bench.placed_pod("b", 10, "n1", 1, priority_class="evict-middle")
    with _allowed(bench):
        daemon = bench.cardpack(*FLAGS)
        _high(bench, "equal", 12, "evict-middle")
        _high(bench, "never", 12, "evict-never")
        _stays_as_it_is(bench, daemon, {"a", "b", "equal", "never"})
        check(not daemon.log(FAILED), daemon.log(FAILED))
        check(not told(bench, "equal") and not told(bench, "never"), "an event")
        daemon.stop()
        bench.daemons.remove(daemon)
        daemon = bench.cardpack("--evict-for-cards-after", "1s")
        _high(bench, "high", 12)
        _stays_as_it_is(bench, daemon, {"a", "b", "equal", "never", "high"})
        bench.verify(daemon)


@scenario("real")
def no_right_to_evict(bench: Bench) -> None:
    """Without the overlay's right: one log line, one event, and no eviction."""
    _classes(bench)
    bench.node("n1", 2, 16)
    bench.placed_pod("a", 10, "n1", 0)
    bench.placed_pod("b", 10, "n1", 1)
    daemon = bench.cardpack(*FLAGS)
    _high(bench, "wants", 12)
    wait_for(lambda: told(bench, "wants"), "an event", PATIENCE)
    event = told(bench, "wants")[0]
    check(event["reason"] == "EvictionForCardsFailed", event)
    check("no right to evict" in event["message"] and "403" in event["message"], event)
    _stays_as_it_is(bench, daemon, {"a", "b", "wants"})
    check(len(daemon.log(FAILED)) == 1, daemon.log(FAILED))
    bench.verify(daemon)
