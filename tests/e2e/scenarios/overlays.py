"""manifests/base and manifests/overlays: the API server accepts them, and pods are bound with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import MANIFESTS, OBJECTS, PATIENCE, ROOT, Bench, budgets_path, check, scenario
from certificates import Authority, trust
from component import wait_for
from renderings import (
    WORKLOADS,
    check_config,
    check_end,
    container,
    kustomize,
    local_args,
    objects,
    overlay,
    overlays,
    pick,
    strictly,
    template,
    unwarned,
)

Json = Any

USER = 65532
LABEL = "cardpack.io/leader-of"
# Objects named cardpack that belong to bench.
_KEPT = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")


def apply_twice(bench: Bench, text: str) -> None:
    """The API server accepts it without a warning; the second apply changes nothing."""

    def versions() -> list[tuple[str, str]]:
        argv = ("apply", strictly(bench), "-o", "json", "-f", "-")
        answer = json.loads(unwarned(bench.cluster.kubectl(*argv, stdin=text)))
        return [(o["metadata"]["uid"], o["metadata"]["resourceVersion"]) for o in answer["items"]]

    first = versions()
    check(len(first) > 5 and versions() == first, "applied again, an object changes")


def take_away(bench: Bench, found: list[Json]) -> None:
    """Deletes the objects that no other scenario needs."""
    gone = [o for o in found if o["kind"] not in _KEPT or o["metadata"]["name"] != "cardpack"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": gone})
    argv = ("delete", "--cascade=background", "--ignore-not-found", "-f", "-")
    bench.cluster.kubectl(*argv, stdin=text)


def check_pod(bench: Bench, spec: Json) -> None:
    """No root, no capability, no writable file, and only its ServiceAccount's rights."""
    security = spec["securityContext"]
    check(security["runAsNonRoot"] is True and security["runAsUser"] == USER, security)
    check(security["seccompProfile"] == {"type": "RuntimeDefault"}, security)
    check(not {"hostPID", "hostIPC", "initContainers"} & set(spec), spec)
    check(spec["priorityClassName"].startswith("system-"), spec["priorityClassName"])
    for one in spec["containers"]:
        wanted = {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        check(one["securityContext"] == wanted, one["securityContext"])
        ports = {entry.get("name") for entry in one["ports"]}
        for probe in ("readinessProbe", "livenessProbe"):
            asked = one[probe]["httpGet"]
            check(asked["port"] in ports or asked.get("host") == "127.0.0.1", one)
        mounted = {entry["mountPath"] for entry in one.get("volumeMounts", [])}
        files = [a.partition("=")[2] for a in one.get("args", []) + one.get("command", [])]
        named = [f for f in files if f.startswith("/")]
        check(all(str(Path(f).parent) in mounted for f in named), f"{named}: {mounted}")
    volumes = {entry["name"] for entry in spec.get("volumes", [])}
    mounts = {m["name"] for c in spec["containers"] for m in c.get("volumeMounts", [])}
    check(volumes == mounts, f"{volumes}, mounted {mounts}")
    check(not [v for v in spec.get("volumes", []) if "hostPath" in v or "emptyDir" in v], volumes)


def check_restricted(bench: Bench, pod: Json) -> None:
    """The API server admits the pod at the Pod Security level "restricted"."""
    path = f"/api/v1/namespaces/{bench.namespace}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    bench.cluster.must(
        "PATCH", path, {"metadata": {"labels": labels}}, content_type="application/merge-patch+json"
    )
    body = {"metadata": {"name": "tried", **pod["metadata"]}, "spec": pod["spec"]}
    status, answer = bench.cluster.api("POST", f"{path}/pods?dryRun=All", body)
    check(status == 201, f"{status} {answer}")
    body["spec"] = {**pod["spec"], "hostNetwork": True}
    status, answer = bench.cluster.api("POST", f"{path}/pods?dryRun=All", body)
    check(status == 403 and "restricted" in answer["message"], f"no admission: {status} {answer}")


