"""From gpushare-scheduler-extender to cardpack and back, with running pods: docs/migration.md."""

from __future__ import annotations

import json
import os
import re
import subprocess

from bench import MANIFESTS, ROOT, Bench, Lab, agree, check, scenario
from component import wait_for
from fake_lab import fake_lab
from gpushare import NO_CARD, Extender, as_bound, cards_by_plugin, said_by
from ground import Ground, on_all_grounds
from share_truth import CORES, EXCLUSIVE
from truth import ASSIGNED, ASSUME_TIME, DEV, IDX, POD

from cluster import GPU_MEM

TABLE = ROOT / "docs" / "migration.md"
ACCOUNT = "gpushare-schd-extender"


def same_view(ground: Ground) -> None:
    """Compares gpushare's cache, built from the current objects, with cardpack's inspect."""
    ground.settle()
    cache = Extender(ground).cache()
    check(not cache.uncharged, f"gpushare counts {cache.uncharged} on no card")
    said, read = said_by(ground.daemon.inspect()), cache.inspect()
    for node, cards in read.items():
        check(said[node] == cards, f"{node}: cardpack {said[node]}, gpushare {cards}")


def own_cards(ground: Ground, node: str, names: list[str]) -> None:
    """Checks that every pod gets the card in its annotation."""
    wanted = {name: int(ground.get(name)["metadata"]["annotations"][IDX]) for name in names}
    got = cards_by_plugin(ground, node, names)
    check(got == wanted, f"the plugin gives {got}, the annotations say {wanted}")
    for name in names:
        status(ground, name, "Running")


def status(ground: Ground, name: str, phase: str) -> None:
    """Plays the kubelet: writes the pod's phase."""
    path = f"/api/v1/namespaces/{ground.namespace}/pods/{name}/status"
    ground.must("PATCH", path, {"status": {"phase": phase}})


@on_all_grounds
def takes_over_from_gpushare(ground: Ground) -> None:
    """cardpack reads each kind of state that gpushare leaves, and continues; then the way back."""
    old = Extender(ground)
    ground.node("n1", 2, 16)
    ground.node("n2", 1, 24)
    for name, mems in {"runs": [6], "assigned": [4], "waits": [3], "two": [2, 2]}.items():
        old.pod(name, *mems)
        check(old.bind(name, "n1") == 0 or name == "two", f"gpushare binds {name} elsewhere")
    own_cards(ground, "n1", ["runs"])
    check(cards_by_plugin(ground, "n1", ["assigned"]) == {"assigned": 0}, "assigned")
    # An ended pod with annotations is not charged. After half of a bind the card is not taken.
    old.pod("ended", 12)
    check(old.bind("ended", "n1") == 1, "ended")
    status(ground, "ended", "Succeeded")
    ground.pod("half", 9)
    stale = {IDX: "1", DEV: "16", POD: "9", ASSIGNED: "false", ASSUME_TIME: "1700000000000000000"}
    ground.annotate_pod("half", stale)
    ground.cardpack()
    same_view(ground)
    ground.node("kick", 0)  # 1.20.2 retries a pod whose extender call failed when the cluster changes
    # The pod of the half bind is scheduled like any other, with the annotations of this attempt.
    check(ground.bound("half")["metadata"]["annotations"][ASSUME_TIME] != stale[ASSUME_TIME], "half")
    for name, mem in {"new0": 3, "new1": 5, "new2": 10}.items():
        ground.placed(name, mem)
    same_view(ground)
    ground.judge()
    # The device plugin gets the pods of both extenders in the order of their binds, on each node.
    for node in ("n1", "n2"):
        here = [
            pod["metadata"]["name"]
            for pod in ground.must("GET", "/api/v1/pods")["items"]
            if pod["spec"].get("nodeName") == node
            and (pod["metadata"].get("annotations") or {}).get(ASSIGNED) == "false"
            and pod["metadata"]["name"] not in ("two", "ended")
        ]
        own_cards(ground, node, sorted(here, key=lambda name: _time(ground, name)))
    same_view(ground)
    # The way back: gpushare reads the same cards and binds another pod; then cardpack runs again.
    before = said_by(ground.daemon.inspect())
    ground.daemon.stop()
    check(old.cache().inspect() == before, "gpushare reads other cards")
    old.pod("later", 1)
    card = old.bind("later", "n1")
    check(card != NO_CARD, "gpushare has no card for 1")
    ground.daemon.start()
    same_view(ground)
    check(f"{ground.namespace}/later" in said_by(ground.daemon.inspect())["n1"][card][2], "later")
    as_bound(ground)


def _time(ground: Ground, name: str) -> int:
    return int(ground.get(name)["metadata"]["annotations"][ASSUME_TIME])


