"""Failures of an API server that only the fake one can produce on demand."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import Lab, agree, check, scenario
from component import wait_for
from fake_lab import fake_lab
from truth import ASSUME_TIME, IDX

from .kubectl import Plugin


@scenario("fake")
def answer_lost(lab: Lab) -> None:
    """
    The Binding was committed and its answer was lost: cardpack reads the pod and does not write twice.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        for i, quiet in enumerate((False, True)):
            if quiet:  # the watch does not show it either
                fake.api.fault(kind="quiet", resource="pods", now=True)
            pod = fake.pod(f"p{i}", 5)
            fake.api.reset_stats()
            fake.api.fault(kind="drop_after_commit", verb="bind")
            check(daemon.bind(pod, "n1") == "", "not successful")
            # libcurl repeats a request that failed on a kept connection; the API server refuses the
            # repetition.
            answers = fake.api.stats()["answers"]
            check(fake.count("bind pods") <= 2 and "bind pods 201" not in answers, answers)
            check(fake.node_of(f"p{i}") == "n1", "not bound")
        fake.api.close_watches()
        fake.verify(daemon)


@scenario("fake")
def request_lost(lab: Lab) -> None:
    """The connection ends before the API server does anything: cardpack sends the same Binding again."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        for i, fault in enumerate(
            (
                {"kind": "drop"},
                {"kind": "status", "code": 500, "message": "etcdserver: leader changed"},
                {"kind": "status", "code": 503, "text": "<html>not now</html>"},
                {"kind": "status", "code": 429, "retry_after": 1, "text": "Too many requests"},
                {"kind": "status", "code": 409, "message": "context deadline exceeded"},
                {"kind": "status", "code": 504, "message": "request did not complete"},
            )
        ):
            pod = fake.pod(f"p{i}", 2)
            fake.api.reset_stats()
            fake.api.fault(verb="bind", **fault)
            check(daemon.bind(pod, "n1") == "", f"{fault}: not successful")
            check(fake.api.stats()["answers"]["bind pods 201"] == 1, f"{fault}: not one Binding")
            check(fake.node_of(f"p{i}") == "n1", f"{fault}: not bound")
        fake.verify(daemon)


@scenario("fake")
def late_commit(lab: Lab) -> None:
    """504, and the API server commits the write later: no other pod gets the card."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack("--bind-timeout", "5s")
        fake.watched()
        # cardpack sends the Binding again; both copies have the same content, so their order does not
        # matter.
        pod = fake.pod("again", 9)
        fake.api.fault(kind="late_commit", verb="bind", ms=300, count=2)
        check(daemon.bind(pod, "n1") == "", "not successful")
        # The API server commits it long after cardpack has answered that the result is unknown.
        late, other = fake.pod("late", 9), fake.pod("other", 9)
        fake.api.fault(kind="late_commit", verb="bind", ms=12000, count=-1)
        error = daemon.bind(late, "n1")
        check("not known yet" in error and "stays reserved" in error, error)
        error = daemon.bind(late, "n2")
        check("not certain yet" in error, f"to another node while in doubt: {error}")
        while not fake.node_of("late"):
            check("can't hold" in daemon.bind(other, "n1"), "a card in doubt was given away")
            time.sleep(0.1)
        fake.api.clear_faults()
        check(daemon.bind(late, "n1") == "", "bound, and not acknowledged")
        check("can't hold" in daemon.bind(other, "n1"), "the card was given away after all")
        fake.verify(daemon)


