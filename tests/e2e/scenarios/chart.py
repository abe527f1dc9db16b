"""manifests/helm/cardpack renders the same objects as the overlays, with each choice of values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench import MANIFESTS, ROOT, Bench, Skipped, agree, check, scenario
from renderings import (
    CHART,
    OVERLAYS,
    chart,
    check_config,
    check_end,
    container,
    helm,
    kustomize,
    local_args,
    map_strings,
    objects,
    overlay,
    pick,
    strictly,
    template,
    unwarned,
)

from scenarios.beside import plain_default, running, second, settings
from scenarios.overlays import check_pod, check_rendering, check_scraped, relative, through

Json = Any

# Values of the chart, and the overlay that they must equal.
SAME: dict[str, tuple[str, ...]] = {
    "base": ("mode=service",),
    "tls": ("mode=service", "tls.enabled=true"),
    "evict-for-cards": ("mode=service", "evictForCards.enabled=true"),
    "high-availability": ("mode=service", "highAvailability.enabled=true"),
    "kubeadm": (),
    "second-scheduler": ("mode=second-scheduler",),
}
# More values whose objects the API server must accept.
CHOICES: tuple[tuple[str, ...], ...] = (
    (
        "mode=service", "config.shortlist=5", "config.log-level=warn", "config.max-body=64MiB",
        "evictForCards.enabled=true", "dra.enabled=true", "config.dra=on",
        "nodeLock.enabled=true", "config.dialects=gpushare\\,hami",
    ),
    ("mode=service", "tls.enabled=true", "highAvailability.enabled=true", "tls.clientNames=null"),
    (
        "mode=service", "service.type=ClusterIP", "service.annotations.a=b",
        "podDisruptionBudget.enabled=false",
    ),
    (
        "mode=service", "service.type=LoadBalancer", "service.nodePort=null",
        "imagePullSecrets[0]=registry",
    ),
    ("mode=service", "metrics.annotations=true", "ports.probes=40002"),
    (
        "mode=beside-scheduler", "metrics.annotations=true", "evictForCards.enabled=true",
        "config.shortlist=1", "nodeSelector.a=b",
    ),
    (
        "mode=second-scheduler", "secondScheduler.schedulerName=gpu", "config.shortlist=5",
        "secondScheduler.managedResources={aliyun.com/gpu-mem}", "ports.http=40000",
        "config.leader-elect-resource-name=other", "config.leader-elect-resource-namespace=default",
    ),
    # Minimal values; the last argument overrides the file.
    (
        "config.shutdown-grace=10m", "extraArgs={--shutdown-grace=10m,--shutdown-grace=34s999ms}",
    ),
    ("terminationGracePeriodSeconds=91", "config.shutdown-grace=1m30s"),
    (
        "mode=service", "replicas=1", "image.repository=example.invalid/cardpack",
        "image.digest=sha256:" + "a" * 64,
        "podLabels.a=b", "podAnnotations.a=b", "priorityClassName=system-node-critical",
        "extraArgs[0]=--log-level=debug", "extraEnv[0].name=A", "extraEnv[0].value=b",
        "tolerations[0].operator=Exists", "resources.limits.memory=1Gi",
        "serviceAccount.annotations.a=b", "nameOverride=packer", "ports.probes=40001",
    ),
)  # fmt: skip
# Values that are refused, and the word that names the reason.
BAD: tuple[tuple[str, str], ...] = (
    ("mode=sideways", "mode"),
    ("config.prot=1", "prot"),
    ("config.port=1", "port"),
    ("config.log-level=loud", "log-level"),
    ("config.bind-timeout=25", "bind-timeout"),
    ("image.digest=0.1.0", "digest"),
    ("replica=2", "replica"),
    ("service.nodePort=99999", "nodePort"),
    ("metrics.podMonitor.interval=30", "interval"),
    ("metrics.prometheusRule.label.a=b", "label"),
    ("tls.enabled=true", 'mode "service", not "beside-scheduler"'),
    ("extraArgs[0]=log-level", "extraArgs"),
    ("secondScheduler.managedResources={aliyun.com/gpu-memory}", "managedResources"),
    ("tls.enabled=true,mode=second-scheduler", 'mode "service", not "second-scheduler"'),
    ("highAvailability.enabled=true,mode=beside-scheduler", 'mode "service", not "beside-scheduler"'),
    ("serviceAccount.create=false", "serviceAccount.name"),
    (
        "terminationGracePeriodSeconds=25",
        "terminationGracePeriodSeconds: 25: must be above shutdown-delay (0s) and shutdown-grace (25s)",
    ),
    ("config.shutdown-delay=9s500ms,config.shutdown-grace=25s500ms", "shutdown-delay (9s500ms)"),
    ("mode=beside-scheduler,config.shutdown-grace=1m", "shutdown-grace (1m)"),
    ("config.shutdown-delay=1s,extraArgs[0]=--shutdown-delay=10s", "shutdown-delay (10s)"),
    ("admission.enabled=perhaps", "admission"),
    ("admission.requests={Refuse}", "admission"),
    ("admission.requests={Deny,Warn}", "admission"),
    ("admission.hints={}", "admission"),
)
# What a cluster of 1.30 or newer reports, and `helm template` does not assume.
ADMISSION_API = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
# Each release as a cluster reports it, and the overlay with the scheduler configuration for it.
RELEASES = {
    "1.20.2": "-v1beta1",
    "1.22.17": "-v1beta1",
    "1.23.0": "-v1beta3",
    "1.24.17-eks-508b6b3": "-v1beta3",
    "1.25.0": "",
    "1.29.3-gke.1282000": "",
    "1.36.3": "",
}


def _sets(values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in ("--set", value)]


def _plain(found: list[Json]) -> dict[tuple[str, str, str], Json]:
    """By kind, namespace and name; without the fields that only one of the two renderers adds."""
    plain = {}
    for item in map_strings(found, lambda s: re.sub(r"-config-[a-z0-9]{10}$", "-config", s)):
        metadata = item["metadata"]
        metadata.pop("labels", None)
        if item["kind"] == "ConfigMap":
            item["data"] = {key: settings(text) for key, text in item["data"].items()}
        key = (item["kind"], metadata.get("namespace", ""), metadata["name"])
        plain[key] = _without(item)
    return plain


def _without(value: Json) -> Json:
    """Without the release's labels and the checksum, and with the default image pull policy."""
    if isinstance(value, list):
        return [_without(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "image" in value and value.get("imagePullPolicy") == "IfNotPresent":
        del value["imagePullPolicy"]
    kept = {
        key: _without(item)
        for key, item in value.items()
        if key != "app.kubernetes.io/instance" and not key.startswith("checksum/")
    }
    if kept.get("annotations") == {}:
        del kept["annotations"]
    return kept


@scenario("real")
def chart_is_the_overlays(bench: Bench) -> None:
    """The chart's default is overlays/kubeadm; its values can make the base and each other overlay.

    Each has cardpack-node beside it, with the objects of manifests/node.
    """
    node = _plain(objects(bench, kustomize(MANIFESTS / "node")))
    check(len(node) == 6, set(node))
    for name, values in SAME.items():
        folder = MANIFESTS / "base" if name == "base" else overlay(bench, name)
        ours = _plain(objects(bench, chart(bench, *_sets(values), node=True)))
        theirs = _plain(objects(bench, kustomize(folder)))
        check(not set(theirs) & set(node), f"{name}: {set(theirs) & set(node)}")
        theirs |= node
        check(set(ours) == set(theirs), f"{name}: {set(ours) ^ set(theirs)}")
        for key, item in ours.items():
            check(item == theirs[key], f"{name}: {key}: {item}, not {theirs[key]}")


@scenario("real")
def chart_choices(bench: Bench) -> None:
    """The API server accepts the objects of all choices, and cardpack their settings."""
    for values in CHOICES:
        text = chart(bench, *_sets(values), name="tried")
        argv = ("create", "--dry-run=server", strictly(bench), "-f", "-")
        unwarned(bench.cluster.kubectl(*argv, stdin=text))
        found = objects(bench, text)
        check_pod(bench, template(found)["spec"])
        if "metrics.annotations=true" in values:
            check_scraped(found)
        file = bench.workdir / "settings.yaml"
        for mapped in (o for o in found if o["metadata"]["name"].endswith("-settings")):
            file.write_text(mapped["data"]["cardpack.yaml"])
        args = container(found, "cardpack")["args"]
        path = "/etc/cardpack/settings/cardpack.yaml"
        told = check_config(bench, [arg.replace(path, str(file)) for arg in args])
        check_end(template(found)["spec"]["terminationGracePeriodSeconds"], told)


# The kinds of the Prometheus operator, with any fields: the API server must know a kind to accept it.
_WATCHED = {"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"}


def _define(kind: str, plural: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    group = "monitoring.coreos.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": [version],
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
        },
    }  # fmt: skip


@scenario("real")
def chart_monitoring(bench: Bench) -> None:
    """The alerts and the dashboard of the chart are those of manifests/metrics, and the PodMonitor
    finds the port of every mode.
    """
    kubectl = bench.cluster.kubectl
    kinds = [_define(*row) for row in _WATCHED.items()]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": kinds})
    kubectl("create", "-f", "-", stdin=text)
    try:
        names = [item["metadata"]["name"] for item in kinds]
        kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *names)
        for mode in ("beside-scheduler", "second-scheduler", "service"):
            _check_monitoring(bench, mode)
    finally:
        kubectl("delete", "-f", "-", stdin=text)


