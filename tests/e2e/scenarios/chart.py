"""manifests/helm/cardpack: the same objects as the overlays, whatever its values choose."""

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
)

from scenarios.beside import plain_default, running, second, settings
from scenarios.overlays import check_pod, check_rendering, check_scraped, through

Json = Any

# What the chart's values choose, and the overlay that is the same.
SAME: dict[str, tuple[str, ...]] = {
    "base": (),
    "tls": ("tls.enabled=true",),
    "evict-for-cards": ("evictForCards.enabled=true",),
    "high-availability": ("highAvailability.enabled=true",),
    "kubeadm": ("mode=beside-scheduler",),
    "second-scheduler": ("mode=second-scheduler",),
}
# More of them, each of which the API server must take as well.
CHOICES: tuple[tuple[str, ...], ...] = (
    (
        "config.shortlist=5", "config.log-level=warn", "config.max-body=64MiB",
        "evictForCards.enabled=true",
    ),
    ("tls.enabled=true", "highAvailability.enabled=true", "tls.clientNames=null"),
    ("service.type=ClusterIP", "service.annotations.a=b", "podDisruptionBudget.enabled=false"),
    ("service.type=LoadBalancer", "service.nodePort=null", "imagePullSecrets[0]=registry"),
    ("metrics.annotations=true", "ports.probes=40002"),
    (
        "mode=beside-scheduler", "metrics.annotations=true", "evictForCards.enabled=true",
        "config.shortlist=1", "nodeSelector.a=b",
    ),
    (
        "mode=second-scheduler", "secondScheduler.schedulerName=gpu", "config.shortlist=5",
        "secondScheduler.managedResources={aliyun.com/gpu-mem,nvidia.com/gpu}", "ports.http=40000",
        "config.leader-elect-resource-name=other", "config.leader-elect-resource-namespace=default",
    ),
    # Just enough; the last argument counts, and beats the file.
    (
        "config.shutdown-grace=10m", "extraArgs={--shutdown-grace=10m,--shutdown-grace=34s999ms}",
    ),
    ("terminationGracePeriodSeconds=91", "config.shutdown-grace=1m30s"),
    (
        "replicas=1", "image.repository=example.invalid/cardpack",
        "image.digest=sha256:" + "a" * 64,
        "podLabels.a=b", "podAnnotations.a=b", "priorityClassName=system-node-critical",
        "extraArgs[0]=--log-level=debug", "extraEnv[0].name=A", "extraEnv[0].value=b",
        "tolerations[0].operator=Exists", "resources.limits.memory=1Gi",
        "serviceAccount.annotations.a=b", "nameOverride=packer", "ports.probes=40001",
    ),
)  # fmt: skip
# What is refused, and the word that says why.
BAD: tuple[tuple[str, str], ...] = (
    ("mode=sideways", "mode"),
    ("config.prot=1", "prot"),
    ("config.port=1", "port"),
    ("config.log-level=loud", "log-level"),
    ("config.bind-timeout=25", "bind-timeout"),
    ("image.digest=0.1.0", "digest"),
    ("replica=2", "replica"),
    ("service.nodePort=99999", "nodePort"),
    ("extraArgs[0]=log-level", "extraArgs"),
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
)
# Each release, as a cluster says it, and the overlay whose scheduler configuration it reads.
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
    """By kind, namespace and name; without what only the one or the other way to render has."""
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
    """No label of the release, no checksum, and the default for pulling an image."""
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
    """By default the chart is the base; told to, it is each of the overlays."""
    for name, values in SAME.items():
        folder = MANIFESTS / "base" if name == "base" else overlay(bench, name)
        ours = _plain(objects(bench, chart(bench, *_sets(values))))
        theirs = _plain(objects(bench, kustomize(folder)))
        check(set(ours) == set(theirs), f"{name}: {set(ours) ^ set(theirs)}")
        for key, item in ours.items():
            check(item == theirs[key], f"{name}: {key}: {item}, not {theirs[key]}")


@scenario("real")
def chart_choices(bench: Bench) -> None:
    """The API server takes what the values choose, and cardpack its settings."""
    for values in CHOICES:
        text = chart(bench, *_sets(values), name="tried")
        argv = ("create", "--dry-run=server", strictly(bench), "-f", "-")
        bench.cluster.kubectl(*argv, stdin=text)
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


@scenario("real")
def chart_values(bench: Bench) -> None:
    """Bad values are refused by their name; the release of Kubernetes chooses what it must."""
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
        # Not by kubectl, which knows its own release's kinds alone.
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
def chart_settings(bench: Bench) -> None:
    """Every setting of cardpack is one of the chart's, or one that the chart makes itself."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = set(schema["properties"]["config"]["properties"])
    defaults = check_config(bench, [])
    every = set(defaults)
    # With which of them the chart reckons where config has none.
    checks = (CHART / "templates" / "checks.yaml").read_text()
    reckoned = dict(re.findall(r'"name" "(\S+)" "default" "(\S+)"', checks))
    check(len(reckoned) == 2 and reckoned.items() <= defaults.items(), reckoned)
    made = {
        "listen-address", "port", "allow-plain-http", "tls-cert-file", "tls-key-file",
        "client-ca-file", "client-names", "probe-address", "probe-port", "kubeconfig", "cluster",
        "evict-for-cards",
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
    """What may be set, by its dotted name, and its default."""
    found: list[tuple[str, Json]] = []
    for key, inner in schema["properties"].items():
        name = f"{prefix}{key}"
        if "properties" in inner and name not in ("config", "seccompProfile"):
            found += _leaves(inner, values[key], f"{name}.")
        else:
            found.append((name, values.get(key)))
    return found


@scenario("real")
def chart_installed(bench: Bench) -> None:
    """Helm installs it into a namespace of its own, upgrades it, and takes all of it away."""
    admin = bench.cluster.admin_kubeconfig
    release = ("packer", CHART, "--namespace", bench.namespace, "--set", "mode=second-scheduler")
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
    for kind in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
        left = bench.cluster.list_all(f"/apis/rbac.authorization.k8s.io/v1/{kind}")
        names = [o["metadata"]["name"] for o in left]
        check(not [n for n in names if n.startswith("packer")], names)


def _checksums(bench: Bench) -> Json:
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/packer-cardpack-scheduler"
    return bench.cluster.must("GET", path)["spec"]["template"]["metadata"]["annotations"]


def _packs(bench: Bench, found: list[Json]) -> None:
    """Pods are bound with the rights that the chart gives, and with no other."""
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
