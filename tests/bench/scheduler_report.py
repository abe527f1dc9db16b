"""The figures of bench_scheduler.py: a table for people, and the lines that bench.c also writes."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench_scheduler import Round

AT_LEAST = "at least"
# The forms with which a form's pods per second are compared, and the target of the ratio; 0: none.
BESIDE: dict[str, dict[str, float]] = {
    "b": {"a": 0},
    "f": {"a": 0},
    "c": {"a": 0, "b": 0.95},
    "d": {"a": 1.0, "f": 0.95},
    "e": {"a": 0, "b": 0},
}
PROCESSES = ("etcd", "apiserver", "scheduler", "extender", "all four")
WRITES = {
    "Bindings": ("POST pods/binding",),
    "changes of pods": ("PATCH pods", "PUT pods", "PATCH pods/status", "PUT pods/status"),
    "events": ("POST events", "PATCH events", "PUT events"),
}


def quantile(values: Sequence[float], q: float) -> float:
    """The quantile, as bench.c computes it."""
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


class Report:
    """For one release and one number of nodes."""

    def __init__(
        self, version: str, nodes: int, shortlist: int, rounds: Mapping[str, list[Round]]
    ) -> None:
        self.version = version
        self.nodes = nodes
        self.rounds = rounds
        self.names = {
            "a": "no extender",
            "b": "free extender",
            "f": f"free extender, {shortlist} names",
            "c": "all names",
            "d": f"shortlist of {shortlist}",
            "e": "as shipped",
        }

    def show(self) -> None:
        """Prints the table; appends the lines to the file that the environment names."""
        print(f"\nkube-scheduler {self.version}, {self.nodes} nodes")
        columns = (
            f"{'':24} {'pods/s':>7} {'of rounds':>13} {'none':>5} {'free':>5} {'p50':>7} {'p99':>7}"
            f" {'etcd':>6} {'api':>6} {'sched':>6} {'ext':>6} {'all':>6} {'bind':>5} {'chg':>5} {'event':>5}"
            f" {'nodes':>5}"
        )
        print(columns)
        for form in self.rounds:
            print(self._row(form), flush=True)
        print(
            "none, free: beside no extender, and beside the free extender that answers with as many names;\n"
            "p50, p99: ms from asking for a pod until it is seen bound, at a steady rate; etcd to all:"
            " ms of\na processor for each pod of the burst; bind, chg, event: writes a pod; nodes:"
            " used by the burst\n",
            flush=True,
        )
        if path := os.environ.get("BENCH_FIGURES"):
            with open(path, "a", encoding="utf-8") as out:
                for line in self._lines():
                    out.write(json.dumps(line, separators=(",", ":")) + "\n")

    # ---- what was measured --------------------------------------------------------------

    def _rate(self, form: str) -> float:
        return statistics.median(one.rate for one in self.rounds[form])

    def _latency(self, form: str, q: float) -> float:
        """In ms, over the pods of all rounds."""
        return 1000 * quantile([x for one in self.rounds[form] for x in one.latencies], q)

    def _processor(self, form: str, process: str) -> float:
        """In ms per pod."""
        names = PROCESSES[:-1] if process == PROCESSES[-1] else (process,)
        return 1000 * statistics.median(
            sum(one.processor.get(name, 0) for name in names) for one in self.rounds[form]
        )

    def _writes(self, form: str, kind: str) -> float:
        """Per pod."""
        written = sum(one.writes[what] for one in self.rounds[form] for what in WRITES[kind])
        return written / sum(one.pods for one in self.rounds[form])

    # ---- for a person -------------------------------------------------------------------

    def _row(self, form: str) -> str:
        rates = [one.rate for one in self.rounds[form]]
        ratios = self._ratios(form)
        verdict = "".join(
            f"  {self.names[beside]} >= {BESIDE[form][beside]:.2f} "
            f"{'met' if ratio >= BESIDE[form][beside] else 'MISSED'}"
            for beside, ratio in ratios.items()
            if BESIDE[form][beside]
        )
        none = ratios.pop("a", None)
        free = next(iter(ratios.values()), None)
        return (
            f"{self.names[form]:24} {self._rate(form):7.1f} {min(rates):6.1f}-{max(rates):6.1f}"
            + "".join(f" {'' if ratio is None else f'{ratio:.2f}':>5}" for ratio in (none, free))
            + f" {self._latency(form, 0.5):7.1f} {self._latency(form, 0.99):7.1f}"
            + "".join(f" {self._processor(form, process):6.2f}" for process in PROCESSES)
            + "".join(f" {self._writes(form, kind):5.2f}" for kind in WRITES)
            + f" {max(one.nodes_used for one in self.rounds[form]):5}{verdict}"
        )

    def _ratios(self, form: str) -> dict[str, float]:
        """The ratios of pods per second to the measured forms that it is compared with."""
        those = [beside for beside in BESIDE.get(form, {}) if beside in self.rounds]
        return {beside: self._rate(form) / self._rate(beside) for beside in those}

    # ---- for a script -------------------------------------------------------------------

    def _lines(self) -> Iterable[dict[str, Any]]:
        where = f"{self.version}-{self.nodes}"
        for form, name in self.names.items():
            if form not in self.rounds:
                continue
            yield from self._pods_lines(f"scheduler-{where}", form)
            for label, q in (("p50", 0.5), ("p99", 0.99)):
                value = self._latency(form, q)
                line = self._line(f"scheduler-latency-{where}", f"{name}, {label}", value, "ms")
                if form != "a" and "a" in self.rounds:
                    line |= {"beside": self.names["a"], "limit": self._latency("a", q)}
                yield line
            for process in PROCESSES:
                if process not in self.rounds[form][0].processor and process != PROCESSES[-1]:
                    continue
                value = self._processor(form, process)
                line = self._line(f"scheduler-cpu-{where}", f"{name}, {process}", value, "ms/pod")
                those = [x for x in BESIDE.get(form, {}) if x in self.rounds]
                if process != PROCESSES[-1] or not those:
                    yield line
                    continue
                for beside in those:
                    limit = self._processor(beside, process)
                    yield line | {"beside": self.names[beside], "limit": limit}
            for kind in WRITES:
                value = self._writes(form, kind)
                yield self._line(f"scheduler-writes-{where}", f"{name}, {kind}", value, "per pod")

    def _pods_lines(self, table: str, form: str) -> Iterable[dict[str, Any]]:
        """One line for each form that it is compared with."""
        line = self._line(table, self.names[form], self._rate(form), "pods/s")
        ratios = self._ratios(form)
        if not ratios:
            yield line
        for beside in ratios:
            target = BESIDE[form][beside]
            aim = {"target": target, "sense": AT_LEAST} if target else {}
            yield line | {"beside": self.names[beside], "limit": self._rate(beside)} | aim

    @staticmethod
    def _line(table: str, what: str, value: float, unit: str) -> dict[str, Any]:
        return {"table": table, "what": what, "value": float(f"{value:.9g}"), "unit": unit}
