"""cardpack's own Deployment on real nodes: `kubectl rollout status` and `helm --wait` end.

The image has what scripts/image-root puts into it. Probes, rights, ports and security context are those of
manifests/ and of the chart. The nodes here are on one host and have no network of pods, so a
patch changes these fields of the Deployment:

- hostNetwork, and as listen-address and probe-address the node's own address of the loopback;
- KUBERNETES_SERVICE_HOST and _PORT: no Service leads to the API server;
- the files of the ServiceAccount as a volume: the API server's plugin that adds it is off.

With hostNetwork a port is taken once on a node: a rolling upgrade of two replicas needs a third node.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import image
from bench import MANIFESTS, ROOT, Bench, check, scenario
from cluster import CONTROLLERS
from component import wait_for
from renderings import CHART, find_renderer, helm, kustomize
from worker import GONE

from scenarios.overlays import relative

Json = Any

_FILES = "/var/run/secrets/kubernetes.io/serviceaccount"
# The second new pod of an upgrade waits for the port of the first old one, and so until that pod is gone (GONE).
_PATIENCE = "200s"


def _patch(bench: Bench) -> str:
    """The patch of the Deployment, as a JSON patch."""
    own = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "rollout-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
        ]}},
    ]  # fmt: skip
    pod, first = "/spec/template/spec", "/spec/template/spec/containers/0"
    env: list[Json] = [
        {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(bench.cluster.port)},
    ]
    args = ["--listen-address=$(HOST_IP)", "--probe-address=$(HOST_IP)"]
    changes = [
        (f"{pod}/hostNetwork", True),
        (f"{pod}/volumes", [{"name": "account", "projected": {"sources": own}}]),
        (f"{first}/volumeMounts", [{"name": "account", "mountPath": _FILES, "readOnly": True}]),
        *((f"{first}/env/-", entry) for entry in env),
        *((f"{first}/args/-", arg) for arg in args),
    ]
    return json.dumps([{"op": "add", "path": path, "value": value} for path, value in changes])


def _kustomization(bench: Bench, folder: Path, resource: str) -> Path:
    """A folder that renders the resource with the patch."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(json.dumps({
        "resources": [resource],
        "patches": [{"target": {"kind": "Deployment"}, "patch": _patch(bench)}],
    }))  # fmt: skip
    return folder


class Rollout:
    """A Deployment of cardpack in a namespace."""

    def __init__(self, bench: Bench, namespace: str, name: str) -> None:
        self.bench = bench
        self.namespace = namespace
        self.name = name
        ca = {"ca.crt": bench.cluster.ca_file.read_text()}
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        bench.cluster.must("POST", maps, {"metadata": {"name": "rollout-ca"}, "data": ca})

    def kubectl(self, *args: str) -> str:
        """Runs the release's kubectl in the namespace."""
        return self.bench.cluster.kubectl("-n", self.namespace, *args, timeout=240).stdout

    def status(self) -> None:
        """kubectl rollout status must end, and then both replicas are ready and one of them leads."""
        said = self.kubectl("rollout", "status", f"deployment/{self.name}", f"--timeout={_PATIENCE}")
        check("successfully rolled out" in said, said)
        self.check_pods()

    def check_pods(self) -> None:
        """Two replicas are ready, the follower too, on two nodes; one has the leader's label."""
        pods = [pod for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]]
        check(len(pods) == 2 and all(map(_ready, pods)), [pod["status"] for pod in pods])
        check(len({pod["spec"]["nodeName"] for pod in pods}) == 2, "two replicas on one node")
        wait_for(lambda: len(self.leaders()) == 1, "one pod to have the leader's label", 60)

    def pods(self) -> list[Json]:
        """cardpack's pods."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        query = {"labelSelector": "app.kubernetes.io/name=cardpack"}
        return self.bench.cluster.list_all(path, **query)

    def names(self) -> set[str]:
        """Their names."""
        return {pod["metadata"]["name"] for pod in self.pods()}

    def wait_gone(self, old: set[str]) -> None:
        """Waits until the pods are gone that a roll-out has replaced, and their leader's label."""
        wait_for(lambda: not old & self.names(), "the old pods to be gone", GONE)
        self.check_pods()

    def leaders(self) -> list[str]:
        """The names of the pods that have the leader's label."""
        pods = self.pods()
        return [
            pod["metadata"]["name"]
            for pod in pods
            if "cardpack.io/leader-of" in pod["metadata"].get("labels", {})
        ]

    def lose_leader(self) -> None:
        """The leader's pod is deleted: the Deployment is rolled out again, with another leader."""
        (leader,) = self.leaders()
        old = self.names()
        self.kubectl("delete", "pod", leader)
        wait_for(lambda: len(self.names() - old) == 1, "a new pod", 60)
        wait_for(self._counted, "the Deployment to count the new pod", 60)
        self.status()
        check(leader not in self.names() and self.leaders() != [leader], self.leaders())

    def _counted(self) -> bool:
        """Whether the Deployment's status is newer than the end of the old pod."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"
        status = self.bench.cluster.must("GET", path)["status"]
        return status.get("availableReplicas", 0) < 2 or all(map(_ready, self.pods()))

    def remove(self, *more: str) -> None:
        """Deletes the Deployment, and waits for the end of its pods."""
        self.kubectl("delete", "deployment", self.name, "--ignore-not-found")
        for what in ("configmap/rollout-ca", "lease/cardpack", *more):
            self.kubectl("delete", what, "--ignore-not-found")
        wait_for(lambda: not self.pods(), "cardpack's pods to be gone", 180)


def _ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _names() -> list[str]:
    """
    Names of three nodes: addresses, which the kubelet takes as the nodes' own. cardpack's ports are fixed, and
    another run of the tests on this host may have them at the same time: so each has a network of its own.
    """
    network = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}"
    return [f"{network}.{host}" for host in (2, 3, 4)]


def _start_nodes(bench: Bench) -> None:
    """Three real nodes that have cardpack's image."""
    root, archive = bench.workdir / "image", bench.workdir / "cardpack.tar"
    version = subprocess.run([bench.options.plain, "--version"], capture_output=True, text=True)
    argv = [ROOT / "scripts/image-root", bench.options.plain, version.stdout.split()[-1], root]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, done.stderr)
    image.write_cardpack(root, archive)
    workers = [bench.launch_worker(name, 0, archive) for name in _names()]
    for worker in workers:
        worker.wait_ready()


