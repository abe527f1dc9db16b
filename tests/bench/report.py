"""
Writes the benchmarks' figures for people: all of them as Markdown tables, those that docs/performance.md
has a place for, or one table of the figures that have a target.

    report.py targets FIGURES                  prints the figures that have a target
    report.py tables FIGURES                   prints all tables
    report.py write FIGURES DOCUMENT [BUILD]   between the document's markers
    report.py count FIGURES                    how many there are

FIGURES holds a line of JSON for each, as bench_figure of bench.c writes it. In the document,
"<!-- figures: TABLE -->" to "<!-- end -->" holds a table, that of name "targets" all figures with a
target (of several kinds of request the worst), and "<!-- machine -->" what they were measured on. Tables without figures stay as they are, so
do the targets of a table without, and the machine as long as any of those is left.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Figure = dict[str, Any]

MARKED = re.compile(
    r"(?P<begin><!-- (?:figures: (?P<table>[\w.-]+)|(?P<machine>machine)) -->\n)"
    r"(?P<old>.*?)(?P<end><!-- end -->)",
    re.DOTALL,
)

def identity(figure: Figure) -> tuple[Any, ...]:
    """The fields that are equal when the figure is measured again."""
    return tuple(figure.get(k) for k in ("table", "what", "by", "x", "beside"))


def read(lines: Iterable[str]) -> list[Figure]:
    """The figures in the order of their first appearance; of a repeated one, the last value."""
    figures: dict[tuple[Any, ...], Figure] = {}
    for line in lines:
        if line.strip():
            figure = json.loads(line)
            figures[identity(figure)] = figure
    return list(figures.values())


# ---- numbers ----

TIMES = (("s", 1e6), ("ms", 1e3), ("µs", 1.0), ("ns", 1e-3))
TO_US = {"us": 1.0, "ms": 1e3, "s": 1e6, "ns": 1e-3}


def digits(value: float) -> str:
    """Three significant digits, with separators for thousands."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def amount(value: float, unit: str) -> str:
    """A value with its unit; a time in a suitable unit."""
    if unit not in TO_US:
        return f"{digits(value)} {unit}".rstrip()
    us = value * TO_US[unit]
    if us == 0:
        return "0"
    for name, size in TIMES:
        if us >= size * 0.9995:
            return f"{digits(us / size)} {name}"
    return f"{digits(us * 1e3)} ns"


def ratio(figure: Figure) -> float:
    """The ratio to the limit; without a limit the value itself. A target applies to this number."""
    if "beside" not in figure:
        return float(figure["value"])
    return figure["value"] / figure["limit"] if figure["limit"] else 0.0


def is_met(figure: Figure) -> bool:
    """Whether the figure, which has a target, reaches it."""
    if figure["sense"] == "at most":
        return ratio(figure) <= figure["target"]
    return ratio(figure) >= figure["target"]


def verdict(figure: Figure) -> str:
    """The target and whether it is met; empty without a target."""
    if "target" not in figure:
        return ""
    return f"{figure['sense']} {figure['target']:g}: {'met' if is_met(figure) else '**missed**'}"


# ---- tables ----


def rows_to_markdown(head: list[str], rows: list[list[str]], left: int = 1) -> str:
    """The first `left` columns are text, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])


def unique(values: Iterable[Any]) -> list[Any]:
    """Each once, in order."""
    return list(dict.fromkeys(values))


def is_pivotal(figures: list[Figure]) -> bool:
    """Whether these are curves over the same x, each with at most one limit: then each gets a column."""
    return all("by" in f for f in figures) and len({f.get("beside") for f in figures}) == 1 and len({f["what"] for f in figures}) > 1


def pivot(figures: list[Figure]) -> str:
    """A row for each x, a column for each curve, with the ratio after the value."""
    by_place = {(f["x"], f["what"]): f for f in figures}
    whats = unique(f["what"] for f in figures)
    rows = []
    for x in sorted({f["x"] for f in figures}):
        row = [f"{x:,}"]
        for what in whats:
            f = by_place.get((x, what))
            text = "" if f is None else amount(f["value"], f["unit"])
            row.append(text + (f" ({ratio(f):.2f})" if f is not None and "beside" in f else ""))
        rows.append(row)
    head = [figures[0]["by"], *whats]
    beside = figures[0].get("beside")
    said = f"\nIn parentheses: how many times as much as {beside}.\n" if beside else ""
    return rows_to_markdown(head, rows, 0) + said


def listed(figures: list[Figure]) -> str:
    """A row for each figure, with its limits next to each other."""
    besides = unique(f["beside"] for f in figures if "beside" in f)
    with_x = any("by" in f for f in figures)
    with_target = any("target" in f for f in figures)
    head = ["", *([figures[0]["by"]] if with_x else []), "measured"]
    for beside in besides:
        head += [beside, "ratio"]
    head += ["target"] if with_target else []
    places: dict[tuple[str, Any], list[Figure]] = {}
    for f in figures:
        places.setdefault((f["what"], f.get("x")), []).append(f)
    rows = []
    for (what, x), same in places.items():
        row = [what, *([f"{x:,}" if x is not None else ""] if with_x else [])]
        row.append(amount(same[0]["value"], same[0]["unit"]))
        for beside in besides:
            f = next((f for f in same if f.get("beside") == beside), None)
            row += ["", ""] if f is None else [amount(f["limit"], f["unit"]), f"{ratio(f):.2f}"]
        row += [", ".join(filter(None, map(verdict, same)))] if with_target else []
        rows.append(row)
    return rows_to_markdown(head, rows)


def margin(figure: Figure) -> float:
    """How far a figure, which has a target, is beyond it: above 1 it misses the target."""
    got, target = ratio(figure), figure["target"]
    if figure["sense"] == "at most":
        return float(got / target)
    return float(target / got) if got else float("inf")


def worst_kinds(figures: list[Figure]) -> list[Figure]:
    """Of the figures of a table "kinds-...", which are "KIND: CASE", the worst kind of each case."""
    worst: dict[Any, Figure] = {}
    for f in figures:
        kind, colon, case = f["what"].partition(": ")
        if not f["table"].startswith("kinds-") or not colon or "target" not in f:
            worst[identity(f)] = f
            continue
        key = (f["table"], case)
        if key not in worst or margin(f) > margin(worst[key]):
            worst[key] = f | {"what": f"{case} ({kind})"}
    return list(worst.values())


def target_rows(figures: list[Figure]) -> list[list[str]]:
    """The figures with a target, from all tables."""
    rows = []
    for f in figures:
        if "target" not in f:
            continue
        what = f"{f['table']}: {f['what']}" + (f", {f['x']:,} {f['by']}" if "by" in f else "")
        limit = f"{f['beside']}: {amount(f['limit'], f['unit'])}" if "beside" in f else ""
        target = f"{f['sense']} {f['target']:g}"
        got = f"{ratio(f):.2f}" if "beside" in f else ""
        value = amount(f["value"], f["unit"])
        rows.append([what, value, limit, got, target, "met" if is_met(f) else "missed"])
    return rows


TARGET_HEAD = ["", "measured", "beside", "ratio", "target", ""]


def to_text(head: list[str], rows: list[list[str]]) -> str:
    """The same table for a terminal."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in [head, *rows]]
    return "\n".join(line.rstrip() for line in lines)


