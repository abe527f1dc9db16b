#!/usr/bin/env python3
"""Proves that figures become the right tables and verdicts.

python3 -m unittest tests/bench/report_test.py
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import report  # noqa: E402
import scheduler_report  # noqa: E402


def figure(**more: Any) -> report.Figure:
    """A figure of the table "t"."""
    return {"table": "t", "what": "filter", "value": 2.0, "unit": "us"} | more


def pair(value: float, limit: float, target: float, sense: str) -> report.Figure:
    """A figure that has a limit and a target."""
    return figure(value=value, beside="echo", limit=limit, target=target, sense=sense)


def curve(what: str, values: dict[int, float], **more: Any) -> list[report.Figure]:
    """A figure for each x."""
    return [figure(what=what, by="names", x=x, value=v, **more) for x, v in values.items()]


class Reading(unittest.TestCase):
    """Parsing of the lines."""

    def test_the_last_of_the_same_counts(self) -> None:
        """It keeps the place of the first one."""
        lines = [json.dumps(f) for f in (figure(value=1), figure(what="b"), figure(value=3))]
        self.assertEqual([f["value"] for f in report.read([*lines, "\n"])], [3, 2.0])

    def test_another_limit_is_another_figure(self) -> None:
        """Another x also makes another figure."""
        figures = [figure(beside="a"), figure(beside="b"), figure(by="n", x=1), figure(by="n", x=2)]
        self.assertEqual(len(report.read(map(json.dumps, figures))), 4)


class Numbers(unittest.TestCase):
    """The format for people."""

    def test_times_have_the_unit_that_suits_them(self) -> None:
        """From nanoseconds to seconds."""
        for us, text in (
            (0.0881, "88.1 ns"),
            (1, "1 µs"),
            (153.82, "154 µs"),
            (7512.7, "7.51 ms"),
            (999.9, "1 ms"),
            (2.5e6, "2.5 s"),
            (0, "0"),
        ):
            self.assertEqual(report.amount(us, "us"), text)
        self.assertEqual(report.amount(12, "ms"), "12 ms")

    def test_others_keep_theirs(self) -> None:
        """With separators for thousands."""
        self.assertEqual(report.amount(6400, "binds/s"), "6,400 binds/s")
        self.assertEqual(report.amount(31.4159, "MiB"), "31.4 MiB")
        self.assertEqual(report.amount(0.5, ""), "0.5")


class Targets(unittest.TestCase):
    """Met or missed."""

    def test_at_most_and_at_least(self) -> None:
        """Compares the ratio; the target itself is met."""
        for value, sense, met in (
            (6, "at most", True),
            (6.1, "at most", False),
            (6, "at least", True),
            (5.9, "at least", False),
        ):
            self.assertEqual(report.is_met(pair(value, 2, 3, sense)), met, (value, sense))

    def test_without_a_limit_the_value_counts(self) -> None:
        """For example for memory."""
        self.assertFalse(report.is_met(figure(value=33, target=32, sense="at most")))
        self.assertTrue(report.is_met(figure(value=31, target=32, sense="at most")))

    def test_only_those_with_a_target_are_listed(self) -> None:
        """From any table."""
        rows = report.target_rows([figure(), pair(9, 2, 3, "at most")])
        self.assertEqual(
            rows, [["t: filter", "9 µs", "echo: 2 µs", "4.50", "at most 3", "missed"]]
        )


class Tables(unittest.TestCase):
    """Markdown."""

    def test_limits_stand_side_by_side(self) -> None:
        """In the row of their figure."""
        figures = [
            figure(by="names", x=5000, beside="copy", limit=1.0),
            figure(by="names", x=5000, beside="echo", limit=4.0),
            figure(by="names", x=50000, beside="echo", limit=8.0),
        ]
        self.assertEqual(
            report.listed(figures).splitlines(),
            [
                "|  | names | measured | copy | ratio | echo | ratio |",
                "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
                "| filter | 5,000 | 2 µs | 1 µs | 2.00 | 4 µs | 0.50 |",
                "| filter | 50,000 | 2 µs |  |  | 8 µs | 0.25 |",
            ],
        )

    def test_a_miss_is_said(self) -> None:
        """The table also shows it."""
        text = report.listed([pair(9, 2, 3, "at most")])
        self.assertIn("| at most 3: **missed** |", text)

    def test_figures_without_an_x_stand_among_others(self) -> None:
        """As a row with an empty field."""
        figures = [*curve("a", {1: 2.0, 10: 3.0}), figure(what="b")]
        self.assertFalse(report.is_pivotal(figures))
        self.assertIn("| b |  | 2 µs |", report.listed(figures))

    def test_growth_has_a_column_for_each_curve(self) -> None:
        """And a row for each x, in order."""
        figures = curve("a", {10: 4.0, 1: 2.0}, beside="one", limit=2.0)
        figures += curve("b", {1: 3.0}, beside="one", limit=2.0)
        self.assertTrue(report.is_pivotal(figures))
        lines = report.pivot(figures).splitlines()
        self.assertEqual(lines[0], "| names | a | b |")
        self.assertEqual(lines[2:4], ["| 1 | 2 µs (1.00) | 3 µs (1.50) |", "| 10 | 4 µs (2.00) |  |"])


class Document(unittest.TestCase):
    """The markers in a document."""

    TEXT = (
        "# A\n<!-- figures: t -->\nold\n<!-- end -->\nb\n<!-- figures: u -->\nkept\n<!-- end -->\n"
        "<!-- figures: targets -->\n<!-- end -->\n<!-- machine -->\n<!-- end -->\nc\n"
    )

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "page.md")
        self.path.write_text(self.TEXT, encoding="utf-8")
        self.figures = Path(folder.name, "figures")

    def write(self, figures: list[report.Figure]) -> str:
        """The document after a write."""
        self.figures.write_text("".join(json.dumps(f) + "\n" for f in figures), encoding="utf-8")
        self.assertEqual(report.main(["write", str(self.figures), str(self.path)]), 0)
        return self.path.read_text(encoding="utf-8")

    def test_only_what_was_measured_changes(self) -> None:
        """Text outside of the markers stays."""
        text = self.write([pair(1, 2, 3, "at most")])
        self.assertNotIn("old", text)
        self.assertIn("| filter | 1 µs | 2 µs | 0.50 | at most 3: met |", text)
        self.assertIn("| t: filter | 1 µs | echo: 2 µs | 0.50 | at most 3 | met |", text)
        self.assertIn("\nkept\n", text)
        self.assertRegex(text, r"\| cores \| \d+ \|")
        between = re.compile(r"(?s)-->.*?<!-- end")
        self.assertEqual(between.sub("", text), between.sub("", self.TEXT))

    def test_written_twice_is_the_same(self) -> None:
        """The markers survive."""
        first = self.write(curve("a", {1: 2.0, 10: 3.0}))
        self.assertEqual(self.write(curve("a", {1: 2.0, 10: 3.0})), first)

    def test_targets_of_what_was_not_measured_stay(self) -> None:
        """They keep their places, and the document keeps the machine of the measurement."""
        self.write([pair(1, 2, 3, "at most"), {**pair(1, 2, 3, "at most"), "table": "u"}])
        self.path.write_text(
            re.sub(r"\| cores \| \d+ \|", "| cores | 77 |", self.path.read_text(encoding="utf-8")),
            encoding="utf-8",
        )
        text = self.write([{**pair(2, 2, 3, "at most"), "table": "u"}, {**pair(4, 2, 3, "at most"), "table": "v"}])
        rows = re.findall(r"^\| (\w): filter \| (\d) ", text, re.MULTILINE)
        self.assertEqual(rows, [("t", "1"), ("u", "2"), ("v", "4")])
        self.assertIn("| cores | 77 |", text)

    def test_of_kinds_of_requests_the_worst_is_a_target(self) -> None:
        """Its row names it; all others are in the table of all figures."""
        kinds = [
            {**pair(value, 2, 3, "at most"), "table": "kinds-5", "what": f"{kind}: filter"}
            for kind, value in (("memory", 4), ("percent", 9), ("cores", 6))
        ]
        text = self.write([*kinds, {**kinds[0], "what": "memory: prioritize"}])
        self.assertIn("| kinds-5: filter (percent) | 9 µs | echo: 2 µs | 4.50 | at most 3 | **missed** |", text)
        self.assertIn("| kinds-5: prioritize (memory) |", text)
        self.assertNotIn("cores", text.partition("| kinds-5")[2].partition("machine")[0])


class Schedulers(unittest.TestCase):
    """The figures of bench_scheduler.py."""

    def lines(self, **rates: list[float]) -> list[dict[str, Any]]:
        """The lines about pods per second, for the rounds of each form."""
        rounds = {form: [Namespace(rate=rate) for rate in some] for form, some in rates.items()}
        told = scheduler_report.Report("1.36.3", 1000, 10, rounds)  # type: ignore[arg-type]
        return [line for form in rounds for line in told._pods_lines("t", form)]

    def test_cardpack_stands_beside_both(self) -> None:
        """Both are the form without an extender, and the free extender that returns as many names."""
        lines = self.lines(a=[10, 90, 30], b=[20], f=[50], c=[18], d=[60])
        said = [(x["what"], x["value"], x.get("beside"), x.get("limit"), x.get("target")) for x in lines]
        self.assertEqual(
            said,
            [
                ("no extender", 30, None, None, None),
                ("free extender", 20, "no extender", 30, None),
                ("free extender, 10 names", 50, "no extender", 30, None),
                ("all names", 18, "no extender", 30, None),
                ("all names", 18, "free extender", 20, 0.95),
                ("shortlist of 10", 60, "no extender", 30, 1.0),
                ("shortlist of 10", 60, "free extender, 10 names", 50, 0.95),
            ],
        )
        self.assertEqual([report.is_met(x) for x in lines if "target" in x], [False, True, True])

    def test_a_form_alone_has_a_figure(self) -> None:
        """Without a form to compare with."""
        self.assertEqual([("beside" in x, x["value"]) for x in self.lines(d=[7])], [(False, 7)])


if __name__ == "__main__":
    unittest.main()
