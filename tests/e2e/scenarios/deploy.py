"""The shipped files: the rights in manifests/, and config/."""

from __future__ import annotations

import os
import re
import subprocess
from http.client import HTTPConnection
from pathlib import Path

from bench import MANIFESTS, ROOT, Bench, Lab, agree, budgets_path, check, scenario
from component import wait_for
from renderings import check_config, check_end

SYSTEM = "/api/v1/namespaces/kube-system"


def _addresses(pid: int) -> list[str]:
    """The addresses that a process listens on, as /proc shows them: hex, with the port last."""
    sockets = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [
        row.split()
        for table in ("tcp", "tcp6")
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


@scenario("real")
def scheduler_on_loopback(bench: Bench) -> None:
    """kube-scheduler listens on loopback alone with the shipped configuration of the test."""
    assert bench.cluster.scheduler is not None
    found = _addresses(bench.cluster.scheduler.pid)
    # 127.0.0.1, ::1, and the first one as the second family writes it.
    loopback = ("0100007F:", "0" * 24 + "01000000:", "0" * 16 + "FFFF00000100007F:")
    check(found and all(address.startswith(loopback) for address in found), found)


@scenario("real")
def least_rights(bench: Bench) -> None:
    """cardpack's token has exactly the rights that cardpack needs."""
    bench.node("n1", 1, 8)
    bench.own_pod("p", 2)
    here = f"/api/v1/namespaces/{bench.namespace}"
    binding = {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": "n1"}}
    allowed = [
        ("GET", "/api/v1/nodes", None),
        ("GET", "/api/v1/pods", None),
        ("GET", f"{here}/pods/p", None),
        ("GET", f"{SYSTEM}/configmaps", None),
        ("GET", budgets_path(bench), None),
    ]
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    lease = {"metadata": {"name": "cardpack"}, "spec": {}}
    status, answer = bench.cluster.api("POST", leases, lease, bench.token)
    check(status in (201, 409), f"create a lease: {status} {answer}")
    status, lease = bench.cluster.api("GET", f"{leases}/cardpack", None, bench.token)
    check(status == 200, f"get the lease: {status} {lease}")
    allowed.append(("PUT", f"{leases}/cardpack", lease))
    for method, path, body in allowed:
        status, answer = bench.cluster.api(method, path, body, token=bench.token)
        check(status == 200, f"{method} {path}: {status} {answer}")
    status, answer = bench.cluster.api("POST", f"{here}/pods/none/binding", binding, bench.token)
    check(status == 404, f"binding of a pod that is not there: {status} {answer}")
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": bench.namespace}}
    status, answer = bench.cluster.api("POST", f"{here}/events", event, bench.token)
    check(status == 201, f"create an event: {status} {answer}")
    status, answer = bench.cluster.api(
        "PATCH", f"{here}/events/e", {"count": 2}, bench.token,
        content_type="application/strategic-merge-patch+json",
    )  # fmt: skip
    check(status == 200, f"patch an event: {status} {answer}")
    forbidden = [
        ("PATCH", f"{here}/pods/p", {"metadata": {"annotations": {"a": "b"}}}),
        ("PATCH", f"{here}/pods/p/status", {"status": {"phase": "Failed"}}),
        ("PUT", f"{here}/pods/p", {}),
        ("POST", f"{here}/pods", {"metadata": {"name": "q"}}),
        ("DELETE", f"{here}/pods/p", None),
        ("POST", f"{here}/pods/p/eviction", {}),
        ("POST", f"{here}/bindings", binding),
        ("GET", f"{here}/events", None),
        ("DELETE", f"{here}/events/e", None),
        ("GET", f"{here}/configmaps", None),
        ("DELETE", f"{budgets_path(bench, bench.namespace)}/b", None),
        ("POST", budgets_path(bench, bench.namespace), {"metadata": {"name": "b"}}),
        ("PATCH", f"{SYSTEM}/configmaps/x", {}),
        ("GET", f"{SYSTEM}/secrets", None),
        ("GET", "/api/v1/secrets", None),
        ("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"a": "b"}}}),
        ("DELETE", "/api/v1/nodes/n1", None),
        ("GET", "/apis/coordination.k8s.io/v1/leases", None),
        ("GET", leases, None),
        ("GET", f"{leases}/kube-scheduler", None),
        ("PUT", f"{leases}/kube-scheduler", lease),
        ("DELETE", f"{leases}/cardpack", None),
        ("PATCH", f"{leases}/cardpack", {"metadata": {"labels": {"a": "b"}}}),
    ]
    for method, path, body in forbidden:
        status, answer = bench.cluster.api(
            method, path, body, bench.token, content_type="application/merge-patch+json"
            if method == "PATCH" else "application/json",
        )  # fmt: skip
        check(status == 403, f"{method} {path}: {status} {answer}")


@scenario("real")
def shipped_configuration(bench: Bench) -> None:
    """config/cardpack.yaml contains the defaults, and cardpack runs with it."""
    file = ROOT / "config" / "cardpack.yaml"

    def check_config(*args: str) -> list[str]:
        run = [bench.options.binary, *args, "--check-config"]
        text = subprocess.run(run, check=True, capture_output=True, text=True, timeout=60).stdout
        return [line.split("#")[0].strip() for line in text.splitlines()]

    check(check_config("--config", str(file)) == check_config(), "a default differs")
    daemon = bench.cardpack("--config", str(file))
    bench.node("n1", 1, 8)
    agree(daemon, bench.truth)
    status, version = daemon.call("GET", "/version")
    check(status == 200 and version, f"/version: {status} {version}")
    for path in ("/healthz", "/livez", "/readyz"):
        check(daemon.call("GET", path) == (200, "ok\n"), path)


@scenario("fake")
def ends_before_it_is_killed(lab: Lab) -> None:
    """The kubelet and systemd wait longer than cardpack's shutdown takes, in all shipped files."""
    unit = (ROOT / "config" / "systemd" / "cardpack.service.in").read_text()
    (stop,) = re.findall(r"^TimeoutStopSec=([0-9]+)s$", unit, re.MULTILINE)
    file = ROOT / "config" / "cardpack.yaml"
    check_end(int(stop), check_config(lab, ["--config", str(file)]))
    texts = {path: path.read_text() for path in sorted(MANIFESTS.rglob("*.yaml"))}
    pods = {path: text for path, text in texts.items() if "\n        image: cardpack:" in text}
    check(len(pods) == 3, list(pods))  # base, kubeadm, second-scheduler
    for path, text in pods.items():
        grace = re.findall(r"^ *terminationGracePeriodSeconds: ([0-9]+)", text, re.MULTILINE)
        check(len(grace) == 1, f"{path}: {grace}")
        check_end(int(grace[0]), check_config(lab, re.findall(r"--shutdown-[a-z]+=\w+", text)))
    # No other setting in these files changes either time.
    chart = MANIFESTS / "helm"
    node = MANIFESTS / "node" / "cardpack-node.yaml"  # cardpack-node ends within 2 s
    check("terminationGracePeriodSeconds: 5" in texts[node], node)
    others = [p for p in texts if p not in pods and p != node and chart not in p.parents]
    said = [p for p in others if re.search("terminationGrace|shutdown-", texts[p])]
    check(not said, said)


@scenario("real")
def ready_only_when_it_is(bench: Bench) -> None:
    """Without an API server cardpack is live but not ready, and refuses requests with the reason."""
    pod = bench.own_pod("p", 2)
    bench.node("n1", 1, 8)
    bench.cluster.apiserver.pause()
    try:
        daemon = bench.cardpack(started=False)
        daemon.launch()
        wait_for(lambda: _listens(daemon.port), "cardpack to listen")
        check(daemon.call("GET", "/livez") == (200, "ok\n"), "/livez")
        status, text = daemon.call("GET", "/readyz")
        check(status == 503 and "list" in text, f"/readyz: {status} {text}")
        error = daemon.filter(pod, ["n1"])["Error"]
        check("not ready" in error and "list" in error, f"filter: {error}")
        error = daemon.bind(pod, "n1")
        check("not ready" in error, f"bind: {error}")
    finally:
        bench.cluster.apiserver.resume()
    wait_for(daemon.ready, "ready")
    check(daemon.bind(pod, "n1") == "", "bind once ready")
    bench.verify(daemon)


def _listens(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True
