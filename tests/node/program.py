"""
cardpack-node as a program, with the double of NVIDIA's library and an API server that keeps a node,
its pods and its ConfigMap.

    program.py CARDPACK_NODE NVML_DOUBLE
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WAIT_S = 60
COUNT = "aliyun.com/gpu-count"
NO_KUBELET = (503, "the kubelet has not registered the device plugin\n")
ONE = "card uuid=GPU-1 name=NVIDIA_A100 bus=0x3b minor=0 mib=40960\n"
TWO = ONE + "card uuid=GPU-2 name=NVIDIA_A100 bus=0x5e minor=1 mib=40960\n"


class Cluster:
    """The API server's objects; every change has a version, and wakes the watches."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 10
        self.node: dict = {
            "metadata": {"name": "gpu-7", "resourceVersion": "10"},
            "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}},
        }
        self.config_map: dict | None = None
        self.events: list[dict] = []
        self.order: list[str] = []  # what was written
        self.away = False

    def touch(self) -> None:
        """The node has changed; the caller has the lock."""
        self.version += 1
        self.node["metadata"]["resourceVersion"] = str(self.version)
        self.changed.notify_all()

    def zero(self) -> None:
        """What the kubelet does at its start without its checkpoint."""
        with self.changed:
            for part in ("capacity", "allocatable"):
                self.node["status"][part][COUNT] = "0"
            self.touch()


def merge(to: dict, patch: dict) -> None:
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            to.pop(key, None)
        elif isinstance(value, dict):
            merge(to.setdefault(key, {}), value)
        else:
            to[key] = value


class Handler(BaseHTTPRequestHandler):
    """One request to the API server."""

    protocol_version = "HTTP/1.1"
    cluster: Cluster

    def log_message(self, *_: object) -> None:
        """Silent."""

    def answer(self, status: int, body: dict) -> None:
        """A whole answer."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self) -> dict:
        """The request's body."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def refuse(self, status: int) -> None:
        """A Status."""
        self.answer(status, {"kind": "Status", "status": "Failure", "code": status, "message": "because"})

    def do_GET(self) -> None:  # noqa: N802
        """A list or a watch."""
        c = self.cluster
        nodes = self.path.startswith("/api/v1/nodes?")
        assert nodes or self.path.startswith("/api/v1/pods?"), self.path
        assert ("metadata.name%3Dgpu-7" if nodes else "spec.nodeName%3Dgpu-7") in self.path, self.path
        if "watch=true" not in self.path:
            with c.changed:
                items = [json.loads(json.dumps(c.node))] if nodes else []
                meta = {"resourceVersion": str(c.version)}
            kind = "NodeList" if nodes else "PodList"
            self.answer(200, {"kind": kind, "metadata": meta, "items": items})
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = int(self.path.partition("resourceVersion=")[2].partition("&")[0])
        try:
            self.watch(nodes, seen)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def watch(self, nodes: bool, seen: int) -> None:
        """Sends the node whenever it has changed."""
        c = self.cluster
        while True:
            with c.changed:
                while not nodes or int(c.node["metadata"]["resourceVersion"]) <= seen:
                    c.changed.wait()
                seen = int(c.node["metadata"]["resourceVersion"])
                line = json.dumps({"type": "MODIFIED", "object": c.node}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()

    def do_PATCH(self) -> None:  # noqa: N802
        """The node's status, or the ConfigMap."""
        c = self.cluster
        patch = self.body()
        with c.changed:
            if c.away:
                return self.refuse(503)
            if self.path == "/api/v1/nodes/gpu-7/status":
                merge(c.node, patch)
                c.order.append("node")
                c.touch()
                return self.answer(200, c.node)
            assert self.path == "/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-gpu-7", self.path
            if c.config_map is None:
                return self.refuse(404)
            merge(c.config_map, patch)
            c.order.append("configmap")
            return self.answer(200, c.config_map)

    def do_POST(self) -> None:  # noqa: N802
        """An event, or the ConfigMap."""
        c = self.cluster
        body = self.body()
        with c.changed:
            if c.away:
                return self.refuse(503)
            if self.path == "/api/v1/namespaces/default/events":
                c.events.append(body)
            else:
                assert self.path == "/api/v1/namespaces/kube-system/configmaps", self.path
                c.config_map = body
                c.order.append("configmap")
        return self.answer(201, body)


def wait(what: str, done) -> None:
    """Until done() holds."""
    end = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > end:
            raise AssertionError(f"in {WAIT_S} s there was not: {what}")
        time.sleep(0.02)


class Node:
    """A running cardpack-node."""

    def __init__(self, program: str, double: str, folder: Path, server: ThreadingHTTPServer) -> None:
        self.world = folder / "world"
        self.log_path = folder / "log"
        config = folder / "kubeconfig"
        config.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
            "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
        )
        self.show(TWO)
        self.process = subprocess.Popen(
            [program, "--node-name=gpu-7", f"--kubeconfig={config}", f"--nvml={double}", "--log-level=debug",
             f"--state={folder}/cards", f"--kubelet-dir={folder}", "--listen=127.0.0.1:0", "--log-format=json"],
            env={**os.environ, "CARDPACK_NVML_WORLD": str(self.world)},
            stderr=self.log_path.open("w"),
        )  # fmt: skip
        wait("a port", lambda: self.line("listening") or self.process.poll() is not None)
        self.url = f"http://127.0.0.1:{self.line('listening')['port']}"

    def show(self, world: str) -> None:
        """Changes what NVML answers."""
        fresh = self.world.with_suffix(".new")
        fresh.write_text(world)
        fresh.rename(self.world)

    def line(self, message: str) -> dict:
        """The first line of the log with this message; empty if there is none."""
        for text in self.log_path.read_text().splitlines():
            if text.startswith("{") and json.loads(text).get("msg") == message:
                return json.loads(text)
        return {}

    def get(self, path: str) -> tuple[int, str]:
        """A GET of the program's port."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def metric(self, sample: str) -> str:
        """The value of a sample."""
        for text in self.get("/metrics")[1].splitlines():
            if text.startswith(sample + " "):
                return text.rpartition(" ")[2]
        return "(none)"


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


def check_health(node: Node, c: Cluster) -> None:
    """An XID: ConfigMap, kubelet, table, event."""
    node.show(TWO + "event number=1 uuid=GPU-2 xid=79\n")
    wait("the ConfigMap", lambda: c.config_map is not None)
    assert c.config_map and c.config_map["data"] == {"gpus": "1"}, c.config_map
    wait("one healthy card", lambda: node.metric("cardpack_node_offered_cards") == "1")
    wait("the table", lambda: '"health":"Unhealthy"' in c.node["metadata"]["annotations"]["cardpack.io/cards"])
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
    assert node.line("the unhealthy cards are told to the kubelet before the ConfigMap has them")
    assert c.config_map and c.config_map["data"] == {"gpus": "1"}, c.config_map
    assert node.get("/readyz")[0] == 503
    c.away = False
    wait("both cards", lambda: c.config_map and c.config_map["data"] == {"gpus": "0,1"})
    wait("all but the kubelet again", lambda: node.get("/readyz") == NO_KUBELET)


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
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"cluster": cluster}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        node = Node(program, double, Path(folder), server)
        checks = (check_announced, check_health, check_away, check_end)
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
