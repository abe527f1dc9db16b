"""What a user reads in kubectl describe pod: each refusal of docs/requests.md, word for word.

tests/e2e/described/ has a file of texts for some releases; another release must give the same reasons
as the newest of them. With --update the texts are written anew: review the diff.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import PATIENCE, QUOTA_MAP, Bench, Json, check, message, scenario
from component import wait_for
from ground import RealGround, card
from share_truth import AFFINITY, ANTI_AFFINITY, COUNT_LABEL, PERCENT, PLACEMENT, WHOLE
from truth import ASSIGNED, ASSUME_TIME, BY_HAND, IDX

from scenarios.requests import CONTRADICTIONS

TEXTS = Path(__file__).resolve().parents[1] / "described"
MODEL, UUID = "cardpack.io/card-model", "cardpack.io/card-uuid"
PRODUCT = "nvidia.com/gpu.product"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
NOWHERE = {"scheduling.example.com/on": "nowhere"}


class Case:
    """Nodes, pods on them, and a pod that no node takes."""

    def __init__(
        self,
        name: str,
        nodes: Sequence[Sequence[Any]],
        held: Sequence[Sequence[Any]],
        *ask: Any,
        before: Callable[[RealGround], None] | None = None,
        after: Callable[[RealGround], None] | None = None,
        **options: Any,
    ) -> None:
        self.name, self.nodes, self.held = name, nodes, held
        self.ask, self.options = ask, options
        self.before, self.after = before, after


def at(index: int | str, **notes: str) -> dict[str, str]:
    """The annotations of a pod that another scheduler has bound."""
    return {IDX: str(index), **notes}


def nominate(ground: RealGround) -> None:
    """A pending pod of another scheduler, for which the node n1 is to be kept."""
    ground.must("POST", f"/api/v1/namespaces/{ground.namespace}/pods", other_pod(ground, "first", 12))
    path = f"/api/v1/namespaces/{ground.namespace}/pods/first/status"
    ground.must("PATCH", path, {"status": {"nominatedNodeName": "n1"}})


def other_pod(ground: RealGround, name: str, mem: int) -> Json:
    pod = ground.draft(name, mem)
    pod["spec"]["schedulerName"] = "nobody"
    return pod


def limit(ground: RealGround) -> None:
    """The namespace may hold 8."""
    text = json.dumps({"namespaces": {ground.namespace: {"limits": {"memory": 8}}}})
    item = {"metadata": {"name": QUOTA_MAP}, "data": {"quota.yaml": text}}
    before = len(ground.daemon.log("quotas"))
    ground.must("POST", MAPS, item)
    wait_for(lambda: len(ground.daemon.log("quotas")) > before, "the quotas to be read")


def unlimit(ground: RealGround) -> None:
    ground.must("DELETE", f"{MAPS}/{QUOTA_MAP}")
    gone = "the quotas are gone: no namespace has limits"
    wait_for(lambda: ground.daemon.log(gone), "the quotas to be gone")


ONE, TWO, FOUR = ((("n1", count, 16),) for count in (1, 2, 4))
BIG = tuple((f"n{i}", 2, 16 * i) for i in range(1, 5))
TABLE = (
    ("n1", [card(0, 16, model="Tesla-T4", uuid="GPU-0"), card(1, 16, model="NVIDIA-A10")]),
    ("n2", [card(0, 16, model="NVIDIA-A10", uuid="GPU-2"), card(1, 16)]),
)
FULL = (("a", 12, "n1", at(0)), ("b", 13, "n1", at(1)))

CASES = (
    # Nodes with different figures are one reason.
    Case("memory", BIG, [("a", 6, "n1", at(0)), ("b", 6, "n1", at(1)), ("c", 23, "n2", at(0)),
                         ("d", 24, "n2", at(1)), ("e", 40, "n3", at(0)), ("f", 41, "n3", at(1)),
                         ("g", 55, "n4", at(0)), ("h", 56, "n4", at(1))], 11),
    Case("larger-than-any", TWO, [], 17),
    Case("two-reasons", (("n1", 2, 16, {PRODUCT: "Tesla-T4"}), ("n2", 1, 16, {PRODUCT: "NVIDIA-A10"})),
         FULL, 6, notes={MODEL: "Tesla-*"}),
    Case("several-cards", TWO, FULL[:1], 16, labels={COUNT_LABEL: "2"}),
    Case("several-cards-none", (("n1", 3, 16),), [(name, 9, "n1", at(i)) for i, name in enumerate("abc")],
         16, labels={COUNT_LABEL: "2"}),
    Case("too-many-cards", TWO, [], 24, labels={COUNT_LABEL: "3"}),
    Case("containers", TWO, [("a", 10, "n1", at(0)), ("b", 10, "n1", at(1))], [4, 7]),
    Case("percent", TWO, FULL, 2, notes={PERCENT: "50"}),
    Case("whole", TWO, [("a", 1, "n1", at(0)), ("b", 1, "n1", at(1))], 1, labels={PLACEMENT: WHOLE}),
    Case("whole-two", TWO, [("a", 1, "n1", at(0))], 2, labels={PLACEMENT: WHOLE, COUNT_LABEL: "2"}),
    Case("whole-too-large", TWO, [], 17, labels={PLACEMENT: WHOLE}),
    Case("held-whole", ONE, [("a", 1, "n1", at(0), {PLACEMENT: WHOLE})], 2),
    Case("compute", TWO, [("a", 1, "n1", at(0), {}, 80), ("b", 1, "n1", at(1), {}, 71)], 4, cores=30),
    Case("model", TABLE, [], 4, notes={MODEL: "NVIDIA-A100*, H100"}),
    Case("uuid", TABLE, [], 4, notes={UUID: "GPU-8"}),
    Case("isolation", (("n1", 1, 16), ("n2", 1, 16, {"cardpack.io/isolation": "none"})), [], 4,
         notes={"cardpack.io/require-isolation": "true"}),
    Case("affinity", (("n1", 2, 8), ("n2", 1, 16)), [("a", 8, "n1", at(0, **{AFFINITY: "team"}))],
         4, notes={AFFINITY: "team"}),
    Case("anti-affinity", ONE, [("a", 4, "n1", at(0, **{ANTI_AFFINITY: "solo"}))],
         4, notes={ANTI_AFFINITY: "solo"}),
    Case("pod-limit", (("n1", 1, 16, {"ack.node.gpu.max-pod": "1"}),), [("a", 4, "n1", at(0))], 4),
    Case("unusable", (("n1", 2, 16, {}, {"cardpack.io/cordoned-cards": "0",
                                         "cardpack.io/exclusive-cards": "1"}),), [], 4),
    Case("bad-table", (("n1", 1, 16, {}, {"cardpack.io/cards": "[{}]"}),), [], 4),
    Case("node-full", (("n1", 2, 8),), [("a", 9, "n1", {})], 1, labels={PLACEMENT: WHOLE}),
    Case("swap", TWO, [("a", 4, "n1", at(0, **{ASSIGNED: "false", ASSUME_TIME: "1"})),
                       ("b", 9, "n1", at(0))], 4),
    # kube-scheduler counts the nominated pod in the node's sum: there is room in the sum.
    Case("kept", (("n1", 3, 16),), [("a", 13, "n1", at(0)), *FULL[1:],
                                        ("c", 2, "n1", at(2))], 4, before=nominate),
    Case("quota", ONE, [("a", 6, "n1", at(0))], 4, before=limit, after=unlimit),
    Case("exclusive", (("n1", 2, 16, {}, {}, 2),), [("a", None, "n1", {}, {}, None, 1)], 4),
    Case("shared", (("n1", 2, 16, {}, {}, 2),), [("a", 4, "n1", at(0))], None, exclusive=1),
    Case("both", (("n1", 2, 16, {}, {}, 2),), [], 4, exclusive=1),
    *(Case(name, FOUR, [], mem, **options) for name, (mem, options, _) in CONTRADICTIONS.items()),
    Case("compute-alone", ONE, [], None, cores=30),
    # kube-scheduler refuses it by itself: only the event InvalidRequest says why.
    Case("bytes", ONE, [], "16Gi"),
    Case("unknown-annotation", TWO, [], 17, notes={"cardpack.io/card-modell": "A100"}),
)  # fmt: skip


def make_nodes(ground: RealGround, case: Case) -> None:
    """Each node: name, cards, size, labels, annotations, cards of the other plugin."""
    for name, cards, *rest in case.nodes:
        size, labels, notes, exclusive = (*rest, *(0, {}, {}, 0)[len(rest) :])
        ground.node(name, cards, size, labels=labels, notes=notes, exclusive=exclusive)


def make_held(ground: RealGround, case: Case) -> None:
    """Each pod: name, memory, node, annotations, labels, compute, cards of the other plugin."""
    for name, mem, node, notes, *rest in case.held:
        labels, cores, exclusive = (*rest, *({}, None, None)[len(rest) :])
        pod = ground.draft(name, mem, cores=cores, exclusive=exclusive, notes=notes, labels=labels)
        pod["metadata"]["labels"] |= {BY_HAND: "yes"}
        pod["spec"]["nodeName"] = node
        ground.must("POST", f"/api/v1/namespaces/{ground.namespace}/pods", pod)


def heard(ground: RealGround) -> None:
    """Waits until cardpack has seen all earlier writes: each watch shows them in their order."""
    ground.node("mark", 1, 1)
    pod = ground.draft("mark", 1, labels={BY_HAND: "yes"})
    pod["spec"]["nodeName"] = "mark"
    ground.must("POST", f"/api/v1/namespaces/{ground.namespace}/pods", pod)

    def seen() -> bool:
        nodes = ground.daemon.inspect("mark")["nodes"]
        return bool(nodes) and (nodes[0]["totalGPU"], nodes[0]["usedGPU"]) == (1, 1)

    wait_for(seen, "the mark")
    path = f"/api/v1/namespaces/{ground.namespace}/pods/mark?gracePeriodSeconds=0"
    ground.must("DELETE", path)
    ground.must("DELETE", "/api/v1/nodes/mark")


def events_of(bench: Bench, name: str) -> list[Json]:
    return [
        event
        for event in bench.cluster.list_all(f"/api/v1/namespaces/{bench.namespace}/events")
        if event["involvedObject"].get("name") == name
    ]


def scheduler_knows(ground: RealGround, count: int, tries: int) -> int:
    """Waits until kube-scheduler counts this many nodes, with pods that fit on none."""

    def known() -> bool:
        nonlocal tries
        tries += 1
        name = f"count-{tries}"
        pod = ground.draft(name)
        pod["spec"]["nodeSelector"] = NOWHERE
        path = f"/api/v1/namespaces/{ground.namespace}/pods"
        ground.must("POST", path, pod)
        text = wait_for(lambda: message(ground.get(name)), "the scheduler's count", PATIENCE / 6)
        ground.must("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
        return text.startswith(f"0/{count} nodes")

    wait_for(known, f"kube-scheduler to know {count} nodes", PATIENCE / 6)
    return tries


def described(bench: Bench, ground: RealGround, name: str) -> str:
    """The condition PodScheduled and the events, in kubectl's order of what matters."""
    pod = ground.get(name)
    check(not pod["spec"].get("nodeName"), f"{name} is bound")
    lines = [f"condition: {message(pod)}"]
    lines += sorted({f"{e['type']} {e['reason']}: {e['message']}" for e in events_of(bench, name)})
    return "\n".join(lines)


