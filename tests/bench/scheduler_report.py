"""The figures of bench_scheduler.py: a table for a person, and the lines that bench.c also writes."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench_scheduler import Round

AT_LEAST = "at least"
# Beside which form a form's pods a second stand, and what the ratio is to be.
BESIDE: dict[str, tuple[str, float]] = {
    "b": ("a", 0),
    "c": ("b", 0.95),
    "d": ("a", 1.0),
    "e": ("b", 0),
}
PROCESSES = ("etcd", "apiserver", "scheduler", "extender", "all four")
WRITES = {
    "Bindings": ("POST pods/binding",),
    "changes of pods": ("PATCH pods", "PUT pods", "PATCH pods/status", "PUT pods/status"),
    "events": ("POST events", "PATCH events", "PUT events"),
}


def quantile(values: Sequence[float], q: float) -> float:
    """As bench.c takes it."""
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


class Report:
    """Of one release and one number of nodes."""

    def __init__(
        self, version: str, nodes: int, shortlist: int, rounds: Mapping[str, list[Round]]
    ) -> None:
        self.version = version
        self.nodes = nodes
        self.rounds = rounds
        self.names = {
            "a": "no extender",
            "b": "free extender",
            "c": "all names",
            "d": f"shortlist of {shortlist}",
            "e": "as shipped",
        }

    def show(self) -> None:
        """Prints the table, and appends the lines where the environment says to which file."""
        print(f"\nkube-scheduler {self.version}, {self.nodes} nodes")
        columns = (
            f"{'':16} {'pods/s':>7} {'of rounds':>13} {'beside':>14} {'ratio':>6} {'p50':>7} {'p99':>7}"
            f" {'etcd':>6} {'api':>6} {'sched':>6} {'ext':>6} {'all':>6} {'bind':>5} {'chg':>5} {'event':>5}"
            f" {'nodes':>5}"
        )
        print(columns)
        for form in self.rounds:
            print(self._row(form), flush=True)
        print(
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
        """In ms, of the pods of all rounds."""
        return 1000 * quantile([x for one in self.rounds[form] for x in one.latencies], q)

    def _processor(self, form: str, process: str) -> float:
        """In ms a pod."""
        names = PROCESSES[:-1] if process == PROCESSES[-1] else (process,)
        return 1000 * statistics.median(
            sum(one.processor.get(name, 0) for name in names) for one in self.rounds[form]
        )

    def _writes(self, form: str, kind: str) -> float:
        """A pod."""
        written = sum(one.writes[what] for one in self.rounds[form] for what in WRITES[kind])
        return written / sum(one.pods for one in self.rounds[form])

    # ---- for a person -------------------------------------------------------------------

    def _row(self, form: str) -> str:
        rates = [one.rate for one in self.rounds[form]]
        beside, target = BESIDE.get(form, ("", 0))
        ratio = self._rate(form) / self._rate(beside) if beside in self.rounds else 0
        verdict = ""
        if ratio and target:
            verdict = f"  >= {target:.2f} {'met' if ratio >= target else 'MISSED'}"
        return (
            f"{self.names[form]:16} {self._rate(form):7.1f} {min(rates):6.1f}-{max(rates):6.1f}"
            f" {self.names[beside] if ratio else '':>14} {f'{ratio:.2f}' if ratio else '':>6}"
            f" {self._latency(form, 0.5):7.1f} {self._latency(form, 0.99):7.1f}"
            + "".join(f" {self._processor(form, process):6.2f}" for process in PROCESSES)
            + "".join(f" {self._writes(form, kind):5.2f}" for kind in WRITES)
            + f" {max(one.nodes_used for one in self.rounds[form]):5}{verdict}"
        )

    # ---- for a script -------------------------------------------------------------------

    def _lines(self) -> Iterable[dict[str, Any]]:
        where = f"{self.version}-{self.nodes}"
        for form, name in self.names.items():
            if form not in self.rounds:
                continue
            yield self._pods_line(f"scheduler-{where}", form)
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
                beside = BESIDE.get(form, ("", 0))[0]
                if process == PROCESSES[-1] and beside in self.rounds:
                    line |= {"beside": self.names[beside]}
                    line |= {"limit": self._processor(beside, process)}
                yield line
            for kind in WRITES:
                value = self._writes(form, kind)
                yield self._line(f"scheduler-writes-{where}", f"{name}, {kind}", value, "per pod")

    def _pods_line(self, table: str, form: str) -> dict[str, Any]:
        line = self._line(table, self.names[form], self._rate(form), "pods/s")
        beside, target = BESIDE.get(form, ("", 0))
        if beside in self.rounds:
            line |= {"beside": self.names[beside], "limit": self._rate(beside)}
            if target:
                line |= {"target": target, "sense": AT_LEAST}
        return line

    @staticmethod
    def _line(table: str, what: str, value: float, unit: str) -> dict[str, Any]:
        return {"table": table, "what": what, "value": float(f"{value:.9g}"), "unit": unit}
