"""Cards that DRA gives out, beside shared ones (docs/dra.md).

CARDPACK_DRA_SECONDS is how long the churn of dra_partition runs: 600 for the long run.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator

from bench import MANIFESTS, PATIENCE, Bench, Json, Skipped, agree, check, dice, message, scenario
from component import wait_for
from daemon import Daemon
from dra import (
    Driver,
    Story,
    Witness,
    claim,
    claiming_pod,
    devices_of,
    release,
    table_of,
    uuid_of,
)
from share_truth import CARDS
from truth import GPU_COUNT, IDX, place_of

from cluster import GPU_MEM

from .explain import explain, fit, pending
from .kubectl import plugin_of, viewer
from .kubectl_doctor import findings, said

RIGHTS = str(MANIFESTS / "components" / "dra" / "rbac.yaml")
SECONDS = float(os.environ.get("CARDPACK_DRA_SECONDS", "40"))
NODES, NODE_CARDS, SIZE = 4, 4, 16
EXCLUSIVE = "nvidia.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/"


@contextlib.contextmanager
def _driver(bench: Bench) -> Iterator[Driver]:
    """The driver, with cardpack's rights to read what it gives out."""
    if bench.minor < 34:
        raise Skipped("no resource.k8s.io/v1")
    driver = Driver(bench.cluster)
    bench.cluster.kubectl("apply", "-f", RIGHTS)
    try:
        yield driver
    finally:
        driver.close()
        claims = f"/apis/resource.k8s.io/v1/namespaces/{bench.namespace}/resourceclaims"
        bench.cluster.must("DELETE", f"/api/v1/namespaces/{bench.namespace}/pods", timeout=120)
        for item in bench.cluster.list_all(claims):
            release(bench.cluster, bench.namespace, item["metadata"]["name"])
        bench.cluster.kubectl("delete", "-f", RIGHTS)


def _node(bench: Bench, name: str, notes: dict[str, str] | None = None) -> None:
    bench.cluster.create_node(
        name,
        {GPU_MEM: NODE_CARDS * SIZE, GPU_COUNT: NODE_CARDS, EXCLUSIVE: 0},
        annotations={CARDS: table_of(name, NODE_CARDS, SIZE), **(notes or {})},
    )


def _allocated(bench: Bench, name: str) -> list[tuple[str, int]]:
    path = f"/apis/resource.k8s.io/v1/namespaces/{bench.namespace}/resourceclaims/{name}"
    return devices_of(bench.cluster.must("GET", path))


def _claim(bench: Bench, name: str, class_name: str = "gpus") -> None:
    claim(bench.cluster, bench.namespace, name, class_name)
    claiming_pod(bench.cluster, bench.namespace, name, name)


def _wait_bound(bench: Bench, name: str) -> None:
    wait_for(lambda: place_of(bench.get(name)), f"{name} to be bound", PATIENCE, poll=0.1)


def _metrics(daemon: Daemon) -> list[str]:
    return daemon.exchange("GET", "/metrics")[1].decode().splitlines()


def _wait_metric(daemon: Daemon, row: str) -> None:
    """Waits until cardpack's watches have shown what the row says."""
    wait_for(lambda: row in _metrics(daemon), row, PATIENCE, poll=0.1)