def golden_of(bench: Bench) -> tuple[Path, dict[str, str], bool]:
    """The file of this release, its texts by case, and whether they are those of another release."""
    path = TEXTS / f"1.{bench.minor}.txt"
    other = not path.exists() and not bench.options.update
    if other:
        path = max(TEXTS.glob("1.*.txt"), key=lambda p: int(p.stem.split(".")[1]))
    parts = path.read_text().split("\n## ")[1:] if path.exists() else []
    texts = {name: text.strip() for name, _, text in (part.partition("\n") for part in parts)}
    return path, texts, other


def same(got: str, wanted: str, other: bool) -> bool:
    """Whether the texts are equal; for another release without what kube-scheduler adds."""

    def plain(text: str) -> str:
        added = r"[.,]*( no new claims to deallocate.*| preemption: .*)?$"
        return re.sub(added, "", text, flags=re.M)

    return plain(got) == plain(wanted) if other else got == wanted


def run_case(bench: Bench, ground: RealGround, case: Case, wanted: str, other: bool) -> str:
    """Makes the case's pod, waits for the text, and returns what is there."""
    ground.pod(case.name, *case.ask, **case.options)
    texts: list[str] = [""]

    def settled() -> bool:
        got = described(bench, ground, case.name)
        whole = "FailedScheduling" in got and "condition: 0/" in got
        # Without a text to wait for: the same twice in a row.
        done = same(got, wanted, other) if wanted else whole and got == texts[-1]
        texts.append(got)
        return done

    try:
        wait_for(settled, f"the text of {case.name}", PATIENCE / 12 if wanted else 30, poll=0.7)
    except TimeoutError:
        check(not wanted, f"{case.name}:\n{texts[-1]}\n---- instead of\n{wanted}")
    return texts[-1]


