"""manifests/components/admission: the API server refuses bad requests when a pod is created.

The examples are those of docs/requests.md. The policy and cardpack must agree on each of them, and
on pods that are drawn at random.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench import MANIFESTS, PATIENCE, ROOT, Bench, Skipped, check, dice, scenario
from cluster import GPU_MEM
from component import wait_for
from daemon import VERBS, Daemon
from renderings import kustomize, strictly
from share_truth import (
    AFFINITY,
    ANTI_AFFINITY,
    CORES,
    COUNT_LABEL,
    EXCLUSIVE,
    MODEL,
    PERCENT,
    PLACEMENT,
    UUID,
    WHOLE,
)

Json = Any
Row = tuple[str, str]

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
REQUESTS, HINTS = "cardpack-requests", "cardpack-request-hints"
STATUS_CONTROLLER = "validatingadmissionpolicy-status-controller"
SUFFIX = {GPU_MEM: "16Gi"}
_PART = re.compile(r"(init limit|limit|request|label|annotation) `([^`:]+): ([^`]*)`")
_DRAWN = 400


# ---- pods -----------------------------------------------------------------------------------


def container(name: str, limits: Json, requests: Json = None, **more: Json) -> Json:
    """A container of a pod."""
    resources = {"limits": limits} | ({} if requests is None else {"requests": requests})
    return {"name": name, "image": "example.invalid/none", "resources": resources, **more}


def pod(
    mains: Sequence[Json], inits: Sequence[Json] = (), labels: Json = None, notes: Json = None
) -> Json:
    """A pod that is not in the API server."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "tried",
            "namespace": "default",
            "labels": labels or {},
            "annotations": notes or {},
        },
        "spec": {"containers": list(mains), "initContainers": list(inits)},
    }


def simple(limits: Json, labels: Json = None, notes: Json = None) -> Json:
    """A pod with one container."""
    return pod([container("main", limits)], labels=labels, notes=notes)


def tables() -> list[list[Row]]:
    """The tables of bad requests in docs/requests.md: the policy's, the API server's, warnings."""
    text = (ROOT / "docs" / "requests.md").read_text()
    section = text.partition("\n## Bad requests\n")[2].partition("\n## ")[0]
    found = [
        re.findall(r"^\| (.*?) \| `(.*)` \|$", table, re.MULTILINE)
        for table in section.split("\n| the pod has |")[1:]
    ]
    check(len(found) == 3 and all(len(rows) > 3 for rows in found), found)
    return found


def pod_of(cell: str) -> Json:
    """The pod that a row's first cell describes."""
    check(not _PART.sub("", cell).replace(", ", ""), f"docs/requests.md: {cell}")
    parts: dict[str, dict[str, str]] = {}
    for what, key, value in _PART.findall(cell):
        parts.setdefault(what, {})[key] = value.strip('"')
    asked = parts.get("request")
    inits = [container("load", parts["init limit"])] if "init limit" in parts else []
    limits = parts.get("limit", {} if asked else {GPU_MEM: "8"})
    mains = [container("main", limits, asked)]
    return pod(mains, inits, parts.get("label"), parts.get("annotation"))