@scenario("real")
def dra_beside(bench: Bench) -> None:
    """A claimed card gets no pods, also while its driver is away; a released one does."""
    with _driver(bench) as driver:
        _node(bench, "n1")
        driver.publish("n1", NODE_CARDS, SIZE)
        driver.device_class("gpus")
        daemon = bench.cardpack()
        bench.pod("p1", SIZE)
        _wait_bound(bench, "p1")
        first = int(bench.get("p1")["metadata"]["annotations"][IDX])
        for i in range(NODE_CARDS):
            _claim(bench, f"c{i}")
            _wait_bound(bench, f"c{i}")
        taken = [card for i in range(NODE_CARDS) for _, card in _allocated(bench, f"c{i}")]
        check(sorted(taken) == list(range(NODE_CARDS)), taken)
        # DRA asks nobody: it has given out the card of p1 as well.
        _wait_metric(daemon, "cardpack_dra_cards_used_twice 1")
        twice = daemon.log("a ResourceClaim holds a card that pods share")
        check([entry["card"] for entry in twice] == [first], twice)
        bench.pod("p2", 1)
        wait_for(
            lambda: "ResourceClaims hold GPU devices" in message(bench.get("p2")),
            "the reason",
            PATIENCE,
            poll=0.2,
        )
        driver.withdraw("n1")
        time.sleep(1)
        bench.kick()
        time.sleep(1)
        check(not place_of(bench.get("p2")), "p2 is on a card whose driver is away")
        other = next(i for i in range(NODE_CARDS) if taken[i] != first)
        bench.cluster.must("DELETE", f"/api/v1/namespaces/{bench.namespace}/pods/c{other}")
        release(bench.cluster, bench.namespace, f"c{other}")
        wait_for(
            lambda: place_of(bench.get("p2")) or _kicked(bench), "p2 to be bound", PATIENCE, poll=1.0
        )
        check(int(bench.get("p2")["metadata"]["annotations"][IDX]) == taken[other], "its card")
        check('cardpack_dra_devices{state="card"} 3' in _metrics(daemon), "the metric")
        bench.verify_history(bench.truth())


def _kicked(bench: Bench) -> bool:
    bench.kick()
    return False


@scenario("real")
def dra_without_rights(bench: Bench) -> None:
    """cardpack decides without DRA's objects, and says which right is missing; with the right it counts."""
    if bench.minor < 34:
        _node(bench, "n1")
        daemon = bench.cardpack()
        check(daemon.log("the API server does not serve resource.k8s.io/v1"), "it says so")
        bench.pod("p1", SIZE)
        _wait_bound(bench, "p1")
        bench.verify(daemon)
        return
    _node(bench, "n1")
    daemon = bench.cardpack()
    said = "no right to read DRA's objects: cards that DRA gives out are not known"
    found = {entry["resource"] for entry in daemon.log(said)}
    check(found == {"resourceclaims", "resourceslices", "deviceclasses"}, found)
    check('cardpack_dra_feed{resource="resourceclaims",state="denied"} 1' in _metrics(daemon), "")
    bench.pod("p1", SIZE)
    _wait_bound(bench, "p1")
    agree(daemon, bench.truth)
    with _driver(bench) as driver:
        driver.publish("n1", NODE_CARDS, SIZE)
        driver.device_class("gpus")
        wait_for(
            lambda: sum('state="synced"} 1' in row for row in _metrics(daemon)) == 3,
            "the lists",
            PATIENCE,
            poll=0.5,
        )
        bench.verify_history(bench.truth())


@scenario("real")
def dra_extended(bench: Bench) -> None:
    """nvidia.com/gpu by a DeviceClass, where the node's allocatable is 0: both kinds on one node."""
    with _driver(bench) as driver:
        _node(bench, "n1", {"cardpack.io/dra-cards": "2,3"})
        driver.publish("n1", NODE_CARDS, SIZE)
        driver.device_class(
            "gpus", [uuid_of("n1", 2), uuid_of("n1", 3)], extendedResourceName=EXCLUSIVE
        )
        daemon = bench.cardpack()
        bench.pod("p1", SIZE)
        _wait_bound(bench, "p1")
        bench.pod("whole", None, resources={EXCLUSIVE: 1})
        _wait_bound(bench, "whole")
        bench.pod("p2", SIZE)
        _wait_bound(bench, "p2")
        claims = f"/apis/resource.k8s.io/v1/namespaces/{bench.namespace}/resourceclaims"
        cards = [c for item in bench.cluster.list_all(claims) for c in devices_of(item)]
        check(len(cards) == 1 and cards[0][1] in (2, 3), cards)
        _wait_metric(daemon, 'cardpack_dra_devices{state="card"} 1')
        check("cardpack_dra_cards_used_twice 0" in _metrics(daemon), "nothing is used twice")
        bench.verify_history(bench.truth())