def _check_monitoring(bench: Bench, mode: str) -> None:
    options = ("podMonitor", "prometheusRule", "dashboard")
    wanted = tuple(f"metrics.{option}.enabled=true" for option in options)
    labels = ("metrics.podMonitor.labels.release=a", "metrics.prometheusRule.labels.release=b")
    text = chart(bench, *_sets((f"mode={mode}", *wanted, *labels)), name="tried")
    if bench.modern:  # 1.20's API server crashes on a dry run of a kind with any fields
        unwarned(bench.cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=text))
    found = objects(bench, text)
    monitor, rule = (pick(found, kind) for kind in _WATCHED)
    labelled = [item["metadata"]["labels"].get("release") for item in (monitor, rule)]
    check(labelled == ["a", "b"], labelled)
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    check(chosen <= template(found)["metadata"]["labels"].items(), monitor)
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    one = container(found, "cardpack")
    (port,) = [p["containerPort"] for p in one["ports"] if p["name"] == endpoint["port"]]
    check(f"--probe-port={port}" in one["args"] and "--probe-address=0.0.0.0" in one["args"], one)
    alerts = (MANIFESTS / "metrics" / "alerts.yaml").read_text()
    head = "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: a}\nspec:\n"
    (theirs,) = objects(bench, head + re.sub("^", "  ", alerts, flags=re.MULTILINE))
    check(rule["spec"] == theirs["spec"] and rule["spec"]["groups"][0]["rules"], rule["spec"])
    (board,) = [o for o in found if o["metadata"]["labels"].get("grafana_dashboard") == "1"]
    theirs = json.loads((MANIFESTS / "metrics" / "dashboard.json").read_text())
    check(json.loads(board["data"]["cardpack.json"]) == theirs, "another dashboard")
    for name in ("alerts.yaml", "dashboard.json"):
        linked = MANIFESTS / "metrics" / name
        check(linked.is_symlink() and linked.samefile(CHART / "files" / name), f"{linked}: a copy")