def examples(bench: Bench) -> list[Json]:
    """The pods of docs/requests.md that are right."""
    text = (ROOT / "docs" / "requests.md").read_text()
    section = text.partition("\n## By example\n")[2].partition("\n## ")[0]
    found = []
    for block in re.findall(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        argv = ("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
        whole = f"apiVersion: v1\nkind: Pod\n{block}"
        item = json.loads(bench.cluster.kubectl(*argv, stdin=whole).stdout)
        item["metadata"]["namespace"] = "default"
        for one in item["spec"]["containers"]:
            one["image"] = "example.invalid/none"
        found.append(item)
    check(len(found) >= 7, len(found))
    return found


# ---- what is said ---------------------------------------------------------------------------


def refusal(bench: Bench, item: Json) -> str:
    """The API server's reason for not creating the pod; empty if it would."""
    path = f"/api/v1/namespaces/{item['metadata']['namespace']}/pods?dryRun=All"
    status, answer = bench.cluster.api("POST", path, item)
    check(status in (201, 403, 422), f"{status} {answer}")
    return "" if status == 201 else str(answer["message"])


def warnings(bench: Bench, item: Json) -> str:
    """The warnings that kubectl prints for a pod that the API server would create."""
    argv = ("create", "--dry-run=server", strictly(bench), "-f", "-")
    return bench.cluster.kubectl(*argv, stdin=json.dumps(item)).stderr


def explain(daemon: Daemon, item: Json) -> Json:
    """cardpack's answer for a pod that does not exist."""
    status, answer = daemon.call("POST", f"{VERBS}/explain", item)
    check(status == 200, f"explain: {status} {answer}")
    return answer


def says(text: str, told: str) -> bool:
    """Whether a text has what the document tells, in which ... stands for anything."""
    return bool(re.search(".*".join(map(re.escape, told.split("..."))), text))


@contextmanager
def admission(bench: Bench) -> Iterator[None]:
    """The component, in force."""
    if bench.minor < 30:
        raise Skipped("ValidatingAdmissionPolicy is there since 1.30")
    text = kustomize(MANIFESTS / "components" / "admission")
    bench.cluster.kubectl("apply", strictly(bench), "-f", "-", stdin=text)
    bad = simple(SUFFIX)
    odd = simple({GPU_MEM: "8"}, notes={"cardpack.io/odd": "x"})
    try:
        wait_for(lambda: refusal(bench, bad), "the policy to hold", PATIENCE)
        wait_for(lambda: warnings(bench, odd), "the hints", PATIENCE)
        yield
    finally:
        bench.cluster.kubectl("delete", "-f", "-", stdin=text)
        # Until the API server sees the deletion it would refuse pods of the next scenario.
        wait_for(lambda: not refusal(bench, bad), "the policy to be gone", PATIENCE)


def act(bench: Bench, name: str, *actions: str) -> None:
    """Changes what the API server does."""
    bench.cluster.must(
        "PATCH",
        f"{BINDINGS}/{name}",
        {"spec": {"validationActions": list(actions)}},
        content_type="application/merge-patch+json",
    )


# ---- scenarios ------------------------------------------------------------------------------


@scenario("real")
def admission_of_examples(bench: Bench) -> None:
    """
    Every bad example of docs/requests.md is refused or warned of, in the document's words, and
    every good one is created without a warning. cardpack agrees with the policy.
    """
    with admission(bench):
        bench.node("n1", 4, 16)
        daemon = bench.cardpack()
        ours, theirs, hints = tables()
        for cell, told in ours:
            said = refusal(bench, pod_of(cell))
            check(f"'{REQUESTS}'" in said and says(said, told), f"{cell}: {said}")
            answer = explain(daemon, pod_of(cell))
            check(answer["fit"] == 0, f"{cell}: {answer}")
            # An amount with a suffix can be valid: it is only larger than any card.
            check(answer["error"] or "units; write" in told, f"{cell}: {answer}")
        for cell, told in theirs:
            said = refusal(bench, pod_of(cell))
            check("AdmissionPolicy" not in said and says(said, told), f"{cell}: {said}")
            # cardpack never sees requests that differ from the limits.
            check(explain(daemon, pod_of(cell))["error"] or "request" in cell, cell)
        for cell, told in hints:
            said = warnings(bench, pod_of(cell))
            check(f"'{HINTS}'" in said and says(said, told), f"{cell}: {said}")
            check(said.count("Warning:") == 1, f"{cell}: {said}")
            check(not explain(daemon, pod_of(cell))["error"], cell)
        for item in examples(bench):
            said = refusal(bench, item) or warnings(bench, item) or explain(daemon, item)["error"]
            check(not said, f"{item}: {said}")


@scenario("real")
def admission_of_others(bench: Bench) -> None:
    """Pods without any of cardpack's names are not looked at, and neither are bound ones."""
    with admission(bench):
        limits = {"cpu": "1", "memory": "16Gi", "example.com/gpu": "16"}
        other = simple(limits, {"a": "b"}, {"example.com/policy": "tight", "cardpack.iox/a": "b"})
        check(not refusal(bench, other) and not warnings(bench, other), "a pod without cards")
        bound = simple(SUFFIX, notes={"cardpack.io/odd": "x"})
        bound["spec"]["nodeName"] = "n1"
        check(not refusal(bench, bound) and not warnings(bench, bound), "a bound pod")
        # A pod that exists can still be changed.
        path = f"/api/v1/namespaces/{bench.namespace}/pods"
        made = simple({GPU_MEM: "8"})
        made["metadata"]["namespace"] = bench.namespace
        bench.cluster.must("POST", path, made)
        bench.patch_pod("tried", {"metadata": {"annotations": {"cardpack.io/policy": "tight"}}})


@scenario("real")
def admission_actions(bench: Bench) -> None:
    """Deny refuses, Warn warns, Audit writes into the audit log; each policy has its own list."""
    with admission(bench):
        bad = simple({GPU_MEM: "8"}, notes={"cardpack.io/policy": "tight"})
        odd = simple({GPU_MEM: "8"}, notes={"cardpack.io/odd": "x"})
        act(bench, REQUESTS, "Warn")
        wait_for(lambda: not refusal(bench, bad), "warnings alone", PATIENCE)
        said = warnings(bench, bad)
        check('annotation cardpack.io/policy: "tight" must be binpack, spread, fgd or bid-price' in said, said)
        act(bench, HINTS, "Deny")
        wait_for(lambda: "does not know it" in refusal(bench, odd), "the hints to deny", PATIENCE)
        act(bench, REQUESTS, "Audit")
        wait_for(lambda: not warnings(bench, bad), "the audit log alone", PATIENCE)
        notes = [event.get("annotations", {}) for event in bench.cluster.audit_events()]
        key = "validation.policy.admission.k8s.io/validation_failure"
        told = [note[key] for note in notes if '"Audit"' in note.get(key, "")]
        check(told and "must be binpack, spread, fgd or bid-price" in told[-1], told)


@scenario("real")
def admission_types(bench: Bench) -> None:
    """The type check of the policies has no warnings, and a Deployment's events have the reason."""
    with admission(bench):
        controllers = bench.cluster.start_controller_manager(
            (STATUS_CONTROLLER, "deployment", "replicaset", "garbagecollector")
        )
        try:
            for name in (REQUESTS, HINTS):
                status = wait_for(_checked(bench, name), f"{name} to be checked", PATIENCE)
                check(not status["typeChecking"].get("expressionWarnings"), f"{name}: {status}")
            _finds_faults(bench)
            _deploys(bench)
        finally:
            controllers.kill()


def _finds_faults(bench: Bench) -> None:
    """The type check has a warning for a field that pods do not have."""
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [pods]},
        "validations": [{"expression": "object.spec.cards == ''"}],
    }
    bench.cluster.must("POST", POLICIES, {"metadata": {"name": "faulty"}, "spec": spec})
    try:
        status = wait_for(_checked(bench, "faulty"), "the type check", PATIENCE)
        check("undefined field 'cards'" in str(status), status)
    finally:
        bench.cluster.must("DELETE", f"{POLICIES}/faulty")