def _held(bench: Bench) -> list[int]:
    """The cards that all claims hold, those too that kube-scheduler has made for pods."""
    claims = f"/apis/resource.k8s.io/v1/namespaces/{bench.namespace}/resourceclaims"
    return sorted(card for item in bench.cluster.list_all(claims) for _, card in devices_of(item))


def _says_what_is_held(daemon: Daemon, held: list[int]) -> None:
    """cardpack charges exactly the cards that the in-tree scheduler has allocated."""

    def states() -> list[int]:
        cards = daemon.call("GET", "/gpushare-scheduler/cards/n1")[1]
        return [d["id"] for d in cards["nodes"][0]["devs"] if d.get("state") == "dra"]

    wait_for(lambda: states() == held, f"the cards {held} to be held", PATIENCE, poll=0.1)


@scenario("real")
def dra_implicit(bench: Bench) -> None:
    """A pod that requests devices by the implicit name of a class: its card is counted, what is left is known."""
    if bench.minor < 36:
        raise Skipped("DRAExtendedResource is off")
    with _driver(bench) as driver:
        _node(bench, "n1")
        driver.publish("n1", NODE_CARDS, SIZE)
        driver.device_class("gpus", extendedResourceName=EXCLUSIVE)
        driver.device_class("others", [uuid_of("n1", 3)])
        daemon = bench.cardpack()
        asks = {f"{IMPLICIT}gpus": 1}
        check(fit(daemon, bench.own_pod("asks", None, resources=asks), 9)["fit"] == NODE_CARDS, "none held")
        bench.pod("named", None, resources=asks)
        _wait_bound(bench, "named")
        held = _held(bench)
        check(len(held) == 1, held)
        _says_what_is_held(daemon, held)
        bench.pod("other", None, resources={f"{IMPLICIT}others": 1})
        _wait_bound(bench, "other")
        check(len(_held(bench)) == 2 and 3 in _held(bench), _held(bench))
        _says_what_is_held(daemon, _held(bench))
        bench.pod("both", None, resources={**asks, EXCLUSIVE: 1})
        _wait_bound(bench, "both")
        check(_held(bench) == list(range(NODE_CARDS)), _held(bench))
        _says_what_is_held(daemon, _held(bench))
        bench.pod("waits", None, resources=asks)
        said = pending(bench, "waits")
        answer = explain(bench, daemon, "waits")
        (node,) = answer["verdicts"]
        check(node["verdict"] == "no_devices" and node["reason"] in said, f"{said}: {answer}")
        check(answer["request"]["devices"] == 1, answer["request"])
        check("cardpack_dra_cards_used_twice 0" in _metrics(daemon), "nothing is used twice")
        bench.verify_history(bench.truth())


@scenario("real")
def dra_implicit_init(bench: Bench) -> None:
    """The in-tree scheduler allocates as many devices for init containers and sidecars as cardpack counts."""
    if bench.minor < 36:
        raise Skipped("DRAExtendedResource is off")
    luck = dice("dra_implicit_init")
    cards = 12
    with _driver(bench) as driver:
        bench.cluster.create_node(
            "n1",
            {GPU_MEM: cards * SIZE, GPU_COUNT: cards, EXCLUSIVE: 0},
            annotations={CARDS: table_of("n1", cards, SIZE)},
        )
        driver.publish("n1", cards, SIZE)
        driver.device_class("gpus", extendedResourceName=EXCLUSIVE)
        daemon = bench.cardpack()
        pods = f"/api/v1/namespaces/{bench.namespace}/pods"
        for i in range(8):
            body = _several(luck, f"i{i}")
            counted = fit(daemon, body, 1)["request"]
            bench.cluster.must("POST", pods, body)
            _wait_bound(bench, f"i{i}")
            found = len(_held(bench))
            check(counted.split(" ")[0] == str(found), f"{counted}, not {found}: {body}")
            _says_what_is_held(daemon, _held(bench))
            bench.cluster.must("DELETE", f"{pods}/i{i}")
            claims = f"/apis/resource.k8s.io/v1/namespaces/{bench.namespace}/resourceclaims"
            for item in bench.cluster.list_all(claims):
                release(bench.cluster, bench.namespace, item["metadata"]["name"])
            _says_what_is_held(daemon, [])


