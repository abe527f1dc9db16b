"""
cardpack-node as a program, with the double of NVIDIA's library and an API server that keeps a node,
its pods and its ConfigMap.

    program.py CARDPACK_NODE NVML_DOUBLE
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from world import COUNT, WAIT_S, Cluster, Node, serve, wait

NO_KUBELET = (503, "the kubelet has not registered the device plugin\n")
ONE = "card uuid=GPU-1 name=NVIDIA_A100 bus=0x3b minor=0 mib=40960\n"
TWO = ONE + "card uuid=GPU-2 name=NVIDIA_A100 bus=0x5e minor=1 mib=40960\n"


def check_announced(node: Node, c: Cluster) -> None:
    """The cards are announced, and again after the kubelet has zeroed the count."""
    wait("a table", lambda: "annotations" in c.node["metadata"])
    table = json.loads(c.node["metadata"]["annotations"]["cardpack.io/cards"])
    assert [(t["index"], t["memory"], t["model"], t["uuid"]) for t in table] == [
        (0, 40, "NVIDIA-A100", "GPU-1"), (1, 40, "NVIDIA-A100", "GPU-2")], table  # fmt: skip
    assert c.node["metadata"]["labels"]["cardpack.io/isolation"] == "none", c.node
    assert c.node["status"]["capacity"] == {"cpu": "8", COUNT: "2"}, c.node
    assert c.node["status"]["allocatable"] == {"cpu": "8", COUNT: "2"}, c.node
    wait("all but the kubelet", lambda: node.get("/readyz") == NO_KUBELET)
    assert node.get("/healthz") == (200, "ok\n")
    assert node.get("/other")[0] == 404
    assert node.metric('cardpack_node_cards{health="healthy"}') == "2", node.get("/metrics")[1]
    assert node.metric("cardpack_node_offered_units") == "80"
    assert c.config_map is None
    c.zero()
    wait("the count again", lambda: c.node["status"]["capacity"][COUNT] == "2")
    assert node.metric("cardpack_node_drifts_total") == "1"


def check_usage(node: Node, c: Cluster) -> None:
    """What processes use of a card: this one is in no pod, and then one that does not exist."""
    wait("the ConfigMap", lambda: c.usage is not None)
    node.show(ONE.replace("\n", " used=3000\n") + f"process pid={os.getpid()} mib=2000\n" + TWO[len(ONE) :])
    used = {"index": 0, "usedMiB": 3000, "totalMiB": 40960, "busyPercent": 0}

    def cards() -> list[dict]:
        return json.loads(c.usage["data"]["usage"])["cards"] if c.usage else []

    wait("the new figure", lambda: [{**card, "busyPercent": 0} for card in cards()][:1] == [used])
    text = json.loads(c.usage["data"]["usage"]) if c.usage else {}
    assert text["pods"] == [] and len(text["cards"]) == 2, text
    assert c.usage and c.usage["metadata"]["namespace"] == "kube-system", c.usage
    assert node.metric('cardpack_node_card_used_bytes{card="0",uuid="GPU-1"}') == str(3000 << 20)
    assert node.metric('cardpack_node_other_used_bytes{card="0"}') == str(3000 << 20)
    assert node.metric("cardpack_node_usage_blind") == "0"
    node.show(ONE + "process pid=4194300 mib=2000\n" + TWO[len(ONE) :])
    wait("blindness", lambda: node.metric("cardpack_node_usage_blind") == "1")
    assert node.metric("cardpack_node_pods_over_share") == "0"
    node.show(TWO)


def check_mode(node: Node, c: Cluster) -> None:
    """A card for one process, or for none, is no card to share: the event says what ends that."""
    first, second = TWO.splitlines()
    for uuid, mode, world in (
        ("GPU-1", "EXCLUSIVE_PROCESS", f"{first} compute-mode=3\n{second}\n"),
        ("GPU-2", "PROHIBITED", f"{first}\n{second} compute-mode=2\n"),
    ):
        node.show(world)
        wait("one card", lambda: node.metric("cardpack_node_offered_cards") == "1")
        wait("an event", lambda: c.events)
        assert f"the compute mode {mode} keeps pods" in c.events[0]["message"], c.events
        assert f"nvidia-smi -i {uuid} -c DEFAULT" in c.events[0]["message"], c.events
        node.show(TWO)
        wait("both cards", lambda: node.metric("cardpack_node_offered_cards") == "2")
        wait("an event about the end", lambda: c.events[-1]["reason"] != "CardUnhealthy")
        c.events.clear()
    c.config_map = None


def check_health(node: Node, c: Cluster) -> None:
    """An XID: ConfigMap, kubelet, table, the file for the next start, event."""
    node.show(TWO + "event number=1 uuid=GPU-2 xid=79\n")
    wait("the ConfigMap", lambda: c.config_map is not None)
    assert c.config_map and c.config_map["data"] == {"gpus": "1"}, c.config_map
    wait("one healthy card", lambda: node.metric("cardpack_node_offered_cards") == "1")
    wait("the table", lambda: '"health":"Unhealthy"' in c.node["metadata"]["annotations"]["cardpack.io/cards"])
    kept = node.world.with_name("cards.faults").read_text()
    assert kept == f"cardpack-faults 1 {Path('/proc/sys/kernel/random/boot_id').read_text()}GPU-2 79\n", kept
    wait("an event", lambda: c.events)
    event = c.events[0]
    assert event["reason"] == "CardUnhealthy" and event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Node", "name": "gpu-7", "uid": "gpu-7"}, event  # fmt: skip
    assert event["message"].startswith("card 1 (GPU-2, NVIDIA A100) is unhealthy"), event
    assert "XID 79" in event["message"], event
    assert event["source"]["component"] == "cardpack-node", event


def check_away(node: Node, c: Cluster) -> None:
    """The API server is away: the kubelet is told after the wait, and all is announced afterwards."""
    c.away = True
    node.show(TWO + "event number=2 uuid=GPU-1 xid=48\n")
    wait("no healthy card", lambda: node.metric("cardpack_node_offered_cards") == "0")
    assert node.line("the kubelet gets the unhealthy cards before the ConfigMap has them")
    assert c.config_map and c.config_map["data"] == {"gpus": "1"}, c.config_map
    assert node.get("/readyz")[0] == 503
    c.away = False
    wait("both cards", lambda: c.config_map and c.config_map["data"] == {"gpus": "0,1"})
    wait("all but the kubelet again", lambda: node.get("/readyz") == NO_KUBELET)


def check_late_binding(node: Node, c: Cluster) -> None:
    """A kubelet and a runtime with CDI: the node says that its containers get their cards late."""

    def runs(kubelet: str, runtime: str) -> None:
        with c.changed:
            c.node["status"]["nodeInfo"] = {"kubeletVersion": kubelet, "containerRuntimeVersion": runtime}
            c.touch()

    def says() -> str:
        return str(c.node["metadata"]["annotations"].get("cardpack.io/late-binding", ""))

    assert says() == "", c.node
    runs("v1.36.3", "containerd://2.0.1")
    wait("late binding", lambda: says() == "true")
    assert node.metric("cardpack_node_late_binding") == "1"
    runs("v1.36.3", "containerd://1.7.2")
    wait("no late binding", lambda: says() == "")
    assert node.metric("cardpack_node_late_binding") == "0"


def check_end(node: Node, c: Cluster) -> None:
    """SIGTERM ends it in order, and leaves what was announced."""
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(WAIT_S) == 0, node.log_path.read_text()
    assert node.line("stopped")
    assert c.node["status"]["capacity"][COUNT] == "2"


def main() -> int:
    """See the top of this file."""
    program, double = sys.argv[1:]
    cluster = Cluster()
    server = serve(cluster)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(
            program, double, Path(folder), server, TWO,
            "--log-level=debug", "--usage-interval=1s", "--usage-write=1s",
        )  # fmt: skip
        checks = (check_announced, check_usage, check_mode, check_health, check_away, check_late_binding, check_end)
        try:
            print(f"1..{len(checks)}")
            for n, check in enumerate(checks, 1):
                check(node, cluster)
                print(f"ok {n} - {check.__doc__}", flush=True)
        except BaseException:
            print(node.log_path.read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            if node.process.poll() is None:
                node.process.kill()
                node.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