def _checked(bench: Bench, name: str) -> Callable[[], Json]:
    def status() -> Json:
        found = bench.cluster.must("GET", f"{POLICIES}/{name}").get("status", {})
        return found if "typeChecking" in found else None

    return status


def _deploys(bench: Bench) -> None:
    """The ReplicaSet can't create its pods, and its event says what to write."""
    labels = {"app": "tried"}
    template = simple(SUFFIX, labels)
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
    }
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments"
    bench.cluster.must("POST", path, {"metadata": {"name": "tried"}, "spec": spec})

    def told() -> list[str]:
        events = bench.cluster.list_all(f"/api/v1/namespaces/{bench.namespace}/events")
        return [event["message"] for event in events if event["reason"] == "FailedCreate"]

    said = wait_for(told, "the event of the ReplicaSet", PATIENCE)[0]
    check("units; write 16, not 16Gi" in said, said)
    bench.cluster.must("DELETE", f"{path}/tried")
    sets = f"/apis/apps/v1/namespaces/{bench.namespace}/replicasets"
    wait_for(lambda: not bench.cluster.list_all(sets), "the ReplicaSet to be gone", PATIENCE)


# ---- limits ---------------------------------------------------------------------------------


def _edges() -> Iterator[tuple[Json, str]]:
    """Pods at a limit, which are right, and beyond it, with a part of the reason."""
    mem = {GPU_MEM: "8"}
    yield simple({GPU_MEM: "16000"}), ""  # stored as 16k
    yield simple({GPU_MEM: "1e3"}), ""
    yield simple({GPU_MEM: "2M"}), ""
    yield simple({GPU_MEM: "67M"}), ""
    yield simple({GPU_MEM: "68M"}), "asks for 68000000 units; write 68, not 68M"
    yield simple({GPU_MEM: "63Mi"}), ""
    yield simple({GPU_MEM: "64Mi"}), "asks for 67108864 units; write 64, not 64Mi"
    yield simple({GPU_MEM: "67108865"}), ""
    yield simple({GPU_MEM: "1099511627776"}), ""
    yield simple({GPU_MEM: "2E"}), "asks for 2000000000000000000 units; write 2, not 2E"
    yield simple({GPU_MEM: "16E"}), "asks for 16E units; write 16, not 16E"
    yield simple({GPU_MEM: "1099511627776", CORES: "100"}, {COUNT_LABEL: "64"}), '"64" does not'
    yield pod([container("a", {GPU_MEM: "1099511627776"}), container("b", mem)]), "sum of the"
    zero = "needs a container with a limit aliyun.com/gpu-mem of 1"
    yield simple({GPU_MEM: "1"}, {PLACEMENT: WHOLE}), ""
    yield simple({GPU_MEM: "1"}, notes={PERCENT: " 100 "}), ""
    yield simple({GPU_MEM: "0"}, {PLACEMENT: WHOLE}), f'"require-whole-device" {zero}'
    yield simple({GPU_MEM: "0"}, notes={PERCENT: " 100 "}), f'"100" {zero}'
    yield simple({GPU_MEM: "0", CORES: "30"}, {PLACEMENT: WHOLE}), zero
    yield simple({GPU_MEM: "0", CORES: "30"}, notes={PERCENT: "25"}), zero
    yield simple({GPU_MEM: "0", CORES: "30"}), "without aliyun.com/gpu-mem"
    yield simple({GPU_MEM: "0"}, notes={PERCENT: ""}), 'percent: "" must'
    yield simple(mem, notes={PERCENT: "0"}), 'percent: "0" must'
    yield simple(mem, notes={"cardpack.io/policy": "\tspread\n"}), ""
    yield simple(mem, notes={"cardpack.io/policy": "a\nb"}), r'policy: "a\nb" must'
    yield simple(mem, notes={"cardpack.io/policy": "x" * 70}), f'"{"x" * 64}..." must'
    for key in (MODEL, UUID):
        yield simple(mem, notes={key: ",".join(f"a{i}" for i in range(128)) + ", !,,"}), ""
        yield simple(mem, notes={key: ",".join(f"a{i}" for i in range(129))}), "129 items: 128"
        yield simple(mem, notes={key: "ä" * 2048}), ""
        yield simple(mem, notes={key: "ä" * 2048 + "x"}), "4097 bytes: 4096"
    for key in (AFFINITY, ANTI_AFFINITY):
        yield simple(mem, notes={key: "g" * 253}), ""
        yield simple(mem, notes={key: "g" * 254}), "254 bytes: 253"
    yield simple(mem, notes={AFFINITY: "", ANTI_AFFINITY: " "}), ""
    yield simple({GPU_MEM: "8", EXCLUSIVE: "2147483647"}), ""
    yield from _edges_of_containers()


