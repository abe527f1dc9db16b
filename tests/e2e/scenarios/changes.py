"""Nodes, cards and pods that change: cardpack uses the new state from the next request on."""

from __future__ import annotations

from typing import Any

from bench import Bench, agree, check, scenario
from component import wait_for
from daemon import Daemon
from truth import GPU_COUNT

from cluster import GPU_MEM

NO_CARD = "Insufficient GPU Memory in one device"
Json = Any


def comes_to_fit(daemon: Daemon, pod: Json, node: str) -> None:
    """Waits until the node is feasible; the watch alone must bring the change."""
    wait_for(lambda: daemon.reason(pod, node) == "", f"{node} to fit")


def comes_to_refuse(daemon: Daemon, pod: Json, node: str, why: str) -> None:
    """Waits until the node is refused with that reason."""
    wait_for(lambda: why in daemon.reason(pod, node), f"{node} to refuse: {why}")


@scenario("real")
def node_resized(bench: Bench) -> None:
    """Larger and smaller cards, more and fewer, another unit: bound pods stay charged."""
    bench.node("n1", 2, 8)
    daemon = bench.cardpack()
    ten, seven = bench.own_pod("ten", 10), bench.own_pod("seven", 7)
    comes_to_refuse(daemon, ten, "n1", NO_CARD)
    bench.resize("n1", gpu_mem=32)
    comes_to_fit(daemon, ten, "n1")
    check(daemon.bind(ten, "n1") == "", "bind on the larger card")
    agree(daemon, bench.truth)
    bench.resize("n1", gpu_mem=24)  # 12 each
    comes_to_refuse(daemon, bench.own_pod("thirteen", 13), "n1", NO_CARD)
    check(daemon.fitting(seven, ["n1"]) == ["n1"], "the second card of 12")
    bench.resize("n1", gpu_count=4)  # 6 each: the first holds more than it has
    comes_to_refuse(daemon, seven, "n1", NO_CARD)
    agree(daemon, bench.truth)
    six = bench.own_pod("six", 6)
    check(daemon.fitting(six, ["n1"]) == ["n1"], "another card of 6")
    error = daemon.bind(seven, "n1")
    check("can't hold" in error and "card 0: 0 of 6 free" in error, error)
    check(daemon.bind(six, "n1") == "", "bind on another card of 6")
    bench.resize("n1", gpu_count=1)  # one card of 24; the card of six is gone
    comes_to_fit(daemon, seven, "n1")
    agree(daemon, bench.truth)
    check(daemon.inspect("n1")["nodes"][0]["devs"][-1]["usedGPU"] == 6, "six is not shown")
    bench.cluster.delete_pod("six", bench.namespace)
    check(daemon.bind(seven, "n1") == "", "bind on the single card")
    bench.resize("n1", gpu_mem=24 * 1024)  # the plugin's unit is MiB from now on
    comes_to_fit(daemon, bench.own_pod("mebi", "20k"), "n1")
    agree(daemon, bench.truth)
    bench.resize("n1", gpu_mem=20)
    comes_to_refuse(daemon, bench.own_pod("four", 4), "n1", NO_CARD)
    agree(daemon, bench.truth)
    check(not bench.truth().overcommitted(), bench.truth().overcommitted())


