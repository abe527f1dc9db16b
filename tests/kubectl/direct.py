#!/usr/bin/env python3
"""
Compares what kubectl-cardpack computes from the API server's lists with the daemon's answers about
the same objects, and that doctor finds nothing wrong with pods that are well.

    direct.py CARDPACK KUBECTL_CARDPACK
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
from routes import listening  # noqa: E402

Json = Any

TABLE = "hami.io/node-nvidia-register"
CARDS = [{"id": "GPU-a", "index": 0, "count": 10, "devmem": 24576, "devcore": 100, "type": "A10", "health": True},
         {"id": "GPU-b", "index": 1, "count": 10, "devmem": 24576, "devcore": 100, "type": "A10", "health": True}]  # fmt: skip


def node(name: str, capacity: dict[str, str], **annotations: str) -> Json:
    meta = {"name": name, "annotations": {k.replace("__", "/").replace("_", "-"): v
                                          for k, v in annotations.items()}}  # fmt: skip
    return {"kind": "Node", "metadata": meta, "status": {"capacity": capacity, "allocatable": capacity}}


def pod(name: str, on: str, limits: dict[str, str], **annotations: str) -> Json:
    return {"kind": "Pod",
            "metadata": {"name": name, "namespace": "a", "uid": f"uid-{name}", "annotations": annotations},
            "spec": {"nodeName": on, "containers": [{"name": "c", "resources": {"limits": limits}}]},
            "status": {"phase": "Running"}}  # fmt: skip


def asks(limits: dict[str, str]) -> Json:
    return pod("asks", "", limits)


MIX = {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"}
NVIDIA = {"nvidia.com/gpu": "1"}
HAMI = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
VGPU = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}
ALLOCATED = {"hami.io/vgpu-devices-allocated": "GPU-b,NVIDIA,1000,0:;"}


def hami(name: str, cards: Json = CARDS) -> Json:
    made = node(name, {"nvidia.com/gpu": "20"})
    made["metadata"]["annotations"][TABLE] = json.dumps(cards)
    return made


def vgpu(name: str) -> Json:
    made = node(name, {"volcano.sh/vgpu-number": "20"})
    made["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = (
        "GPU-a,10,24576,A10,true:GPU-b,10,24576,A10,true:")  # fmt: skip
    return made


WORLDS: dict[str, tuple[str, list[Json], list[Json]]] = {  # the daemon's dialects, objects, questions
    "nvidia": (
        "gpushare",
        [node("mix", {**NVIDIA, **MIX}, cardpack_io__exclusive_cards="1"), pod("p", "mix", NVIDIA)],
        [{"aliyun.com/gpu-mem": "16"}, NVIDIA, {"nvidia.com/gpu": "2"}]),
    "nvidia-alone": (
        "gpushare",
        [node("n", MIX), node("v", {"nvidia.com/gpu": "8"}), pod("p", "v", {"nvidia.com/gpu": "4"}),
         pod("q", "n", {"aliyun.com/gpu-mem": "4"}, ALIYUN_COM_GPU_MEM_IDX="1")],
        [{"aliyun.com/gpu-mem": "16"}, {"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "5"}]),
    "hami": ("gpushare,hami", [hami("h"), pod("p", "h", HAMI, **ALLOCATED)], [HAMI, NVIDIA]),
    "hami-beside-nvidia": (
        "gpushare,hami",
        [hami("h"), node("v", {"nvidia.com/gpu": "8"}), pod("p", "h", HAMI, **ALLOCATED),
         pod("q", "v", NVIDIA)],
        [HAMI, {"aliyun.com/gpu-mem": "16"}]),
    "vgpu": (
        "gpushare,volcano-vgpu",
        [vgpu("w"), pod("p", "w", VGPU, **{"volcano.sh/vgpu-ids-new": "GPU-b,NVIDIA,1000,0:"})],
        [VGPU]),
    "vgpu-beside-nvidia": (
        "gpushare,volcano-vgpu",
        [vgpu("w"), node("v", {"nvidia.com/gpu": "8"}), pod("q", "v", NVIDIA),
         pod("p", "w", VGPU, **{"volcano.sh/vgpu-ids-new": "GPU-a,NVIDIA,1000,0:"})],
        [VGPU, NVIDIA]),
}  # fmt: skip


def api_server(objects: list[Json]) -> http.server.ThreadingHTTPServer:
    """The lists that the plugin reads; the user may do all, and there is no DRA."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, body: Json) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            kind = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/api/v1/namespaces/a/pods": "Pod",
                    "/api/v1/namespaces/kube-system/configmaps": "ConfigMap"}.get(path)  # fmt: skip
            if kind is None:
                self.answer(404, {"kind": "Status", "status": "Failure", "code": 404, "message": path})
            else:
                self.answer(200, {"kind": f"{kind}List", "metadata": {"resourceVersion": "7"},
                                  "items": [o for o in objects if o["kind"] == kind]})  # fmt: skip

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(201, {"kind": "SelfSubjectAccessReview", "status": {"allowed": True}})

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class World:
    """The objects, in a daemon and behind an API server."""

    def __init__(self, cardpack: str, program: str, dialects: str, objects: list[Json]) -> None:
        self.program = program
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"kind": "List", "items": objects}, file)
            file.flush()
            self.daemon, port = listening([cardpack, "--cluster", file.name, f"--dialects={dialects}"])
        self.api = api_server(objects)
        self.ways = (["--daemon-url", f"http://127.0.0.1:{port}"], ["--direct", *self.server()])

    def server(self) -> list[str]:
        return ["--server", f"http://127.0.0.1:{self.api.server_port}"]

    def ask(self, *args: str, stdin: str = "") -> str:
        done = subprocess.run(
            [self.program, *args], input=stdin, capture_output=True, text=True, timeout=60,
            env={k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "HOME")})  # fmt: skip
        return f"{done.returncode}\n{done.stdout}{done.stderr}"

    def both(self, *args: str, stdin: str = "") -> list[str]:
        """Why the two answers are not the same one."""
        told, read = (self.ask(*args, *way, stdin=stdin) for way in self.ways)
        return [] if told == read else [f"{' '.join(args)}: the daemon says {told!r}, directly {read!r}"]

    def close(self) -> None:
        self.api.shutdown()
        self.daemon.terminate()
        self.daemon.stderr.read()
        assert self.daemon.wait() == 0