def _edges_of_containers() -> Iterator[tuple[Json, str]]:
    many = [container(f"c{i}", {GPU_MEM: "64"}) for i in range(17)]
    yield pod(many[:16]), ""
    yield pod(many), 'container "c16": more than 16 containers'
    zeros = [container(f"c{i}", {GPU_MEM: "0"}) for i in range(17)]
    yield pod(zeros), ""
    yield pod(zeros, labels={PLACEMENT: WHOLE}), "needs a container with a limit"
    yield pod([*zeros[:16], many[16]], labels={PLACEMENT: WHOLE}), ""
    yield pod(many[:4], labels={COUNT_LABEL: "64"}), ""
    yield pod(many[:5], labels={COUNT_LABEL: "64"}), "write at most 51"
    half = {GPU_MEM: "2", CORES: "60"}
    yield pod([container("a", half), container("b", half)]), ""  # each has its own card
    yield pod([container("a", half), container("b", half)], notes={AFFINITY: "g"}), "100 of 1 card"
    yield pod([container("a", half), container("b", half)], labels={COUNT_LABEL: "1"}), '"120" is'
    mem = {GPU_MEM: "2"}
    side = container("s", half, restartPolicy="Always")
    one = {COUNT_LABEL: "1"}  # so a sidecar counts for the init containers after it
    yield pod([container("m", mem)], [container("i", half), side], one), ""
    yield pod([container("m", mem)], [side, container("i", half)], one), '"120" is'
    yield pod([container("m", mem)], [container("i", half), container("j", half)], one), ""
    yield pod([container("m", {})], [side, container("i", half)]), '"120" is'


