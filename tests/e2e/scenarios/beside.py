"""The overlays with a kube-scheduler configuration: kubeadm's, and the second scheduler."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import (
    CARDPACK_USER,
    MANIFESTS,
    PATIENCE,
    Bench,
    Lab,
    Skipped,
    agree,
    check,
    scenario,
)
import scheduler_config
from cluster import GPU_MEM, SCHEDULER_USER, answers
from component import Component, wait_for
from renderings import OVERLAYS, container, kustomize, local_args, objects, overlay, pick, substitute

from scenarios.overlays import take_away, through

Json = Any

# The static pod that kubeadm writes: the fields that a patch needs.
STATIC_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
    "spec": {
        "containers": [
            {
                "name": "kube-scheduler",
                "image": "registry.k8s.io/kube-scheduler",
                "command": [
                    "kube-scheduler",
                    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
                    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
                    "--bind-address=127.0.0.1",
                    "--kubeconfig=/etc/kubernetes/scheduler.conf",
                    "--leader-elect=true",
                ],
                "volumeMounts": [
                    {"name": "kubeconfig", "mountPath": "/etc/kubernetes/scheduler.conf"}
                ],
            }
        ],
        "hostNetwork": True,
        "volumes": [{"name": "kubeconfig", "hostPath": {"path": "/etc/kubernetes/scheduler.conf"}}],
    },
}


def settings(text: str) -> list[str]:
    """The lines of a configuration that are not empty and not comments."""
    lines = [re.sub(r"\s+#.*|^#.*", "", line) for line in text.splitlines()]
    return [line for line in lines if line.strip()]


def on_loopback(file: Path) -> str:
    """One of config/'s files, with the extender on loopback."""
    return file.read_text().replace("http://127.0.0.1:32766/", "http://127.0.0.1:39999/")


def shipped(bench: Bench) -> str:
    """The file for this release."""
    return on_loopback(scheduler_config.shipped(bench.version))


def of_a_second(text: str) -> list[str]:
    """config/'s file, changed for a scheduler that runs next to the cluster's own."""
    lines = settings(text)
    at = lines.index("clientConnection:")
    del lines[at : at + 2]
    at = lines.index("  leaderElect: true") + 1
    lines[at:at] = [
        "  resourceNamespace: kube-system",
        "  resourceName: cardpack-scheduler",
        "profiles:",
        "- schedulerName: cardpack",
    ]
    return lines


@scenario("fake")
def scheduler_configurations(_: Lab) -> None:
    """
    config/ and the overlays have one file for each version of the API; the files differ in nothing
    else. The component require-scheduler names the same resources.
    """
    text = (OVERLAYS / "second-scheduler" / "kube-scheduler.yaml").read_text()
    names = re.findall(r"- name: (\S+)\n +ignoredByScheduler", text)
    policy = (MANIFESTS / "components" / "require-scheduler" / "policy.yaml").read_text()
    check(len(names) == 4 and all(f"'{name}'" in policy for name in names), names)
    newest = settings((scheduler_config.CONFIG / "kube-scheduler.yaml").read_text())[1:]
    plain = [f"{key}BindAddress: 127.0.0.1:10251" for key in ("healthz", "metrics")]
    wanted = {"": ("v1", []), "-v1beta1": ("v1beta1", plain), "-v1beta3": ("v1beta3", [])}
    files = {path.name for path in scheduler_config.CONFIG.glob("kube-scheduler*")}
    check(files == {f"kube-scheduler{suffix}.yaml" for suffix in wanted}, files)
    for suffix, (api, more) in wanted.items():
        text = on_loopback(scheduler_config.CONFIG / f"kube-scheduler{suffix}.yaml")
        first, *lines = settings(text)
        check(first == f"apiVersion: kubescheduler.config.k8s.io/{api}", first)
        asked = [line.replace("127.0.0.1:39999", "127.0.0.1:32766") for line in lines]
        check([line for line in asked if line not in more] == newest, f"{suffix}: {asked}")
        check([line for line in asked if line in more] == more, f"{suffix}: {asked}")
        host = (OVERLAYS / "kubeadm" / "host" / f"kube-scheduler{suffix}.yaml").read_text()
        check(settings(host) == settings(text), f"kubeadm/host{suffix}: {settings(host)}")
        own = (OVERLAYS / f"second-scheduler{suffix}" / "kube-scheduler.yaml").read_text()
        check(settings(own) == of_a_second(text), f"second-scheduler{suffix}: {settings(own)}")


def localize(bench: Bench, text: str, old: str, new: str, cardpack: int = 0) -> str:
    """The configuration with cardpack's port, and with one text replaced that is impossible here."""
    check(text.count(old) == 1, f"{old!r} in {text}")
    text = text.replace(old, new)
    check("http://127.0.0.1:39999/gpushare-scheduler" in text, text)
    text = text.replace("http://127.0.0.1:39999/", f"http://127.0.0.1:{cardpack or bench.port}/")
    # A free plain port for v1beta1, as tests may run in parallel.
    return text.replace("127.0.0.1:10251", f"127.0.0.1:{bench.ports.take()}")


