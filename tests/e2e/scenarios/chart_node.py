"""cardpack-node's DaemonSet, of manifests/node and of the chart: what it may do, and on which nodes it runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from bench import MANIFESTS, PATIENCE, Bench, Skipped, check, scenario
from component import wait_for
from renderings import CHART, chart, helm, kustomize, objects, pick, strictly, unwarned

from scenarios.overlays import apply_twice, relative

Json = Any

NODE = MANIFESTS / "node"
MERGE = "application/merge-patch+json"
# Values whose objects the API server must accept, and whose flags cardpack-node must.
CHOICES: tuple[tuple[str, ...], ...] = (
    (),
    ("node.config.memory-unit=256MiB", "node.config.reserve-memory=512MiB", "node.config.cards=0",
     "node.config.card-memory=96GiB",
     "node.config.cooldown=1m30s", "node.config.isolation=driver-limits", "node.config.usage-interval=5s",
     "node.config.usage-write=2m", "node.config.device-nodes=on", "node.config.log-level=debug"),
    ("node.config.cards=0\\,2\\,GPU-5a1f", "node.config.log-format=json", "node.config.reserve-memory=0",
     "node.config.device-nodes=off", "node.config.isolation=none", "node.config.usage-interval=0",
     "node.config.late-binding=off"),
    ("node.address=0.0.0.0", "node.port=9411", "node.runtimeClassName=nvidia", "node.gpuOperator=true",
     "imagePullSecrets[0]=registry"),
    ("node.image.repository=example.invalid/cardpack-node", "node.image.digest=sha256:" + "a" * 64,
     "node.nodeSelector.pool=gpu", "node.tolerations[0].key=gpu", "node.tolerations[0].operator=Exists",
     "node.kubeletDir=/data/kubelet", "node.podLabels.a=b", "node.podAnnotations.a=b",
     "node.extraEnv[0].name=DP_DISABLE_HEALTHCHECKS", "node.extraEnv[0].value=xids",
     "node.updateStrategy.rollingUpdate.maxUnavailable=1"),
)  # fmt: skip
# Values that are refused, and the word that names the reason.
BAD = (
    ("node.config.memory-unit=GB", "memory-unit"),
    ("node.config.node-name=n1", "node-name"),
    ("node.config.cards=-1", "cards"),
    ("node.config.cooldown=5", "cooldown"),
    ("node.config.isolation=cgroup", "isolation"),
    ("node.config.usage-write=5", "usage-write"),
    ("node.address=10.0.0.1", "address"),
    ("node.enable=true", "enable"),
    ("node.image.digest=0.1.0", "digest"),
)
# Flags that the chart and the manifest set, or leave to the environment.
MADE = {"node-name", "kubeconfig", "kubelet-dir", "state", "nvml", "listen", "cgroup-root", "mps-dir", "cdi-dir"}


def program(bench: Bench) -> Path:
    """cardpack-node of the tested build."""
    found = Path(bench.options.binary).parent / "cardpack-node"
    if not found.exists():
        raise Skipped(f"there is no {found}")
    return found


def check_daemonset(daemonset: Json) -> Json:
    """Root without a capability, the folders of the node that it writes; returns its container."""
    pod = daemonset["spec"]["template"]
    spec = pod["spec"]
    chosen = daemonset["spec"]["selector"]["matchLabels"].items()
    check(chosen <= pod["metadata"]["labels"].items(), daemonset)
    check(spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}, spec)
    (one,) = spec["containers"]
    security = one["securityContext"]
    check(security["capabilities"] == {"drop": ["ALL"]} and security["readOnlyRootFilesystem"] is True
          and security["allowPrivilegeEscalation"] is False and "privileged" not in security, security)  # fmt: skip
    volumes = {entry["name"] for entry in spec["volumes"]}
    check(volumes == {entry["name"] for entry in one["volumeMounts"]}, spec)
    check(one["readinessProbe"]["httpGet"]["path"] == "/readyz", one)
    check(one["livenessProbe"]["httpGet"]["path"] == "/healthz", one)
    return one


@scenario("real")
def chart_of_the_nodes(bench: Bench) -> None:
    """The API server accepts the DaemonSet with each choice of values, and cardpack-node its flags."""
    run = program(bench)
    text = kustomize(NODE)
    apply_twice(bench, text)
    check_daemonset(pick(objects(bench, text), "DaemonSet"))
    plain = ("apply", strictly(bench), "-f", str(NODE / "cardpack-node.yaml"))
    lines = bench.cluster.kubectl(*plain).stdout.splitlines()
    check(lines and all(line.endswith(" unchanged") for line in lines), lines)
    bench.cluster.kubectl("delete", "-f", "-", stdin=text)
    for values in CHOICES:
        sets = [word for value in values for word in ("--set", value)]
        text = chart(bench, *sets, name="tried", node=True)
        argv = ("create", "--dry-run=server", strictly(bench), "-f", "-")
        unwarned(bench.cluster.kubectl(*argv, stdin=text))
        found = [o for o in objects(bench, text) if o["metadata"]["name"] == "tried-cardpack-node"]
        check(len(found) == 6, [o["kind"] for o in found])
        one = check_daemonset(pick(found, "DaemonSet"))
        flags = ["--node-name=n1", "--kubeconfig=/nonexistent", "--state=", *one.get("args", [])]
        done = subprocess.run([run, *flags], capture_output=True, text=True, timeout=60)
        check(done.returncode == 1 and "/nonexistent" in done.stderr, done.stderr)  # 2: a wrong flag
        (port,) = {one[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")}
        listens = [arg.rpartition(":")[2] for arg in one.get("args", []) if arg.startswith("--listen=")]
        check(listens == ([] if port == 9410 else [str(port)]), one)
    for value, why in BAD:
        said = helm("template", "cardpack", CHART, "--set", value, good=False)
        check(why in said, f"{value}: {said}")


@scenario("real")
def the_gpu_operator_waits(bench: Bench) -> None:
    """With the choice, the DaemonSets select the label by whose key the GPU Operator finds what it waits for."""
    label_of_clients, choice = {"nvidia.com/gpu.deploy.client": "true"}, ("--set", "node.gpuOperator=true")
    folder = bench.workdir / "waits"
    folder.mkdir()
    (folder / "node-mps.yaml").write_text((MANIFESTS / "node-mps.yaml").read_text())
    (folder / "kustomization.yaml").write_text(
        f"resources: [{relative(folder, NODE)}, {relative(folder, MANIFESTS / 'overlays/kubeadm')}, node-mps.yaml]\n"
        f"components: [{relative(folder, MANIFESTS / 'components/gpu-operator')}]\n"
    )
    made = {o["metadata"]["name"]: o for o in objects(bench, kustomize(folder)) if o["kind"] == "DaemonSet"}
    (charted,) = (o for o in objects(bench, chart(bench, *choice, node=True))
                  if o["metadata"]["name"] == "cardpack-node" and o["kind"] == "DaemonSet")  # fmt: skip
    for one, key in ((charted, "node"), (made["cardpack-node"], "node"), (made["cardpack-mps"], "mps")):
        selected = one["spec"]["template"]["spec"]["nodeSelector"]
        check(selected == {"kubernetes.io/os": "linux", f"cardpack.io/{key}": "true", **label_of_clients}, selected)
    selected = made["cardpack"]["spec"]["template"]["spec"]["nodeSelector"]
    check(not label_of_clients.keys() & selected.keys(), selected)


@scenario("real")
def chart_of_the_nodes_has_each_flag(bench: Bench) -> None:
    """Every flag of cardpack-node is a value of the chart, or the chart sets it itself."""
    said = subprocess.run([program(bench), "--help"], capture_output=True, text=True, timeout=60).stdout
    flags = set(re.findall(r"^  --([a-z-]+) ", said, re.MULTILINE))
    check(len(flags) >= 13, flags)
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["node"]["properties"]
    known = set(schema["config"]["properties"])
    check(known | MADE == flags and not known & MADE, (known | MADE) ^ flags)


def label(bench: Bench, node: str, labels: dict[str, str | None]) -> None:
    """Sets labels of a node; None removes one."""
    bench.cluster.must("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}}, content_type=MERGE)


def wanted(bench: Bench, of: str = "cardpack-node") -> list[str]:
    """The nodes for which the DaemonSet has a pod."""
    found = []
    for pod in bench.cluster.list_all("/api/v1/namespaces/kube-system/pods"):
        if pod["metadata"].get("labels", {}).get("app.kubernetes.io/name") != of:
            continue
        if "deletionTimestamp" in pod["metadata"]:  # there is no kubelet that ends it
            name = pod["metadata"]["name"]
            bench.cluster.api("DELETE", f"/api/v1/namespaces/kube-system/pods/{name}?gracePeriodSeconds=0")
            continue
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        fields = required["nodeSelectorTerms"][0]["matchFields"]
        found.append(str(fields[0]["values"][0]))
    return sorted(found)


@scenario("real")
def the_label_selects_the_nodes(bench: Bench) -> None:
    """A node gets cardpack-node with its label, and never beside the label of gpushare's plugin."""
    old: dict[str, str | None] = {"gpushare": "true", "cardpack.io/node": None}
    new: dict[str, str | None] = {"gpushare": None, "cardpack.io/node": "true"}
    both: dict[str, str | None] = {"gpushare": "true", "cardpack.io/node": "true"}
    for name, those in {"plain": {}, "old": old, "both": both, "new": new}.items():
        bench.cluster.create_node(name, {})
        label(bench, name, {"kubernetes.io/os": "linux", **those})
    text = kustomize(NODE)
    controllers = bench.cluster.start_controller_manager(("daemonset", "garbagecollector"))
    try:
        bench.cluster.kubectl("apply", "-f", "-", stdin=text)
        wait_for(lambda: wanted(bench) == ["new"], "a pod for the node with the label alone", PATIENCE)
        label(bench, "old", new)  # the migration of a node
        wait_for(lambda: wanted(bench) == ["new", "old"], "a pod for the migrated node", PATIENCE)
        label(bench, "old", old)  # and back
        wait_for(lambda: wanted(bench) == ["new"], "no pod for the node that went back", PATIENCE)
        _leaves_for_a_driver(bench)
    finally:
        bench.cluster.kubectl("delete", "-f", "-", stdin=text)
        wait_for(lambda: not wanted(bench), "no pod to be left", PATIENCE)
        controllers.kill()


