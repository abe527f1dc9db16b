"""kubectl cardpack doctor: each thing that is wrong in a cluster is found, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from bench import PATIENCE, Bench, check, scenario
from component import wait_for

from .dialects import ALL
from .kubectl import OPEN, SYSTEM, Plugin, plugin_of, service, viewer, with_kubectl_of

Json = Any

MERGE = "application/merge-patch+json"
IDX = "ALIYUN_COM_GPU_MEM_IDX"
CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://127.0.0.1:39999/gpushare-scheduler
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
  nodeCacheCapable: true
  managedResources: [{name: aliyun.com/gpu-mem}]
"""


def findings(plugin: Plugin, *flags: str) -> tuple[int, list[Json]]:
    """The exit status, and the findings that are not OK."""
    done = plugin.run("doctor", "-o", "json", *flags)
    status = done.returncode
    answer = plugin.json("doctor", *flags, status=status, says=None)
    for finding in answer["findings"]:
        check(bool(finding["advice"]) == (finding["result"] != "ok"), finding)
    check(status == (1 if answer["fail"] else 0), f"{status}: {answer}")
    return status, [f for f in answer["findings"] if f["result"] != "ok"]


def said(found: list[Json]) -> list[str]:
    return [f"{f['result']} {f['object']}: {f['finding']}" for f in found]


def patch_node(bench: Bench, name: str, **metadata: Json) -> None:
    bench.cluster.must("PATCH", f"/api/v1/nodes/{name}", {"metadata": metadata}, content_type=MERGE)


def config_map(bench: Bench, name: str, data: Json) -> None:
    item = {"metadata": {"name": name}, "data": data}
    bench.cluster.api("DELETE", f"{SYSTEM}/configmaps/{name}")
    bench.cluster.must("POST", f"{SYSTEM}/configmaps", item)


def system_pod(bench: Bench, name: str, labels: dict[str, str], node: str, space: str = SYSTEM) -> None:
    """A pod of kube-system, or of another namespace, that runs, as far as the API server knows."""
    spec = {"containers": [{"name": "c", "image": "example.invalid/none"}], "nodeName": node}
    bench.cluster.must("POST", f"{space}/pods", {
        "metadata": {"name": name, "labels": labels}, "spec": spec})  # fmt: skip
    bench.cluster.must("PATCH", f"{space}/pods/{name}/status", {"status": {"phase": "Running"}},
                       content_type=MERGE)  # fmt: skip


def run_pod(bench: Bench, name: str) -> None:
    path = f"/api/v1/namespaces/{bench.namespace}/pods/{name}/status"
    bench.cluster.must("PATCH", path, {"status": {"phase": "Running"}}, content_type=MERGE)


def used(bench: Bench, pod: str, card: int) -> Json:
    """What cardpack-node writes of a pod that uses 300 MiB of a card."""
    meta = bench.get(pod)["metadata"]
    one = {"uid": meta["uid"], "namespace": meta["namespace"], "name": pod, "card": card, "usedMiB": 300}
    cards = [{"index": i, "usedMiB": 300, "totalMiB": 16384} for i in (0, 1)]
    seen = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"usage": json.dumps({"seen": seen, "cards": cards, "pods": [one]})}