def check_rendering(bench: Bench, found: list[Json]) -> None:
    """Checks a rendering without starting it."""
    pod = template(found)
    check_pod(bench, pod["spec"])
    told = check_config(bench, container(found, "cardpack")["args"])
    check_end(pod["spec"]["terminationGracePeriodSeconds"], told)
    if pod["spec"].get("hostNetwork"):
        args = container(found, "cardpack")["args"]
        check("--listen-address=127.0.0.1" in args, args)
    elif bench.modern:
        check_restricted(bench, pod)
    workload = pick(found, *WORKLOADS)
    chosen = workload["spec"]["selector"]["matchLabels"].items()
    check(chosen <= pod["metadata"]["labels"].items(), workload)
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        asked = container(found, "cardpack")[probe]["httpGet"]
        check(asked["path"] == path, f"{probe}: {asked}, not {path}")
    for item in found:
        if item["kind"] in ("Service", "PodDisruptionBudget"):
            selector = item["spec"]["selector"]
            more = {LABEL: "cardpack"} if item["kind"] == "Service" else {}
            check(selector.get("matchLabels", selector) == {**dict(chosen), **more}, item)
    _check_label(found)


def _documents(text: str) -> list[str]:
    return sorted(part.strip() for part in text.split("\n---\n"))


def _check_label(found: list[Json]) -> None:
    """Only where a Service selects the leader's label, cardpack knows its pod and may label it."""
    one = container(found, "cardpack")
    named = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in one.get("env", [])}
    rights = [
        (item["metadata"]["namespace"], rule["verbs"])
        for item in found
        if item["kind"] == "Role"
        for rule in item["rules"]
        if rule["resources"] == ["pods/status"]
    ]
    if "Service" not in {item["kind"] for item in found}:
        check(not named and not rights, f"{named} {rights}")
        return
    fields = {"POD_NAME": "name", "POD_NAMESPACE": "namespace", "POD_UID": "uid"}
    check(named == {name: f"metadata.{field}" for name, field in fields.items()}, named)
    check(rights == [(pick(found, *WORKLOADS)["metadata"]["namespace"], ["patch"])], rights)


@scenario("real")
def manifests(bench: Bench) -> None:
    """Every overlay: accepted by the API server, unchanged by a second apply, with valid arguments."""
    kubectl = bench.cluster.kubectl
    if bench.modern:  # as in docs/manifests.md; 1.20's own kubectl is too old
        kubectl("apply", "-k", str(overlay(bench, "kubeadm")))
    for folder in [MANIFESTS / "base", *overlays(bench)]:
        text = kustomize(folder)
        found = objects(bench, text)
        apply_twice(bench, text)
        check_rendering(bench, found)
        if folder.name != "base":
            take_away(bench, found)
        else:
            # Without kustomize the result is the same, and any kubectl renders the base.
            lines = kubectl("apply", strictly(bench), "-f", str(OBJECTS)).stdout.splitlines()
            check(lines and all(line.endswith(" unchanged") for line in lines), lines)
            # kubectl of 1.20 sorts two objects of one kind in another order.
            own = kubectl("kustomize", str(folder)).stdout
            check(_documents(own) == _documents(text), "this release renders it otherwise")
            _check_ports(found)
    if bench.modern:
        _check_settings(bench)


def _check_ports(found: list[Json]) -> None:
    """The Service leads to cardpack's port, and kube-scheduler's configuration to the Service."""
    service = pick(found, "Service")["spec"]["ports"]
    check([entry["targetPort"] for entry in service] == ["http"], service)
    one = container(found, "cardpack")
    ports = {entry["name"]: entry["containerPort"] for entry in one["ports"]}
    check(f"--port={ports['http']}" in one["args"], one)
    check(f"--probe-port={ports['probes']}" in one["args"], one)
    for file in sorted((ROOT / "config").glob("kube-scheduler*.yaml")):
        check(f"127.0.0.1:{service[0]['nodePort']}/" in file.read_text(), f"{file}: {service}")