def scheduler(bench: Bench, name: str, argv: list[str], port: int) -> Component:
    """kube-scheduler with exactly these arguments, not started."""
    program = bench.cluster.programs / "kube-scheduler"
    certificates = bench.workdir / f"{name}-certs"
    return Component(
        name, [program, *argv, "--cert-dir", str(certificates), "--v=2"], bench.workdir,
        lambda: answers(port, "/healthz", certificates / "kube-scheduler.crt"),
    )  # fmt: skip


@contextmanager
def running(one: Component) -> Iterator[Component]:
    """Starts it and waits until it is ready; kills it at the end."""
    try:
        one.start()
        yield one
    finally:
        one.kill()


@scenario("real")
def kubeadm_overlay(bench: Bench) -> None:
    """Runs the DaemonSet's cardpack, and kubeadm's static pod with the overlay's patch and file.

    Changed from the shipped files: the paths of the two kubeconfigs and of the configuration, both
    ports, and the folder of kube-scheduler's own certificate.
    """
    host = overlay(bench, "kubeadm") / "host"
    name = scheduler_config.shipped(bench.version).name
    text = (host / name).read_text()
    check(settings(text) == settings(shipped(bench)), f"host/{name} is not config/{name}")
    patched = _patched(bench, host / "kube-scheduler+json.yaml")["spec"]
    mounts = {m["mountPath"]: m["name"] for m in patched["containers"][0]["volumeMounts"]}
    volumes = {v["name"]: v["hostPath"]["path"] for v in patched["volumes"]}
    check(volumes[mounts["/etc/kubernetes/cardpack"]] == "/etc/kubernetes/cardpack", patched)
    command = patched["containers"][0]["command"]
    check(command[0] == "kube-scheduler", command)

    found = objects(bench, kustomize(overlay(bench, "kubeadm")))
    daemon = bench.cardpack(*local_args(bench, container(found, "cardpack")["args"]))
    bench.node("n1", 4, 16)
    file = bench.workdir / "kubeadm-scheduler.yaml"
    theirs = str(bench.cluster.scheduler_kubeconfig)
    file.write_text(localize(bench, text, "/etc/kubernetes/scheduler.conf", theirs))
    argv = [arg.replace("/etc/kubernetes/scheduler.conf", theirs) for arg in command[1:]]
    table = {"--config=/etc/kubernetes/cardpack/kube-scheduler.yaml": f"--config={file}"}
    port = bench.ports.take()
    bench.cluster.end_scheduler()
    try:
        argv = [*substitute(argv, table), f"--secure-port={port}"]
        with running(scheduler(bench, "kubeadm-scheduler", argv, port)):
            through(bench, "kubeadm")
            bench.verify(daemon)
    finally:
        bench.start_scheduler()


def _patched(bench: Bench, patch: Path) -> Json:
    """Patches like `kubectl patch --local`, whose --patch-file is newer than 1.20's releases."""
    (bench.workdir / "static-pod.json").write_text(json.dumps(STATIC_POD))
    argv = ("patch", "--local", "--type=json", "-o", "json", "-f", "static-pod.json")
    done = bench.cluster.kubectl(*argv, "--patch", patch.read_text())
    return json.loads(done.stdout)


@contextmanager
def plain_default(bench: Bench) -> Iterator[None]:
    """Starts the cluster's own scheduler without an extender, as on a managed control plane."""
    bench.cluster.end_scheduler()
    bench.cluster.start_scheduler(None)
    try:
        yield
    finally:
        bench.start_scheduler()


def second(
    bench: Bench, found: list[Json], token: str, name: str = "scheduler", cardpack: int = 0
) -> Component:
    """The second scheduler's container, with the token of its pod's ServiceAccount; not started.

    Changed from the shipped files: kubeconfigs replace the pod's own credentials, which are files at a
    fixed place; the ports, the listening address, and the folder of its own certificate.
    """
    one = container(found, "kube-scheduler")
    mapped = next(
        v["configMap"]["name"]
        for v in pick(found, "Deployment")["spec"]["template"]["spec"]["volumes"]
        if v["name"] == one["volumeMounts"][0]["name"]
    )
    (config,) = [o for o in found if o["kind"] == "ConfigMap" and o["metadata"]["name"] == mapped]
    text: str = config["data"]["kube-scheduler.yaml"]
    name = f"{bench.scenario}-{name}"
    kubeconfig = bench.workdir / f"{name}.kubeconfig"
    bench.cluster.write_kubeconfig(kubeconfig, token)
    file = bench.workdir / f"{name}.yaml"
    client = f"clientConnection:\n  kubeconfig: {kubeconfig}\nleaderElection:\n"
    file.write_text(localize(bench, text, "leaderElection:\n", client, cardpack))
    check(one["command"][0] == "kube-scheduler", one["command"])
    port = bench.ports.take()
    table = {
        "--config=/etc/kube-scheduler/kube-scheduler.yaml": f"--config={file}",
        "--bind-address=0.0.0.0": "--bind-address=127.0.0.1",
        "--secure-port=10259": f"--secure-port={port}",
    }
    argv = [
        *substitute(one["command"][1:], table),
        f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
    ]  # fmt: skip
    return scheduler(bench, name, argv, port)


