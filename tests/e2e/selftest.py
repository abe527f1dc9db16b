#!/usr/bin/env python3
"""Proves the tests' own control plane, for each release that is installed here.

    python3 tests/e2e/selftest.py [VERSION ...]

Exit status 0: proved; 1: failed; 77: no release is here (scripts/control-plane).
"""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cluster import (
    GPU_MEM,
    SCHEDULER_USER,
    ApiError,
    ControlPlane,
    StartError,
    available_versions,
    wait_for,
)

PODS = [f"p{i}" for i in range(5)]


class Clock:
    """Prints each finished step and its duration."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._began = time.monotonic()

    def done(self, what: str) -> None:
        """Prints one line."""
        now = time.monotonic()
        print(f"{self._version}: {what}: {now - self._began:.2f}s", flush=True)
        self._began = now


def check(good: object, what: str) -> None:
    """An assert that `python3 -O` does not remove."""
    if not good:
        raise AssertionError(what)


def expect_error(status: int, call: object, *args: object) -> None:
    """Checks that the call is refused with that status."""
    try:
        call(*args)  # type: ignore[operator]
    except ApiError as error:
        check(error.status == status, f"{error}, wanted {status}")
    else:
        raise AssertionError(f"not refused, wanted {status}")


def schedule(cluster: ControlPlane) -> None:
    """With the shipped configuration without its extender, kube-scheduler binds plain pods."""
    for name in ("n1", "n2"):
        cluster.create_node(name, {GPU_MEM: 16, "aliyun.com/gpu-count": 2}, {"zone": "a"})
    cluster.create_node("n3", ready=False)
    for name in PODS:
        cluster.create_pod(name, labels={"app": "x"}, resources={"cpu": "100m"})
    wait_for(lambda: cluster.bound_pods().keys() >= set(PODS), "five pods bound")
    check(set(cluster.bound_pods().values()) <= {"n1", "n2"}, "a pod went to the tainted node")
    # The sum of a node's extended resource is the scheduler's own filter.
    cluster.create_pod("gpu", gpu_mem=[8, 4])
    cluster.create_pod("huge", gpu_mem=17)
    wait_for(lambda: "gpu" in cluster.bound_pods(), "gpu bound")
    wait_for(lambda: _unschedulable(cluster, "huge"), "huge found unschedulable")


def _unschedulable(cluster: ControlPlane, name: str) -> bool:
    pod = cluster.pod(name)
    conditions = pod["status"].get("conditions", []) if pod else []
    return any(c.get("reason") == "Unschedulable" for c in conditions)


def audit(cluster: ControlPlane) -> None:
    """Each pod has one Binding, and only the scheduler wrote it."""
    writes = cluster.bindings_in_audit()
    for name in [*PODS, "gpu"]:
        entry = writes[f"default/{name}"]
        check(entry.bindings == 1 and entry.bindings_refused == entry.bindings_unknown == 0, f"{name}: {entry}")
        check(entry.users == {SCHEDULER_USER}, f"{name}: {entry}")
    check(writes["default/huge"].bindings == 0, "huge was bound")
    check(not cluster.bindings_in_audit("admin"), "the admin wrote pods")


def tokens(cluster: ControlPlane) -> None:
    """
    The API server authenticates a service account's token, RBAC limits it; it rejects a wrong token.
    """
    token = cluster.service_account_token("kube-system", "cardpack")
    check(cluster.api("GET", "/api/v1/pods", token="wrong")[0] == 401, "a wrong token works")
    check(cluster.api("GET", "/api/v1/pods", token=token)[0] == 403, "RBAC is off")
    kubeconfig = cluster.write_kubeconfig(cluster.workdir / "cardpack.kubeconfig", token)
    # Not the role "view": it is filled by a controller that does not run here.
    cluster.kubectl("create", "clusterrole", "pods", "--verb=get,list", "--resource=pods")
    cluster.kubectl(
        "create", "clusterrolebinding", "pods", "--clusterrole=pods",
        "--serviceaccount=kube-system:cardpack",
    )  # fmt: skip
    wait_for(lambda: cluster.api("GET", "/api/v1/pods", token=token)[0] == 200, "the role")
    names = cluster.kubectl("get", "pods", "-o", "name", kubeconfig=kubeconfig).stdout.split()
    check("pod/gpu" in names, f"kubectl get pods: {names}")


def survive(cluster: ControlPlane) -> None:
    """Each program dies and restarts; no object is lost, and the scheduler continues."""
    before = cluster.bound_pods()
    cluster.apiserver.kill()
    try:
        cluster.api("GET", "/api/v1/pods", timeout=5)
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("a killed API server answers")
    cluster.apiserver.start()
    check(cluster.bound_pods() == before, "a restart of the API server lost a binding")
    cluster.etcd.restart()
    wait_for(lambda: cluster.api("GET", "/readyz")[0] == 200, "ready after etcd came back")
    check(cluster.bound_pods() == before, "a restart of etcd lost a binding")
    assert cluster.scheduler is not None
    cluster.scheduler.restart(graceful=True)
    cluster.create_pod("after")
    wait_for(lambda: "after" in cluster.bound_pods(), "a pod bound after the restarts")
    audit(cluster)


def forget(cluster: ControlPlane) -> None:
    """Compaction and a restart make an old resourceVersion 410 Gone."""
    old = cluster.must("GET", "/api/v1/pods")["metadata"]["resourceVersion"]
    for i in range(3):
        cluster.create_pod(f"x{i}", node_name="n1")
        cluster.delete_pod(f"x{i}")
    cluster.apiserver.kill()
    cluster.compact()
    cluster.apiserver.start()
    path = f"/api/v1/pods?resourceVersion={old}&resourceVersionMatch=Exact&limit=1"
    expect_error(410, cluster.must, "GET", path)
    pods = cluster.list_all("/api/v1/pods", limit=2)
    check(len(pods) == len(PODS) + 5, f"{len(pods)} pods in pages of two")


def freeze(cluster: ControlPlane) -> None:
    """A frozen API server holds its connection and answers later."""
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(cluster.api("GET", "/version")[0]))
    cluster.apiserver.pause()
    thread.start()
    thread.join(0.3)
    check(thread.is_alive(), "a frozen API server answers")
    cluster.apiserver.resume()
    thread.join(30)
    check(answers == [200], f"after the pause: {answers}")


def control(cluster: ControlPlane) -> None:
    """The controllers make the pods of a Job, and the default service accounts."""
    cluster.create_namespace("jobs")
    cluster.start_controller_manager()
    job = {
        "metadata": {"name": "j"},
        "spec": {
            "completions": 3,
            "parallelism": 3,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "example.invalid/none"}],
                }
            },
        },
    }
    cluster.must("POST", "/apis/batch/v1/namespaces/jobs/jobs", job)
    wait_for(lambda: len(cluster.bound_pods("jobs")) == 3, "a Job's pods bound")
    accounts = "/api/v1/namespaces/jobs/serviceaccounts"
    wait_for(lambda: cluster.list_all(accounts), "the default account")
    for name in cluster.bound_pods("jobs"):
        cluster.set_pod_phase(name, "Succeeded", "jobs")
    cluster.must("DELETE", "/api/v1/namespaces/jobs")
    wait_for(
        lambda: cluster.api("GET", "/api/v1/namespaces/jobs")[0] == 404, "the namespace gone", 60
    )


def fails_loudly(workdir: Path, version: str) -> None:
    """A program that cannot start says why."""
    try:
        with ControlPlane(version, workdir, apiserver_args=["--no-such-flag"]):
            pass
    except StartError as error:
        check("no-such-flag" in str(error), f"the log is missing: {error}")
    else:
        raise AssertionError("an API server with an unknown flag started")


class Extender(http.server.BaseHTTPRequestHandler):
    """Returns every node as feasible, and binds with an annotation on the Binding."""

    cluster: ControlPlane
    asked: list[tuple[str, str]] = []

    def do_POST(self) -> None:
        """Handles filter and bind."""
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/gpushare-scheduler/filter":
            self.asked.append(("filter", ask["Pod"]["metadata"]["name"]))
            answer = {"NodeNames": ask["NodeNames"]}
        elif self.path == "/gpushare-scheduler/bind":
            self.asked.append(("bind", ask["PodName"]))
            self._bind(ask)
            answer = {"Error": ""}
        else:
            self.send_error(404)
            return
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _bind(self, ask: dict[str, str]) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": ask["PodName"], "annotations": {"card": "0"}},
            "target": {"kind": "Node", "name": ask["Node"]},
        }
        path = f"/api/v1/namespaces/{ask['PodNamespace']}/pods/{ask['PodName']}/binding"
        self.cluster.must("POST", path, binding)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


def extend(cluster: ControlPlane) -> None:
    """
    With the shipped configuration the scheduler calls an extender only for pods that name the
    resource.
    """
    assert cluster.scheduler is not None
    cluster.scheduler.terminate()
    Extender.cluster = cluster
    Extender.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Extender) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster.start_scheduler(f"http://127.0.0.1:{server.server_port}/gpushare-scheduler")
        cluster.create_pod("plain")
        cluster.create_pod("wants", gpu_mem=2)
        wait_for(lambda: {"plain", "wants"} <= cluster.bound_pods().keys(), "both bound")
        server.shutdown()
    # huge exceeds the sum of the node: the scheduler itself refuses it.
    check(Extender.asked == [("filter", "wants"), ("bind", "wants")], str(Extender.asked))
    pod = cluster.pod("wants")
    check(pod and pod["metadata"]["annotations"] == {"card": "0"}, "the annotation is lost")
    writes = cluster.bindings_in_audit("admin")["default/wants"]
    check(writes.bindings == 1 and writes.patches == 0, str(writes))
    cluster.scheduler.terminate()
    cluster.start_scheduler()


ORPHAN = """
import pathlib, sys, threading
from component import Component
sleeper = Component("sleep", ["sleep", "1000"], pathlib.Path(sys.argv[1]), lambda: True)
thread = threading.Thread(target=sleeper.start)
thread.start()
thread.join()
print(sleeper.pid, flush=True)
threading.Event().wait()
"""


def dies_with_us(workdir: Path) -> None:
    """A program outlives the thread that started it, but not the process."""
    workdir.mkdir(exist_ok=True)
    here = Path(__file__).parent
    argv = [sys.executable, "-c", ORPHAN, str(workdir)]
    with subprocess.Popen(argv, cwd=here, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        check(not _gone(pid), "it died with the thread")
        parent.kill()
        wait_for(lambda: _gone(pid), "its death")


def _gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()  # its new parent may not reap it
    except OSError:
        return True


def prove(version: str, workdir: Path) -> None:
    """Runs all proofs on one control plane."""
    clock = Clock(version)
    with ControlPlane(version, workdir) as cluster:
        clock.done("etcd and kube-apiserver start")
        cluster.start_scheduler()
        clock.done("kube-scheduler starts")
        schedule(cluster)
        clock.done("seven pods scheduled")
        audit(cluster)
        tokens(cluster)
        clock.done("audit, tokens, kubectl")
        survive(cluster)
        clock.done("API server and etcd killed, scheduler terminated, all back")
        extend(cluster)
        clock.done("extender asked by the shipped configuration")
        forget(cluster)
        freeze(cluster)
        clock.done("history compacted, API server frozen")
        control(cluster)
        clock.done("kube-controller-manager ran a Job")
        assert cluster.scheduler is not None and cluster.controller_manager is not None
        clients = [cluster.scheduler, cluster.controller_manager]
        pids = [c.pid for c in (cluster.etcd, cluster.apiserver, *clients)]
        for client in clients:
            client.terminate()
        cluster.apiserver.restart(graceful=True)  # at once: there is no watch to wait for
        pids.append(cluster.apiserver.pid)
        clock.done("API server terminated and back")
    clock.done("teardown")
    left = [pid for pid in pids if not _gone(pid)]
    check(not left, f"left behind: {left}")
    fails_loudly(workdir / "bad", version)
    clock.done("a bad start is refused")
    dies_with_us(workdir / "orphan")
    clock.done("a program dies with its test")


def main() -> int:
    """Proves the named releases, or all that are installed here."""
    versions = sys.argv[1:] or available_versions()
    if not versions:
        print("no control plane here: run scripts/control-plane", file=sys.stderr)
        return 77
    for version in versions:
        workdir = Path(tempfile.mkdtemp(prefix=f"cardpack-selftest-{version}-"))
        try:
            prove(version, workdir)
        except BaseException:
            print(f"{version}: FAILED; logs in {workdir}", file=sys.stderr)
            raise
        shutil.rmtree(workdir)
        print(f"{version}: proved", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