def _by_kubectl(bench: Bench) -> None:
    """manifests/base: the first roll-out, and the next one after the leader's pod is lost."""
    rollout = Rollout(bench, "kube-system", "cardpack")
    try:
        folder = bench.workdir / "rollout-base"
        text = kustomize(_kustomization(bench, folder, relative(folder, MANIFESTS / "base")))
        bench.cluster.kubectl("apply", "-f", "-", stdin=text)
        rollout.status()
        rollout.lose_leader()
    finally:
        rights = [f"{kind}/cardpack-leader-label" for kind in ("role", "rolebinding")]
        rollout.remove("service/cardpack", *rights)


def _by_helm(bench: Bench) -> None:
    """The chart: helm upgrade --install --wait ends, for the first release and for its upgrade."""
    rollout = Rollout(bench, bench.namespace, "packer-cardpack")
    folder = _kustomization(bench, bench.workdir / "rollout-chart", "all.yaml")
    renderer = bench.workdir / "post-render"
    renderer.write_text(
        f"#!/bin/sh\ncat >'{folder}/all.yaml' && exec '{find_renderer()}' kustomize '{folder}'\n"
    )
    renderer.chmod(0o755)
    argv: list[str | Path] = [
        "upgrade", "--install", "packer", CHART, "--namespace", bench.namespace,
        "--set", "mode=service,admission.enabled=false,service.nodePort=null",
        "--wait", "--timeout", _PATIENCE, "--post-renderer", renderer,
    ]  # fmt: skip
    admin = bench.cluster.admin_kubeconfig
    try:
        helm(*argv, kubeconfig=admin)
        rollout.check_pods()
        old = rollout.names()
        helm(*argv, "--set", "podAnnotations.rolled=over", kubeconfig=admin)
        rollout.check_pods()
        rollout.wait_gone(old)
        helm("uninstall", "packer", "-n", bench.namespace, kubeconfig=admin)
    finally:
        rollout.remove()


@scenario("node")
def rollout(bench: Bench) -> None:
    """kubectl rollout status and helm --wait end on real nodes, also after the leader's pod is lost."""
    # The chart's DaemonSet of cardpack-node has no node here: helm waits until its controller says so.
    controllers = bench.cluster.start_controller_manager((*CONTROLLERS, "daemonset"))
    try:
        _start_nodes(bench)
        _by_kubectl(bench)
        _by_helm(bench)
    finally:
        controllers.terminate()