@scenario("real")
def second_scheduler(bench: Bench) -> None:
    """Both containers of the second scheduler's pod, with the rights from its overlay."""
    text = kustomize(overlay(bench, "second-scheduler"))
    found = objects(bench, text)
    (config,) = [o for o in found if o["kind"] == "ConfigMap"]
    check(
        settings(config["data"]["kube-scheduler.yaml"]) == of_a_second(shipped(bench)),
        "the second scheduler's configuration is not config/'s",
    )
    bench.cluster.kubectl("apply", "-f", "-", stdin=text)
    try:
        _decides_beside_the_first(bench, found)
    finally:
        take_away(bench, found)


def _decides_beside_the_first(bench: Bench, found: list[Json]) -> None:
    began = time.time()
    bench.cluster.create_node("n1", {"aliyun.com/gpu-mem": 64, "aliyun.com/gpu-count": 4})
    daemon = bench.cardpack(*local_args(bench, container(found, "cardpack")["args"]))
    with plain_default(bench), running(second(bench, found, bench.token)) as ours:
        _volume(bench)
        through(bench, "second", scheduler_name="cardpack")
        # A pod without a card goes to the second scheduler if it names it, else to the first one.
        bench.pod("cpu", None, scheduler_name="cardpack")
        bench.pod("first", None)
        _bound(bench, "cpu", "first", "stored")
        # Not bench.verify: the second scheduler shares cardpack's user, and writes pods' status.
        truth = bench.truth()
        check(len(truth.bound()) == 5 and not truth.overcommitted(), truth.overcommitted())
        check(not truth.bad_annotations(), truth.bad_annotations())
        agree(daemon, bench.truth)
        writes = bench.cluster.bindings_in_audit()
        for name in ("cpu", "first", "second-0", "stored"):
            wanted = {SCHEDULER_USER} if name == "first" else {CARDPACK_USER}
            entry = writes[f"{bench.namespace}/{name}"]
            check(entry.users == wanted and entry.bindings == 1, f"{name}: {entry}")
        _check_rights(bench, began)
        check("forbidden" not in ours.log.read_text().lower(), ours.tail())
    lease = bench.cluster.must(
        "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cardpack-scheduler"
    )
    check(lease["spec"]["holderIdentity"], lease)


def _bound(bench: Bench, *names: str) -> None:
    wait_for(
        lambda: set(names) <= set(bench.cluster.bound_pods(bench.namespace)), f"{names}", PATIENCE
    )