@scenario("fake")
def doubt_outlasts_an_outage(lab: Lab) -> None:
    """
    A Binding in doubt, then a long outage: a repeated bind succeeds after it, even though cardpack's
    pauses between its own tries are longer than a client waits.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack("--bind-timeout", "1s")
        fake.watched()
        pod = fake.pod("p", 9)
        fake.api.fault(kind="drop", verb="bind", count=2)
        fake.api.fault(kind="status", verb="get", code=500, count=-1)
        for _ in range(8):
            check(daemon.bind(pod, "n1") != "", "bound, and nothing can tell")
        fake.api.clear_faults()
        wait_for(lambda: daemon.bind(pod, "n1") == "", "the bind to succeed")
        fake.verify(daemon)


@scenario("fake")
def assigned_by_another(lab: Lab) -> None:
    """
    409 because another client bound the pod first, unseen by the watch: the error names the node, and
    no reservation leaks.
    """
    with fake_lab(lab) as fake:
        fake.api.create_node("n2", 32, 2)
        daemon = fake.cardpack()
        fake.watched()
        pods = [fake.pod(name, 16) for name in ("away", "here", "gone", "again")]
        wait_for(lambda: daemon.fitting(pods[0], ["n1"]) == ["n1"], "n1")
        fake.api.fault(kind="quiet", resource="pods", now=True)
        for name, node in (("away", "n2"), ("here", "n1")):
            binding = {
                "metadata": {"name": name},
                "target": {"kind": "Node", "name": node},
            }
            fake.api.must("POST", f"/api/v1/namespaces/default/pods/{name}/binding", binding)
            fake.api.patch_pod(name, {"metadata": {"labels": {"by-hand": "yes"}}})
        fake.api.delete_pod("gone")
        fake.api.delete_pod("again")
        second = fake.pod("again", 16)
        error = daemon.bind(pods[0], "n1")
        check('"n2"' in error and "away" in error, f"bound elsewhere: {error}")
        check(daemon.bind(pods[1], "n1") == "", "bound there by another client")
        error = daemon.bind(pods[2], "n2")
        check("gone" in error, f"deleted: {error}")
        error = daemon.bind(pods[3], "n2")
        check("again" in error, f"another pod of that name: {error}")
        check(fake.node_of("again") == "", "the wrong pod was bound")
        fake.api.close_watches("pods")  # the quiet watch ends
        fake.verify(daemon)
        check(daemon.bind(second, "n2") == "", "bind of the second")
        fake.verify(daemon)


@scenario("fake")
def refused_for_good(lab: Lab) -> None:
    """400, 403, 422: cardpack passes the error on unchanged, and the card is free again."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        for code in (400, 403, 422):
            pod = fake.pod(f"p{code}", 16)
            fake.api.reset_stats()
            fake.api.fault(kind="status", verb="bind", code=code, message=f"says {code}")
            error = daemon.bind(pod, "n1")
            check(f"says {code}" in error and f"p{code}" in error, error)
            check(fake.count("bind pods") == 1, f"{code}: sent again")
            fake.verify(daemon)
            check(all(not n["usedGPU"] for n in daemon.inspect()["nodes"]), "the card is held")