def _check_settings(bench: Bench) -> None:
    """The components, in a kustomization as in docs/manifests.md, on every kind of workload."""
    folder = bench.workdir / "own"
    folder.mkdir()
    (folder / "cardpack.yaml").write_text("shortlist: 5\n")
    admission = f"- {relative(folder, MANIFESTS / 'components' / 'admission')}\n"
    if bench.minor < 30:
        admission = ""  # its API is newer
    for name in ("tls", "kubeadm", "second-scheduler"):
        (folder / "kustomization.yaml").write_text(
            f"resources: [{relative(folder, MANIFESTS / 'overlays' / name)}]\n"
            f"components:\n"
            f"- {relative(folder, MANIFESTS / 'components' / 'evict-for-cards')}\n"
            f"- {relative(folder, MANIFESTS / 'components' / 'dra')}\n"
            f"- {relative(folder, MANIFESTS / 'components' / 'settings')}\n"
            f"- {relative(folder, MANIFESTS / 'components' / 'metrics')}\n"
            f"{admission}"
            "configMapGenerator:\n"
            "- {name: cardpack-settings, namespace: kube-system, files: [cardpack.yaml]}\n"
        )
        text = kustomize(folder)
        unwarned(bench.cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text))
        found = objects(bench, text)
        check_pod(bench, template(found)["spec"])
        args = container(found, "cardpack")["args"]
        check("--evict-for-cards=true" in args, args)
        check_scraped(found)
        mounted, file = "/etc/cardpack/settings/cardpack.yaml", str(folder / "cardpack.yaml")
        check_config(bench, [arg.replace(mounted, file) for arg in args])
        names = [o["metadata"]["name"] for o in found]
        mapped = [name for name in names if name.startswith("cardpack-settings-")]
        check(len(mapped) == 1 and mapped[0] in json.dumps(template(found)), mapped)


def check_scraped(found: list[Json]) -> None:
    """The annotations name the port for probes, which exists."""
    one = container(found, "cardpack")
    (port,) = [p["containerPort"] for p in one["ports"] if p["name"] == "probes"]
    check(f"--probe-port={port}" in one["args"] and "--probe-address=0.0.0.0" in one["args"], one)
    told = template(found)["metadata"]["annotations"]
    check(told["prometheus.io/port"] == str(port) and told["prometheus.io/scrape"] == "true", told)


def relative(folder: Path, other: Path) -> str:
    """A relative path, as kustomize accepts no absolute ones."""
    return "/".join([".."] * (len(folder.resolve().parts) - 1)) + str(other.resolve())


# ---- pods through them ----------------------------------------------------------------------


def through(bench: Bench, prefix: str, count: int = 4, **options: Any) -> None:
    """`count` more pods that share a node's cards are bound, and all checks succeed."""
    before = bench.bound_count()
    bench.pods([f"{prefix}-{i}" for i in range(count)], [3] * count, **options)
    bench.wait_bound(before + count, kicking=True)


@scenario("real")
def behind_a_service(bench: Bench) -> None:
    """The overlays with a Service: cardpack with their arguments, kube-scheduler with config/.

    Changed from the shipped files: the port and the addresses of cardpack, the folder of its
    certificates, and what scheduler_config.py names.
    """
    bench.node("n1", 4, 16)
    shipped = ("base", "evict-for-cards", "high-availability")
    for name in shipped:
        folder = MANIFESTS / "base" if name == "base" else overlay(bench, name)
        found = objects(bench, kustomize(folder))
        daemon = bench.cardpack(*local_args(bench, container(found, "cardpack")["args"]))
        through(bench, name, 2)
        bench.verify(daemon)
        daemon.stop()
    _through_tls(bench)


def _through_tls(bench: Bench) -> None:
    ca = Authority(bench.workdir, "overlay-ca")
    server = ca.sign("cardpack", "serverAuth", "IP:127.0.0.1").put(bench.workdir / "overlay-tls")
    client = ca.sign("system:kube-scheduler", "clientAuth")
    found = objects(bench, kustomize(overlay(bench, "tls")))
    args = [
        arg.replace("/etc/cardpack/tls/", f"{server.cert.parent}/").replace(
            "/etc/cardpack/client-ca/ca.crt", str(ca.pair.cert)
        )
        for arg in container(found, "cardpack")["args"]
    ]
    daemon = bench.cardpack(*local_args(bench, args), tls=trust(ca, client))
    lines = (
        "enableHTTPS: true", "tlsConfig:", f"  caFile: {ca.pair.cert}",
        f"  certFile: {client.cert}", f"  keyFile: {client.key}",
    )  # fmt: skip
    bench.start_scheduler("https", extender_lines=lines)
    try:
        through(bench, "tls", 2)
        bench.verify(daemon)
    finally:
        bench.start_scheduler()