def differences(w: World, questions: list[Json]) -> list[str]:
    found = w.both("top", "-o", "json")
    for limits in questions:
        asked = json.dumps(asks(limits))
        found += w.both("fit", "-o", "json", "-f", "-", "--replicas", "50", stdin=asked)
        found += w.both("explain", "-o", "json", "-f", "-", stdin=asked)
    return found


def blamed(w: World) -> list[str]:
    """Findings about pods, which are all well, and reasons of them."""
    answer = w.ask("doctor", "-o", "json", "--direct", *w.server())
    findings = json.loads(answer.partition("\n")[2])["findings"]
    pods = w.ask("pods", "-n", "a", "-o", "wide", *w.server())
    rows = json.loads(w.ask("pods", "-n", "a", "-o", "json", *w.server()).partition("\n")[2])["pods"]
    return [str(f) for f in findings if f["object"].startswith("pod/")] + [str(r) for r in rows if r["reason"]] + (
        [pods] if "2147483647" in pods + answer or not pods.startswith("0\n") else [])  # fmt: skip


AWS, GKE, AZURE = ("k8s.amazonaws.com/accelerator", "cloud.google.com/gke-accelerator",
                   "kubernetes.azure.com/accelerator")  # fmt: skip
STATUS = {"kind": "ConfigMap", "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
          "data": {"status": "autoscalerStatus: Running"}}  # fmt: skip


def labelled(capacity: dict[str, str], *labels: str) -> Json:
    made = node("by-hand", capacity)
    made["metadata"]["labels"] = dict.fromkeys(labels, "nvidia-tesla-t4")
    return made


def autoscaler(space: str, **labels: str) -> Json:
    made = pod("scaler", "by-hand", {})
    made["metadata"] |= {"namespace": space, "labels": {k.replace("__", "/"): v for k, v in labels.items()}}
    return made


# A node, and what shows cluster-autoscaler; whether doctor warns of the node.
SCALED: list[tuple[list[Json], bool]] = [
    ([labelled(MIX, AWS, GKE), STATUS], True),
    ([labelled({**MIX, "nvidia.com/gpu": "0"}, AZURE), STATUS], True),
    ([labelled(MIX, AWS), autoscaler("kube-system", app="cluster-autoscaler")], True),
    ([labelled(MIX, AWS), autoscaler("kube-system", **{
        "app.kubernetes.io/name": "aws-cluster-autoscaler"})], True),
    ([labelled(MIX, AWS), autoscaler("a", app="cluster-autoscaler")], False),
    ([labelled(MIX, AWS, GKE, AZURE)], False),
    ([labelled({**MIX, **NVIDIA}, AWS), STATUS], False),
    ([labelled(MIX, "example.com/accelerator"), STATUS], False),
]  # fmt: skip


def scaled(program: str) -> list[str]:
    """Nodes of which doctor must warn, as they may stop cluster-autoscaler, and does not; or the reverse."""
    found = []
    for objects, warns in SCALED:
        api = api_server(objects)
        done = subprocess.run([program, "doctor", "-o", "json", "--direct", "--server", f"http://127.0.0.1:{api.server_port}"],
                              capture_output=True, text=True, timeout=60, env={})  # fmt: skip
        api.shutdown()
        told = [f["object"] for f in json.loads(done.stdout)["findings"] if "cluster-autoscaler" in f["finding"]]
        if told != ["node/by-hand"] * warns:
            found.append(f"{objects}: {told}")
    return found


def report(number: int, what: str, found: list[str]) -> bool:
    print(f"{'not ok' if found else 'ok'} {number} - {what}", *found, sep="\n# ")
    return bool(found)


def main() -> int:
    failed = 0
    number = 0
    print(f"1..{2 * len(WORLDS) + 1}")
    for name, (dialects, objects, questions) in WORLDS.items():
        w = World(sys.argv[1], sys.argv[2], dialects, objects)
        failed += report(number + 1, f"{name}: the same answers", differences(w, questions))
        failed += report(number := number + 2, f"{name}: no healthy pod is blamed", blamed(w))
        w.close()
    failed += report(number + 1, "nodes that may stop cluster-autoscaler", scaled(sys.argv[2]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