@scenario("fake")
def answers_of_a_balancer(lab: Lab) -> None:
    """A 4xx or 200 from a load balancer proves nothing: cardpack gives no card away because of it."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        fake.api.fault(kind="quiet", resource="pods", now=True)
        for name, answer in (
            ("a", {"code": 404, "text": "404 page not found"}),
            ("b", {"code": 200, "text": "{}"}),
        ):
            pod = fake.pod(name, 16)
            fake.api.fault(kind="drop_after_commit", verb="bind")
            # The first GET looks the pod up, since the watch is quiet.
            fake.api.fault(kind="status", verb="get", path=f"pods/{name}", skip=1, **answer)
            check(daemon.bind(pod, "n1") == "", f"{name}: bound, and not acknowledged")
        check("can't hold" in daemon.bind(fake.pod("c", 16), "n1"), "a card was given away")
        fake.outage(200)  # closes the quiet watch, too
        fake.watched()
        fake.verify(daemon)
        fake.api.delete_pod("b")
        pod = fake.pod("d", 16)
        wait_for(lambda: daemon.fitting(pod, ["n1"]) == ["n1"], "the card of b")
        for code in (400, 401, 403, 404, 409, 422):
            fake.api.fault(kind="status", verb="bind", code=code, text=f"{code} of a balancer")
        check(daemon.bind(pod, "n1") == "", "an answer to a Binding was believed")
        check(fake.api.stats()["faults_left"] == 0, "an answer was not met")
        fake.verify(daemon)


@scenario("fake")
def ended_in_doubt(lab: Lab) -> None:
    """
    cardpack is killed or terminated with a Binding that is committed later: no other pod gets its
    card.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack("--bind-timeout", "1s", "--start-settle", "8s")
        fake.watched()
        for name, end in (("killed", daemon.kill), ("terminated", daemon.stop)):
            pod = fake.pod(name, 16)
            fake.api.fault(kind="late_commit", verb="bind", ms=5000, code=504)
            fake.api.fault(kind="status", verb="get", path=f"pods/{name}", code=503, count=-1)
            check("not known yet" in daemon.bind(pod, "n1"), "known")
            fake.api.clear_faults()
            end()
            daemon.start()
            check(fake.node_of(name) == "n1", f"{name}: ready before it was committed")
        check("can't hold" in daemon.bind(fake.pod("other", 16), "n1"), "a card was given away")
        fake.verify(daemon)


@scenario("fake")
def watches_break(lab: Lab) -> None:
    """Watches that are cut inside an event, ended, damaged or expired: cardpack misses no change."""
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        faults = [
            {"kind": "cut", "bytes": 40},
            {"kind": "cut", "bytes": 700},
            {"kind": "end"},
            {"kind": "garbage", "line": "<html>gateway</html>"},
            {"kind": "garbage", "line": '{"type":"MODIFIED","object":{"metadata":7}}'},
            {"kind": "garbage", "line": '{"type":"ODD","object":{}}'},
            {"kind": "error_event", "code": 410, "reason": "Expired"},
            {"kind": "error_event", "code": 500},
            {"kind": "error_event", "code": 504, "too_large": True},
        ]
        for i, fault in enumerate(faults):
            for resource in ("pods", "nodes", "configmaps"):
                fake.api.fault(resource=resource, now=True, **fault)
            fake.placed_pod(f"p{i}", 1, "n1", i % 2)
            fake.api.create_node(f"m{i}", 8 + i, 1)
            fake.api.put_configmap(f"unhealthy-gpu-m{i}", {"gpus": "0"})
            if i:
                fake.api.delete_pod(f"p{i - 1}")
                fake.api.must("DELETE", f"/api/v1/nodes/m{i - 1}")
            agree(daemon, fake.truth)
            probe = fake.pod(f"probe{i}", 1)
            wait_for(lambda i=i, p=probe: daemon.reason(p, f"m{i}") != "", f"m{i} to be unhealthy")
        check(daemon.ready(), "not ready")