@scenario("real")
def node_comes_and_goes(bench: Bench) -> None:
    """gpu-count before gpu-mem and the reverse; a node deleted and created again."""
    daemon = bench.cardpack()
    pod = bench.own_pod("p", 6)
    check('node "n1" not found' in daemon.reason(pod, "n1"), daemon.reason(pod, "n1"))
    bench.cluster.create_node("n1", {GPU_COUNT: 2})
    comes_to_refuse(daemon, pod, "n1", "The node n1 is not for GPU share, need skip")
    bench.resize("n1", gpu_mem=16)
    comes_to_fit(daemon, pod, "n1")
    bench.cluster.create_node("n2", {GPU_MEM: 16})
    comes_to_refuse(daemon, pod, "n2", "no usable aliyun.com/gpu-count")
    bench.resize("n2", gpu_count=2)
    comes_to_fit(daemon, pod, "n2")
    check(daemon.bind(pod, "n2") == "", "bind")
    # A node's pods outlive the node, and count again when it is back.
    bench.cluster.must("DELETE", "/api/v1/nodes/n2")
    more = bench.own_pod("more", 9)
    comes_to_refuse(daemon, more, "n2", 'node "n2" not found')
    error = daemon.bind(more, "n2")
    check('"n2" not found' in error, error)
    agree(daemon, bench.truth)
    bench.node("n2", 1, 14)
    comes_to_refuse(daemon, more, "n2", NO_CARD)
    agree(daemon, bench.truth)
    bench.cluster.delete_pod("p", bench.namespace)
    comes_to_fit(daemon, more, "n2")
    # The kubelet's state after a restart of the device plugin: allocatable is 0, capacity stays.
    bench.cluster.set_node_status("n2", {GPU_MEM: 14, GPU_COUNT: 1}, allocatable={GPU_MEM: 0})
    comes_to_refuse(daemon, more, "n2", "not allocatable")
    bench.resize("n2", gpu_mem=14)
    comes_to_fit(daemon, more, "n2")
    for odd in ({GPU_COUNT: 0}, {GPU_COUNT: 100000}, {GPU_MEM: 0}):
        bench.cluster.set_node_status("n2", odd)
        wait_for(lambda: daemon.reason(more, "n2") != "", f"{odd} to be refused")
        bench.resize("n2", gpu_mem=14, gpu_count=1)
        comes_to_fit(daemon, more, "n2")
    agree(daemon, bench.truth)


@scenario("real")
def pods_end(bench: Bench) -> None:
    """A pod frees its card when it succeeds, fails or is gone, not when its deletion begins."""
    bench.node("n1", 1, 8)
    daemon = bench.cardpack()
    probe = bench.own_pod("probe", 1)
    for name, end in (
        ("succeeds", lambda name: bench.cluster.set_pod_phase(name, "Succeeded", bench.namespace)),
        ("fails", lambda name: bench.cluster.set_pod_phase(name, "Failed", bench.namespace)),
        ("goes", lambda name: bench.cluster.delete_pod(name, bench.namespace)),
    ):
        pod = bench.own_pod(name, 8)
        comes_to_fit(daemon, pod, "n1")
        check(daemon.bind(pod, "n1") == "", f"{name}: bind")
        bench.cluster.set_pod_phase(name, "Running", bench.namespace)
        check(NO_CARD in daemon.reason(probe, "n1"), f"{name} holds nothing")
        end(name)
        comes_to_fit(daemon, probe, "n1")
        agree(daemon, bench.truth)
        error = daemon.bind(pod, "n1")
        check(error != "", f"{name} has ended, and a bind of it succeeds")
    _held_by_finalizer(bench, daemon, probe)
    _held_by_grace(bench, daemon, probe)
    bench.verify(daemon)


def _held_by_finalizer(bench: Bench, daemon: Daemon, probe: Json) -> None:
    pod = bench.own_pod("kept", 8)
    bench.patch_pod("kept", {"metadata": {"finalizers": ["example.com/kept"]}})
    check(daemon.bind(pod, "n1") == "", "bind of kept")
    bench.cluster.delete_pod("kept", bench.namespace)
    check(bench.get("kept")["metadata"].get("deletionTimestamp"), "kept is not being deleted")
    _is_known(bench, daemon)
    check(NO_CARD in daemon.reason(probe, "n1"), "a pod that is being deleted lost its card")
    agree(daemon, bench.truth)
    bench.patch_pod("kept", {"metadata": {"finalizers": None}})
    comes_to_fit(daemon, probe, "n1")


def _held_by_grace(bench: Bench, daemon: Daemon, probe: Json) -> None:
    pod = bench.own_pod("slow", 8, spec={"terminationGracePeriodSeconds": 3000})
    check(daemon.bind(pod, "n1") == "", "bind of slow")
    bench.cluster.set_pod_phase("slow", "Running", bench.namespace)
    bench.cluster.delete_pod("slow", bench.namespace, grace=3000)
    check(bench.get("slow")["metadata"].get("deletionTimestamp"), "slow is not being deleted")
    _is_known(bench, daemon)
    check(NO_CARD in daemon.reason(probe, "n1"), "a pod within its grace period lost its card")
    bench.cluster.set_pod_phase("slow", "Succeeded", bench.namespace)
    comes_to_fit(daemon, probe, "n1")
    bench.cluster.delete_pod("slow", bench.namespace)


