"""Defects of other extenders that no other scenario covers (docs/defects.md)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench import PATIENCE, Bench, Lab, Skipped, agree, check, message, scenario
from component import wait_for
from daemon import is_sanitized
from fake_lab import fake_lab
from scenarios.input import asks
from truth import ASSIGNED, ASSUME_TIME, DEV, IDX, POD

from cluster import GPU_MEM

Json = Any

VACATED = "cardpack.io/vacated-cards"
NO_CARD = "Insufficient GPU Memory in one device"
MIB = 1 << 20


@scenario("fake")
def slow_binds(lab: Lab) -> None:
    """
    While the API server answers no Binding, cardpack sends one Binding per node, answers filter and
    inspect, and offers reserved memory to no other pod, with a single thread.
    """
    nodes = [f"m{i:02}" for i in range(24)]
    with fake_lab(lab) as fake:
        for node in nodes:
            fake.api.create_node(node, 16, 1)
        daemon = fake.cardpack()
        fake.watched()
        pods = [fake.pod(f"p{node}", 16) for node in nodes]
        agree(daemon, fake.truth)
        fake.api.reset_stats()
        fake.api.fault(kind="hang", verb="bind", count=-1)
        with ThreadPoolExecutor(len(nodes)) as hands:
            asked = [hands.submit(daemon.bind, p, n) for p, n in zip(pods, nodes, strict=True)]
            wait_for(lambda: fake.count("bind pods") == len(nodes), "a Binding for every node")
            for i in range(20):
                fits = daemon.fitting(asks(str(1 + i % 16)), [*nodes, "n1"])
                check(fits == ["n1"], f"a reserved card is offered: {fits}")
            used = sum(node["usedGPU"] for node in daemon.inspect()["nodes"])
            check(used == 16 * len(nodes), f"{used} reserved")
            check(daemon.threads() == 1, f"{daemon.threads()} threads")
            check(not any(one.done() for one in asked), "the binds were over before")
            fake.api.clear_faults()
            fake.api.go_down(200)  # closes the hanging requests; cardpack sends them again
            errors = [one.result() for one in asked]
        check(errors == [""] * len(nodes), errors)
        fake.verify(daemon)


@scenario("fake")
def large_requests(lab: Lab) -> None:
    """
    Complete Node objects in a request, 30 MB: cardpack reads all of it and uses its own ledger, not
    those objects.
    """
    with fake_lab(lab) as fake:
        daemon = fake.cardpack()
        agree(daemon, fake.truth)
        check(daemon.bind(fake.pod("p", 16), "n1") == "", "bind")
        check(daemon.bind(fake.pod("q", 10), "n1") == "", "bind")
        n1 = fake.api.must("GET", "/api/v1/nodes/n1")
        n1["status"]["capacity"][GPU_MEM] = n1["status"]["allocatable"][GPU_MEM] = "3200"
        n1["metadata"]["annotations"] = {"note": "x" * 10_000}
        others = [{**n1, "metadata": {**n1["metadata"], "name": f"m{i}"}} for i in range(3000)]
        body = {"Nodes": {"items": [*others, n1]}, "NodeNames": None}
        size = len(json.dumps(body))
        check(size > 30_000_000, f"{size} bytes only")
        for mem, fits in (("6", ["n1"]), ("7", [])):
            answer = daemon.verb("filter", {**body, "Pod": asks(mem)})
            check(answer["Error"] == "", answer["Error"])
            names = [node["metadata"]["name"] for node in answer["Nodes"]["items"]]
            check(names == fits, f"{mem} on {names}, not {fits}")
            check(answer["FailedNodes"]["m2999"] == "node not found", "an unknown node")


@scenario("fake")
def others_configmaps(lab: Lab) -> None:
    """cardpack ignores foreign ConfigMaps of any size, and keeps only the card indices of its own."""
    plain = lab.options.plain
    if not plain.is_file() or is_sanitized(plain):
        raise Skipped(f"{plain} is no build without sanitizers: see --plain")
    with fake_lab(lab) as fake:
        for i in range(200):
            fake.api.put_configmap(f"large-{i}", {"blob": "x" * (MIB // 2)})
        fake.api.put_configmap("unhealthy-gpu-n1", {"gpus": "0", "blob": "x" * (MIB // 2)})
        fake.api.put_configmap("unhealthy-gpu-n1", {"gpus": "0,1"}, namespace="default")
        daemon = fake.cardpack(binary=plain)
        fake.watched()
        for i in range(200):
            fake.api.put_configmap(f"large-{i}", {"blob": "y" * (MIB // 2)})
        fake.api.put_configmap("unhealthy-gpu-n1", {"gpus": "1"})
        wait_for(lambda: len(daemon.log("unhealthy cards")) == 2, "the last ConfigMap", PATIENCE)
        sent = fake.api.stats()["bytes_sent"]
        check(sent > 190 * MIB, f"only {sent} bytes were sent")
        check(daemon.peak_rss() < 24 * MIB, f"{daemon.peak_rss()} bytes for {sent} of ConfigMaps")
        seen = [line for line in fake.api.requests_seen() if "/configmaps?" in line]
        mine = [line for line in seen if "GET" in line]
        ours = "/api/v1/namespaces/kube-system/configmaps?"
        check(mine and all(ours in line for line in mine), mine)
        check(daemon.bind(fake.pod("p", 5), "n1") == "", "bind")
        check(fake.api.pod("p")["metadata"]["annotations"][IDX] == "0", "the unhealthy card")


@scenario("fake")
def forged_annotations(lab: Lab) -> None:
    """Annotations that a pod's owner adds do not change the pod's usage."""
    with fake_lab(lab) as fake:
        sizes = ["0", "", "1", "-8", "99999999", "18446744073709551615", "x"]
        for i, size in enumerate(sizes):
            notes = {IDX: str(i % 2), POD: size, DEV: size, ASSIGNED: "maybe"}
            fake.api.create_pod(f"p{i}", 2, node="n1", annotations=notes, labels={"by-hand": "y"})
        # Not bound: its card annotation has no effect.
        fake.api.create_pod("wish", 16, annotations={IDX: "1", POD: "16", ASSIGNED: "true"})
        daemon = fake.cardpack()
        agree(daemon, fake.truth)
        devs = {dev["id"]: dev["usedGPU"] for dev in daemon.inspect("n1")["nodes"][0]["devs"]}
        check(devs == {0: 8, 1: 6}, devs)
        check(daemon.fitting(asks("10"), ["n1"]) == ["n1"], "10 of 16 are free on card 1")
        check(NO_CARD in daemon.reason(asks("11"), "n1"), "11 are not")
        # The same if the watch has not shown the pod yet, and bind reads it.
        fake.watched()
        fake.api.fault(kind="quiet", resource="pods", now=True)
        notes = {IDX: "0", POD: "1", DEV: "1", ASSIGNED: "true", ASSUME_TIME: "1"}
        unseen = fake.api.create_pod("unseen", 10, annotations=notes)
        check(daemon.bind(unseen, "n1") == "", "not bound")
        fake.api.close_watches("pods")
        fake.verify(daemon)


@scenario("real")
def annotations_left_over(bench: Bench) -> None:
    """
    Pods with the annotations of an attempt that was never bound: they hold no memory, also after a
    restart; they are scheduled like any others and get the annotations of the new attempt.
    """
    bench.node("n1", 2, 16)
    stale = {IDX: "7", DEV: "1", POD: "99", ASSIGNED: "true", ASSUME_TIME: "1600000000000000000"}
    asked = [bench.own_pod(f"own{i}", 5, annotations=stale) for i in range(2)]
    daemon = bench.cardpack()
    agree(daemon, bench.truth)
    daemon.stop()
    daemon.start()
    agree(daemon, bench.truth)
    check(not any(node["usedGPU"] for node in daemon.inspect()["nodes"]), "an annotation holds")
    for pod in asked:
        check(daemon.fitting(pod, ["n1"]) == ["n1"], "not offered")
        check(daemon.bind(pod, "n1") == "", "not bound")
    bench.pod("scheduled", 6, annotations={**stale, IDX: "0"})
    wait_for(lambda: bench.get("scheduled")["spec"].get("nodeName"), "scheduled bound", PATIENCE)
    check(not message(bench.get("scheduled")), message(bench.get("scheduled")))
    bench.verify(daemon)  # all five annotations exact, by one write a pod


@scenario("real")
def annotations_without_room(bench: Bench) -> None:
    """
    The API server does not count the annotations of a Binding, and refuses each later change of a pod
    with more than 256 KiB of them. A pod whose annotations leave no room is refused; the largest one
    that is not can be acknowledged after its Binding, which empties the author's vacated-cards.
    """
    bench.node("n1", 1, 16)
    daemon = bench.cardpack()
    agree(daemon, bench.truth)

    def asked(name: str, size: int) -> Json:
        own = {VACATED: "0", "note": '"<\\'}
        rest = size - sum(len(key) + len(value) for key, value in own.items())
        return bench.own_pod(name, 2, annotations={**own, "note": own["note"] + "x" * rest})

    for name, size in (("full", 256 << 10), ("over", (160 << 10) + 1)):
        pod = asked(name, size)
        said = f"its annotations have {size} bytes, 163840 at most"
        check(said in daemon.reason(pod, "n1"), daemon.reason(pod, "n1"))
        error = daemon.bind(pod, "n1")
        check(said in error and not bench.get(name)["spec"].get("nodeName"), error)
    pod = asked("largest", 160 << 10)
    check(daemon.fitting(pod, ["n1"]) == ["n1"], "not offered")
    check(daemon.bind(pod, "n1") == "", "not bound")
    bench.patch_pod("largest", {"metadata": {"annotations": {ASSIGNED: "true"}}})
    notes = bench.get("largest")["metadata"]["annotations"]
    check(notes[ASSIGNED] == "true" and notes[VACATED] == "", notes[VACATED])
    bench.patch_pod("largest", {"metadata": {"annotations": {ASSIGNED: "false"}}})
    bench.verify(daemon)
