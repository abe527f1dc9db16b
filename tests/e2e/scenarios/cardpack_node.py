"""cardpack-node, with the rights of manifests/node and a double of NVIDIA's library."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

from bench import Bench, Json, Skipped, check, scenario
from component import Component, Ports, wait_for
from renderings import kustomize, strictly

from scenarios.kubectl import MANIFESTS

COUNT = "aliyun.com/gpu-count"
MAP = "/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-n1"
USAGE = "/api/v1/namespaces/kube-system/configmaps/cardpack-usage-n1"
WORLD = """\
card uuid=GPU-1 name=NVIDIA_A100 bus=0x3b minor=0 mib=40960
card uuid=GPU-2 name=NVIDIA_A100 bus=0x5e minor=1 mib=40960
"""


def answers(port: int) -> bool:
    """Whether it says that all is announced, and that only the kubelet is missing: there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
            return False
    except urllib.error.HTTPError as error:
        return error.read() == b"the kubelet has not registered the device plugin\n"
    except OSError:
        return False


def start(bench: Bench, ports: Ports, token_of: str = "") -> Component:
    """
    cardpack-node of the tested build, as the ServiceAccount of its manifest; token_of: the node that its
    token names.
    """
    folder = Path(bench.options.binary).parent
    program, double = folder / "cardpack-node", folder / "tests/nvml/libnvidia-ml.so.1"
    if not program.exists() or not double.exists():
        raise Skipped(f"there is no {program} or no {double}")
    bench.cluster.kubectl("apply", "-f", str(MANIFESTS / "node" / "cardpack-node.yaml"))
    token = bench.cluster.service_account_token("kube-system", "cardpack-node", node=token_of)
    kubeconfig = bench.cluster.write_kubeconfig(bench.workdir / "node.kubeconfig", token)
    (bench.workdir / "world").write_text(WORLD)
    port = ports.take()
    argv = [program, "--node-name=n1", f"--kubeconfig={kubeconfig}", f"--nvml={double}", f"--listen=127.0.0.1:{port}",
            f"--state={bench.workdir}/cards", f"--kubelet-dir={bench.workdir}", "--log-level=debug",
            "--usage-interval=1s", "--usage-write=1s"]  # fmt: skip
    node = Component("cardpack-node", argv, bench.workdir, lambda: answers(port),
                     env={"CARDPACK_NVML_WORLD": str(bench.workdir / "world")})  # fmt: skip
    node.start()
    return node


def the_node(bench: Bench) -> Json:
    """The Node object."""
    return bench.cluster.must("GET", "/api/v1/nodes/n1")


def counts(bench: Bench) -> tuple[Json, Json]:
    """Of capacity and of allocatable."""
    status = the_node(bench)["status"]
    return status["capacity"].get(COUNT), status["allocatable"].get(COUNT)


def usage(bench: Bench) -> list[int]:
    """MiB in use on each card, by the ConfigMap; empty if there is none."""
    status, answer = bench.cluster.api("GET", USAGE)
    return [c["usedMiB"] for c in json.loads(answer["data"]["usage"])["cards"]] if status == 200 else []


def no_more_rights(bench: Bench) -> None:
    """What the token is refused."""
    token = bench.cluster.service_account_token("kube-system", "cardpack-node")
    patch, merge = {"spec": {"unschedulable": True}}, "application/merge-patch+json"
    for method, path, body in (
        ("PATCH", "/api/v1/nodes/n1", patch),
        ("GET", MAP, None),
        ("DELETE", MAP, None),
        ("GET", "/api/v1/namespaces/kube-system/secrets", None),
        ("PATCH", "/api/v1/namespaces/default/pods/x", {"metadata": {"labels": {"a": "b"}}}),
        ("DELETE", "/api/v1/namespaces/default/pods/x", None),
    ):
        status, answer = bench.cluster.api(method, path, body, token=token, content_type=merge)
        check(status == 403, f"{method} {path}: {status} {answer}")
    status, answer = bench.cluster.api("PATCH", "/api/v1/nodes/n1/status", patch, token=token, content_type=merge)
    check(status == 200 and "unschedulable" not in answer["spec"], answer)