def _leaves_for_a_driver(bench: Bench) -> None:
    """While the GPU Operator changes a node's driver or its slices, neither DaemonSet has a pod there, by each label."""
    mps = str(MANIFESTS / "node-mps.yaml")
    bench.cluster.kubectl("apply", "-f", mps)
    label(bench, "new", {"cardpack.io/mps": "true"})
    client, state = "nvidia.com/gpu.deploy.client", "nvidia.com/gpu-driver-upgrade-state"
    try:
        for key, away, there in ((client, "paused-for-driver-upgrade", "true"),
                                 (client, "paused-for-mig-change", "true"),
                                 (state, "pod-deletion-required", "upgrade-done"),
                                 (state, "drain-required", "validation-required"),
                                 (state, "pod-restart-required", "uncordon-required"),
                                 (state, "upgrade-failed", None),
                                 ("nvidia.com/mig.config.state", "pending", "success"),
                                 ("nvidia.com/mig.config.state", "rebooting", "failed")):  # fmt: skip
            wait_for(lambda: wanted(bench) == wanted(bench, "cardpack-mps") == ["new"], "both pods", PATIENCE)
            label(bench, "new", {key: away})
            wait_for(lambda: not wanted(bench) and not wanted(bench, "cardpack-mps"), f"none while {away}", PATIENCE)
            label(bench, "new", {key: there})
        wait_for(lambda: wanted(bench) == wanted(bench, "cardpack-mps") == ["new"], "both pods again", PATIENCE)
    finally:
        bench.cluster.kubectl("delete", "-f", mps)
        wait_for(lambda: not wanted(bench, "cardpack-mps"), "no pod of MPS to be left", PATIENCE)