@scenario("fake")
def history_lost(lab: Lab) -> None:
    """
    A compaction while cardpack has no connection: it drops the deleted objects and reads the new ones.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        pods = [fake.pod(f"p{i}", 4) for i in range(6)]
        for pod in pods[:4]:
            check(daemon.bind(pod, "n1") == "", "bind")
        fake.api.put_configmap("unhealthy-gpu-n1", {"gpus": "1"})
        wait_for(lambda: daemon.log("unhealthy cards"), "the ConfigMap")
        for resource in ("pods", "nodes", "configmaps"):
            fake.api.fault(kind="quiet", resource=resource, now=True)
        fake.api.delete_pod("p0")
        fake.api.set_pod_phase("p1", "Succeeded")
        fake.api.must("DELETE", "/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-n1")
        fake.api.create_node("n2", 8, 1)
        fake.placed_pod("hand", 3, "n2", 0)
        fake.api.compact()
        fake.outage(500)
        agree(daemon, fake.truth)
        wait_for(lambda: sorted(daemon.fitting(pods[5], ["n1", "n2"])) == ["n1", "n2"], "all fit")
        check(daemon.bind(fake.pod("large", 16), "n1") == "", "the healed card")
        fake.verify(daemon)


@scenario("fake")
def lists_break(lab: Lab) -> None:
    """
    The first lists are cut, refused, or fail between pages: cardpack is ready after complete lists.
    """
    with fake_lab(lab) as fake:
        for i in range(40):
            fake.placed_pod(f"p{i:02}", 1 if i < 32 else 0, "n1", i % 2)
        faults = [
            {"verb": "list", "resource": "pods", "kind": "truncate", "bytes": 3000},
            {"verb": "list", "resource": "pods", "kind": "truncate", "bytes": 3000, "clean": True},
            {"verb": "list", "resource": "pods", "kind": "status", "code": 410, "continued": True},
            {"verb": "list", "resource": "nodes", "kind": "status", "code": 429, "retry_after": 1},
            {"verb": "list", "resource": "nodes", "kind": "drop"},
            {"verb": "list", "resource": "configmaps", "kind": "status", "code": 500},
        ]
        for fault in faults:
            fake.api.fault(**fault)
        daemon = fake.cardpack("--list-page-size", "7")
        check(fake.api.stats()["faults_left"] == 0, "a fault was not met")
        fake.verify(daemon)
        error = daemon.bind(fake.pod("more", 1), "n1")
        check("card 0: 0 of 16 free, " in error, error)


def a_list(kind: str, following: str = "") -> dict[str, Any]:
    """A fault: answers one list request with an empty list of that kind."""
    metadata = {"resourceVersion": "1"} | ({"continue": following} if following else {})
    text = json.dumps({"kind": kind, "metadata": metadata, "items": []})
    return {"verb": "list", "kind": "status", "code": 200, "text": text}


@scenario("fake")
def lists_that_are_not(lab: Lab) -> None:
    """A list of another kind, and a list without an end: cardpack accepts neither."""
    with fake_lab(lab) as fake:
        fake.placed_pod("p", 3, "n1", 0)
        fake.api.fault(resource="nodes", **a_list("ConfigMapList"))
        fake.api.fault(resource="pods", **a_list("NodeList"))
        fake.api.fault(resource="pods", **a_list("Status"))
        fake.api.fault(resource="configmaps", **a_list("ConfigMapList", "again"))
        fake.api.fault(resource="configmaps", continued=True, **a_list("ConfigMapList", "again"))
        daemon = fake.cardpack()
        check(fake.api.stats()["faults_left"] == 0, "a fault was not met")
        failed = [line["of"] for line in daemon.log("list failed") if line["level"] == "warn"]
        check(sorted(failed) == ["configmaps", "nodes", "pods", "pods"], failed)
        fake.verify(daemon)
        plugin = Plugin(lab.options.binary, fake.kubeconfig, lab.workdir)
        fake.api.fault(resource="nodes", **a_list("PodList"))
        plugin.fails("top", "--direct", parts=("kind", '"PodList"', '"NodeList"'))
        fake.api.fault(resource="nodes", count=-1, **a_list("NodeList", "again"))
        plugin.fails("top", "--direct", parts=("a list that does not end",))


@scenario("fake")
def order_after_a_look_up(lab: Lab) -> None:
    """
    One bind must look its pod up first; a later bind need not. cardpack still sends the Bindings of a
    node in the order of their ASSUME_TIME.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        first = fake.pod("first", 1)
        known = fake.pod("known", 1)
        agree(daemon, fake.truth)
        wait_for(lambda: not daemon.reason(known, "n1"), "known")
        fake.api.fault(kind="quiet", resource="pods", now=True)
        unseen = fake.pod("unseen", 1)
        # The first Binding takes longest: two in flight at once would arrive in reverse order.
        fake.api.fault(kind="delay", verb="bind", path="/first/", ms=600)
        fake.api.configure(delay_ms={"get": 200})
        with ThreadPoolExecutor(3) as hands:
            asked = []
            for pod in (first, unseen, known):
                asked.append(hands.submit(daemon.bind, pod, "n1"))
                time.sleep(0.05)
            check([one.result() for one in asked] == ["", "", ""], "not all bound")
        pods = [fake.api.pod(name) for name in ("first", "unseen", "known")]
        by_version = sorted(pods, key=lambda p: int(p["metadata"]["resourceVersion"]))
        times = [int(p["metadata"]["annotations"][ASSUME_TIME]) for p in by_version]
        check(times == sorted(times), f"{[p['metadata']['name'] for p in by_version]}: {times}")