# ---- a drain --------------------------------------------------------------------------------


def _evict(bench: Bench, name: str) -> int:
    version = "v1" if bench.modern else "v1beta1"
    body = {"apiVersion": f"policy/{version}", "kind": "Eviction", "metadata": {"name": name}}
    path = f"/api/v1/namespaces/kube-system/pods/{name}/eviction"
    return bench.cluster.api("POST", path, body)[0]


def _runs(bench: Bench, name: str, ready: str) -> None:
    """Plays the pod's kubelet: it runs, and is ready or not."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    bench.cluster.must(
        "PATCH", f"/api/v1/namespaces/kube-system/pods/{name}/status", {"status": status},
        content_type="application/merge-patch+json",
    )  # fmt: skip


@contextmanager
def _deployed(bench: Bench, name: str) -> Iterator[tuple[list[str], str]]:
    """An overlay, with its Deployment's pods and the name of its PodDisruptionBudget."""
    text = kustomize(overlay(bench, name))
    found = objects(bench, text)
    replicas = pick(found, "Deployment")["spec"]["replicas"]
    budget = pick(found, "PodDisruptionBudget")["metadata"]["name"]
    take_away(bench, found)  # the base's Deployment has the same name: no rolling update
    wait_for(lambda: not _replicas(bench, 1), "the replicas to end", PATIENCE)
    try:
        bench.cluster.kubectl("apply", "-f", "-", stdin=text)
        yield wait_for(lambda: _replicas(bench, replicas), f"{replicas} replicas", PATIENCE), budget
    finally:
        take_away(bench, found)
        wait_for(lambda: not _replicas(bench, 1), "the replicas to end", PATIENCE)


@scenario("real")
def drains(bench: Bench) -> None:
    """No PodDisruptionBudget blocks a drain for ever: one ready replica at a time is evicted."""
    controllers = bench.cluster.start_controller_manager()
    try:
        for overlay_name in ("high-availability", "second-scheduler"):
            with _deployed(bench, overlay_name) as (names, budget):
                _drains_one_by_one(bench, names, budget)
    finally:
        controllers.kill()


def _drains_one_by_one(bench: Bench, names: list[str], budget: str) -> None:
    for name in names:  # no replica has read its lists yet
        _runs(bench, name, "False")
    wait_for(lambda: _allowed(bench, budget) == 0, "the budget's figures", PATIENCE)
    check(_evict(bench, names[0]) == 429, "evicted while no replica was ready")
    for name in names:
        _runs(bench, name, "True")
    wait_for(lambda: _allowed(bench, budget) == 1, "the budget's figures", PATIENCE)
    check(_evict(bench, names[0]) == 201, "the budget holds a replica")
    check(_evict(bench, names[1]) == 429, "two are evicted at a time")
    (new,) = wait_for(
        lambda: set(_replicas(bench, len(names))) - {*names}, "another replica", PATIENCE
    )
    check(_evict(bench, names[1]) == 429, "evicted while the other one is not there yet")
    _runs(bench, new, "True")
    wait_for(lambda: _allowed(bench, budget) == 1, f"{new} to count", PATIENCE)
    check(_evict(bench, names[1]) == 201, "the budget holds the other replica")


def _allowed(bench: Bench, name: str) -> int | None:
    """How many evictions the budget allows, once its controller has counted."""
    path = f"{budgets_path(bench, 'kube-system')}/{name}"
    budget = bench.cluster.must("GET", path)
    if not budget["status"].get("expectedPods"):
        return None
    return int(budget["status"]["disruptionsAllowed"])


def _replicas(bench: Bench, count: int) -> list[str]:
    pods = bench.cluster.list_all("/api/v1/namespaces/kube-system/pods")
    names = [p["metadata"]["name"] for p in pods if "deletionTimestamp" not in p["metadata"]]
    return names if len(names) >= count else []