@scenario("real")
def pods_are_described(bench: Bench) -> None:
    """For each refusal the event and the condition are word for word those of the file."""
    ground = RealGround(bench)
    path, texts, other = golden_of(bench)
    found: dict[str, str] = {}
    faults: list[str] = []
    tries = 0
    for case in CASES:
        make_nodes(ground, case)
        make_held(ground, case)
        if not found:
            ground.cardpack("--swap-guard=require")
        if case.before is not None:
            case.before(ground)
        heard(ground)
        tries = scheduler_knows(ground, len(case.nodes), tries)
        wanted = "" if bench.options.update else texts.get(case.name, "none")
        try:
            found[case.name] = run_case(bench, ground, case, wanted, other)
        except AssertionError as error:
            found[case.name] = ""
            faults.append(str(error))
        names = [case.name, *(row[0] for row in case.held)]
        for name in [*names, *(["first"] if case.before is nominate else [])]:
            at_name = f"/api/v1/namespaces/{ground.namespace}/pods/{name}?gracePeriodSeconds=0"
            ground.must("DELETE", at_name)
        if case.after is not None:
            case.after(ground)
        for node in case.nodes:
            ground.must("DELETE", f"/api/v1/nodes/{node[0]}")
    if bench.options.update:
        body = "".join(f"\n## {name}\n{text}\n" for name, text in found.items())
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"What kubectl describe pod shows, kube-scheduler 1.{bench.minor}\n{body}")
    check(not faults, "\n".join(faults))
    check(bench.options.update or texts.keys() == found.keys(), texts.keys() ^ found.keys())