@scenario("fake")
def sent_again_after_a_change(lab: Lab) -> None:
    """
    A node's cards shrink, disappear or become unhealthy between a Binding and its repetition: cardpack
    does not repeat it for a card on which the pod does not fit any more.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        fake.watched()
        changes = [
            ("shrunk", 16, 2, ""), ("fewer", 16, 1, ""), ("gone", 0, 0, ""), ("ill", 32, 2, "0,1"),
        ]  # fmt: skip
        for name, total, cards, ill in changes:
            fake.api.create_node(name, 32, 2)
            first, pod = fake.pod(f"{name}-first", 16), fake.pod(name, 16)
            wait_for(lambda p=pod, n=name: not daemon.reason(p, n), f"{name} to fit")
            check(daemon.bind(first, name) == "", "the first card")
            fake.api.fault(kind="status", verb="bind", code=429, retry_after=2, text="later")
            with ThreadPoolExecutor(1) as hands:
                asked = hands.submit(daemon.bind, pod, name)
                wait_for(lambda: fake.api.stats()["faults_left"] == 0, "the first try")
                if ill:
                    fake.api.put_configmap(f"unhealthy-gpu-{name}", {"gpus": ill})
                elif total:
                    fake.resize(name, total, cards)
                else:
                    fake.api.must("DELETE", f"/api/v1/nodes/{name}")
                error = asked.result()
            check(error and fake.node_of(name) == "", f"{name}: bound all the same: {error!r}")
            check(f"to node {name}: the node has changed since the pod was placed" in error, error)
        agree(daemon, fake.truth)


@scenario("fake")
def wrong_annotations(lab: Lab) -> None:
    """
    Invalid annotations on pods and nodes: cardpack keeps running and counts every pod on a card or
    node.
    """
    with fake_lab(lab) as fake:
        odd = ["", "-1", "2", "x", "0x0", "1e0", " 1", "99999999999999999999", "0,1", "\u0661"]
        for i, idx in enumerate(odd):
            notes = {IDX: idx, ASSUME_TIME: idx or "9" * 30}
            fake.api.create_pod(f"p{i}", 1, node="n1", annotations=notes, labels={"by-hand": "y"})
        daemon = fake.cardpack()
        agree(daemon, fake.truth)
        check(daemon.bind(fake.pod("good", 2), "n1") == "", "bind")
        fake.verify(daemon)


@scenario("fake")
def frozen_answers(lab: Lab) -> None:
    """A request without an answer: its bind ends with an error in time, and other binds succeed."""
    with fake_lab(lab) as fake:
        fake.api.create_node("n2", 32, 2)
        daemon = fake.cardpack("--bind-timeout", "5s")
        fake.watched()
        fake.api.fault(kind="hang", verb="bind", path="/stuck/")
        stuck = fake.pod("stuck", 3)
        with ThreadPoolExecutor(1) as hands:
            asked = hands.submit(daemon.bind, stuck, "n1")
            for i in range(10):
                check(daemon.bind(fake.pod(f"p{i}", 3), "n2") == "", "bind beside a stuck one")
            error = asked.result()
        check("not known yet" in error, error)
        check(daemon.bind(fake.pod("next", 3), "n1") == "", "the node is blocked by a stuck bind")
        check(daemon.bind(stuck, "n1") == "", "asked again")
        fake.verify(daemon)
