#!/usr/bin/env python3
"""Proves that the ledger of the scenario chaos detects faults.

python3 -m unittest tests/e2e/ledger_test.py
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))

from ledger import Ledger  # noqa: E402
from pod_watch import PodWatch  # noqa: E402
from truth import ASSIGNED, ASSUME_TIME, DEV, GPU_COUNT, IDX, POD  # noqa: E402

from cluster import GPU_MEM  # noqa: E402

Json = Any


def pod(name: str, mem: int, version: int, node: str = "", card: int = 0, **more: Json) -> Json:
    """A pod as a watch shows it; bound if a node is given."""
    uid = more.get("uid", name)
    notes = {
        IDX: str(card),
        DEV: str(more.get("size", 8)),
        POD: str(more.get("said", mem)),
        ASSIGNED: "false",
        ASSUME_TIME: str(more.get("assumed", version)),
    }
    metadata = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}
    container = {"resources": {"limits": {GPU_MEM: str(mem)}}}
    return {
        "kind": "Pod",
        "metadata": metadata | ({"annotations": notes} if node else {}),
        "spec": {"containers": [container]} | ({"nodeName": node} if node else {}),
        "status": {"phase": more.get("phase", "Pending")},
    }


def node(version: int, total: int, count: int) -> Json:
    """A node of that size."""
    return {
        "metadata": {"name": "n1", "resourceVersion": str(version)},
        "status": {"capacity": {GPU_MEM: str(total), GPU_COUNT: str(count)}},
    }


class LedgerTest(unittest.TestCase):
    def setUp(self) -> None:
        with mock.patch.object(PodWatch, "__init__", lambda self, cluster: None):
            self.modern = Ledger(mock.Mock(), modern=True)
            self.old = Ledger(mock.Mock(), modern=False)
        self.modern.broken = self.old.broken = ""

    def test_a_card_that_holds_too_much(self) -> None:
        for ledger in (self.modern, self.old):
            ledger.changed("MODIFIED", pod("a", 5, 1, "n1"))
            ledger.changed("MODIFIED", pod("b", 3, 2, "n1"))
            ledger.changed("MODIFIED", pod("other", 8, 3, "n1", card=1))
            self.assertEqual(ledger.faults(), [])
            ledger.changed("MODIFIED", pod("c", 1, 4, "n1"))
            self.assertIn("now 9 on a card of 8", ledger.faults()[0])

    def test_who_ended_holds_nothing(self) -> None:
        ends = [
            ("MODIFIED", {"phase": "Succeeded"}), ("MODIFIED", {"phase": "Failed"}),
            ("DELETED", {}),
        ]  # fmt: skip
        for i, (kind, more) in enumerate(ends):
            self.modern.changed("MODIFIED", pod(f"p{i}", 8, 2 * i + 1, "n1"))
            self.modern.changed(kind, pod(f"p{i}", 8, 2 * i + 2, "n1", **more))
        self.modern.changed("MODIFIED", pod("last", 8, 9, "n1"))
        self.assertEqual(self.modern.faults(), [])

    def test_too_much_behind_a_gap(self) -> None:
        both = [pod("a", 5, 1, "n1"), pod("b", 4, 2, "n1")]
        self.modern.listed(both, 9)
        self.assertIn("at 9: 9", self.modern.faults()[0])
        self.old.listed([both[0]], 9)
        self.old.listed([both[1]], 12)  # the first one was deleted
        self.assertEqual(self.old.faults(), [])
        self.assertEqual(self.old.pending(), 0)

    def test_a_pod_made_again_in_mid_bind(self) -> None:
        for ledger in (self.modern, self.old):
            ledger.changed("ADDED", pod("a", 2, 1, uid="first"))
            ledger.changed("DELETED", pod("a", 2, 2, uid="first"))
            ledger.changed("MODIFIED", pod("a", 6, 3, "n1", said=2, uid="second"))
            ledger.changed("MODIFIED", pod("b", 6, 4, "n1"))
        self.assertIn("the wrong size", self.modern.faults()[0])
        self.assertEqual((self.old.faults(), self.old.excepted), ([], 1))
        # Without an earlier pod of that name the exception does not apply.
        self.old.changed("MODIFIED", pod("c", 6, 5, "n2", said=2))
        self.assertIn("the wrong size", self.old.faults()[0])

    def test_what_no_bound_pod_may_do(self) -> None:
        self.modern.changed("MODIFIED", pod("a", 1, 1, "n1"))
        self.modern.changed("MODIFIED", pod("a", 1, 2, "n1", card=1))
        self.modern.changed("MODIFIED", pod("a", 1, 3, "n2", card=1))
        bare = pod("b", 1, 4, "n1")
        bare["metadata"]["annotations"] = {}
        self.modern.changed("MODIFIED", bare)
        self.assertEqual(len(self.modern.faults()), 3)

    def test_sizes_that_are_no_more(self) -> None:
        ledger = self.modern
        ledger.node(node(1, 16, 2))
        ledger.node(node(5, 8, 2))
        ledger.changed("MODIFIED", pod("before", 1, 3, "n1"))
        ledger.changed("MODIFIED", pod("after", 1, 6, "n1"))
        ledger.changed("MODIFIED", pod("never", 1, 7, "n1", card=1, size=5))
        unknown = ledger.stale(lambda *_: False)
        self.assertEqual((unknown[0], len(unknown[1])), (1, 1))
        self.assertIn("never had such a card", unknown[1][0])
        self.assertIn("was known", ledger.stale(lambda *_: True)[1][0])


if __name__ == "__main__":
    unittest.main()
