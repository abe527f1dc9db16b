#!/usr/bin/env python3
"""The checks of /metrics; `run` starts them.

    check.py CARDPACK PROMETHEUS_PROGRAMS [--table]      --table: docs/metrics.md's rows, and no test
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests/e2e")]

from daemons import Cardpack, certificate, free_port, pod  # noqa: E402
from fake_api import FakeApi  # noqa: E402
from prometheus import Prometheus  # noqa: E402

ALERTS = ROOT / "manifests/metrics/alerts.yaml"
DASHBOARD = ROOT / "manifests/metrics/dashboard.json"
DOCUMENT = ROOT / "docs/metrics.md"
ALERT_TESTS = HERE / "alerts_test.yaml"
PODS = 12  # bound pods; the same number of others fit nowhere
WAIT = 24  # pods that wait: with the bound ones they are enough for a lesson
MODELS = 'He said "A100"\\\n*'
COUNT = "cardpack_request_duration_seconds_count"

passed = failed = 0


def check(what: str, problem: object = None) -> None:
    """One check; it fails if the problem is not empty."""
    global passed, failed
    good = not problem
    passed, failed = passed + good, failed + (not good)
    print(f"{'ok' if good else 'FAILED'} - {what}{'' if good else f': {problem}'}", flush=True)


def differ(got: object, wanted: object) -> str:
    """Empty if they are equal."""
    return "" if got == wanted else f"got {got!r}, wanted {wanted!r}"


# ---- load ---------------------------------------------------------------------------------


def use(cardpack: Cardpack, create: Callable[[dict], object], nodes: list[str]) -> None:
    """Makes pods that are bound, pods that fit nowhere, and invalid requests."""
    for i in range(PODS):
        one = pod(f"fits-{i}", 2 + i % 3, **{"aliyun.com/gpu-core.percentage": "10"})
        create(one)
        fit = cardpack.verb("filter", {"Pod": one, "NodeNames": nodes})["NodeNames"]
        cardpack.verb("prioritize", {"Pod": one, "NodeNames": fit})
        error = cardpack.verb(
            "bind",
            {"PodName": one["metadata"]["name"], "PodNamespace": one["metadata"]["namespace"],
             "PodUID": one["metadata"]["uid"], "Node": fit[0]},
        )["Error"]  # fmt: skip
        assert error == "", error
        large = pod(f"too-large-{i}", 500)
        assert not cardpack.verb("filter", {"Pod": large, "NodeNames": nodes})["NodeNames"]
    for i in range(WAIT):
        one = pod(f"waits-secret-{i}", 500 if i % 2 else 4)
        one["metadata"]["annotations"] = {"cardpack.io/card-model": MODELS} if i < 2 else {}
        create(one)
    cardpack.ask("POST", "/gpushare-scheduler/filter", b"{nonsense")
    cardpack.ask("GET", "/nowhere")
    cardpack.ask("GET", "/healthz", port=cardpack.probes)


def await_lesson(cardpack: Cardpack) -> None:
    """Waits until the policies have learned, and the sums of all nodes are there."""
    while "\ncardpack_fragmentation_cards " not in cardpack.ask("GET", "/metrics")[2]:
        if cardpack.process.poll() is not None:
            raise SystemExit("cardpack has ended")
        time.sleep(0.1)


def fill_fake(api: FakeApi) -> None:
    """Makes the objects of world.yaml, as far as possible."""
    for i in range(3):
        api.create_node(f"node-{i}", mem=64, cards=4)


# ---- the format ---------------------------------------------------------------------------


def check_format(name: str, cardpack: Cardpack, programs: Path) -> None:
    """promtool and Prometheus' Python library read the metrics."""
    for where, port in (("main port", 0), ("probes' port", cardpack.probes)):
        status, kind, text = cardpack.ask("GET", "/metrics", port=port)
        check(f"{name}, {where}: content type", differ((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8")))
        lint = subprocess.run([programs / "promtool", "check", "metrics"], input=text, text=True, capture_output=True)
        check(f"{name}, {where}: promtool has nothing to say", lint.stdout + lint.stderr or lint.returncode)
        fixed = sum(1 for f in text_string_to_metric_families(text) for s in f.samples if "node" not in s.labels)
        check(f"{name}, {where}: so many series but for nodes", "" if 400 < fixed <= 850 else fixed)
        check(f"{name}, {where}: no pod and no namespace", re.findall(r"fits-\d+|secret|stray", text))
    check(f"{name}: HEAD", differ(cardpack.ask("HEAD", "/metrics")[0::2], (200, "")))
    check(f"{name}: POST", differ(cardpack.ask("POST", "/metrics", {})[0], 405))


# ---- docs/metrics.md ----------------------------------------------------------------------


def described(cardpack: Cardpack) -> dict[str, tuple[str, str, str]]:
    """Each metric's type, labels and help, from the daemon."""
    found = {}
    for family in text_string_to_metric_families(cardpack.ask("GET", "/metrics")[2]):
        keys: list[str] = []
        for s in family.samples:
            keys += [k for k in s.labels if k not in (*keys, "le")]
        suffix = "_total" if family.type == "counter" else ""
        found[family.name + suffix] = (family.type, ", ".join(f"`{k}`" for k in keys), family.documentation)
    return found


def documented() -> dict[str, tuple[str, str, str]]:
    """The same, from the document."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) ?\| (.*?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    return {name: (kind, labels, text) for name, kind, labels, text in rows}


def check_document(says: dict[str, tuple[str, str, str]]) -> None:
    """Every metric is documented, every documented metric exists, and every alert has a heading."""
    doc = documented()
    check("docs: no metric is missing", sorted(says.keys() - doc.keys()))
    check("docs: no metric is made up", sorted(doc.keys() - says.keys()))
    for name in sorted(says.keys() & doc.keys()):
        kind, labels, text = says[name]
        wanted = (kind, doc[name][1] if not labels else labels, text)  # no sample now: the labels are unseen
        check(f"docs: {name}", differ(doc[name], wanted))
    headings = re.findall(r"^### (\w+)$", DOCUMENT.read_text(), re.MULTILINE)
    check("docs: a heading for each alert", differ(headings, [r["alert"] for r in rules()]))


# ---- alerts and dashboard -----------------------------------------------------------------


def rules() -> list[dict]:
    """The alerts."""
    return [r for g in yaml.safe_load(ALERTS.read_text())["groups"] for r in g["rules"]]


def example_fault(programs: Path) -> str:
    """promtool's error for the configuration in docs/metrics.md; Debian's promtool lacks Kubernetes."""
    text = re.search(r"^```yaml\n(scrape_configs:.*?)^```$", DOCUMENT.read_text(), re.M | re.S)[1]
    config = yaml.safe_load(text)
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [sd["role"] for sd in job.pop("kubernetes_sd_configs")]}]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "cardpack-alerts.yaml").write_text(ALERTS.read_text())
        path = Path(folder, "prometheus.yaml")
        path.write_text(yaml.safe_dump(config))
        done = subprocess.run(
            [programs / "promtool", "check", "config", path], text=True, capture_output=True)
    return done.stdout + done.stderr if done.returncode else ""


def check_alerts(programs: Path) -> None:
    """promtool accepts the rules, and a test shows each alert firing and silent."""
    for what, arguments in (("check", [ALERTS]), ("test", [ALERT_TESTS])):
        done = subprocess.run(
            [programs / "promtool", what, "rules", *arguments], text=True, capture_output=True)
        check(f"alerts: promtool {what} rules", done.returncode and done.stdout + done.stderr)
    check("docs: promtool check config", example_fault(programs))
    tested: dict[str, list[bool]] = {}
    for test in yaml.safe_load(ALERT_TESTS.read_text())["tests"]:
        for one in test["alert_rule_test"]:
            tested.setdefault(one["alertname"], []).append(bool(one["exp_alerts"]))
    for rule in rules():
        seen = set(tested.get(rule["alert"], []))
        check(f"alerts: {rule['alert']} fires and does not", differ(seen, {True, False}))
        anchor = rule["annotations"]["runbook"]
        check(f"alerts: {rule['alert']} leads to its heading", differ(anchor, f"docs/metrics.md#{rule['alert'].lower()}"))


def expressions() -> list[tuple[str, str]]:
    """The place and the query of each expression in the alerts and the dashboard."""
    found = [(f"alert {r['alert']}", r["expr"]) for r in rules()]
    board = json.loads(DASHBOARD.read_text())
    for panel in board["panels"]:
        found += [(f"panel {panel['title']!r}", t["expr"]) for t in panel.get("targets", [])]
    for variable in board["templating"]["list"]:
        query = variable["query"]
        if isinstance(query, dict):
            found.append((f"variable {variable['name']}", re.sub(r"label_values\((.*), \w+\)", r"\1", query["query"])))
    return found


def node_metrics() -> set[str]:
    """Those of cardpack-node, which does not run here: by its source."""
    return {n for path in sorted((ROOT / "src/node").rglob("*metrics.c"))
            for n in re.findall(r'"(cardpack_node_\w+)"', path.read_text())}  # fmt: skip


def check_expressions(prometheus: Prometheus) -> None:
    """Each query runs, and names only existing metrics."""
    doc = set(re.findall(r"\bcardpack_node_\w+", (ROOT / "docs/node.md").read_text()))
    check("docs: node.md has the metrics of cardpack-node", sorted(doc ^ node_metrics()))
    names = prometheus.names() | node_metrics()
    for where, expression in expressions():
        filled = expression.replace("$__rate_interval", "1m").replace("$job", ".+").replace("$node", ".+")
        try:
            prometheus.query(filled)
            problem = ""
        except ValueError as e:
            problem = f"{e} in {filled}"
        unknown = set(re.findall(r"\b(?:cardpack|process)_\w+", filled)) - names
        check(f"{where}: its query", problem or unknown)
    used = {n for _, e in expressions() for n in re.findall(r"\b(?:cardpack|process)_\w+", e)}
    check("dashboard and alerts use what there is", sorted(used - names))


# ---- Prometheus ---------------------------------------------------------------------------


def check_values(prometheus: Prometheus, job: str, cardpack: Cardpack) -> None:
    """Prometheus' values match inspect and the requests that were sent."""

    def one(metric: str, **labels: str) -> float | None:
        pairs = ",".join(f'{k}="{v}"' for k, v in {"job": job, **labels}.items())
        values = [v for _, v in prometheus.query(f"{metric}{{{pairs}}}")]
        return values[0] if len(values) == 1 else None

    for node in cardpack.inspect():
        got = (one("cardpack_node_memory_units", node=node["name"]),
               one("cardpack_node_memory_allocated_units", node=node["name"]))
        check(f"{job}: node {node['name']}", differ(got, (node["totalGPU"], node["usedGPU"])))
        for card in node["devs"]:
            if card["id"] < 0:
                stray = one("cardpack_node_memory_unplaced_units", node=node["name"])
                check(f"{job}: {node['name']}, no card", differ(stray, card["usedGPU"]))
                continue
            labels = {"node": node["name"], "card": str(card["id"])}
            got = (one("cardpack_card_memory_units", **labels),
                   one("cardpack_card_memory_allocated_units", **labels), one("cardpack_card_pods", **labels))
            check(f"{job}: {node['name']}, card {card['id']}",
                  differ(got, (card["totalGPU"], card["usedGPU"], len(card["pods"]))))
    for labels, wanted in (
        ({"verb": "filter", "outcome": "ok"}, PODS),
        ({"verb": "filter", "outcome": "refused"}, PODS),
        ({"verb": "filter", "outcome": "error"}, 1),
        ({"verb": "prioritize", "outcome": "ok"}, PODS),
        ({"verb": "bind", "outcome": "ok"}, PODS),
        ({"verb": "bind", "outcome": "refused"}, 0),
        ({"verb": "other", "outcome": "error"}, 2),  # /nowhere, and the POST of check_format
        ({"verb": "probe", "outcome": "ok"}, 1),
    ):
        check(f"{job}: {labels}", differ(one(COUNT, **labels), wanted))
        check(f"{job}: {labels} up to +Inf", differ(
            one("cardpack_request_duration_seconds_bucket", le="+Inf", **labels), wanted))
    cores = sum(v for _, v in prometheus.query(f'cardpack_card_compute_allocated_ratio{{job="{job}"}}'))
    check(f"{job}: compute", differ(round(cores, 6), PODS / 10))
    check_lessons(prometheus, job)
    check(f"{job}: bindings", differ(one("cardpack_bindings_total", result="created"), PODS))


def check_lessons(prometheus: Prometheus, job: str) -> None:
    """What the policies have learned from the pods of `use`: kinds of pods, and whether all is consistent."""
    seen = {m.get("models", "") for m, _ in prometheus.query(f'cardpack_shape_weight_ratio{{job="{job}"}}')}
    odd = [m for m in seen if m.startswith(MODELS + "\u2026")]
    check(f"{job}: models of pods", "" if len(odd) == 2 and len(seen) == 3 else seen)
    for query, wanted in (
        ('round(sum(cardpack_shape_weight_ratio{%s}), 0.001)', 1),
        ('sum(cardpack_shape_weight_ratio{%s,share="500"}) > bool 0.2', 1),
        ('count(cardpack_shape_price_cards{%s,share="500"}) or vector(0)', 0),  # no card is so large
        ('cardpack_shape_price_cards{%s,share="4",models=""} > bool 0', 1),
        ('cardpack_lessons_total{%s} > bool 0', 1),
        ('cardpack_fragmentation_cards{%s} >= bool 0', 1),
        ('cardpack_idle_value_cards{%s} > bool 0', 1),
        ('cardpack_turnover_ratio{%s}', 0),
    ):
        query = query % f'job="{job}"'
        check(f"Prometheus: {query}", differ([v for _, v in prometheus.query(query)], [wanted]))


def check_kubernetes(prometheus: Prometheus, nodes: int) -> None:
    """The metrics that only a cluster with an API server has."""
    for query, wanted in (
        ('cardpack_listed_objects_total{job="tls",kind="nodes"}', nodes),
        ('cardpack_cache_synced{job="tls",kind="pods"}', 1),
        ('cardpack_watch_events_total{job="tls",kind="pods",type="set"} >= bool %d' % (2 * PODS), 1),
        ('cardpack_leader_terms_total{job="tls"}', 1),
        ('cardpack_leader{job="tls"}', 1),
        ('cardpack_binding_duration_seconds_count{job="tls"}', PODS),
        ('cardpack_pods{job="tls",state="bound"}', PODS),
        ('cardpack_tls_certificate_expiry_timestamp_seconds{job="tls"} - time() > bool 29 * 86400', 1),
    ):
        check(f"Prometheus: {query}", differ([v for _, v in prometheus.query(query)], [wanted]))


def check_prometheus(programs: Path, folder: Path, embedded: Cardpack, real: Cardpack) -> None:
    """Prometheus scrapes plain and over TLS, with right values."""
    jobs = {"plain": ("http", embedded.port), "tls": ("https", real.port)}
    prometheus = Prometheus(programs / "prometheus", folder, free_port(), jobs, ALERTS)
    try:
        prometheus.until("scraped all thrice", lambda: len(prometheus.query("count_over_time(up[5m]) >= 3")) == len(jobs))
        targets = prometheus.get("/api/v1/targets")["activeTargets"]
        check("Prometheus: every target is up", [t for t in targets if t["health"] != "up" or t["lastError"]])
        check("Prometheus: no scrape failed", [m for m, v in prometheus.query("min_over_time(up[5m])") if v != 1])
        check_values(prometheus, "plain", embedded)
        model = {m["model"] for m, _ in prometheus.query('cardpack_card_info{job="plain"}')}
        check("plain: odd models", differ(model, {'He said "A100"\\\n and more', "NVIDIA-Größe-80GB"}))
        check_kubernetes(prometheus, nodes=3)
        check_expressions(prometheus)
        loaded = prometheus.get("/api/v1/rules")["groups"]
        bad = [r["name"] for g in loaded for r in g["rules"] if r.get("lastError")]
        check("Prometheus: runs every alert", bad or differ(sum(len(g["rules"]) for g in loaded), len(rules())))
    finally:
        prometheus.stop()


def merge(a: dict[str, tuple[str, str, str]], b: dict[str, tuple[str, str, str]]) -> dict[str, tuple[str, str, str]]:
    """Merges two daemons' metrics: a metric without a sample in one of them gets the other's labels."""
    return a | {name: row for name, row in b.items() if row[1] or name not in a}


def table(says: dict[str, tuple[str, str, str]]) -> None:
    """The rows of docs/metrics.md."""
    for name, (kind, labels, text) in says.items():
        print(f"| `{name}` | {kind} | {labels} | {text} |")


def main() -> int:
    """See the top of this file."""
    binary, programs = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name, FakeApi() as api:
        folder = Path(name)
        fill_fake(api)
        crt, key = certificate(folder)
        kubeconfig = api.write_kubeconfig(folder / "kubeconfig")
        embedded = Cardpack(binary, f"--cluster={HERE / 'world.yaml'}")
        real = Cardpack(binary, f"--kubeconfig={kubeconfig}", f"--tls-cert-file={crt}", f"--tls-key-file={key}",
                        "--evict-for-cards=true", "--start-settle=0s", tls=True)  # fmt: skip
        try:
            await_ready(real)
            if "--table" in sys.argv[3:]:
                table(merge(described(embedded), described(real)))
                return 0
            use(embedded, lambda p: embedded.ask("POST", "/api/v1/namespaces/secret-namespace/pods", p),
                ["odd-names", "large", "nameless", "plain", "unknown"])  # fmt: skip
            use(real, lambda p: api.must("POST", "/api/v1/namespaces/secret-namespace/pods", p), [f"node-{i}" for i in range(3)])
            await_lesson(embedded)
            await_lesson(real)
            check_format("embedded cluster", embedded, programs)
            check_format("API server, TLS", real, programs)
            check_document(merge(described(embedded), described(real)))
            check_alerts(programs)
            check_prometheus(programs, folder, embedded, real)
        finally:
            check("the daemons end with 0", differ((embedded.stop(), real.stop()), (0, 0)))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def await_ready(cardpack: Cardpack) -> None:
    """Waits until it leads: it has the lease, and the first lists are complete."""
    while cardpack.ask("GET", "/readyz/leader", port=cardpack.probes)[0] != 200:
        if cardpack.process.poll() is not None:
            raise SystemExit("cardpack has ended")


if __name__ == "__main__":
    sys.exit(main())
