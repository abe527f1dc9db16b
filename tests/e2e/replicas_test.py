#!/usr/bin/env python3
"""Proves that Replicas.leader() finds the leader while it changes, and two leaders at a time.

python3 -m unittest tests/e2e/replicas_test.py
"""

from __future__ import annotations

import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from replicas import Replicas


class World:
    """Replicas that are not programs; `on_asked` runs before each answer, as the lease moves at any time."""

    def __init__(self, folder: Path, leads: list[bool]) -> None:
        self.leads = leads
        self.on_asked: Callable[[], None] = lambda: None
        self.asked = 0
        self.logs = [folder / f"{i}.log" for i in range(len(leads))]
        for log in self.logs:
            log.write_text("---- a start\n")
        self.replicas: Any = Replicas.__new__(Replicas)
        self.replicas.all = [
            SimpleNamespace(process=SimpleNamespace(alive=True, log=log), ready=self._ready(i))
            for i, log in enumerate(self.logs)
        ]

    def _ready(self, who: int) -> Callable[..., bool]:
        def ready(timeout: float = 0) -> bool:
            self.on_asked()
            self.asked += 1
            return self.leads[who]

        return ready

    def move(self, who: int) -> None:
        """That replica leads from now on."""
        self.leads[:] = [i == who for i in range(len(self.leads))]
        with self.logs[who].open("a") as log:
            log.write('{"msg":"deciding from now on","term":1}\n')


class Leader(unittest.TestCase):
    """The leader, by answers that are given one after the other."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_one_or_none(self) -> None:
        """Without a change each is asked once."""
        for leads, leader in (([False, False], None), ([True, False], 0), ([False, True], 1)):
            world = World(self.folder, leads)
            self.assertEqual(world.replicas.leader(), leader)
            self.assertEqual(world.asked, 2)

    def test_two(self) -> None:
        """Two that lead at the same time are an error."""
        with self.assertRaisesRegex(AssertionError, "two answer at a time"):
            World(self.folder, [True, True]).replicas.leader()

    def test_moves_to_the_one_that_has_answered(self) -> None:
        """Both have said no, and one of them led all the time."""
        world = World(self.folder, [False, True])
        world.on_asked = lambda: world.move(0) if world.asked == 1 else None
        self.assertEqual(world.replicas.leader(), 0)

    def test_moves_to_the_one_that_is_asked_next(self) -> None:
        """Both have said yes, and there were never two."""
        world = World(self.folder, [True, False])
        world.on_asked = lambda: world.move(1) if world.asked == 1 else None
        self.assertEqual(world.replicas.leader(), 1)


if __name__ == "__main__":
    unittest.main()