# ---- the document ----


def machine(build: str | None) -> str:
    """The machine and build of the measurements."""
    cpu = memory = compiler = "unknown"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
    found = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"))
    if found is not None:
        memory = f"{int(found[1]) / (1 << 20):.0f} GiB"
    if build is not None:
        log = Path(build, "meson-logs", "meson-log.txt").read_text(encoding="utf-8")
        found = re.search(r"^C compiler for the host machine: .* \((\w+ [\d.]+) ", log, re.MULTILINE)
        compiler = found[1] if found is not None else compiler
    cores = len(os.sched_getaffinity(0))
    kernel = f"{platform.system()} {platform.release()}"
    rows = [["processor", cpu], ["cores", str(cores)], ["memory", memory], ["kernel", kernel]]
    return rows_to_markdown(["", ""], [*rows, ["compiler", compiler]], 2)


def old_targets(document: str) -> list[list[str]]:
    """The rows of the document's table of targets."""
    found = next((m["old"] for m in MARKED.finditer(document) if m["table"] == "targets"), "")
    rows = [line.strip("| ").split(" | ") for line in found.splitlines()]
    return [[cell.strip() for cell in row] for row in rows if ": " in row[0]]


def table_of(row: list[str]) -> str:
    """The table from which a row of the targets comes."""
    return row[0].partition(": ")[0]


def merged_targets(old: list[list[str]], figures: list[Figure]) -> list[list[str]]:
    """Each table's rows at their old place; new tables at the end."""
    rows = target_rows(worst_kinds(figures))
    for row in rows:
        row[-1] = "**missed**" if row[-1] == "missed" else row[-1]
    measured = {f["table"] for f in figures}
    merged = []
    for table in unique([*map(table_of, old), *map(table_of, rows)]):
        merged += [row for row in (rows if table in measured else old) if table_of(row) == table]
    return merged


def table_text(table: str, figures: list[Figure]) -> str | None:
    """The table in Markdown; None: not measured."""
    mine = [f for f in figures if f["table"] == table]
    if not mine:
        return None
    return f"\n{pivot(mine) if is_pivotal(mine) else listed(mine)}\n"


def fill(document: str, figures: list[Figure], build: str | None) -> str:
    """The document with new text between its markers."""

    old = old_targets(document)
    measured = {f["table"] for f in figures}

    def replace(match: re.Match[str]) -> str:
        text = None
        if match["machine"] and measured.issuperset(map(table_of, old)):
            text = machine(build)
        elif match["table"] == "targets":
            text = rows_to_markdown(TARGET_HEAD, merged_targets(old, figures))
        elif match["table"]:
            text = table_text(match["table"], figures)
        return match[0] if text is None else match["begin"] + text + match["end"]

    return MARKED.sub(replace, document)


def main(arguments: list[str]) -> int:
    """See the top of this file."""
    verb, path, *rest = arguments
    with open(path, encoding="utf-8") as lines:
        figures = read(lines)
    if verb == "count":
        print(len(figures))
    elif verb == "targets":
        rows = target_rows(figures)
        print(to_text(TARGET_HEAD, rows) if rows else "none of these figures has a target")
    elif verb == "tables":
        for table in unique(f["table"] for f in figures):
            print(f"## {table}\n{table_text(table, figures)}")
    elif verb == "write":
        document = Path(rest[0])
        text = document.read_text(encoding="utf-8")
        document.write_text(fill(text, figures, rest[1] if len(rest) > 1 else None), encoding="utf-8")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