@scenario("real")
def chart_values(bench: Bench) -> None:
    """Invalid values are refused by name; the release of Kubernetes decides what depends on it."""
    if not bench.modern:
        raise Skipped("Helm alone is asked, once is enough")
    for values in (*SAME.values(), *CHOICES):
        helm("lint", "--strict", "--quiet", CHART, *_sets(values))
    for value, why in BAD:
        said = helm("template", "cardpack", CHART, "--set", value, good=False)
        check(why in said, f"{value}: {said}")
    second = ("template", "cardpack", CHART, "-n", "kube-system", "--set", "mode=second-scheduler")
    for release, suffix in RELEASES.items():
        said = helm(*second, "--kube-version", release)
        check(f"registry.k8s.io/kube-scheduler:v{release.partition('-')[0]}\n" in said, said)
        # kubectl can't check this: it knows only its own release's kinds.
        written = re.search(r"^  kube-scheduler\.yaml: \|\n((?:    .*\n)+)", said, re.MULTILINE)
        check(written, said)
        assert written is not None
        ours = re.sub("^    ", "", written[1], flags=re.MULTILINE)
        theirs = (OVERLAYS / f"second-scheduler{suffix}" / "kube-scheduler.yaml").read_text()
        check(settings(ours) == settings(theirs), f"{release}: {settings(ours)}")
        version = "policy/v1beta1" if release.startswith("1.20.") else "policy/v1"
        check(f"apiVersion: {version}\nkind: PodDisruptionBudget\n" in said, said)
    said = helm(*second, "--kube-version", "1.19.16", good=False)
    check("kubeVersion" in said, said)


