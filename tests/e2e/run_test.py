#!/usr/bin/env python3
"""Proves that the parts of the end-to-end tests (run --part K/N) are together all of them.

python3 -m unittest tests/e2e/run_test.py
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import unittest
from pathlib import Path
from typing import Any


def _load() -> Any:
    """The program "run", which has no suffix, as a module."""
    path = str(Path(__file__).parent / "run")
    loader = importlib.machinery.SourceFileLoader("e2e_run", path)
    spec = importlib.util.spec_from_loader("e2e_run", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


RUN = _load()


class Parts(unittest.TestCase):
    """--part K/N."""

    def test_each_scenario_once(self) -> None:
        """Each scenario is in exactly one part, and the parts differ by one scenario at most."""
        for count in (0, 1, 5, 40):
            names = [f"s{i}" for i in range(count)]
            for parts in (1, 2, 3, 7):
                split = [RUN.part_of(names, part, parts) for part in range(1, parts + 1)]
                self.assertEqual(sorted(sum(split, [])), sorted(names))
                sizes = [len(one) for one in split]
                self.assertLessEqual(max(sizes) - min(sizes), 1)

    def test_values(self) -> None:
        """K is from 1 to N, both are numbers."""
        self.assertEqual(RUN.to_part("2/3"), (2, 3))
        for bad in ("", "2", "0/2", "3/2", "-1/2", "1/", "/2", "a/b", "1/2/3"):
            with self.assertRaises(argparse.ArgumentTypeError, msg=bad):
                RUN.to_part(bad)


if __name__ == "__main__":
    unittest.main()