@scenario("real")
def mistakes_are_told_once(bench: Bench) -> None:
    """A pod that fits all the same is bound; its annotation is named in one event."""
    ground = RealGround(bench)
    ground.node("n1", 2, 8)
    daemon = ground.cardpack("--placed-events=true")
    typo = {"cardpack.io/card-modell": "A100"}
    check(ground.placed("typo", 4, notes=typo) == [0], "typo")

    def told(name: str) -> dict[str, Json]:
        events = events_of(bench, name)
        return {e["reason"]: e for e in events if e["source"].get("component") == "cardpack"}

    wait_for(lambda: len(told("typo")) == 2, "two events")
    warning, placed = told("typo")["UnknownAnnotation"], told("typo")["Placed"]
    check(warning["type"] == "Warning" and warning["count"] == 1, warning)
    check(warning["message"].endswith("did you mean cardpack.io/card-model?"), warning)
    check(placed["type"] == "Normal", placed)
    check(placed["message"] == "Placed on node n1: 4 of 8 on card 0", placed)

    ground.pod("waits", 9, notes=typo)
    ground.refused("waits", "asks 9, largest free 8, largest card 8")
    pod = ground.get("waits")
    for _ in range(5):
        check("asks 9" in daemon.reason(pod, "n1"), "another reason")
    ground.annotate_pod("waits", {"example.com/turn": "1"})
    ground.settle()
    daemon.stop()
    check(told("waits")["UnknownAnnotation"]["count"] == 1, told("waits"))
    bench.verify(None)
