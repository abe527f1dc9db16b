"""What an API server stores for a pod's author, and serves unchanged: cardpack parses all of it."""

from __future__ import annotations

import json
from typing import Any

from bench import Bench, agree, check, scenario
from component import wait_for
from daemon import Daemon
from truth import BY_HAND, IDX

from cluster import GPU_MEM

Json = Any

SIZE = 16  # of each card
HELD = 10
DEPTH = 400  # of the objects in a managed field; a strict reader stops at some limit
CONTAINERS = 8_600


def bound(name: str, node: str, card: int, **metadata: Json) -> Json:
    """A pod that its author has bound to the node by spec.nodeName, with a part of this card."""
    sizes = {GPU_MEM: str(HELD)}
    return {
        "metadata": {"name": name, "labels": {BY_HAND: "y"}, "annotations": {IDX: str(card)}, **metadata},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [
                {"name": "c", "image": "x", "resources": {"limits": sizes, "requests": sizes}}
            ],
        },
    }


def managed(fields: Json) -> Json:
    """metadata.managedFields with these fieldsV1."""
    return [
        {
            "manager": "author", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:metadata": {"f:annotations": fields}},
        }
    ]  # fmt: skip


def deep() -> Json:
    """Objects in objects."""
    fields: Json = {}
    for _ in range(DEPTH):
        fields = {"f:x": fields}
    return fields


def bodies() -> dict[str, bytes]:
    """Three pods on cards 0 to 2 of n1, by name."""
    many = bound("many", "n1", 2)
    none = {"resources": {"limits": {"nvidia.com/gpu": "0"}, "requests": {"nvidia.com/gpu": "0"}}}
    many["spec"]["initContainers"] = [{"name": "i", "image": "x", **none}]
    many["spec"]["containers"] += [{"name": f"c{i}", "image": "x", **none} for i in range(CONTAINERS)]
    odd = json.dumps(bound("bytes", "n1", 1, managedFields=managed({"f:ODD": {}}))).encode()
    return {
        "deep": json.dumps(bound("deep", "n1", 0, managedFields=managed(deep()))).encode(),
        "bytes": odd.replace(b"ODD", b"\xff\xfe\xed\xa0\x80"),
        "many": json.dumps(many).encode(),
    }


def failures(daemon: Daemon) -> float:
    """How many watches of pods did not end in good order."""
    return daemon.metric('cardpack_watch_failures_total{kind="pods"}')


@scenario("real")
def stored_objects(bench: Bench) -> None:
    """
    Pods whose managed fields nest deep or hold invalid UTF-8, and one of 8,600 containers: their
    cards are in use, also after a restart; a change of one of them ends no watch, and a card is free as
    soon as its pod is gone.
    """
    bench.node("n1", 4, SIZE)
    path = f"/api/v1/namespaces/{bench.namespace}/pods"
    daemon = bench.cardpack()
    for name, body in bodies().items():
        bench.cluster.must("POST", path, body)
        agree(daemon, bench.truth)
        held = daemon.inspect("n1")["nodes"][0]["usedGPU"]
        check(held == HELD * (1 + list(bodies()).index(name)), f"{name}: {held}")
    daemon.kill()
    daemon.start()
    agree(daemon, bench.truth)
    check(daemon.inspect("n1")["nodes"][0]["usedGPU"] == 3 * HELD, daemon.inspect("n1"))
    before = failures(daemon)
    bench.pod("p0", HELD)
    bench.wait_bound(4, kicking=True)
    bench.pod("p1", HELD)
    for i in range(5):
        for name in bodies():
            bench.patch_pod(name, {"metadata": {"annotations": {"change": str(i)}}})
    wait_for(lambda: bench.cluster.api("DELETE", f"{path}/many")[0] == 200, "the deletion")
    bench.wait_bound(5, kicking=True)
    agree(daemon, bench.truth)
    check(failures(daemon) == before, f"{failures(daemon)} watches failed, not {before}")
    check(not daemon.log("can't be read"), daemon.log("can't be read"))
    bench.verify(daemon, killed=True)
