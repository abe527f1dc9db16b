"""
The largest, deepest and oddest values that an API server stores for an author, and serves unchanged: cardpack
parses all of them, and its view equals a recount from the API server's objects.
"""

from __future__ import annotations

import json
from typing import Any

from bench import PATIENCE, Bench, Skipped, agree, budgets_path, check, scenario
from component import wait_for
from daemon import Daemon
from dra import DRIVER, GROUP, MERGE, Driver, release, table_of
from share_truth import CARDS
from truth import BY_HAND, GPU_COUNT, IDX

from cluster import GPU_MEM

from .dra import RIGHTS

Json = Any

SIZE = 16  # of each card
HELD = 10
DEPTH = 400  # of the objects in a managed field; a strict reader stops at some limit
CONTAINERS = 8_600
NOTES = 255_000  # bytes of annotations: an API server takes 256 KiB
LABELS = 20_000
TABLE = 440  # cards in a table of 256 KiB
TERMS = 131_100  # requirements of a budget: 1.44 MB in etcd, which takes 1.5, and 5.5 MB of JSON
DEVICES = 32  # of a claim: the most
UNREAD = (
    "an object can't be read and is left out",
    "an object of the list was left out: objects missing in this list are kept",
    "a pod can't be read: if it is bound, its node gets no new pods",
    "a node can't be read: it gets no new pods",
    "a node's table of cards can't be read",
    "a PodDisruptionBudget can't be read: it selects all pods of its namespace",
)


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