def _is_known(bench: Bench, daemon: Daemon) -> None:
    """Waits until the watch of pods has shown all earlier writes: a later pod is known."""
    bench.placed_pod("mark", 1, "elsewhere", None)
    wait_for(lambda: any(n["name"] == "elsewhere" for n in daemon.inspect()["nodes"]), "the mark")
    bench.cluster.delete_pod("mark", bench.namespace)
    wait_for(lambda: all(n["name"] != "elsewhere" for n in daemon.inspect()["nodes"]), "no mark")


@scenario("real")
def unhealthy_cards(bench: Bench) -> None:
    """The ConfigMap in kube-system makes a card unusable at once, and usable again."""
    bench.node("n1", 2, 8)
    daemon = bench.cardpack()
    five = [bench.own_pod(f"five{i}", 5) for i in range(3)]
    comes_to_fit(daemon, five[0], "n1")
    bench.unhealthy("n1", "0")
    wait_for(lambda: daemon.log("unhealthy cards"), "the ConfigMap to be seen")
    check(daemon.bind(five[0], "n1") == "", "bind beside the unhealthy card")
    check(bench.get("five0")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "1", "card")
    check(NO_CARD in daemon.reason(five[1], "n1"), "the unhealthy card is offered")
    check("unhealthy" in daemon.bind(five[1], "n1"), "the unhealthy card is bound to")
    bench.unhealthy("n1", " 1, bad,,7 ")
    comes_to_fit(daemon, five[1], "n1")
    check(daemon.bind(five[1], "n1") == "", "bind on the healed card")
    check(bench.get("five1")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "0", "card")
    bench.unhealthy("n1", "0,1")
    one = bench.own_pod("one", 1)
    comes_to_refuse(daemon, one, "n1", "are unhealthy, cordoned or set aside")
    bench.unhealthy("n1", None)
    comes_to_fit(daemon, one, "n1")
    # cardpack ignores a ConfigMap of that name in another namespace.
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps"
    item = {"metadata": {"name": "unhealthy-gpu-n1"}, "data": {"gpus": "0,1"}}
    bench.cluster.must("POST", path, item)
    bench.unhealthy("n9", "0")  # a node that does not exist
    check(daemon.bind(one, "n1") == "", "bind with the ConfigMap in another namespace")
    bench.verify(daemon)


@scenario("real")
def bound_by_hand(bench: Bench) -> None:
    """A pod that was bound without cardpack counts on its card, or only on its node."""
    bench.node("n1", 2, 8)
    daemon = bench.cardpack()
    for name, card in (("none", None), ("word", "x"), ("minus", "-1"), ("beyond", "2")):
        notes = {} if card is None else {"ALIYUN_COM_GPU_MEM_IDX": card}
        bench.pod(name, 2, node_name="n1", annotations=notes, labels={"by-hand": "yes"})
    bench.placed_pod("right", 7, "n1", 1)
    agree(daemon, bench.truth)
    devs = {dev["id"]: dev for dev in daemon.inspect("n1")["nodes"][0]["devs"]}
    names = sorted(pod["name"] for pod in devs[-1]["pods"])
    check(devs[-1]["usedGPU"] == 8 and names == ["beyond", "minus", "none", "word"], devs[-1])
    # 16 - 8 - 7 = 1 is left on the node, though card 0 has 8 left.
    comes_to_refuse(daemon, bench.own_pod("two", 2), "n1", "beside pods without a card")
    one = bench.own_pod("one", 1)
    check(daemon.bind(one, "n1") == "", "the last one")
    check(bench.get("one")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "1", "card")
    for name in ("none", "word", "minus", "beyond", "right"):
        bench.cluster.delete_pod(name, bench.namespace)
    wait_for(lambda: len(daemon.inspect("n1")["nodes"][0]["devs"]) == 2, "no dev -1 any more")
    bench.verify(daemon)