def _volume(bench: Bench) -> None:
    """A pod that shares a card and wants a volume on the node: the scheduler also binds the volume."""
    node = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
    volume = {
        "metadata": {"name": f"{bench.namespace}-volume"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": f"{bench.namespace}-class",
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
        },
    }
    must, inside = bench.cluster.must, f"/api/v1/namespaces/{bench.namespace}"
    late = {
        "metadata": {"name": f"{bench.namespace}-class"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claims = f"{inside}/persistentvolumeclaims"
    claim = {
        "metadata": {"name": "claim"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": f"{bench.namespace}-class",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    must("POST", "/apis/storage.k8s.io/v1/storageclasses", late)
    path = "/api/v1/persistentvolumes"
    must("POST", path, volume)
    must(
        "PATCH", f"{path}/{bench.namespace}-volume/status", {"status": {"phase": "Available"}},
        content_type="application/merge-patch+json",
    )  # fmt: skip
    must("POST", claims, claim)
    stored = {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}
    bench.pod("stored", 3, scheduler_name="cardpack", spec={"volumes": [stored]})
    one = f"{path}/{bench.namespace}-volume"
    wait_for(lambda: must("GET", one)["spec"].get("claimRef"), "the scheduler's choice", PATIENCE)
    # The volume controller's next steps.
    done = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": f"{bench.namespace}-volume"},
    }
    must("PATCH", f"{claims}/claim", done, content_type="application/merge-patch+json")
    _bound(bench, "stored")


# The use of each role binding in the overlay; the API server's audit log must show both.
_USED = {
    ("persistentvolumes", "update"),  # system:volume-scheduler
    ("configmaps", "list"),  # extension-apiserver-authentication-reader
    ("leases", "update"),  # Role cardpack-scheduler
    ("replicasets", "list"),  # system:kube-scheduler
}


def _check_rights(bench: Bench, began: float) -> None:
    """The API server refused none of the pod's requests, and the pod used each right that it has."""
    used = set()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(began))
    for event in bench.cluster.audit_events():
        if event["user"]["username"] != CARDPACK_USER or event["requestReceivedTimestamp"] < stamp:
            continue
        what = event.get("objectRef", {})
        code = event.get("responseStatus", {}).get("code")
        check(code != 403, f"{event['verb']} {event['requestURI']}: {code}")
        if what.get("resource") != "leases" or what.get("name") == "cardpack-scheduler":
            used.add((what.get("resource"), event["verb"]))
    check(_USED <= used, f"never asked for: {_USED - used}")


@scenario("real")
def cards_want_the_second(bench: Bench) -> None:
    """
    With the component, a pod that requests a card without naming its scheduler is refused with that
    reason.
    """
    if bench.minor < 30:
        raise Skipped("ValidatingAdmissionPolicy is there since 1.30")
    folder = MANIFESTS / "components" / "require-scheduler"
    text = (folder / "policy.yaml").read_text()
    bench.cluster.kubectl("apply", "--validate=strict", "-f", "-", stdin=text)
    try:
        path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        policy = bench.cluster.must("GET", f"{path}/cardpack-require-scheduler")
        check(policy["spec"]["failurePolicy"] == "Fail", policy)  # so no pod may make the policy fail
        wait_for(lambda: "must say" in _refusal(bench, {"gpu": 2}), "the policy to hold", PATIENCE)
        said = _refusal(bench, {"gpu": 2})
        check('spec.schedulerName: "default-scheduler"' in said, said)
        check("must say" in _refusal(bench, {"cpu": None}, {"first": 2}), "an init container's")
        for name in ("aliyun.com/gpu-core.percentage", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"):
            check("must say" in _refusal(bench, {"gpu": 2}, resource=name), name)
            check(not _refusal(bench, {"gpu": 2}, None, "cardpack", resource=name), name)
        check(not _refusal(bench, {"gpu": 2}, resource="example.com/nvidia.com-gpu"), "no card")
        _check_mirror_pods(bench)
        check(not _refusal(bench, {"cpu": None}, {"first": None}), "a pod that requests no card")
        check(not _refusal(bench, {"cpu": None, "gpu": 2}, None, "cardpack"), "a pod with schedulerName cardpack")
        check('"other": a pod' in _refusal(bench, {"gpu": 2}, None, "other"), "a pod with another schedulerName")
    finally:
        bench.cluster.kubectl("delete", "-f", "-", stdin=text)
        # The API server still refuses pods until it sees the deletion; this would hit the next
        # scenario.
        wait_for(lambda: "must say" not in _refusal(bench, {"gpu": 2}), "the policy to be gone", PATIENCE)


def _check_mirror_pods(bench: Bench) -> None:
    """Only the node's own user makes a mirror pod; who merely writes the annotation is refused."""
    limits = {"resources": {"limits": {GPU_MEM: "2"}}}
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "static", "namespace": bench.namespace},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "none", **limits}]},
    }

    def said(user: str, *groups: str) -> str:
        who = [f"--as={user}", *(f"--as-group={group}" for group in ("system:masters", *groups))]
        argv = ("create", "--dry-run=server", "-f", "-", *who)
        done = bench.cluster.kubectl(*argv, stdin=json.dumps(pod), check=False)
        check((done.returncode == 0) != ("must say" in done.stderr), done.stderr)
        return done.stderr

    check(said("system:node:n1", "system:nodes"), "no mirror pod")
    pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    check(not said("system:node:n1", "system:nodes"), "a mirror pod")
    check(said("system:node:n2", "system:nodes"), "of another node")
    check(said("system:node:n1"), "of a user who only has the name")
    check(said("tenant"), "of a tenant")


def _refusal(
    bench: Bench,
    sizes: Json,
    first: Json = None,
    name: str = "default-scheduler",
    resource: str = GPU_MEM,
) -> str:
    """The reason why a pod with such containers and init containers is not admitted; empty if it is."""

    def made(sizes: Json) -> list[Json]:
        found = []
        for key, size in sizes.items():
            limits = {} if size is None else {resource: str(size)}
            found.append({"name": key, "image": "none", "resources": {"limits": limits}})
        return found

    spec = {"containers": made(sizes), "initContainers": made(first or {}), "schedulerName": name}
    body = {"metadata": {"name": "tried"}, "spec": spec}
    path = f"/api/v1/namespaces/{bench.namespace}/pods?dryRun=All"
    status, answer = bench.cluster.api("POST", path, body)
    return "" if status == 201 else str(answer["message"])
