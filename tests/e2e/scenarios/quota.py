"""Quotas: a namespace's limits, from a ConfigMap that changes while cardpack runs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from bench import QUOTA_MAP, Bench, Json, agree, check, message, scenario
from component import wait_for
from daemon import Daemon

MAPS = "/api/v1/namespaces/kube-system/configmaps"


def write(bench: Bench, text: str) -> None:
    """Creates or updates the ConfigMap with that text."""
    item = {"metadata": {"name": QUOTA_MAP}, "data": {"quota.yaml": text}}
    if bench.cluster.api("PUT", f"{MAPS}/{QUOTA_MAP}", item)[0] == 404:
        bench.cluster.must("POST", MAPS, item)


def limit(bench: Bench, daemon: Daemon, **fields: Json) -> None:
    """Writes the fields of the scenario's namespace, and waits until cardpack uses them."""
    before = len(daemon.log("quotas"))
    write(bench, json.dumps({"namespaces": {bench.namespace: fields, "somebody": {}}}))
    wait_for(lambda: len(daemon.log("quotas")) > before, "the quotas to be read")
    check(daemon.log("quotas")[-1]["namespaces"] == 2, daemon.log("quotas"))


def refused(bench: Bench, name: str, *texts: str) -> None:
    """Waits until the pod's condition contains all texts."""

    def said() -> bool:
        return all(text in message(bench.get(name)) for text in texts)

    try:
        wait_for(said, "the reason in the condition", poll=0.1)
    except TimeoutError as error:
        raise AssertionError(f"{name}: {message(bench.get(name))!r}, not {texts}") from error


def bound(bench: Bench, name: str) -> str:
    """The pod's node; makes the scheduler retry pending pods."""
    bench.kick()
    return str(wait_for(lambda: bench.get(name)["spec"].get("nodeName"), f"{name} bound"))


def two_pools(bench: Bench) -> None:
    """Makes a node of two T4 in the pool gold, and one of two A100 in the pool silver."""
    for name, pool, model in (("gold", "gold", "T4"), ("silver", "silver", "A100-SXM")):
        bench.cluster.create_node(
            name,
            {"aliyun.com/gpu-mem": 32, "aliyun.com/gpu-count": 2},
            labels={"cardpack.io/pool": pool, "nvidia.com/gpu.product": model},
        )


@scenario("real")
def quota_is_kept(bench: Bench) -> None:
    """
    Quotas by memory, cards, pool and model, each written while cardpack runs. The pods' conditions
    show the usage and the limit. Without the ConfigMap there is no limit.
    """
    two_pools(bench)
    daemon = bench.cardpack()
    quota = f"quota of namespace {bench.namespace}: "
    limit(bench, daemon, limits={"memory": 12})
    bench.pod("a", 8)
    node = bound(bench, "a")
    other = "silver" if node == "gold" else "gold"
    bench.pod("b", 8)
    refused(bench, "b", f"0/2 nodes are available: 2 {quota}memory: 8 of 12 used, 8 asked")
    limit(bench, daemon, limits={"memory": 16})
    check(bound(bench, "b") == node, "not packed")

    limit(bench, daemon, limits={"cards": 2})
    bench.pod("c", 4)
    refused(bench, "c", f"2 {quota}cards: 2 of 2 used, 1 asked")
    limit(bench, daemon, perPool={node: {"memory": 18}})
    check(bound(bench, "c") == other, "in the pool that is used up")

    t4, a100 = (16, 1) if node == "gold" else (4, 2)
    limit(bench, daemon, perModel={"t4": {"memory": 17}, "A100*": {"cards": a100}})
    bench.pod("d", 14)
    refused(
        bench,
        "d",
        f"1 {quota}memory of model t4: {t4} of 17 used, 14 asked",
        f"1 {quota}cards of model A100*: {a100} of {a100} used, 1 asked",
    )
    limit(bench, daemon, pools=["bronze"])
    bench.kick()
    refused(bench, "d", f'{quota}pool "gold" is not allowed', f'{quota}pool "silver" is not allowed')

    bench.cluster.must("DELETE", f"{MAPS}/{QUOTA_MAP}")
    wait_for(lambda: daemon.log("the quotas are gone: no namespace has limits"), "the end of them")
    bound(bench, "d")
    bench.verify(daemon)


@scenario("real")
def quota_is_broken(bench: Bench) -> None:
    """An invalid quota limits nothing when cardpack starts; later the last valid one stays in force."""
    two_pools(bench)
    wrong = json.dumps({"namespaces": {bench.namespace: {"limits": {"memory": "8Gi"}}}})
    write(bench, wrong)
    daemon = bench.cardpack()
    lines = daemon.log("the quotas can't be read, and stay as they were")
    place = f'namespaces.{bench.namespace}.limits.memory: "8Gi"'
    check(len(lines) == 1 and place in lines[0]["error"] and not lines[0]["in_force"], lines)
    bench.pod("a", 12)
    bound(bench, "a")

    limit(bench, daemon, limits={"memory": 12})
    write(bench, wrong)
    wait_for(
        lambda: len(daemon.log("the quotas can't be read, and stay as they were")) == 2,
        "the broken one to be read",
    )
    bench.pod("b", 1)
    refused(bench, "b", f"quota of namespace {bench.namespace}: memory: 12 of 12 used, 1 asked")
    limit(bench, daemon, limits={"memory": 13})
    bound(bench, "b")
    bench.verify(daemon)


@scenario("real")
def last_of_the_quota(bench: Bench) -> None:
    """Two binds at once, to two nodes with room: only one gets the rest of the quota."""
    two_pools(bench)
    daemon = bench.cardpack()
    limit(bench, daemon, limits={"memory": 8})
    for i in range(8):
        pods = [bench.own_pod(f"{name}{i}", 8) for name in ("x", "y")]
        with ThreadPoolExecutor(2) as hands:
            binds = [
                hands.submit(daemon.bind, pod, node)
                for pod, node in zip(pods, ("gold", "silver"), strict=True)
            ]
            errors = sorted(bind.result() for bind in binds)
        text = f"quota of namespace {bench.namespace}: memory: 8 of 8 used, 8 asked"
        check(errors[0] == "" and text in errors[1], errors)
        if i < 7:
            for pod in pods:
                bench.cluster.delete_pod(pod["metadata"]["name"], bench.namespace)
            agree(daemon, bench.truth)
    limit(bench, daemon, limits={"memory": 16})
    bench.pods(["p", "q"], [8, 8])

    def told() -> bool:
        nodes = [bench.get(name)["spec"].get("nodeName") for name in ("p", "q")]
        return sum(map(bool, nodes)) == 1 and any(
            "memory: 16 of 16 used, 8 asked" in message(bench.get(name)) for name in ("p", "q")
        )

    wait_for(told, "one bound and the other told why not")
    bench.verify(daemon)