@scenario("real")
def chart_admission(bench: Bench) -> None:
    """The admission policies are the components', by default only where the cluster has the API."""
    if bench.minor < 30:
        raise Skipped("ValidatingAdmissionPolicy is there since 1.30")
    own = _plain(objects(bench, kustomize(MANIFESTS / "components" / "own-node")))
    nodes = _plain(objects(bench, chart(bench, node=True)))
    api = ("--api-versions", ADMISSION_API, "--set", "admission.enabled=false", "--kube-version")
    check(len(own) == 2 and not set(own) & set(nodes), set(own))
    for release, more in (("1.32.0", own), ("1.31.9", {})):
        check(_plain(objects(bench, chart(bench, *api, release, node=True))) == nodes | more, release)
    off = (*api, "1.32.0", "--set", "node.ownNode=false")
    check(_plain(objects(bench, chart(bench, *off, node=True))) == nodes, "disabled")
    theirs = _plain(objects(bench, kustomize(MANIFESTS / "components" / "admission")))
    base = _plain(objects(bench, chart(bench)))
    check(len(theirs) == 4 and not set(theirs) & set(base), set(theirs))
    for values in (("--api-versions", ADMISSION_API), ("--set", "admission.enabled=true")):
        check(_plain(objects(bench, chart(bench, *values))) == base | theirs, values)
    off = ("--api-versions", ADMISSION_API, "--set", "admission.enabled=false")
    check(_plain(objects(bench, chart(bench, *off))) == base, "disabled")
    acts = ("admission.enabled=true", "admission.requests={Warn,Audit}", "admission.hints={Deny}")
    text = chart(bench, *_sets(acts), name="tried")
    bench.cluster.kubectl("create", "--dry-run=server", strictly(bench), "-f", "-", stdin=text)
    found = {item["metadata"]["name"]: item["spec"] for item in objects(bench, text)
             if item["kind"] == "ValidatingAdmissionPolicyBinding"}  # fmt: skip
    name = "tried-cardpack-request"
    check(found[f"{name}s"]["validationActions"] == ["Warn", "Audit"], found)
    check(found[f"{name}-hints"]["validationActions"] == ["Deny"], found)
    check(all(spec["policyName"] == key for key, spec in found.items()), found)


