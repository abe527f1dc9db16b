#!/usr/bin/env python3
"""Proves that share_truth.py and inspect_reader.py detect faults.

python3 -m unittest tests/e2e/share_truth_test.py
"""

from __future__ import annotations

import copy
import json
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

import inspect_reader  # noqa: E402
from share_truth import (  # noqa: E402
    AFFINITY,
    ALLOCATION,
    ANTI_AFFINITY,
    CARDS,
    CORDONED,
    CORE_ALLOCATION,
    CORES,
    COUNT_LABEL,
    EXCLUSIVE,
    EXCLUSIVE_CARDS,
    MAX_PODS,
    MODEL,
    PERCENT,
    PLACEMENT,
    UUID,
    WHOLE,
    ShareTruth,
    ask_of,
    charges_of,
)
from truth import ASSIGNED, ASSUME_TIME, BY_HAND, DEV, GPU_COUNT, IDX, POD  # noqa: E402

from cluster import GPU_MEM  # noqa: E402

Json = Any
Limits = dict[str, int]


def node(table: list[Json] | int = 2, size: int = 16, **notes: str) -> Json:
    """Node n1 with an even split or a card table."""
    total = table * size if isinstance(table, int) else sum(row["memory"] for row in table)
    count = table if isinstance(table, int) else len(table)
    capacity = {GPU_MEM: str(total), GPU_COUNT: str(count)}
    if not isinstance(table, int):
        notes |= {CARDS: json.dumps(table)}
    return {
        "metadata": {"name": "n1", "annotations": notes, "labels": {}},
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def pod(
    name: str,
    containers: list[Limits],
    idx: str = "0",
    grants: Json = None,
    cores: Json = None,
    **more: Json,
) -> Json:
    """A pod on n1 with correct annotations, unless notes replace them."""
    mem = sum(limits.get(GPU_MEM, 0) for limits in containers)
    notes = {IDX: idx, DEV: "16", POD: str(mem), ASSIGNED: "false", ASSUME_TIME: "1" * 19}
    notes |= {ALLOCATION: json.dumps(grants)} if grants is not None else {}
    notes |= {CORE_ALLOCATION: json.dumps(cores)} if cores is not None else {}
    notes |= more.get("notes", {})
    spec = {"nodeName": "n1", "containers": [_container(limits) for limits in containers]}
    spec["initContainers"] = [
        _container(limits) | extra for limits, extra in more.get("init", [])
    ]
    return {
        "metadata": {
            "name": name, "namespace": more.get("namespace", "ns"), "uid": name,
            "labels": more.get("labels", {}),
            "annotations": {key: value for key, value in notes.items() if value is not None},
        },
        "spec": spec,
        "status": {"phase": "Running", "conditions": more.get("conditions", [])},
    }  # fmt: skip


def _container(limits: Limits) -> Json:
    return {"resources": {"limits": {key: str(value) for key, value in limits.items()}}}


def mem(amount: int) -> Limits:
    return {GPU_MEM: amount}


SIDECAR = {"restartPolicy": "Always"}
DONE = [{"type": "Initialized", "status": "True"}]


def good() -> tuple[Json, list[Json]]:
    """A node with every kind of request on it."""
    table = [
        {"index": 0, "memory": 16, "model": "Tesla-T4", "uuid": "GPU-0"},
        {"index": 1, "memory": 16, "model": "NVIDIA-A100", "uuid": "GPU-1"},
        {"index": 3, "memory": 16, "model": "NVIDIA-A100", "uuid": "GPU-3"},
        {"index": 4, "memory": 24, "model": "NVIDIA-A100", "uuid": "GPU-4"},
        {"index": 6, "memory": 8, "model": "Tesla-T4", "uuid": "GPU-6"},
    ]
    apart = {"0": {"0": 6}, "1": {"1": 5}, "2": {"0": 1}}
    several = {"labels": {COUNT_LABEL: "2"}}
    two = {"0": {"0": 4, "1": 4}}
    pods = [
        pod("plain", [mem(3), {}], notes={AFFINITY: "g", MODEL: "tesla*"}),
        pod("apart", [mem(6), mem(5)], "0,1", apart, init=[(mem(1), SIDECAR)], notes={POD: "12"}),
        pod("two", [mem(8) | {CORES: 60}], "0,1", two, {"0": {"0": 30, "1": 30}}, **several),
        pod("percent", [mem(1)], "3", {"0": {"3": 4}}, notes={PERCENT: "25", ANTI_AFFINITY: "x"}),
        pod("whole", [mem(10)], "4", {"0": {"4": 24}}, labels={PLACEMENT: WHOLE},
            notes={DEV: "24", UUID: "GPU-4,!GPU-3"}),
        pod("friend", [mem(1)], notes={AFFINITY: "g", ANTI_AFFINITY: "x"}),
        pod("begins", [mem(2)], "6", {"0": {"6": 2}}, init=[(mem(8), {})],
            notes={DEV: "8", POD: "8"}),
    ]  # fmt: skip
    return node(table), pods


def change(pods: list[Json], name: str, **notes: str | None) -> None:
    """Changes annotations of one pod; None deletes one."""
    found = next(p for p in pods if p["metadata"]["name"] == name)["metadata"]["annotations"]
    for key, value in notes.items():
        if value is None:
            del found[key]
        else:
            found[key] = value


def charges_of_before(pods: list[Json]) -> Callable[[Json, bool], dict[int, int]]:
    """The pods' usage now, for use after their annotations have changed."""
    had = {p["metadata"]["name"]: charges_of(p) for p in pods}
    return lambda p, _: had[p["metadata"]["name"]]


class ShareTruthTest(unittest.TestCase):
    def faults(self, a_node: Json, *pods: Json, shrink: bool = False) -> str:
        return " / ".join(ShareTruth([a_node], pods, shrink).faults())

    def test_nothing_is_wrong_with_what_is_right(self) -> None:
        a_node, pods = good()
        self.assertEqual(self.faults(a_node, *pods), "")

    def test_annotations_that_are_not_so(self) -> None:
        for name, notes, fault in (
            ("plain", {ALLOCATION: '{"0":{"0":3}}'}, "has ["),
            ("begins", {ALLOCATION: None}, "has ["),
            ("plain", {DEV: "8"}, f"{DEV} is '8', not '16'"),
            ("plain", {POD: "4"}, f"{POD} is '4', not '3'"),
            ("plain", {ASSIGNED: "true"}, f"{ASSIGNED} is 'true'"),
            ("plain", {ASSUME_TIME: None}, "has ["),
            ("apart", {ALLOCATION: None}, "container 0 is on 2 cards, not 1"),
            ("apart", {ALLOCATION: '{"0":{"0":6},"1":{"1":5}}'}, "mem of its containers"),
            ("apart", {ALLOCATION: '{"0":{"0":5},"1":{"1":5},"2":{"0":2}}'}, "mem of its contain"),
            ("apart", {ALLOCATION: '{"0":{"0":6},"1":{"1":5},"7":{"0":1}}'}, "mem of its contain"),
            ("apart", {ALLOCATION: '{"0":{"0":5,"1":1},"1":{"1":5},"2":{"0":1}}'}, "is on 2 cards"),
            ("apart", {ALLOCATION: '{"0":{"0":6},"1":{"9":5},"2":{"0":1}}'}, "has no card 9"),
            ("apart", {IDX: "0,2"}, f"{IDX} is '0,2', not '0,1'"),
            ("two", {ALLOCATION: '{"0":{"0":8}}'}, "is on 1 cards, not 2"),
            ("two", {ALLOCATION: '{"0":{"0":5,"1":3}}'}, "not equal"),
            ("two", {CORE_ALLOCATION: '{"0":{"0":60}}'}, "not equal"),
            ("two", {CORE_ALLOCATION: '{"0":{"0":30,"3":30}}'}, "not where its memory is"),
            ("two", {CORE_ALLOCATION: None}, "has ["),
            ("percent", {ALLOCATION: '{"0":{"3":3}}'}, "card 3: 3, not 4"),
            ("whole", {ALLOCATION: '{"0":{"4":10}}'}, "card 4: 10, not 24"),
            ("whole", {ALLOCATION: '{"0":{"6":8}}', IDX: "6", DEV: "8"}, "has 8, and 10"),
        ):
            with self.subTest(f"{name} {notes}"):
                a_node, pods = good()
                change(pods, name, **notes)
                self.assertIn(fault, self.faults(a_node, *pods))

    def test_two_containers_on_several_cards(self) -> None:
        same, others = {"0": {"0": 1, "1": 1}, "1": {"0": 2, "1": 2}}, {"1": {"1": 2, "2": 2}}
        more: Json = {"idx": "0,1", "labels": {COUNT_LABEL: "2"}}
        two = pod("two", [mem(2), mem(4)], grants=same, **more)
        self.assertEqual(self.faults(node(3), two), "")
        more["idx"] = "0,1,2"
        two = pod("two", [mem(2), mem(4)], grants=same | others, **more)
        self.assertIn("not on the same cards", self.faults(node(3), two))

    def test_who_was_bound_past_cardpack(self) -> None:
        bare = pod("bare", [mem(9)], notes={DEV: None, POD: None}, labels={BY_HAND: "yes"})
        self.assertEqual(self.faults(node(), bare), "")
        self.assertIn("n1 card 0: 18 of 16", self.faults(node(), bare, pod("late", [mem(9)])))

    def test_cards_that_hold_too_much(self) -> None:
        a_node, pods = good()
        late = pod("late", [mem(1)], "6", notes={DEV: "8"})
        self.assertIn("n1 card 6: 9 of 8", self.faults(a_node, *pods, late))
        pods[-1]["status"]["conditions"] = DONE  # and its init container has ended
        self.assertIn("n1 card 6: 9 of 8", self.faults(a_node, *pods, late))
        self.assertEqual(self.faults(a_node, *pods, late, shrink=True), "")
        pods[-1]["status"]["conditions"] = []
        late["status"]["phase"] = "Succeeded"
        self.assertEqual(self.faults(a_node, *pods, late), "")
        a, b = (
            pod(name, [{GPU_MEM: 1, CORES: 60}], grants={"0": {"0": 1}}, cores={"0": {"0": 60}})
            for name in "ab"
        )
        self.assertEqual(self.faults(node(), a), "")
        self.assertIn("120 % of its compute", self.faults(node(), a, b))
        limited = node()
        limited["metadata"]["labels"][MAX_PODS] = "1"
        self.assertEqual(self.faults(limited, a), "")
        self.assertIn("more than 1 pods", self.faults(limited, a, b))
        # The kubelet adds up limits, with those of init containers that have ended.
        begun: Json = {"init": [(mem(11), {})], "conditions": DONE, "notes": {POD: "11"}}
        three = [pod(f"p{i}", [mem(1)], "0", {"0": {"0": 1}}, **begun) for i in range(3)]
        self.assertIn("n1: 33 of 32", self.faults(node(), *three))
        self.assertEqual(self.faults(node(), *three[:2], shrink=True), "")

    def test_cards_that_a_pod_does_not_want(self) -> None:
        for name, notes, fault in (
            ("plain", {MODEL: "*A100"}, "wanted is"),
            ("plain", {MODEL: "!*T4"}, "never wanted is"),
            ("plain", {UUID: "GPU-1"}, "wanted is"),
            ("whole", {UUID: "!gpu-4"}, "never wanted is"),
            ("friend", {ANTI_AFFINITY: "y", AFFINITY: "g"}, ""),
            ("percent", {AFFINITY: "g"}, "on no card with"),
            ("plain", {ANTI_AFFINITY: "x"}, "on a card with"),
        ):
            with self.subTest(f"{name} {notes}"):
                a_node, pods = good()
                change(pods, name, **notes)
                faults = self.faults(a_node, *pods)
                self.assertTrue(fault in faults and bool(fault) == bool(faults), faults)
        a_node, pods = good()
        change(pods, "plain", **{ANTI_AFFINITY: "x"})
        pods[0]["metadata"]["namespace"] = "another"
        self.assertEqual(self.faults(a_node, *pods), "")  # only one pod of g is left there
        guest = pod("guest", [mem(1)], "4", notes={DEV: "24"})
        self.assertIn("is to be whole", self.faults(a_node, *pods, guest))

    def test_shared_and_exclusive(self) -> None:
        alone = pod("alone", [{EXCLUSIVE: 1}])
        for key in list(alone["metadata"]["annotations"]):
            del alone["metadata"]["annotations"][key]
        shares = pod("shares", [mem(1)], "1")
        self.assertEqual(self.faults(node(), alone), "")
        self.assertIn("share cards beside ['ns/alone']", self.faults(node(), alone, shares))
        self.assertEqual(self.faults(node(**{EXCLUSIVE_CARDS: "0"}), alone, shares), "")
        self.assertIn("another plugin", self.faults(node(**{EXCLUSIVE_CARDS: "1"}), alone, shares))
        nothing = pod("nothing", [mem(0)])
        self.assertIn("asks for nothing and has", self.faults(node(), nothing))

    def test_where_there_is_room(self) -> None:
        table = [{"index": 1, "memory": 8}, {"index": 4, "memory": 16, "health": "Unhealthy"}]
        held = pod("held", [mem(3)], "1")
        for a_node, asked, labels, room in (
            (node(table), 5, {}, ["n1 card 1"]),
            (node(table), 6, {}, []),
            (node(table, **{CORDONED: "0,1"}), 5, {}, []),
            (node(table, **{EXCLUSIVE_CARDS: "1"}), 5, {}, []),
            (node(table), 5, {PLACEMENT: WHOLE}, []),
            (node(2), 13, {}, ["n1 card 0", "n1 card 1"]),
            (node(2), 16, {}, ["n1 card 0"]),
        ):
            with self.subTest(asked=asked, labels=labels, notes=a_node["metadata"]["annotations"]):
                truth = ShareTruth([a_node], [held])
                self.assertEqual(truth.room_for(pod("p", [mem(asked)], labels=labels)), room)
        full = node(2)
        full["metadata"]["labels"][MAX_PODS] = "1"
        self.assertEqual(ShareTruth([full], [held]).room_for(pod("p", [mem(1)])), ["n1 card 0"])
        full["status"]["allocatable"][GPU_MEM] = "4"
        self.assertEqual(ShareTruth([full], [held]).room_for(pod("p", [mem(2)])), [])
        full["status"]["allocatable"][GPU_MEM] = "32"
        full["status"]["capacity"][GPU_MEM] = "9"
        self.assertEqual(ShareTruth([full], [held]).room_for(pod("p", [mem(7)])), [])
        alone = pod("alone", [{EXCLUSIVE: 1}])
        self.assertEqual(ShareTruth([node()], [alone]).room_for(pod("p", [mem(1)])), [])

    def test_the_formula_of_init_containers(self) -> None:
        init = [(mem(2), SIDECAR), (mem(9), {}), (mem(3), SIDECAR), (mem(4), {})]
        one = pod("one", [mem(4)], init=init)
        self.assertEqual(ask_of(one).kubelet_mem(), 11)  # 2 + 9
        self.assertEqual(charges_of(one), {0: 11})
        one["status"]["conditions"] = DONE
        self.assertEqual(charges_of(one), {0: 11})
        self.assertEqual(charges_of(one, shrink=True), {0: 9})
        apart = {"0": {"0": 4}, "1": {"1": 2}, "3": {"0": 3}}
        one["metadata"]["annotations"][ALLOCATION] = json.dumps(apart)
        self.assertEqual(charges_of(one, shrink=True), {0: 7, 1: 2})
        self.assertEqual(charges_of(one), {0: 7, 1: 11})
        one["status"]["conditions"] = []
        self.assertEqual(charges_of(one, shrink=True), {0: 7, 1: 11})  # 9 beside the first 2
        alone = pod("alone", [{}], grants={"1": {"0": 3}, "2": {"0": 5}}, notes={POD: "5"})
        alone["spec"]["initContainers"] = [_container(mem(3)), _container(mem(5))]
        self.assertEqual(charges_of(alone), {0: 5})
        self.assertEqual(self.faults(node(), alone), "")
        alone["status"]["conditions"] = DONE
        self.assertEqual(charges_of(alone, shrink=True), {0: 0})
        several = pod("two", [mem(4)], grants={"0": {"0": 2, "1": 2}}, init=[(mem(6), {})])
        self.assertEqual(charges_of(several), {0: 3, 1: 3})


class InspectReaderTest(unittest.TestCase):
    def inspect(self, a_node: Json, pods: list[Json]) -> Json:
        """What cardpack should answer."""
        truth = ShareTruth([a_node], pods)
        devs = [
            {
                "id": index, "totalGPU": card.size, "usedGPU": card.used,
                "pods": [
                    {
                        "namespace": name.split("/")[0], "name": name.split("/")[1],
                        "usedGPU": charges_of(truth.pods[name])[index],
                    }
                    for name in card.pods
                ],
            }
            for index, card in truth.cards["n1"].items()
        ]  # fmt: skip
        used = sum(card.used for card in truth.cards["n1"].values())
        return {"nodes": [{"name": "n1", "totalGPU": 0, "usedGPU": used, "devs": devs}]}

    def test_the_same_of_every_card(self) -> None:
        a_node, pods = good()
        said = self.inspect(a_node, pods)
        self.assertEqual(inspect_reader.differences([a_node], pods, said), [])
        for path in (
            ("usedGPU",), ("devs", 0, "usedGPU"), ("devs", 4, "usedGPU"), ("devs", 2, "totalGPU"),
            ("devs", 1, "pods", 0, "usedGPU"), ("devs", 0, "pods", 0, "name"), ("devs", 3, "id"),
            ("name",),
        ):  # fmt: skip
            with self.subTest(path):
                other = copy.deepcopy(said)
                place = other["nodes"][0]
                for step in path[:-1]:
                    place = place[step]
                place[path[-1]] = "x" if path[-1] == "name" else place[path[-1]] + 1
                self.assertNotEqual(inspect_reader.differences([a_node], pods, other), [])

    def test_an_allocation_that_kubectl_reads_otherwise(self) -> None:
        a_node, pods = good()
        said = self.inspect(a_node, pods)
        for name, notes in (
            ("two", {ALLOCATION: '{"0":{"0":4,"1":4.0}}'}),  # Go takes no 4.0 for an int
            ("two", {ALLOCATION: '{"0":{"0":"4","1":"4"}}'}),
            ("two", {ALLOCATION: None}),
            ("apart", {ALLOCATION: '{"0":{"0":7},"1":{"1":4},"2":{"0":1}}'}),
            ("plain", {IDX: "1"}),
            ("percent", {ALLOCATION: '{"0":{"3":5}}'}),
        ):
            with self.subTest(f"{name} {notes}"):
                other = copy.deepcopy(pods)
                change(other, name, **notes)
                try:
                    found = inspect_reader.differences([a_node], other, said)
                except ValueError:
                    found = ["an amount that is none"]
                self.assertNotEqual(found, [])
        # A surplus and a deficit cancel out in the sum, so each pod is checked too.
        change(pods, "plain", **{ALLOCATION: '{"0":{"0":2}}'})
        grants = '{"0":{"0":7},"1":{"1":5},"2":{"0":1}}'
        with mock.patch.object(inspect_reader, "charges_of", charges_of_before(good()[1])):
            change(pods, "apart", **{ALLOCATION: grants})
            found = inspect_reader.differences([a_node], pods, said)
        self.assertIn("ns/plain: kubectl-inspect {0: 2}", " ".join(found))

    def test_the_rules_of_kubectl_inspect(self) -> None:
        for a_pod, read in (
            (pod("idx", [mem(2), mem(3)], "1"), {1: 5}),
            (pod("first", [mem(2)], "1", {"0": {"3": 7}}), {3: 7}),
            (pod("summed", [mem(2)], "1", {"0": {"3": 7, "1": 1}, "1": {"3": 2}}), {3: 9, 1: 1}),
            (pod("odd", [mem(2)], "1", {"0": {"x": 7}}), {1: 2}),
            (pod("odd", [mem(2)], "1", {"first": {"0": 7}}), {1: 2}),
            (pod("odd", [mem(2)], "1", {"0": {"0": 7.5}}), {1: 2}),
            (pod("torn", [mem(2)], "1", {"0": {"3": 7}, "1": [1]}), {1: 2}),
            (pod("empty", [mem(2)], "1", {}), {1: 2}),
            (pod("list", [mem(2)], "1", []), {1: 2}),
            (pod("two", [mem(2)], "0,1"), {-1: 2}),
            (pod("none", [mem(2)], notes={IDX: None}), {-1: 2}),
            (pod("nothing", [mem(0)], "1", {"0": {"0": 3}}), {}),
            (pod("init", [mem(1)], "1", init=[(mem(5), {}), (mem(2), SIDECAR)]), {1: 1}),
        ):
            with self.subTest(a_pod["metadata"]["name"]):
                self.assertEqual(inspect_reader.read_pod(a_pod), read)
        ended = pod("ended", [mem(2)], "1")
        ended["status"]["phase"] = "Failed"
        self.assertEqual(inspect_reader.read_pod(ended), {})


if __name__ == "__main__":
    unittest.main()
