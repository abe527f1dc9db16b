"""
What a test of the whole cardpack-node runs it in: an API server that keeps a node, its pods and its
ConfigMap, and the double of NVIDIA's library.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WAIT_S = 60
NODE = "gpu-7"
COUNT = "aliyun.com/gpu-count"
RESOURCE = "aliyun.com/gpu-mem"
USAGE_PATH = "/api/v1/namespaces/kube-system/configmaps/cardpack-usage-gpu-7"


class Cluster:
    """The API server's objects; every change has a version, and wakes the watches."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 10
        self.node: dict = {
            "metadata": {"name": "gpu-7", "resourceVersion": "10"},
            "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}},
        }
        self.pods: dict[str, dict] = {}  # by UID
        self.history: list[tuple[int, str, dict]] = []  # what the watch of pods has to tell
        self.shown = 0  # the version of a pod that was sent last
        self.patches: list[tuple[str, dict]] = []  # of pods
        self.strange: list[str] = []  # paths of requests that it may not send
        self.config_map: dict | None = None
        self.usage: dict | None = None  # another ConfigMap
        self.events: list[dict] = []
        self.order: list[str] = []  # what was written
        self.away = False
        self.hold: threading.Event | None = None  # a list of pods stops before its last one until then
        self.held = 0  # lists that did

    def touch(self) -> None:
        """The node has changed; the caller has the lock."""
        self.version += 1
        self.node["metadata"]["resourceVersion"] = str(self.version)
        self.changed.notify_all()

    def tell(self, kind: str, pod: dict) -> None:
        """The pod has changed; the caller has the lock."""
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind, json.loads(json.dumps(pod))))
        self.changed.notify_all()

    def put(self, pod: dict) -> None:
        """A new pod, or another state of one."""
        with self.changed:
            uid = pod["metadata"]["uid"]
            kind = "MODIFIED" if uid in self.pods else "ADDED"
            self.pods[uid] = pod
            self.tell(kind, pod)

    def remove(self, uid: str) -> None:
        """A pod is gone."""
        with self.changed:
            self.tell("DELETED", self.pods.pop(uid))

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
    disable_nagle_algorithm = True
    cluster: Cluster

    def log_message(self, *_: object) -> None:
        """Silent."""

    def handle(self) -> None:
        """A connection; its end is no fault."""
        try:
            super().handle()
        except ConnectionError:
            pass

    def answer(self, status: int, body: dict, hold: threading.Event | None = None) -> None:
        """A whole answer; with `hold`, the last item of its list comes after that."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if hold is not None:
            at = data.rindex(json.dumps(body["items"][-1]).encode())
            self.wfile.write(data[:at])
            self.wfile.flush()
            self.cluster.held += 1
            hold.wait()
            data = data[at:]
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
                items = json.loads(json.dumps([c.node] if nodes else list(c.pods.values())))
                meta = {"resourceVersion": str(c.version)}
            kind = "NodeList" if nodes else "PodList"
            hold = None if nodes else c.hold
            self.answer(200, {"kind": kind, "metadata": meta, "items": items}, hold)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = int(self.path.partition("resourceVersion=")[2].partition("&")[0])
        try:
            self.watch_node(seen) if nodes else self.watch_pods(seen)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def chunk(self, kind: str, item: dict) -> None:
        """One line of a watch."""
        line = json.dumps({"type": kind, "object": item}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def watch_node(self, seen: int) -> None:
        """Sends the node whenever it has changed."""
        c = self.cluster
        while True:
            with c.changed:
                while int(c.node["metadata"]["resourceVersion"]) <= seen:
                    c.changed.wait()
                seen = int(c.node["metadata"]["resourceVersion"])
                item = json.loads(json.dumps(c.node))
            self.chunk("MODIFIED", item)

    def watch_pods(self, seen: int) -> None:
        """Sends all changes of pods."""
        c = self.cluster
        at = 0
        while True:
            with c.changed:
                while at == len(c.history):
                    c.changed.wait()
                version, kind, item = c.history[at]
                at += 1
            if version > seen:
                self.chunk(kind, item)
            c.shown = version

    def patch_pod(self, patch: dict) -> None:
        """The status of a pod; the caller has the lock."""
        c = self.cluster
        name = urllib.parse.unquote(self.path.split("/")[-2])
        meta = patch["metadata"]
        for uid, pod in c.pods.items():
            if pod["metadata"]["name"] != name:
                continue
            version = pod["metadata"]["resourceVersion"]
            if meta["uid"] != uid or meta.pop("resourceVersion", version) != version:
                return self.refuse(409)
            merge(pod, patch)
            c.patches.append((name, patch))
            c.tell("MODIFIED", pod)
            return self.answer(200, pod)
        return self.refuse(404)

    def do_PATCH(self) -> None:  # noqa: N802
        """The node's status, a pod's, or the ConfigMap."""
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
            if re.fullmatch("/api/v1/namespaces/ns/pods/[^/?#]+/status.timeout=10000ms", self.path):
                return self.patch_pod(patch)
            if self.path == USAGE_PATH:
                if c.usage is None:
                    return self.refuse(404)
                merge(c.usage, patch)
                return self.answer(200, c.usage)
            if self.path != "/api/v1/namespaces/kube-system/configmaps/unhealthy-gpu-gpu-7":
                c.strange.append(self.path)
                return self.refuse(403)
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
            if self.path in ("/api/v1/namespaces/default/events", "/api/v1/namespaces/ns/events"):
                c.events.append(body)
            elif body["metadata"]["name"].startswith("cardpack-usage-"):
                assert USAGE_PATH == f"{self.path}/{body['metadata']['name']}", body
                c.usage = body
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

    def __init__(
        self, program: str | list[str], nvml: str, folder: Path, server: ThreadingHTTPServer,
        world: str | None, *flags: str,
    ) -> None:  # fmt: skip
        self.world = folder / "world"
        self.log_path = folder / "log"
        config = folder / "kubeconfig"
        config.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
            "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
        )
        if world is not None:  # nvml is the double
            self.show(world)
        self.process = subprocess.Popen(
            [*([program] if isinstance(program, str) else program),
             "--node-name=gpu-7", f"--kubeconfig={config}", f"--nvml={nvml}",
             f"--state={folder}/cards", f"--kubelet-dir={folder}", "--listen=127.0.0.1:0", "--log-format=json",
             *(flags or ("--log-level=debug",))],
            env={**os.environ, **({} if world is None else {"CARDPACK_NVML_WORLD": str(self.world)})},
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


def serve(cluster: Cluster) -> ThreadingHTTPServer:
    """The API server of these objects."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"cluster": cluster}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