@scenario("real")
def admission_limits(bench: Bench) -> None:
    """The policy has cardpack's limits, and the API server allows its cost for the largest pods."""
    with admission(bench):
        bench.node("n1", 4, 16)
        daemon = bench.cardpack()
        for item, part in _edges():
            said, error = refusal(bench, item), explain(daemon, item)["error"]
            # An amount with a suffix can be valid: it is only larger than any card.
            same = bool(error) == bool(part) or "units; write" in part
            check(same, f"cardpack: {error}, not {part}: {item}")
            check(bool(said) == bool(part) and part in said, f"{said}, not {part}: {item}")
        _costs(bench)


def _costs(bench: Bench) -> None:
    """The largest pods that the policies look at; of larger ones they look at nothing."""

    def sized(count: int) -> Json:
        idle = [container(f"i{i}", {}) for i in range(count - 18)]
        many = [container(f"c{i}", {GPU_MEM: "8"}) for i in range(17)]
        notes = {key: "x" * 30000 for key in (MODEL, UUID, AFFINITY, ANTI_AFFINITY)}
        return pod([*idle, *many], [container("load", {GPU_MEM: "8"})], notes=notes)

    check("more than 16 containers" in refusal(bench, sized(256)), "256 containers")
    check(not refusal(bench, sized(257)), "257 containers are looked at")
    notes = {f"cardpack.io/{i}": "x" * 900 for i in range(256)}
    said = warnings(bench, simple({GPU_MEM: "8"}, notes=notes))
    check("does not know it" in said, f"{said}, of 256 annotations")
    said = warnings(bench, simple({GPU_MEM: "8"}, notes=notes | {"cardpack.io/a": "x"}))
    check(not said, f"{said}, of 257 annotations")
    # The other policy looks up single annotations, whatever their number is.
    notes = {f"k{i}": "" for i in range(10000)} | {MODEL: "a," * 2048}
    said = refusal(bench, simple({GPU_MEM: "8"}, notes=notes))
    check("2048 items: 128 at most" in said, said)


def _draw(rng: random.Random) -> Json:
    """A pod with requests, some of which contradict each other."""

    def limits(*more: str | None) -> dict[str, str]:
        drawn = {
            GPU_MEM: rng.choice((None, "0", "1", "2", "6", "8", "12", *more)),
            CORES: rng.choice((None,) * 5 + ("0", "10", "50", "60", "100", "101", "202")),
            EXCLUSIVE: rng.choice((None,) * 12 + ("1", "2147483648")),
        }
        return {key: value for key, value in drawn.items() if value is not None}

    def some(choices: dict[str, tuple[str, ...]]) -> dict[str, str]:
        return {key: rng.choice(good) for key, good in choices.items() if rng.random() < 0.15}

    mains = [container(f"m{i}", limits()) for i in range(rng.choice((1, 1, 2, 3)))]
    inits = [
        container(f"i{i}", limits(None, None), **rng.choice(({}, {"restartPolicy": "Always"})))
        for i in range(rng.choice((0, 0, 1, 3)))
    ]
    policies = ("binpack", "spread", "fgd", "bid-price", "Spread", "bid_price", " spread ", "")
    labels = {
        COUNT_LABEL: ("1", "2", "3", "0", "064", "65", "x", ""),
        PLACEMENT: (WHOLE, "half", ""),
    }
    notes = {
        PERCENT: ("1", "25", "100", "025", " 7 ", "0", "101", "5%", ""),
        "cardpack.io/policy": policies,
        "cardpack.io/node-policy": policies,
        "cardpack.io/card-policy": policies,
        MODEL: ("A*", "!B", ""),
        "cardpack.io/require-isolation": ("true", "false", " true ", "True", "yes", ""),
        AFFINITY: ("g", "h", ""),
        ANTI_AFFINITY: ("g", " g", ""),
    }
    return pod(mains, inits, some(labels), some(notes))


@scenario("real")
def admission_agrees(bench: Bench) -> None:
    """The policy refuses exactly the pods that cardpack refuses."""
    with admission(bench):
        bench.node("n1", 4, 16)
        daemon = bench.cardpack()
        rng = dice("admission")
        refused = 0
        for _ in range(_DRAWN):
            item = _draw(rng)
            said, error = refusal(bench, item), explain(daemon, item)["error"]
            check(bool(said) == bool(error), f"policy: {said!r}, cardpack: {error!r}: {item}")
            refused += bool(error)
        check(_DRAWN / 5 < refused < _DRAWN * 4 / 5, f"{refused} of {_DRAWN} are refused")