def _several(luck: random.Random, name: str) -> Json:
    """A pod of several containers, each with some devices; at least one has any."""

    def container(at: str, most: int, **more: Json) -> Json:
        amount = luck.randint(0, most)
        # What a request says counts before a limit, which may be more for this kind of name.
        amounts = {"requests": {f"{IMPLICIT}gpus": str(amount)}}
        if luck.random() < 0.5:
            amounts["limits"] = {f"{IMPLICIT}gpus": str(amount + luck.randint(0, 2))}
        return {"name": at, "image": "example.invalid/none", "resources": amounts, **more}

    inits = [
        container(f"i{k}", 4, **luck.choice([{}, {"restartPolicy": "Always"}]))
        for k in range(luck.randint(0, 3))
    ]
    mains = [container(f"m{k}", 2) for k in range(2)]
    mains[0]["resources"] = {"limits": {f"{IMPLICIT}gpus": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "initContainers": inits,
            "containers": mains,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }


def _churn(bench: Bench, seconds: float, luck: random.Random) -> None:
    """Shared pods and claims come and go on the same nodes."""
    ends = time.monotonic() + seconds
    shared: list[str] = []
    claimed: list[str] = []
    number = 0
    while time.monotonic() < ends:
        number += 1
        if luck.random() < 0.5:
            bench.pod(f"p{number}", luck.choice([2, 4, 8, 16]))
            shared.append(f"p{number}")
        else:
            _claim(bench, f"c{number}")
            claimed.append(f"c{number}")
        for names, most in ((shared, 14), (claimed, 9)):
            while len(names) > most:
                name = names.pop(luck.randrange(len(names)))
                pods = f"/api/v1/namespaces/{bench.namespace}/pods"
                bench.cluster.must("DELETE", f"{pods}/{name}")
                if names is claimed:
                    release(bench.cluster, bench.namespace, name)


def _say(story: Story, what: str) -> None:
    late = [t for t in story.used_twice() if t.second.kind == "pod"]
    blind = [t for t in story.used_twice() if t.second.kind == "claim"]
    longest = max((t.apart for t in late), default=0.0)
    print(
        f"    {what}: {story.held('pod')} pods and {story.held('claim')} claims had cards; "
        f"{len(late)} pods came to a card after its claim (at most {longest * 1000:.0f} ms), "
        f"{len(blind)} claims to a card after its pod",
        flush=True,
    )


@scenario("real")
def dra_partition(bench: Bench) -> None:
    """Churn of shared pods and claims on the same nodes, each with its own cards: none is used twice."""
    with _driver(bench) as driver:
        uuids = []
        for i in range(NODES):
            _node(bench, f"n{i}", {"cardpack.io/dra-cards": "2,3"})
            driver.publish(f"n{i}", NODE_CARDS, SIZE)
            uuids += [uuid_of(f"n{i}", 2), uuid_of(f"n{i}", 3)]
        driver.device_class("gpus", uuids)
        daemon = bench.cardpack()
        witness = Witness(bench.cluster)
        _churn(bench, SECONDS, dice("dra_partition"))
        agree(daemon, bench.truth)
        story = witness.close()
        _say(story, "with the partition")
        check(story.held("pod") > SECONDS and story.held("claim") > SECONDS, "too little churn")
        check(not story.used_twice(), story.used_twice()[:3])
        bench.verify_history(bench.truth())


def _delays(bench: Bench, daemon: Daemon, claims: int) -> list[float]:
    """How long cardpack shares a card after the API server has shown its claim's allocation."""
    probe = bench.own_pod("probe", 1)
    found = []
    for i in range(claims):
        _claim(bench, f"d{i}")
        while not _allocated(bench, f"d{i}"):
            time.sleep(0.0005)
        since = time.monotonic()
        while daemon.fitting(probe, ["probed"]):
            pass
        found.append(time.monotonic() - since)
        bench.cluster.must("DELETE", f"/api/v1/namespaces/{bench.namespace}/pods/d{i}")
        release(bench.cluster, bench.namespace, f"d{i}")
        wait_for(lambda: daemon.fitting(probe, ["probed"]), "the card", PATIENCE, poll=0.01)
    return sorted(found)


@scenario("real")
def dra_delay(bench: Bench) -> None:
    """How soon cardpack knows of a claim: printed, and within a second at the median."""
    with _driver(bench) as driver:
        bench.cluster.create_node(
            "probed", {GPU_MEM: SIZE, GPU_COUNT: 1}, annotations={CARDS: table_of("probed", 1, SIZE)}
        )
        driver.publish("probed", 1, SIZE)
        driver.device_class("gpus")
        daemon = bench.cardpack()
        found = _delays(bench, daemon, 30)
        print(
            f"    after a claim's allocation was read, cardpack shared its card for another "
            f"{found[len(found) // 2] * 1000:.1f} ms (median), {found[-1] * 1000:.1f} ms (longest)",
            flush=True,
        )
        check(found[len(found) // 2] < 1, found)


@scenario("real")
def dra_window(bench: Bench) -> None:
    """
    The same without a partition. cardpack gives out no card that it knows to be claimed; what a watch
    can't know, and what DRA gives out itself, is measured and printed.
    """
    with _driver(bench) as driver:
        for i in range(NODES):
            _node(bench, f"n{i}")
            driver.publish(f"n{i}", NODE_CARDS, SIZE)
        driver.device_class("gpus")
        bench.cardpack()
        witness = Witness(bench.cluster)
        _churn(bench, SECONDS / 2, dice("dra_window"))
        story = witness.close()
        _say(story, "without the partition")
        late = [t for t in story.used_twice() if t.second.kind == "pod"]
        check(all(t.apart < 5 for t in late), [t for t in late if t.apart >= 5][:3])


@scenario("real")
def dra_kubectl(bench: Bench) -> None:
    """kubectl cardpack without the daemon knows claimed cards; doctor finds what claims make wrong."""
    with _driver(bench) as driver:
        _node(bench, "n1")
        _node(bench, "n2", {CARDS: table_of("other", NODE_CARDS, SIZE)})
        bench.cordon("n2")
        driver.publish("n1", NODE_CARDS, SIZE)
        driver.publish("n2", NODE_CARDS, SIZE)
        driver.device_class("gpus")
        plugin = viewer(bench)
        wait_for(lambda: plugin.run("top", "--direct").returncode == 0, "the viewer's rights", PATIENCE)
        _claim(bench, "c0")
        _wait_bound(bench, "c0")
        [(_, taken)] = _allocated(bench, "c0")
        states = {d["id"]: d["state"] for d in plugin.json("cards", "n1", "--direct")["nodes"][0]["devs"]}
        check([i for i, state in states.items() if state == "dra"] == [taken], states)
        bench.placed_pod("over", SIZE, "n1", taken)
        both = bench.own_pod("both", 1)
        both["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c0"}]
        both["metadata"] = {"name": "both-two", "namespace": bench.namespace}
        bench.cluster.must("POST", f"/api/v1/namespaces/{bench.namespace}/pods", both)
        text = said(findings(plugin, "--direct")[1])
        for tells in (
            f"fail node/n1: a ResourceClaim holds card {taken}, and 1 pod shares it",
            f"warn node/n2: {NODE_CARDS} of the {NODE_CARDS} devices of driver",
            f"warn pod/{bench.namespace}/both-two: it has ResourceClaims and shared cards",
        ):
            check(any(t.startswith(tells) for t in text), f"{tells}: {text}")
        none = said(findings(plugin_of(bench, "e2e-nobody"), "--direct")[1])
        for resource in ("resourceslices", "resourceclaims", "deviceclasses"):
            check(any(t.startswith(f"warn rights: the user may not list {resource}") for t in none), none)