@scenario("real")
def cards_are_announced(bench: Bench) -> None:
    """Table, label and count by one PATCH; again when zeroed; an unhealthy card: ConfigMap and event."""
    bench.cluster.create_node("n1", {"aliyun.com/gpu-mem": 80})
    daemon = bench.cardpack()
    ports = Ports()
    node = start(bench, ports)
    try:
        metadata = the_node(bench)["metadata"]
        table = json.loads(metadata["annotations"]["cardpack.io/cards"])
        check([(c["index"], c["memory"], c["uuid"]) for c in table] == [(0, 40, "GPU-1"), (1, 40, "GPU-2")], table)
        check(metadata["labels"]["cardpack.io/isolation"] == "none", metadata)
        check(counts(bench) == ("2", "2"), counts(bench))
        wait_for(lambda: [n["totalGPU"] for n in daemon.inspect()["nodes"] if n["name"] == "n1"] == [80], "the cards")

        bench.cluster.set_node_status("n1", {COUNT: 0})
        wait_for(lambda: counts(bench) == ("2", "2"), "the count after the kubelet has zeroed it")

        # What is used: made, then written again when it has changed.
        wait_for(lambda: usage(bench) == [0, 0], "the ConfigMap of what is used", timeout=60)
        fresh = bench.workdir / "world.new"
        fresh.write_text(WORLD.replace("minor=1", "minor=1 used=3000"))
        fresh.rename(bench.workdir / "world")
        wait_for(lambda: usage(bench) == [0, 3000], "the new figure", timeout=60)

        fresh.write_text(WORLD + "event number=1 uuid=GPU-2 xid=79\n")
        fresh.rename(bench.workdir / "world")
        wait_for(lambda: bench.cluster.api("GET", MAP)[0] == 200, "the ConfigMap", timeout=60)
        check(bench.cluster.must("GET", MAP)["data"] == {"gpus": "1"}, bench.cluster.must("GET", MAP))

        def told() -> list[Json]:
            events = bench.cluster.list_all("/api/v1/namespaces/default/events")
            return [e for e in events if e["source"].get("component") == "cardpack-node"]

        event = wait_for(told, "an event")[0]
        check(event["reason"] == "CardUnhealthy" and event["involvedObject"]["kind"] == "Node", event)
        described = bench.cluster.kubectl("describe", "node", "n1").stdout
        check("CardUnhealthy" in described, described)
        no_more_rights(bench)
    finally:
        node.terminate()
        bench.cluster.kubectl("delete", "-f", str(MANIFESTS / "node" / "cardpack-node.yaml"))
        bench.cluster.api("DELETE", MAP)
        bench.cluster.api("DELETE", USAGE)
        ports.close()
    check(node.status == 0, node.tail())


def denied(bench: Bench, token: str, method: str, path: str, body: Json) -> str:
    """The API server's message if it denies the request, else an empty text; nothing is changed."""
    merge = "application/merge-patch+json" if method == "PATCH" else "application/json"
    status, answer = bench.cluster.api(method, f"{path}?dryRun=All", body, token=token, content_type=merge)
    check(status in (200, 201, 403), f"{method} {path}: {status} {answer}")
    return str(answer["message"]) if status == 403 else ""


@scenario("real")
def cardpack_node_on_its_own_node(bench: Bench) -> None:
    """
    manifests/components/own-node: with a token that names n1, cardpack-node does all of its work on n1. The
    same token can't change n2, a pod there, or another ConfigMap, and a token that names no node nothing.
    """
    if bench.minor < 32:
        raise Skipped("tokens name the node since 1.32")
    for name in ("n1", "n2"):
        bench.cluster.create_node(name, {"aliyun.com/gpu-mem": 80})
        bench.placed_pod(f"p{name[1:]}", 1, name, 0)
    note = {"metadata": {"annotations": {"cardpack.io/tried": "x"}}}
    maps = "/api/v1/namespaces/kube-system/configmaps"
    of_pods = f"/api/v1/namespaces/{bench.namespace}/pods"
    policy = kustomize(MANIFESTS / "components" / "own-node")
    bench.cluster.kubectl("apply", "-f", str(MANIFESTS / "node" / "cardpack-node.yaml"))
    bench.cluster.kubectl("apply", strictly(bench), "-f", "-", stdin=policy)
    ports = Ports()
    node: Component | None = None
    try:
        token = bench.cluster.service_account_token("kube-system", "cardpack-node", node="n1")
        wait_for(lambda: denied(bench, token, "PATCH", "/api/v1/nodes/n2/status", note), "the policy to hold")
        node = start(bench, ports, "n1")
        wait_for(lambda: counts(bench) == ("2", "2"), "the count of n1")
        wait_for(lambda: usage(bench) == [0, 0], "the ConfigMap of n1", timeout=60)
        for method, path, body, why in (
            ("PATCH", "/api/v1/nodes/n2/status", note, 'change nodes "n2": it belongs to node n2'),
            ("PATCH", f"{of_pods}/p2/status", note, 'change pods "p2": it belongs to node n2'),
            ("POST", maps, {"metadata": {"name": "unhealthy-gpu-n2"}}, "it belongs to node n2"),
            ("POST", maps, {"metadata": {"name": "cardpack-usage-n10"}}, "it belongs to node n10"),
            ("POST", maps, {"metadata": {"name": "cardpack-quota"}}, "it belongs to no node"),
            ("PATCH", "/api/v1/nodes/n1/status", note, ""),
            ("PATCH", f"{of_pods}/p1/status", note, ""),
            ("POST", maps, {"metadata": {"name": "unhealthy-gpu-n1"}}, ""),
        ):  # fmt: skip
            said = denied(bench, token, method, path, body)
            check(why in said and bool(why) == bool(said), f"{method} {path}: {said!r}")
        nameless = bench.cluster.service_account_token("kube-system", "cardpack-node")
        said = denied(bench, nameless, "PATCH", "/api/v1/nodes/n1/status", note)
        check("names no node" in said, said)
        admin = bench.cluster.api("PATCH", "/api/v1/nodes/n2/status?dryRun=All", note,
                                  content_type="application/merge-patch+json")  # fmt: skip
        check(admin[0] == 200, f"others than cardpack-node: {admin}")
    finally:
        if node is not None:
            node.terminate()
        bench.cluster.kubectl("delete", "-f", "-", stdin=policy)
        bench.cluster.kubectl("delete", "-f", str(MANIFESTS / "node" / "cardpack-node.yaml"))
        for name in ("unhealthy-gpu-n1", "cardpack-usage-n1"):
            bench.cluster.api("DELETE", f"{maps}/{name}")
        ports.close()
    check(node.status == 0, node.tail())
