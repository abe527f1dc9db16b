"""
Counts the results of meson test: every check of a TAP test, and any other test as one. A test that
ends with an error but has no failed check (a crash, a leak, a timeout) counts as one failure. Skipped
checks do not count. Prints "N passed, N failed"; a run without tests is a failure.

    results.py TESTLOG_JSON
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable

GOOD = ("OK", "EXPECTEDFAIL")
TAP = re.compile(r"(?m)^(not )?ok\b(.*)$")
TAP_PLAN = re.compile(r"(?m)^1\.\.\d+")
DIRECTIVE = re.compile(r"(?i)#\s*(skip|to" r"do)\b")


def count_one(test: dict) -> tuple[int, int]:
    """Passed and failed checks of one test."""
    passed = failed = 0
    text = test.get("stdout") or ""
    checks = TAP.findall(text) if TAP_PLAN.search(text) else []
    for bad, rest in checks:
        if not DIRECTIVE.search(rest):
            failed += bool(bad)
            passed += not bad
    if test["result"] == "SKIP":
        return 0, 0
    if test["result"] in GOOD:
        return (passed, failed) if checks else (1, 0)
    return passed, max(failed, 1)


def count(lines: Iterable[str]) -> tuple[int, int]:
    """Passed and failed checks of a whole run."""
    tests = [count_one(json.loads(line)) for line in lines if line.strip()]
    return sum(p for p, _ in tests), sum(f for _, f in tests)


def main() -> int:
    """See the top of this file."""
    try:
        with open(sys.argv[1], encoding="utf-8") as log:
            passed, failed = count(log)
    except FileNotFoundError:
        passed = failed = 0
    if passed + failed == 0:
        print("no test was run", file=sys.stderr)
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