def breakages(bench: Bench) -> list[tuple[Callable[[], object], str]]:
    """What breaks the cluster, and the finding that tells it."""
    ns = bench.namespace

    def pod(name: str, mem: int, card: int | None, notes: Json = None, runs: bool = False) -> None:
        bench.pod(name, mem, node_name="n1", annotations={
            **({} if card is None else {IDX: str(card)}), **(notes or {})})  # fmt: skip
        if runs:
            run_pod(bench, name)

    table = '[{"index":0,"memory":16},{"index":1,"memory":16}]'
    return [
        (lambda: bench.cluster.create_node("bare", {"aliyun.com/gpu-mem": 16}),
         "fail node/bare: aliyun.com/gpu-mem 16, and no aliyun.com/gpu-count in its capacity"),
        (lambda: patch_node(bench, "cpu", labels={"gpushare": "true"}),
         "fail node/cpu: no aliyun.com/gpu-mem in its capacity, although it has the label"),
        (lambda: patch_node(bench, "n2", annotations={"cardpack.io/cards": table}),
         "warn node/n2: its card table has 32 in sum, and aliyun.com/gpu-mem is 33"),
        (lambda: patch_node(bench, "n3", annotations={"cardpack.io/cards": "[{}]"}),
         "fail node/n3: annotation cardpack.io/cards"),
        (lambda: patch_node(bench, "n1", labels={"cardpack.io/isolation": "some"}),
         'warn node/n1: label cardpack.io/isolation: "some" counts as none'),
        (lambda: bench.unhealthy("n1", "5"),
         "warn configmap/kube-system/unhealthy-gpu-n1: it names card 5, which the node does not have"),
        (lambda: bench.unhealthy("gone", "0"),
         "warn configmap/kube-system/unhealthy-gpu-gone: there is no node gone"),
        (lambda: pod("lost", 2, None), f"fail pod/{ns}/lost: bound to node n1 without a card"),
        (lambda: pod("ninth", 2, 9), f"fail pod/{ns}/ninth: its annotations name card 9, which"),
        (lambda: pod("large", 17, 1), f"fail pod/{ns}/large: it holds 17 of card 1 of node n1"),
        (lambda: pod("stuck", 2, 0, {"ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}, True),
         f"warn pod/{ns}/stuck: it runs, and the device plugin has not acknowledged it"),
        (lambda: config_map(bench, "cardpack-usage-n1", used(bench, "stuck", 1)),
         f"fail pod/{ns}/stuck: its processes use 300 MiB of card 1 of node n1, which its annotations do"),
        (lambda: bench.own_pod("early", 2, annotations={IDX: "0"}),
         f"warn pod/{ns}/early: it is not bound, and has the annotation {IDX}"),
        (lambda: system_pod(bench, "gushare", {"component": "gpushare-schd-extender"}, "n1"),
         "fail gpushare-schd-extender: gpushare's extender runs beside cardpack, as pod/kube-system/gushare"),
        (lambda: system_pod(bench, "like", {"component": "gpushare-device-plugin"}, "n1",
                            f"/api/v1/namespaces/{ns}"),
         f"warn pod/{ns}/like: it has the labels of gpushare's device plugin, and is not in kube-system:"),
        (lambda: system_pod(bench, "agent", {"app.kubernetes.io/name": "cardpack-node"}, "n1"),
         "fail node/n1: 2 pods of device plugins run there"),
        (lambda: None, "fail pod/kube-system/agent: cardpack-node on node n1 is not ready"),
        (lambda: None, "fail node/n1: cardpack-node is there, and the node has no annotation"),
        (lambda: patch_node(bench, "n2", labels={"cardpack.io/node": "true"}),
         "fail node/n2: it has the label cardpack.io/node=true, and no pod of cardpack-node"),
        (lambda: patch_node(bench, "n3", labels={
            "cardpack.io/node": "true", "nvidia.com/mig.config.state": "pending"}),
         "warn node/n3: the label nvidia.com/mig.config.state=pending is to keep cardpack-node away"),
        (lambda: patch_node(bench, "n1", labels={"cardpack.io/node": "true", "gpushare": "true"}),
         "warn node/n1: it has both labels"),
        (lambda: config_map(bench, "e2e-scheduler", {
            "c": CONFIG.replace("aliyun.com/gpu-mem", "nvidia.com/gpu")}),
         "fail configmap/kube-system/e2e-scheduler: managedResources of the extender"),
    ]  # fmt: skip


@scenario("real")
def kubectl_cardpack_doctor(bench: Bench) -> None:
    """
    In a cluster that is well, doctor finds nothing. Each thing that is then broken is found, with an
    advice. A user without rights is told so; cardpack is found when it is away.
    """
    bench.node("n1", 2, 16)
    bench.node("n2", 2, 16, remainder=1)
    bench.node("n3", 1, 16)
    bench.cluster.create_node("cpu", {})
    bench.resize("n2", gpu_mem=32)
    for node in ("n1", "n2", "n3"):
        system_pod(bench, f"plugin-{node}", {"component": "gpushare-device-plugin"}, node)
    config_map(bench, "e2e-scheduler", {"config.yaml": CONFIG})
    bench.placed_pod("well", 4, "n1", 0)
    daemon = bench.cardpack(*OPEN)
    plugin = viewer(bench)
    try:
        with service(bench, daemon.port):
            plugin.comes_to_answer()
            status, found = findings(plugin)
            check((status, found) == (0, []), found)
            url = ("--daemon-url", f"http://127.0.0.1:{daemon.port}")
            check(findings(plugin, *url) == (0, []), findings(plugin, *url))
            bench.resize("n2", gpu_mem=33)
            broken = breakages(bench)
            for breaks, tells in broken:
                breaks()
                wait_for(lambda: any(text.startswith(tells) for text in said(findings(plugin)[1])),
                         f"doctor to say {tells}", PATIENCE / 9)  # fmt: skip
            text = said(findings(plugin)[1])
            missing = [tells for _, tells in broken if not any(t.startswith(tells) for t in text)]
            check(not missing, f"{missing}: {text}")
            table = plugin.run("doctor")
            check(table.returncode == 1 and table.stdout.startswith("RESULT   OBJECT "), table)
            daemon.stop()
            away = [t for t in said(findings(plugin)[1]) if t.startswith("fail cardpack: not reachable")]
            check(len(away) == 1, away)
            none = plugin_of(bench, "e2e-nobody")
            rights = said(findings(none, "--direct")[1])
            check(any(t.startswith("fail rights: the user may not list nodes") for t in rights), rights)
            check(any(t.startswith("fail pods: they are not checked") for t in rights), rights)
        admin = with_kubectl_of(bench, bench.cluster.admin_kubeconfig)
        gone = said(findings(admin)[1])
        check(any(t.startswith("warn cardpack: not asked whether it is ready: the Service") for t in gone),
              gone)  # fmt: skip
    finally:
        for name in ("plugin-n1", "plugin-n2", "plugin-n3", "gushare", "agent"):
            bench.cluster.api("DELETE", f"{SYSTEM}/pods/{name}?gracePeriodSeconds=0")
        for name in ("e2e-scheduler", "unhealthy-gpu-n1", "unhealthy-gpu-gone", "cardpack-usage-n1"):
            bench.cluster.api("DELETE", f"{SYSTEM}/configmaps/{name}")


@scenario("real")
def kubectl_cardpack_dialects(bench: Bench) -> None:
    """
    Without the daemon, nodes and pods of every dialect are shown. doctor finds a node with two
    agents, and one whose dialect the running cardpack does not read.
    """
    volcano = {"volcano.sh/gpu-memory": 32000, "volcano.sh/gpu-number": 2}
    bench.node("n1", 2, 16)
    bench.cluster.create_node("v1", volcano)
    bench.cluster.create_node("t1", {"tencent.com/vcuda-core": 200, "tencent.com/vcuda-memory": 128})
    spec = {"nodeName": "v1", "containers": [
        {"name": "c", "image": "example.invalid/none", "resources": {"limits": {"volcano.sh/gpu-memory": 4000}}}]}
    bench.cluster.must("POST", f"/api/v1/namespaces/{bench.namespace}/pods", {
        "metadata": {"name": "trains", "annotations": {"volcano.sh/gpu-index": "1"}}, "spec": spec})  # fmt: skip
    daemon = bench.cardpack(*OPEN)
    plugin = viewer(bench)
    with service(bench, daemon.port):
        plugin.comes_to_answer()
        text = said(findings(plugin)[1])
        for node, resource in (("v1", "volcano.sh/gpu-memory"), ("t1", "tencent.com/vcuda-memory")):
            tells = f"warn node/{node}: its device plugin has the resource {resource}, of dialect"
            check(any(t.startswith(tells) for t in text), f"{tells}: {text}")
        shown = {n["name"]: n for n in plugin.json("cards", "--direct")["nodes"]}
        check({"n1", "v1", "t1"} <= set(shown), shown)
        used_of = {d["id"]: d["usedGPU"] for d in shown["v1"]["devs"]}
        check(used_of == {0: 0, 1: 4000}, used_of)
        pods = [p["name"] for p in plugin.json("pods", "-n", bench.namespace)["pods"]]
        check(pods == ["trains"], pods)
        some = [n["name"] for n in plugin.json("cards", "--direct", "--dialects", "gpushare")["nodes"]]
        check("v1" not in some and "n1" in some, some)
        patch = {"capacity": {"volcano.sh/gpu-memory": "32000", "volcano.sh/gpu-number": "2"}}
        bench.cluster.must("PATCH", "/api/v1/nodes/n1/status", {"status": patch}, content_type=MERGE)
        text = said(findings(plugin)[1])
        tells = "warn node/n1: it has resources of two device plugins, aliyun.com/gpu-mem (gpushare) and"
        check(any(t.startswith(tells) for t in text), f"{tells}: {text}")
        patch_node(bench, "v1", labels={"cardpack.io/dialect": "vulcano"})
        text = said(findings(plugin)[1])
        check(any(t.startswith('fail node/v1: label cardpack.io/dialect: "vulcano" is no') for t in text), text)


TABLE = [{"id": "GPU-a", "index": 0, "count": 10, "devmem": 24576, "devcore": 100, "type": "A10", "health": True},
         {"id": "GPU-b", "index": 1, "count": 10, "devmem": 24576, "devcore": 100, "type": "A10", "health": True}]  # fmt: skip
# A node of each device plugin: its capacity and annotations, the limits of a pod and its annotations.
HEALTHY: dict[str, tuple[Json, Json, Json, Json]] = {
    "gpushare": ({"aliyun.com/gpu-mem": 32, "aliyun.com/gpu-count": 2}, {},
                 {"aliyun.com/gpu-mem": 4}, {IDX: "1", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}),
    "volcano": ({"volcano.sh/gpu-memory": 32000, "volcano.sh/gpu-number": 2}, {},
                {"volcano.sh/gpu-memory": 4000}, {"volcano.sh/gpu-index": "1", "volcano.sh/gpu-assigned": "true"}),
    "elastic": ({"elasticgpu.io/gpu-memory": 32000, "elasticgpu.io/gpu-core": 200}, {},
                {"elasticgpu.io/gpu-memory": 4000, "elasticgpu.io/gpu-core": 10},
                {"elasticgpu.io/container-c": "1", "elasticgpu.io/assumed": "true"}),
    "tencent": ({"tencent.com/vcuda-memory": 128, "tencent.com/vcuda-core": 200}, {},
                {"tencent.com/vcuda-memory": 16, "tencent.com/vcuda-core": 10},
                {"tencent.com/predicate-gpu-idx-0": "1", "tencent.com/gpu-assigned": "true"}),
    "volcano-vgpu": ({"volcano.sh/vgpu-number": 20, "volcano.sh/vgpu-memory": 49152, "volcano.sh/vgpu-cores": 200},
                     {"volcano.sh/node-vgpu-register": "GPU-a,10,24576,A10,true,hami-core:GPU-b,10,24576,A10,true,hami-core:"},
                     {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 1000},
                     {"volcano.sh/vgpu-ids-new": "GPU-b,NVIDIA,1000,0:", "volcano.sh/bind-phase": "success"}),
    "hami": ({"nvidia.com/gpu": 20}, {"hami.io/node-nvidia-register": json.dumps(TABLE)},
             {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000},
             {"hami.io/vgpu-devices-allocated": "GPU-b,NVIDIA,1000,0:;", "hami.io/bind-phase": "success"}),
    "nvidia": ({"nvidia.com/gpu": 8}, {}, {"nvidia.com/gpu": 1}, {}),
}  # fmt: skip


@scenario("real")
def healthy_dialects(bench: Bench) -> None:
    """
    A healthy node and pod of every dialect, and of NVIDIA's plugin: doctor says no FAIL, through the
    daemon and without it, and pods has no reason.
    """
    pods = f"/api/v1/namespaces/{bench.namespace}/pods"
    for name, (capacity, notes, limits, said_of) in HEALTHY.items():
        bench.cluster.create_node(name, capacity, annotations=notes)
        amounts = {"limits": {key: str(amount) for key, amount in limits.items()}}
        bench.cluster.must("POST", pods, {
            "metadata": {"name": name, "annotations": said_of},
            "spec": {"nodeName": name, "containers": [
                {"name": "c", "image": "example.invalid/none", "resources": amounts}]}})  # fmt: skip
        run_pod(bench, name)
    system_pod(bench, "plugin", {"component": "gpushare-device-plugin"}, "gpushare")
    daemon = bench.cardpack(f"--dialects={ALL}", *OPEN)
    plugin = viewer(bench)
    try:
        with service(bench, daemon.port):
            plugin.comes_to_answer()
            for way in ((), ("--direct",)):
                status, found = findings(plugin, *way)
                bad = [f for f in found if f["result"] == "fail" or f["object"].startswith("pod/")]
                check((status, bad) == (0, []), f"{way}: {bad}")
            rows = {p["name"]: p for p in plugin.json("pods", "-n", bench.namespace)["pods"]}
            check(set(rows) == set(HEALTHY), rows)
            blamed = [p for p in rows.values() if p["reason"]]
            check(not blamed, blamed)
            cards = {name: [s["card"] for s in p["placement"]] for name, p in rows.items()}
            check(all(c == ([] if name == "nvidia" else [1]) for name, c in cards.items()), cards)
    finally:
        bench.cluster.api("DELETE", f"{SYSTEM}/pods/plugin?gracePeriodSeconds=0")
