"""
Checks docs/defects.md, which names the tests that show that cardpack lacks each defect of its peers:
every row is there once, and every test in it exists. The same for the tests of docs/threat-model.md.

    defects.py SOURCE_ROOT
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from house import Tap, read

DOCUMENT = Path("docs/defects.md")
THREATS = Path("docs/threat-model.md")
# The number of rows for each peer, and for cardpack itself.
ROWS = {"A": 37, "H": 21, "GA": 7, "ELA": 6, "VOL": 4, "KAI": 4, "KOO": 2, "KS": 2, "OWN": 159}
# Words in place of a test; "not built yet" may also be next to a test, for one part.
EXCUSES = ("cannot apply", "not built yet")

ROW = re.compile(r"^\| ([A-Z]+\d+) \| (.+?) \| (.+?) \|(.*)\|$", re.MULTILINE)
SPAN = re.compile(r"`([^`]*)`")
TEST = re.compile(r"\w+\.(py|c):\w+")


def unit(root: Path, name: str, case: str) -> bool:
    """A case of a unit test."""
    text = read_at(root, f"tests/unit/{name}.c") or read_at(root, f"tests/bench/{name}.c")
    return re.search(rf"^(START_TEST|TEST|TEST_EACH)\(\s*{re.escape(case)}\b", text, re.MULTILINE) is not None


def scenario(root: Path, name: str, case: str) -> bool:
    """An end-to-end scenario in a module that is run."""
    text = read_at(root, f"tests/e2e/scenarios/{name}.py")
    modules = read_at(root, "tests/e2e/scenarios/__init__.py").partition("MODULES =")[2]
    found = re.search(rf'^@(?:scenario\("\w+"\)|on_all_grounds)\ndef {re.escape(case)}\(', text, re.MULTILINE)
    return found is not None and re.search(rf"\b{name}\b", modules) is not None


def page(root: Path, name: str, case: str) -> bool:
    """A check of the page in a browser."""
    text = read_at(root, f"tests/ui/{name}.py")
    return re.search(rf"^@check\b[^\n]*\ndef {re.escape(case)}\(", text, re.MULTILINE) is not None


def rule(root: Path, name: str, case: str) -> bool:
    """A house rule, by its name."""
    text = read_at(root, f"tests/house/{name}.py")
    return any(case in line for line in text.splitlines() if "tap.check(" in line)


def golden(root: Path, name: str, _: str) -> bool:
    """A request with its answer."""
    asked = (root / "tests/golden").glob(f"*/{name}.req")
    return any(request.with_suffix(".out").is_file() for request in asked)


def fuzz(root: Path, name: str, _: str) -> bool:
    """A fuzz target with a corpus."""
    corpus = root / "tests/fuzz/corpus" / name.removeprefix("fuzz_")
    return bool(read_at(root, f"tests/fuzz/{name}.c")) and corpus.is_dir()


def program(root: Path, name: str, _: str) -> bool:
    """A test that starts the programs."""
    return any((root / "tests" / folder / (name + ".py")).is_file() for folder in ("golden", "kubectl", "node"))


KINDS: tuple[tuple[re.Pattern[str], Callable[[Path, str, str], bool]], ...] = (
    (re.compile(r"(test_\w+)\.c:(\w+)"), unit),
    (re.compile(r"(fuzz_\w+)\.c()"), fuzz),
    (re.compile(r"(starts|standard|few|direct|adverse|program|mps_daemons)\.py()"), program),
    (re.compile(r"(symbols|includes|text)\.py:(.+)"), rule),
    (re.compile(r"(checks_\w+)\.py:(\w+)"), page),
    (re.compile(r"(\w+)\.py:(\w+)"), scenario),
    (re.compile(r"(\d\d-[\w.-]+)()"), golden),
)


def read_at(root: Path, name: str) -> str:
    """A file's text; empty if the file does not exist."""
    path = root / name
    return (read(path) or "") if path.is_file() else ""


def exists(root: Path, test: str) -> bool:
    """Whether the test in a row exists in the tree."""
    for pattern, kind in KINDS:
        if match := pattern.fullmatch(test):
            return kind(root, match[1], match[2])
    return False


def check(root: Path, tap: Tap, rows: dict[str, int] | None = None) -> None:
    """Checks the rows, and the tests in them."""
    expected = [f"{peer}{i + 1}" for peer, n in (rows or ROWS).items() for i in range(n)]
    found = ROW.findall(read_at(root, str(DOCUMENT)))
    counts = Counter(name for name, *_ in found)
    tap.check(
        "every defect has its row",
        [f"{name}: {counts[name]} rows" for name in expected if counts[name] != 1]
        + [f"{name}: no such defect" for name in counts if name not in expected],
    )
    bare, gone = [], []
    for name, _, done, tests in found:
        named = SPAN.findall(tests)
        if not named and not any(excuse in done.lower() for excuse in EXCUSES):
            bare.append(f"{name}: neither a test nor why there is none")
        if left := SPAN.sub("", tests).strip():
            bare.append(f"{name}: {left!r} is no test")
        gone += [f"{name}: no test {test}" for test in named if not exists(root, test)]
    tap.check("every row names a test, or why there is none", bare)
    tap.check("every test that is named is there", gone)


def check_threats(root: Path, tap: Tap) -> None:
    """Checks the tests that the threat model names."""
    named = [span for span in SPAN.findall(read_at(root, str(THREATS))) if TEST.fullmatch(span)]
    gone = [f"no test {test}" for test in named if not exists(root, test)]
    tap.check("the threat model's tests are there", gone if named else ["none is named"])


def main() -> int:
    """See the top of this file."""
    tap = Tap()
    check(Path(sys.argv[1]).resolve(), tap)
    check_threats(Path(sys.argv[1]).resolve(), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
