"""A fake API server with close enough semantics, for failures that a real one can't produce on demand.

    with FakeApi() as api:
        api.create_node("n1", mem=32, cards=4)
        api.create_pod("p1", gpu_mem=8)
        kubeconfig = api.write_kubeconfig(workdir / "kubeconfig")
        api.fault(kind="drop_after_commit", verb="bind")
        ...
        assert api.stats()["requests"]["bind pods"] == 1

Plain HTTP on 127.0.0.1, in a process of its own. As a script it serves until it
is killed: fake_api.py [--port N] [--kubeconfig FILE] [--nodes N --cards M --pods P ...].

It has nodes, namespaces, pods, configmaps, events and leases: list with limit, continue and selectors,
watch with bookmarks, get, create, update, merge patch, delete, and the Binding. It treats subresources
other than binding as the object itself. Continue tokens and the versions of watches are valid until
api.compact().

Faults, one JSON row each (POST /_fault, api.fault(**row)):

    what it hits   verb: list watch get bind create update patch delete, default all
                   resource: "pods", default all; path: a regular expression
                   continued: true (false): only list pages with (without) a token
                   count: 1; -1 for ever. skip: 0, so many matches go well first
    of a request   {"kind": "delay", "ms": 100}
                   {"kind": "status", "code": 503, "retry_after": 1, "reason": "",
                    "message": "", "text": "a body that is no JSON"}
                   {"kind": "drop"}                before anything is done
                   {"kind": "drop_after_commit", "ms": 0}
                   {"kind": "late_commit", "ms": 500, "code": 504}
                   {"kind": "hang"}
                   {"kind": "truncate", "bytes": 1000, "clean": false}    a list
    of a watch     {"kind": "cut", "bytes": 40}    in the midst of the next event
                   {"kind": "garbage", "line": "<html>"}
                   {"kind": "error_event", "code": 410, "reason": "Expired",
                    "message": "", "too_large": false}
                   {"kind": "end"} {"kind": "quiet"} {"kind": "drop_event"}
                   now: true hits the watches that are open, else the next one that
                   is opened; after_events: 0, so many events go well first
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from component import Component, Ports
from fake_server import Server

Json = Any

GPU_MEM = "aliyun.com/gpu-mem"
GPU_COUNT = "aliyun.com/gpu-count"


class FakeApi:
    """The server as a test uses it; any thread may call any method."""

    def __init__(self, workdir: str | os.PathLike[str] | None = None) -> None:
        self._ports = Ports()
        self._local = threading.local()
        self.port = self._ports.take()
        self.url = f"http://127.0.0.1:{self.port}"
        argv = [sys.executable, __file__, "--port", str(self.port)]
        log_to = Path(workdir) if workdir is not None else Path(os.environ.get("TMPDIR", "/tmp"))
        self.process = Component(f"fake-api-{self.port}", argv, log_to, self._answers)
        self._keep_log = workdir is not None

    def __enter__(self) -> FakeApi:
        self.process.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self._drop_connection()
        self._ports.close()
        if not self._keep_log:
            self.process.log.unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            return self.request("GET", "/_stats")[0] == 200
        except OSError:
            return False

    # ---- requests -----------------------------------------------------------------------

    def request(self, method: str, path: str, body: Json = None) -> tuple[int, Json]:
        """One request; the status and the parsed body (text if it is no JSON)."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            self._local.connection = connection
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            self._drop_connection()
            raise
        try:
            return response.status, json.loads(answer)
        except ValueError:
            return response.status, answer.decode(errors="replace")

    def _drop_connection(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def must(self, method: str, path: str, body: Json = None) -> Json:
        """The body alone; raises unless the status is 2xx."""
        status, answer = self.request(method, path, body)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    # ---- objects ------------------------------------------------------------------------

    def create_node(self, name: str, mem: int, cards: int = 1, **annotations: str) -> Json:
        """Makes a node with `mem` gpu-mem in total on `cards` cards."""
        total = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        if cards:
            total |= {GPU_MEM: str(mem), GPU_COUNT: str(cards)}
        node = {
            "metadata": {"name": name, "annotations": annotations,
                         "labels": {"kubernetes.io/hostname": name}},
            "spec": {},
            "status": {"capacity": total, "allocatable": total,
                       "conditions": [{"type": "Ready", "status": "True"}]},
        }  # fmt: skip
        return self.must("POST", "/api/v1/nodes", node)

    def create_pod(
        self,
        name: str,
        gpu_mem: int | None = None,
        namespace: str = "default",
        node: str = "",
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        phase: str = "Pending",
    ) -> Json:
        """Makes a pod of one container; bound already if a node is given."""
        limits = {} if gpu_mem is None else {GPU_MEM: str(gpu_mem)}
        spec: Json = {
            "containers": [
                {"name": "main", "image": "example/pause", "resources": {"limits": limits}}
            ],
            "schedulerName": "default-scheduler",
        }
        if node:
            spec["nodeName"] = node
        metadata = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
        pod = {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
        return self.must("POST", f"/api/v1/namespaces/{namespace}/pods", pod)

    def pod(self, name: str, namespace: str = "default") -> Json:
        """The pod, or None."""
        status, answer = self.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        return answer if status == 200 else None

    def patch_pod(self, name: str, patch: Json, namespace: str = "default") -> Json:
        return self.must("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}", patch)

    def set_pod_phase(self, name: str, phase: str, namespace: str = "default") -> Json:
        return self.patch_pod(name, {"status": {"phase": phase}}, namespace)

    def delete_pod(self, name: str, namespace: str = "default") -> None:
        self.must("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")

    def put_configmap(
        self, name: str, data: dict[str, str], namespace: str = "kube-system"
    ) -> None:
        """Creates or replaces the ConfigMap."""
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        item = {"metadata": {"name": name}, "data": data}
        if self.request("PUT", f"{path}/{name}", item)[0] == 404:
            self.must("POST", path, item)

    # ---- the server itself --------------------------------------------------------------

    def fault(self, **row: Json) -> None:
        """Adds one fault; see the top of this file."""
        self.must("POST", "/_fault", row)

    def clear_faults(self) -> None:
        self.must("DELETE", "/_fault")

    def stats(self) -> Json:
        """requests and answers by "verb resource", open watches, bytes_sent, faults_hit, ..."""
        return self.must("GET", "/_stats")

    def reset_stats(self) -> None:
        self.must("POST", "/_reset_stats")

    def requests_seen(self) -> list[str]:
        """The last 2,000 requests, and the faults that hit them."""
        lines: list[str] = self.must("GET", "/_log")
        return lines

    def compact(self) -> None:
        """From now on every older version and continue token gets 410."""
        self.must("POST", "/_compact")

    def bookmark(self, resource: str = "*") -> None:
        """Sends a bookmark to the open watches now."""
        self.must("POST", "/_bookmark", {"resource": resource})

    def close_watches(self, resource: str = "*") -> None:
        """Ends the open watches with a complete HTTP response."""
        self.must("POST", "/_close", {"resource": resource})

    def go_down(self, ms: int) -> None:
        """Cuts every connection and refuses new ones for `ms` milliseconds; the objects stay."""
        self.must("POST", "/_down", {"ms": ms})
        self._drop_connection()

    def configure(self, **settings: Json) -> None:
        """bookmark_seconds, preconditions (False: as before 1.27), delay_ms={verb: ms}."""
        self.must("POST", "/_config", settings)

    def world(self, **shape: int) -> None:
        """Adds a large cluster below the objects made so far: fake_world.Shape."""
        self.must("POST", "/_world", shape)

    def write_kubeconfig(self, path: str | os.PathLike[str]) -> Path:
        """A kubeconfig for this server, without credentials, as it uses plain HTTP."""
        return write_kubeconfig(path, self.url)


def write_kubeconfig(path: str | os.PathLike[str], url: str) -> Path:
    """A kubeconfig that names a server and no user."""
    text = f"""\
apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster: {{server: "{url}"}}
users:
- name: test
  user: {{}}
contexts:
- name: test
  context: {{cluster: test, user: test}}
"""
    path = Path(path)
    path.write_text(text)
    return path


async def _serve(args: argparse.Namespace, shape: dict[str, int]) -> None:
    server = Server()
    if shape:
        server.command("POST", "/_world", json.dumps(shape).encode())
    await server.listen(args.port)
    print(f"listening on http://127.0.0.1:{server.port}", flush=True)
    if args.kubeconfig:
        write_kubeconfig(args.kubeconfig, f"http://127.0.0.1:{server.port}")
    await asyncio.Event().wait()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A fake Kubernetes API server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--kubeconfig", help="write one here")
    names = ("nodes", "cards", "card_mem", "pods", "gpu_pods", "pod_mem")
    for name in names:
        parser.add_argument("--" + name.replace("_", "-"), type=int)
    args = parser.parse_args(argv)
    shape = {name: value for name in names if (value := getattr(args, name)) is not None}
    try:
        asyncio.run(_serve(args, shape))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