def pods() -> dict[str, bytes]:
    """Pods that hold a card of n1 each, in this order, by what is odd in them."""
    none = {"resources": {"limits": {"nvidia.com/gpu": "0"}, "requests": {"nvidia.com/gpu": "0"}}}
    many = {
        "initContainers": [{"name": "i", "image": "x", **none}],
        "containers": [{"name": f"c{i}", "image": "x", **none} for i in range(CONTAINERS)],
    }
    odd: dict[str, tuple[Json, Json]] = {  # fields of metadata, and of spec; a list is added to
        "deep": ({"managedFields": managed(deep())}, {}),
        "bytes": ({"managedFields": managed({"f:ODD": {}})}, {}),
        "many": ({}, many),
        "notes": ({"annotations": {f"n{i:05}": "" for i in range(NOTES // 6)}}, {}),
        "wide": ({"annotations": {"wide": "\U0001d11e" * (NOTES // 4)}}, {}),
        "nul": ({"annotations": {"nul": '\0\x1f"\\\u2028' * (NOTES // 7)}}, {}),
        "labels": ({"labels": {f"l{i}": "" for i in range(LABELS)}}, {}),
        "owners": ({"finalizers": [f"a.b/{i}" for i in range(10_000)]}, {}),
        "args": ({}, {"containers": [{"name": "args", "image": "x", "args": ["\0" * NOTES]}]}),
    }
    made = {}
    for card, (name, (metadata, spec)) in enumerate(odd.items()):
        pod = bound(name, "n1", card)
        for part, fields in ((pod["metadata"], metadata), (pod["spec"], spec)):
            for key, value in fields.items():
                part[key] = {**part[key], **value} if isinstance(value, dict) else part.get(key, []) + value
        made[name] = json.dumps(pod).encode().replace(b"ODD", b"\xff\xfe\xed\xa0\x80")
    return made


def uuid(card: int) -> str:
    """The UUID of a card of that table."""
    return f"GPU-{card}-".ljust(255, "x")


def table() -> str:
    """cardpack.io/cards of a node with as many cards as have room, all of their names as long as they may be."""
    rows = [
        {"index": i, "memory": SIZE, "uuid": uuid(i), "model": "\u00e9" * 127} for i in range(TABLE)
    ]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def _proto(number: int, value: str | bytes) -> bytes:
    """A field of protobuf that is a string or a message."""
    data = value.encode() if isinstance(value, str) else value
    length, size = b"", len(data)
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def budget(version: str) -> bytes:
    """A PodDisruptionBudget in protobuf, which an API server stores shorter than it is in JSON."""
    term = _proto(2, _proto(1, "a") + _proto(2, "In") + _proto(3, ""))
    meta = _proto(1, _proto(1, "terms"))
    raw = meta + _proto(2, _proto(2, term * TERMS))
    return b"k8s\0" + _proto(1, _proto(1, version) + _proto(2, "PodDisruptionBudget")) + _proto(2, raw)


def failures(daemon: Daemon) -> float:
    """How many watches of pods and budgets did not end in good order."""
    series = 'cardpack_watch_failures_total{{kind="{}"}}'
    return sum(daemon.metric(series.format(kind)) for kind in ("pods", "poddisruptionbudgets"))


def complaints(daemon: Daemon) -> list[Json]:
    """The log lines about what can't be read."""
    return [entry for message in UNREAD for entry in daemon.log(message)]


def _agrees(bench: Bench, daemon: Daemon) -> None:
    """cardpack has what the API server has."""
    agree(daemon, bench.truth)
    used = daemon.inspect("n1")["nodes"][0]["usedGPU"]
    check(used == len(pods()) * HELD, f"{used} of n1")
    wait_for(lambda: daemon.log("unhealthy cards"), "the ConfigMap")
    check(not daemon.fitting(bound("any", "", 0), ["ill"]), "its only card is unhealthy")
    free = bound("any", "", 0)
    free["metadata"]["annotations"] = {"cardpack.io/card-uuid": uuid(TABLE - 2)}
    check(daemon.fitting(free, ["long"]), "it has the last card but one of the table")
    known = wait_for(
        lambda: [e for e in daemon.log("a disruption budget") if e["name"] == "terms"], "the budget"
    )
    check(known[-1]["selects"] and not known[-1]["requirements"], "it selects all pods of its namespace")


@scenario("real")
def stored_objects(bench: Bench) -> None:
    """
    Pods, a node, a ConfigMap and a PodDisruptionBudget as large, deep and odd as an author can have stored: all
    is counted as the API server has it, also after a restart; a change of one of them ends no watch, and a card
    is free as soon as its pod is gone.
    """
    rows = pods()
    path = f"/api/v1/namespaces/{bench.namespace}/pods"
    budgets = budgets_path(bench, bench.namespace)
    bench.node("n1", len(rows) + 1, SIZE)
    bench.node("ill", 1, SIZE)
    bench.cluster.create_node("long", {GPU_MEM: TABLE * SIZE, GPU_COUNT: TABLE}, annotations={CARDS: table()})
    bench.cluster.must("POST", path, bound("last", "long", TABLE - 1))
    daemon = bench.cardpack()
    for body in rows.values():
        bench.cluster.must("POST", path, body)
    maps = "/api/v1/namespaces/kube-system/configmaps"
    data = {"gpus": "0", "other": "\u00e9" * 500_000}
    bench.cluster.must("POST", maps, {"metadata": {"name": "unhealthy-gpu-ill"}, "data": data})
    form = "application/vnd.kubernetes.protobuf"
    version = "/".join(budgets.split("/")[2:4])
    bench.cluster.must("POST", budgets, budget(version), content_type=form)
    try:
        _agrees(bench, daemon)
        daemon.kill()
        daemon.start()
        _agrees(bench, daemon)
        before = failures(daemon)
        bench.pod("p0", HELD)
        bench.wait_bound(len(rows) + 2, kicking=True)
        bench.pod("p1", HELD)
        for name in ("deep", "bytes", "many"):
            for i in range(5):
                bench.patch_pod(name, {"metadata": {"annotations": {"change": str(i)}}})
        wait_for(lambda: bench.cluster.api("DELETE", f"{path}/many")[0] == 200, "the deletion")
        bench.wait_bound(len(rows) + 2, kicking=True)
        agree(daemon, bench.truth)
        check(failures(daemon) == before, f"{failures(daemon)} watches failed, not {before}")
        check(not complaints(daemon), complaints(daemon))
        bench.verify(daemon, killed=True)
    finally:
        bench.cluster.must("DELETE", f"{budgets}/terms")


def claim() -> bytes:
    """A claim with as many requests as it may have, each with parameters for the driver as long as they may be."""
    names = [f"r{i}" for i in range(DEVICES)]
    exactly = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1}
    opaque = {"driver": DRIVER, "parameters": {"kind": "\0" * 1600}}
    config = [{"requests": [name], "opaque": opaque} for name in names]
    requests = [{"name": name, "exactly": exactly} for name in names]
    spec = {"devices": {"requests": requests, "config": config}}
    # The parameters are kept as bytes: a later write with others, as without a space, is refused.
    return json.dumps({"metadata": {"name": "large"}, "spec": spec}, separators=(",", ":")).encode()


def allocation(node: str) -> Json:
    """Its status: all devices of the node, with what the driver may say of each."""
    results = [
        {"request": f"r{i}", "driver": DRIVER, "pool": node, "device": f"gpu-{i}"} for i in range(DEVICES)
    ]
    users = [{"resource": "pods", "name": f"p{i}", "uid": f"u{i}"} for i in range(256)]
    return {"status": {"allocation": {"devices": {"results": results}}, "reservedFor": users}}


@scenario("real")
def stored_claims(bench: Bench) -> None:
    """The largest ResourceClaim holds its 32 cards, also after a restart, and gives them back."""
    if bench.minor < 34:
        raise Skipped("no resource.k8s.io/v1")
    size = {GPU_MEM: DEVICES * SIZE, GPU_COUNT: DEVICES}
    driver = Driver(bench.cluster)
    claims = f"{GROUP}/namespaces/{bench.namespace}/resourceclaims"
    held = 'cardpack_dra_devices{state="card"}'
    bench.cluster.kubectl("apply", "-f", RIGHTS)
    bench.cluster.create_node("n1", size, annotations={CARDS: table_of("n1", DEVICES, SIZE)})
    driver.publish("n1", DEVICES, SIZE)
    driver.device_class("gpus")
    try:
        daemon = bench.cardpack()
        bench.cluster.must("POST", claims, claim())
        bench.cluster.must("PATCH", f"{claims}/large/status", allocation("n1"), content_type=MERGE)
        wait_for(lambda: daemon.metric(held) == DEVICES, "its cards to be held", PATIENCE)
        daemon.kill()
        daemon.start()
        wait_for(lambda: daemon.metric(held) == DEVICES, "its cards to be held again", PATIENCE)
        check(not daemon.fitting(bound("any", "", 0), ["n1"]), "a card of n1 is free")
        check(not complaints(daemon), complaints(daemon))
        release(bench.cluster, bench.namespace, "large")
        wait_for(lambda: daemon.fitting(bound("any", "", 0), ["n1"]), "its cards to be free", PATIENCE)
    finally:
        driver.close()
        bench.cluster.kubectl("delete", "-f", RIGHTS)