@on_all_grounds
def plugin_finds_the_pods(ground: Ground) -> None:
    """
    The kubelet starts a burst of pods, some of one size, in an order other than that of their binds:
    every container gets the card of its pod, or the card of a pod of the same size on that node.
    """
    ground.node("n1", 4, 16)
    ground.cardpack()
    sizes = [5, 5, 5, 8, 2, 2, 7, 11, 3, 3]
    names = [f"p{i}" for i in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        ground.placed(name, size)
    ground.judge()
    books = {name: ground.cards(name)[0] for name in names}
    by_size: dict[int, list[int]] = {}
    for name, size in zip(names, sizes, strict=True):
        by_size.setdefault(size, []).append(books[name])
    got = cards_by_plugin(ground, "n1", list(reversed(names)))
    for name, size in zip(names, sizes, strict=True):
        if len({*by_size[size]}) == 1:
            check(got[name] == books[name], f"{name} gets card {got[name]}, not {books[name]}")
        check(got[name] in by_size[size], f"{name} of {size} gets card {got[name]}: {by_size}")
    given = {size: sorted(got[n] for n, s in zip(names, sizes, strict=True) if s == size) for size in sizes}
    check(given == {size: sorted(cards) for size, cards in by_size.items()}, f"{given}, {by_size}")
    same_view(ground)
    as_bound(ground)


@on_all_grounds
def what_gpushare_misreads(ground: Ground) -> None:
    """
    Pods to remove before the way back, as docs/migration.md says: gpushare does not count them right.
    """
    ground.node("n1", 4, 16)
    ground.cardpack()
    ground.placed("plain", 4)
    ground.placed("several", 16, labels={"aliyun.com/gpu-count": "2"})
    ground.placed("whole", 1, labels={"ack.gpushare.placement": "require-whole-device"})
    cache = Extender(ground).cache()
    check(cache.uncharged == [f"{ground.namespace}/several"], cache.uncharged)
    said = said_by(ground.daemon.inspect())["n1"]
    differ = [card for card, row in cache.inspect()["n1"].items() if said[card][1] != row[1]]
    check(len(differ) == 3, f"cards {differ} differ: two of several, one of whole")
    # The document's command finds both of them, and not the plain pod.
    command = re.search(r"jq -r '\n([^']*)'\n```", TABLE.read_text().partition("\n## The way back\n")[2])
    check(command, "the document has no command for it")
    assert command is not None
    pods = json.dumps(ground.must("GET", "/api/v1/pods"))
    found = subprocess.run(
        ["jq", "-r", command[1]], input=pods, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    wanted = sorted(f"{ground.namespace}/{name}" for name in ("several", "whole"))
    check(sorted(found) == wanted, f"the command finds {found}, not {wanted}")


@scenario("real")
def with_gpushares_rights(bench: Bench) -> None:
    """
    With gpushare's ServiceAccount and ClusterRole cardpack runs only as a single replica that is
    configured so.
    """
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["pods"],
         "verbs": ["update", "patch", "get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["bindings", "pods/binding"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
    ]  # fmt: skip
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": ACCOUNT}, "rules": rules}
    bench.cluster.must("POST", f"{rbac}/clusterroles", role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "kube-system"}
    binding = {"metadata": {"name": ACCOUNT}, "roleRef": reference, "subjects": [subject]}
    bench.cluster.must("POST", f"{rbac}/clusterrolebindings", binding)
    token = bench.cluster.service_account_token("kube-system", ACCOUNT, 3600)
    kubeconfig = bench.cluster.write_kubeconfig(bench.workdir / f"{ACCOUNT}.kubeconfig", token)
    bench.node("n1", 2, 16)
    pod = bench.own_pod("p", 5)
    daemon = bench.daemon(kubeconfig, started=False)
    daemon.launch()
    right = "no right to get leases.coordination.k8s.io"
    wait_for(lambda: daemon.log("the lease can't be read or written"), "the missing right")

    def refused_for_it() -> bool:
        """Before the first list of nodes is complete, that is the reason."""
        answer = daemon.bind(pod, "n1")
        check(answer != "", "bound without a Lease")
        return right in answer

    wait_for(refused_for_it, "the missing right as the reason")
    daemon.stop()
    daemon = bench.daemon(kubeconfig, "--leader-elect=false")
    check(daemon.bind(pod, "n1") == "", "not bound")
    agree(daemon, bench.truth)


# ---- the table ----------------------------------------------------------------------------------


def _settings(lab: Lab, **environment: str) -> str:
    """The output of --check-config, or its error about the environment."""
    run = subprocess.run(
        [lab.options.binary, "--check-config"], capture_output=True, text=True, timeout=60,
        env={"PATH": os.defpath, **environment},
    )  # fmt: skip
    return run.stdout + run.stderr


def _manifest(text: str) -> str:
    """The first of the manifests that has the text."""
    files = sorted(MANIFESTS.rglob("*.yaml"))
    return next((read for file in files if text in (read := file.read_text())), "")


def _rows() -> dict[str, str]:
    """The table's rows by their first column without markup, with the rest of the row."""
    section = TABLE.read_text().partition("## Everything of it")[2].partition("\n## ")[0]
    found = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line[1:].rstrip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and not cells[0].startswith("its"):
            found[cells[0].replace("`", "")] = line
    return found


@scenario("fake")
def table_of_the_migration(lab: Lab) -> None:
    """
    Tries each row of docs/migration.md; fails for a row without a test here, and for a test without a
    row.
    """
    with fake_lab(lab) as fake:
        fake.placed_pod("p", 3, "n1", 1)
        fake.api.put_configmap("unhealthy-gpu-n1", {"gpus": "0"})
        daemon = fake.cardpack()
        prefix = "/gpushare-scheduler"
        rbac = _manifest("pods/binding")
        service = _manifest("nodePort: 32766")
        scheduler = (ROOT / "config" / "kube-scheduler.yaml").read_text()
        asked = {"Pod": fake.pod("q", 4), "NodeNames": ["n1"], "Nodes": None}
        wait_for(lambda: daemon.log("unhealthy cards"), "the ConfigMap")
        bad_bind = daemon.exchange("POST", f"{prefix}/bind", {"PodName": "nobody"})
        devs = daemon.inspect("n1")["nodes"][0]["devs"]
        check(daemon.bind(asked["Pod"], "n1") == "", "bind")
        notes = fake.api.pod("q")["metadata"]["annotations"]
        tests = {
            "PORT": "port: 12345" in _settings(lab, PORT="12345")
            and "must be a number" in _settings(lab, PORT="x")
            and "port: 39999" in _settings(lab),
            "LOG_LEVEL": all(
                f"log-level: {level}" in _settings(lab, LOG_LEVEL=level)
                for level in ("debug", "info", "warn", "error")
            )
            and "must be debug" in _settings(lab, LOG_LEVEL="trace"),
            "KUBECONFIG": "kubeconfig: /k" in _settings(lab, KUBECONFIG="/k").replace('"', ""),
            "THREADNESS": _settings(lab, THREADNESS="x") == _settings(lab),
            "POST /gpushare-scheduler/filter": daemon.call("POST", f"{prefix}/filter", asked)[0]
            == daemon.call("POST", f"{prefix}/filter", b"[")[0]
            == 200,
            "POST /gpushare-scheduler/bind": bad_bind[0] == 200 and b"Error" in bad_bind[1],
            "GET /gpushare-scheduler/inspect": daemon.inspect()["nodes"][0]["name"] == "n1",
            "GET /gpushare-scheduler/inspect/NODE": "not found"
            in daemon.call("GET", f"{prefix}/inspect/nobody")[1]["error"],
            "GET /version": re.fullmatch(r"\d+\.\d+\.\d+", daemon.call("GET", "/version")[1]),
            "GET /debug/pprof/": daemon.call("GET", "/debug/pprof/")[0] == 404,
            "NodePort 32766": "nodePort: 32766" in service and "127.0.0.1:32766" in scheduler,
            "host network, port 12345": "hostNetwork" not in service
            and bool(_manifest("hostNetwork: true")),
            "ConfigMap kube-system/unhealthy-gpu-NODE": IDX in notes and notes[IDX] == "1",
            "aliyun.com/gpu-mem, aliyun.com/gpu-count": [d["totalGPU"] for d in devs] == [16, 16],
            "ALIYUN_COM_GPU_MEM_IDX": devs[1]["usedGPU"] == 3 and notes[IDX] == "1",
            "ALIYUN_COM_GPU_MEM_DEV": notes[DEV] == "16",
            "ALIYUN_COM_GPU_MEM_POD": notes[POD] == "4",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": notes[ASSIGNED] == "false",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": re.fullmatch(r"[0-9]{19}", notes[ASSUME_TIME]),
            "node label gpushare=true": daemon.fitting(fake.pod("r", 2), ["n1"]) == ["n1"],
            "pods: update, patch": "patch" not in rbac.partition("events]")[0],
            "pods: get, list, watch": "[get, list, watch]" in rbac,
            "nodes: get, list, watch": "[nodes]\n  verbs: [list, watch]" in rbac,
            "bindings, pods/binding: create": "[pods/binding]\n  verbs: [create]" in rbac
            and "[bindings" not in rbac,
            "configmaps: get, list, watch": "kind: Role\n" in rbac.partition("configmaps")[0],
            "poddisruptionbudgets": re.search(
                r"\[poddisruptionbudgets\].*\n  verbs: \[list, watch\]\n", rbac
            ),
            "events: create, patch": "[create, patch]" in rbac,
            "ServiceAccount gpushare-schd-extender": "kind: ServiceAccount" in rbac,
            "urlPrefix, filterVerb, bindVerb": all(
                line in scheduler for line in
                ("/gpushare-scheduler\n", "filterVerb: filter\n", "bindVerb: bind\n")
            ),
            "nodeCacheCapable: true": "nodeCacheCapable: true" in scheduler,
            "managedResources aliyun.com/gpu-mem": all(
                f"name: {name}\n    ignoredByScheduler: false\n" in scheduler
                for name in (GPU_MEM, CORES, EXCLUSIVE)
            ),
            "ignorable: false": "ignorable: false" in scheduler,
        }  # fmt: skip
    failed = [name for name, good in tests.items() if not good]
    check(not failed, f"not as the table says: {failed}")
    rows = _rows()
    check(rows.keys() == tests.keys(), f"rows and tests differ: {sorted(rows.keys() ^ tests.keys())}")
