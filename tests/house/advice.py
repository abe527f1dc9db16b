"""
Checks that each FAIL of kubectl cardpack doctor has its row in tests/unit/test_doctor_twins.c, with
an ill input and a healthy one: what doctor says of a healthy cluster can make an operator delete pods.

    advice.py SOURCE_ROOT
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from house import Tap, read

TWINS = Path("tests/unit/test_doctor_twins.c")
LITERAL = r'"((?:\\.|[^"\\])*)"'
MACRO = re.compile(rf"^#define (\w+)\s+{LITERAL}$", re.MULTILINE)
CALL = re.compile(r"\bfinding_add\s*\(")
# What <inttypes.h> says on the machines that are built for.
PRINTF = {"PRIu32": "u", "PRIu64": "lu", "PRId64": "ld"}


def arguments(text: str, at: int) -> list[str]:
    """Those of the call whose parenthesis opens before `at`."""
    found, depth, begin = [], 1, at
    for token in re.finditer(rf"{LITERAL}|[(){{}},]", text[at:]):
        sign, here = token[0], at + token.start()
        if sign in "({":
            depth += 1
        elif sign in ")}":
            depth -= 1
        if depth == 0 or (sign == "," and depth == 1):
            found.append(text[begin:here].strip())
            begin = here + 1
        if depth == 0:
            break
    return found


def joined(argument: str, macros: dict[str, str]) -> str:
    """The string that the literals and macros of an argument are."""
    parts = re.finditer(rf"{LITERAL}|(\w+)", argument)
    return "".join(p[1] if p[2] is None else macros.get(p[2], f"<{p[2]}>") for p in parts)


def failures(text: str) -> list[str]:
    """The formats of the findings that can be FAIL, in a source file."""
    macros = {**PRINTF, **dict(MACRO.findall(text))}
    calls = [arguments(text, c.end()) for c in CALL.finditer(text)]
    levels = set(re.findall(r"enum finding_level (\w+) =[^;]*FINDING_FAIL", text))
    return [joined(c[4], macros) for c in calls
            if len(c) > 4 and ("FINDING_FAIL" in c[1] or c[1] in levels)]  # fmt: skip


def twins(text: str) -> set[str]:
    """The first text of each row of the table."""
    table = text.partition("} twins[] = {")[2].partition("\n};")[0]
    return {joined(row, {}) for row in re.findall(rf"^    \{{((?:\s*{LITERAL})+),", table, re.MULTILINE)
            for row in [row[0]]}  # fmt: skip


def check(root: Path, tap: Tap) -> None:
    rows = twins(read(root / TWINS))
    said = {f: p for p in sorted((root / "src/kubectl").glob("doctor*.c")) for f in failures(read(p))}
    bad = [f'{p.relative_to(root)}: "{f}" has no row in {TWINS}' for f, p in said.items() if f not in rows]
    bad += [f'{TWINS}: no check of doctor says "{r}"' for r in sorted(rows - said.keys())]
    tap.check("each FAIL of doctor has an ill input and a healthy one", bad)


def main() -> int:
    tap = Tap()
    check(Path(sys.argv[1]), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
