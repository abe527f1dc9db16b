"""What judges real nodes is judged itself: each fault is found, and nothing else."""

from __future__ import annotations

import sys
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from container_truth import GPU_MEM, IDX, VISIBLE, judge  # noqa: E402

CARDS, SIZES = {"GPU-a": 0, "GPU-b": 1}, {0: 16, 1: 16}


@dataclass
class One:
    """A container as the test of a node sees it."""

    uid: str
    name: str
    env: dict[str, str]


def pod(uid: str, card: str | None, mem: int) -> Any:
    """A pod with one container, c0."""
    return {
        "metadata": {
            "uid": uid, "name": uid, "namespace": "default",
            "annotations": {} if card is None else {IDX: card},
        },
        "spec": {
            "containers": [{"name": "c0", "resources": {"limits": {GPU_MEM: str(mem)} if mem else {}}}]
        },
    }  # fmt: skip


def on(uid: str, visible: str, idx: str) -> One:
    """A container that has that card."""
    return One(uid, "c0", {VISIBLE: visible, IDX: idx})


class Judge(unittest.TestCase):
    """judge()."""

    def faults(self, containers: list[One], pods: list[Any]) -> str:
        """What judge() finds, as one text."""
        return "; ".join(judge(containers, pods, CARDS, SIZES))

    def test_good(self) -> None:
        pods = [pod("p", "0", 8), pod("q", "1", 16), pod("r", "0", 8), pod("plain", None, 0)]
        running = [on("p", "GPU-a", "0"), on("q", "GPU-b", "1"), on("r", "0", "0"), One("plain", "c0", {})]
        self.assertEqual(self.faults(running, pods), "")
        self.assertEqual(self.faults([on("deleted", "GPU-a", "0")], pods), "")

    def test_another_card(self) -> None:
        found = self.faults([on("p", "GPU-b", "1")], [pod("p", "0", 8)])
        self.assertEqual(found, "default/p c0 runs on card 1, annotated is 0")

    def test_not_annotated(self) -> None:
        found = self.faults([on("p", "GPU-b", "1")], [pod("p", None, 8)])
        self.assertEqual(found, "default/p c0 runs on card 1, annotated is None")

    def test_variables_differ(self) -> None:
        found = self.faults([on("p", "GPU-b", "0")], [pod("p", "1", 8)])
        self.assertEqual(found, f"default/p c0 runs on card 1, its {IDX} is '0'")

    def test_no_card(self) -> None:
        for value in ("", "all", "GPU-c", "2", "no-gpu-has-8GiB-to-run"):
            found = self.faults([on("p", value, "0")], [pod("p", "0", 8)])
            self.assertEqual(found, f"default/p c0: {VISIBLE} is {value!r}")

    def test_over_its_size(self) -> None:
        pods = [pod("p", "0", 8), pod("q", "0", 9)]
        found = self.faults([on("p", "GPU-a", "0"), on("q", "GPU-a", "0")], pods)
        self.assertEqual(found, "card 0 has 17 of 16")


if __name__ == "__main__":
    unittest.main()