@scenario("real")
def chart_settings(bench: Bench) -> None:
    """Every setting of cardpack is a value of the chart, or the chart sets it itself."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = set(schema["properties"]["config"]["properties"])
    defaults = check_config(bench, [])
    every = set(defaults)
    # The settings for which the chart has a default if `config` has none.
    checks = (CHART / "templates" / "checks.yaml").read_text()
    reckoned = dict(re.findall(r'"name" "(\S+)" "default" "(\S+)"', checks))
    check(len(reckoned) == 2 and reckoned.items() <= defaults.items(), reckoned)
    made = {
        "listen-address", "port", "allow-plain-http", "tls-cert-file", "tls-key-file",
        "client-ca-file", "client-names", "probe-address", "probe-port", "kubeconfig", "cluster",
        "evict-for-cards", "pod-name", "pod-namespace", "pod-uid",
    }  # fmt: skip
    check(known | made == every and not known & made, f"{(known | made) ^ every}")
    # The table in docs/manifests.md names every value and its default.
    argv = ("install", "x", CHART, "--dry-run=client", "-o", "json")
    release = helm(*argv, kubeconfig=bench.cluster.admin_kubeconfig)
    values = json.loads(release)["chart"]["values"]
    text = (ROOT / "docs" / "manifests.md").read_text().partition("| value | default |")[2]
    told = dict(re.findall(r"^\| `([A-Za-z.]+)` \| (.*?) \|", text, re.MULTILINE))
    want = {
        name: f"`{json.dumps(value, sort_keys=True)}`"
        for name, value in _leaves(schema, values)
        if name != "global"
    }
    check(told == want, sorted(set(told.items()) ^ set(want.items())))


def _leaves(schema: Json, values: Json, prefix: str = "") -> list[tuple[str, Json]]:
    """Each settable value by its dotted name, with its default."""
    found: list[tuple[str, Json]] = []
    for key, inner in schema["properties"].items():
        name = f"{prefix}{key}"
        if "properties" in inner and name not in ("config", "node.config", "seccompProfile"):
            found += _leaves(inner, values[key], f"{name}.")
        else:
            found.append((name, values.get(key)))
    return found


@scenario("real")
def chart_installed(bench: Bench) -> None:
    """Helm installs the chart into its own namespace, upgrades it, and removes all of it."""
    admin = bench.cluster.admin_kubeconfig
    release = ("packer", CHART, "--namespace", bench.namespace,
               "--set", "mode=second-scheduler", "--set", "node.enabled=false")  # fmt: skip
    said = helm("install", *release, kubeconfig=admin)
    check("schedulerName: cardpack" in said, said)
    try:
        rendered = helm("get", "manifest", "packer", "-n", bench.namespace, kubeconfig=admin)
        found = objects(bench, rendered)
        _packs(bench, found)
        check_rendering(bench, found)
        kept = _checksums(bench)
        helm("upgrade", *release, kubeconfig=admin)
        check(_checksums(bench) == kept, "an upgrade to the same rolls the pods over")
        helm("upgrade", *release, "--set", "config.shortlist=3", kubeconfig=admin)
        check(_checksums(bench) != kept, "new settings don't roll the pods over")
    finally:
        helm("uninstall", "packer", "-n", bench.namespace, kubeconfig=admin)
    if bench.minor > 29:
        # Installed with the chart's defaults, as the cluster has them.
        check(sum("AdmissionPolicy" in item["kind"] for item in found) == 4, found)
    check(not _left(bench, "packer"), _left(bench, "packer"))


@scenario("real")
def chart_after_apply(bench: Bench) -> None:
    """Helm refuses the objects that kubectl has applied; without their DaemonSet it takes them over."""
    admin, space = bench.cluster.admin_kubeconfig, bench.namespace
    name = "cardpack-adopted"
    folder = bench.workdir / "adopted"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(
        f"resources: [{relative(folder, overlay(bench, 'kubeadm'))}]\n"
        f"namespace: {space}\nnameSuffix: -adopted\n"
    )
    bench.cluster.kubectl("apply", "-f", "-", stdin=kustomize(folder))
    release = (name, CHART, "--namespace", space)
    said = helm("install", *release, good=False, kubeconfig=admin)
    check("invalid ownership metadata" in said, said)
    bench.cluster.kubectl("delete", "daemonset", name, "-n", space, "--cascade=background")
    helm("install", *release, "--take-ownership", kubeconfig=admin)
    helm("uninstall", name, "-n", space, kubeconfig=admin)
    check(not _left(bench, name), _left(bench, name))


def _left(bench: Bench, prefix: str) -> list[str]:
    """The names of the objects outside of namespaces, and of Roles, that begin so."""
    kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    paths = [f"/apis/rbac.authorization.k8s.io/v1/{kind}" for kind in kinds]
    if bench.minor > 29:
        kinds = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
        paths += [f"/apis/admissionregistration.k8s.io/v1/{kind}" for kind in kinds]
    names = [o["metadata"]["name"] for path in paths for o in bench.cluster.list_all(path)]
    return [name for name in names if name.startswith(prefix)]


def _checksums(bench: Bench) -> Json:
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/packer-cardpack-scheduler"
    return bench.cluster.must("GET", path)["spec"]["template"]["metadata"]["annotations"]


def _packs(bench: Bench, found: list[Json]) -> None:
    """Pods are bound with exactly the rights that the chart gives."""
    name = pick(found, "ServiceAccount")["metadata"]["name"]
    token = bench.cluster.service_account_token(bench.namespace, name)
    user = f"system:serviceaccount:{bench.namespace}:{name}"
    kubeconfig = bench.workdir / "packer.kubeconfig"
    bench.cluster.write_kubeconfig(kubeconfig, token)
    here = f"namespace: {bench.namespace}, cluster: test,"
    kubeconfig.write_text(kubeconfig.read_text().replace("cluster: test,", here))
    bench.node("n1", 2, 16)
    args = local_args(bench, container(found, "cardpack")["args"])
    daemon = bench.daemon(Path(kubeconfig), *args)
    with plain_default(bench), running(second(bench, found, token)):
        through(bench, "packed", scheduler_name="cardpack")
    check(not bench.truth().overcommitted(), "over-committed")
    agree(daemon, bench.truth)
    for event in bench.cluster.audit_events():
        if event["user"]["username"] == user:
            code = event.get("responseStatus", {}).get("code")
            check(code != 403, f"{event['verb']} {event['requestURI']}: {code}")
    daemon.stop()
