"""The kubelet's own list of devices, podresources, beside the annotations: cardpack-node tells what differs."""

from __future__ import annotations

from agent import Agent, Watching
from bench import Bench, Json, check, scenario
from component import wait_for

from scenarios.agents import IDX, all_run, annotation, gpu_pod, told_of
from scenarios.kubectl import with_kubectl_of
from scenarios.usage import text
from webhook import Refusing

MERGE = "application/merge-patch+json"
DIFFER = "cardpack_node_differing_containers"


def differing(bench: Bench) -> list[Json]:
    """What the node's ConfigMap says."""
    found: list[Json] = text(bench).get("differences", [])
    return found


def annotate(bench: Bench, pod: str, **values: str | None) -> None:
    path = f"/api/v1/namespaces/{bench.namespace}/pods/{pod}"
    bench.cluster.must("PATCH", path, {"metadata": {"annotations": values}}, content_type=MERGE)


def doctor(bench: Bench, status: int) -> list[str]:
    """The findings of kubectl cardpack doctor about podresources, as text."""
    plugin = with_kubectl_of(bench, bench.cluster.admin_kubeconfig)
    answer = plugin.json("doctor", "--direct", status=status, says=None)
    return [f"{f['result']} {f['object']}: {f['finding']}" for f in answer["findings"] if "podresources" in str(f)]


@scenario("node")
def podresources_differ(bench: Bench) -> None:
    """A pod's annotations are edited, and can't be set back: node, extender and doctor say so, until it agrees."""
    worker = bench.worker("n1", cards=2)
    agent = Agent(bench, worker, (16, 16), "--usage-interval=1s", "--usage-write=1s")
    agent.start()
    extender = bench.cardpack()
    with Watching(agent.judge):
        gpu_pod(bench, worker, "one", 4)
        gpu_pod(bench, worker, "pair", 2, 2)
        all_run(bench, worker, ["one", "pair"])
        wait_for(lambda: agent.metric("cardpack_node_compared_containers") == 3, "three containers", 60)
        wait_for(lambda: text(bench).get("compared") == 3, "the ConfigMap", 30)
        check(agent.metric(DIFFER) == 0 and not differing(bench), differing(bench))
        wait_for(lambda: annotation(bench.get("one"), "ALIYUN_COM_GPU_MEM_ASSIGNED") == "true", "assigned", 30)
        check(any(line.startswith("ok podresources: ") for line in doctor(bench, 1)), doctor(bench, 1))
    card = annotation(bench.get("one"), IDX)
    other = str(1 - int(card))
    with Refusing(bench, "one", IDX) as webhook:
        annotate(bench, "one", **{IDX: other})
        wait_for(lambda: agent.metric(DIFFER) == 1, "one container that differs", 90)
        wait_for(lambda: webhook.refused > 0, "cardpack-node to try to set the annotation back", 30)
        wait_for(lambda: differing(bench), "the ConfigMap", 30)
        found = {key: differing(bench)[0][key] for key in ("name", "container", "kind", "annotated", "given")}
        check(found == {"name": "one", "container": "c0", "kind": "cards", "annotated": other, "given": card}, found)
        events = told_of(bench, "GPUCardsDiffer")
        check([e["involvedObject"]["name"] for e in events] == ["one"], events)
        row = b'\ncardpack_containers_differing{node="n1"} 1\n'
        wait_for(lambda: row in extender.exchange("GET", "/metrics")[1], "the extender", 30)
        said = doctor(bench, 1)
        check(any(f"container c0: its annotations name card {other}" in line for line in said), said)
    wait_for(lambda: annotation(bench.get("one"), IDX) == card, "the annotation to be set back", 120)
    wait_for(lambda: agent.metric(DIFFER) == 0 and not differing(bench), "no difference", 90)
    # without the kubelet's answer nothing is known, and nothing else stops
    worker.kubelet.kill()
    wait_for(lambda: "compared" not in text(bench), "the kubelet's silence", 120)
    check(agent.metric("cardpack_node_compared_containers") == 0, "the old list counts")
    worker.kubelet.start()
    wait_for(lambda: text(bench).get("compared") == 3, "the list again", 120)
    check(worker.wait_container("one").env[IDX] == card, "one")
