"""
Checks that each file that lists the placement policies, or the dialects, lists all of them: C takes
both from tables, and these files can't. And that only core/dialect knows single dialects, and that each
source file has a name of its own.

    names.py SOURCE_ROOT
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from house import Tap

POLICIES = "src/core/request/policy.c"
POLICY_LISTS = (
    "config/cardpack.yaml",
    "docs/glossary.md",
    "docs/policy.md",
    "docs/requests.md",
    "docs/man/cardpack-sim.1",
    "manifests/helm/cardpack/files/admission/requests.yaml",
    "manifests/helm/cardpack/values.schema.json",
    "src/daemon/page/ui/panel.js",
    "tests/sim/pods.c",
)
DIALECTS = "src/core/dialect/dialect.c"
DIALECT_LISTS = (
    "config/cardpack.yaml",
    "docs/dialects.md",
    "docs/man/cardpack.8",
    "docs/man/cardpack.yaml.5",
    "src/daemon/config/config.h",
    "src/daemon/config/config_value.c",
)
SHARED = ("main", "limit")  # each program has a main.c, each folder a limit.h


def policies(root: Path) -> list[str]:
    """The policies' names, from their table."""
    return [name for name in re.findall(r'\[POLICY_\w+\] = "([^"]*)"', (root / POLICIES).read_text()) if name]


def dialects(root: Path) -> dict[str, str]:
    """The names of the dialects' constants in C, from their table, and of each the name in its file."""
    found = {}
    for constant, name in re.findall(r"\[DIALECT_(\w+)\] = &dialect_(\w+)", (root / DIALECTS).read_text()):
        text = (root / f"src/core/dialect/dialect_{name}.c").read_text()
        found[constant] = re.findall(r'\.name = STR\("([^"]+)"\)', text)[0]
    return found


def check_lists(root: Path, tap: Tap, what: str, names: list[str], lists: tuple[str, ...]) -> None:
    """Checks each list."""
    tap.check(f"there are {what}", [] if len(names) > 1 else [f"found {names}"])
    for path in lists:
        text = (root / path).read_text()
        lacking = [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
        tap.check(f"{path} has all {what}", [f"{path}: add {name}" for name in lacking])


def check_constants(root: Path, tap: Tap, constants: list[str]) -> None:
    """What differs between dialects is a field of struct dialect_facts."""
    single = re.compile(rf"\bDIALECT_({'|'.join(constants)})\b")
    found = []
    for folder in ("src", "include"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            if path.parent.name != "dialect" and single.search(path.read_text()):
                found.append(f"{path.relative_to(root)}: use a field of struct dialect_facts")
    tap.check("only core/dialect knows single dialects", found)


def check_files(root: Path, tap: Tap) -> None:
    """A source file and its header have one name. No other two files have it: a backtrace names them."""
    first: dict[str, Path] = {}
    found = []
    for folder in ("src", "include"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            name = path.relative_to(root)
            other = first.setdefault(name.stem, name)
            if other.parts[1:-1] != name.parts[1:-1] and name.stem not in SHARED:
                found.append(f"{other} and {name}: give one of them another name")
    tap.check("source files have names of their own", found)


def main() -> int:
    """See the top of this file."""
    tap, root = Tap(), Path(sys.argv[1])
    named = dialects(root)
    check_lists(root, tap, "policies", policies(root), POLICY_LISTS)
    check_lists(root, tap, "dialects", list(named.values()), DIALECT_LISTS)
    check_constants(root, tap, list(named))
    check_files(root, tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
