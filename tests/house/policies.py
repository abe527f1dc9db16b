"""
Checks that each file that lists the placement policies lists all of them. C takes the list from
core/request/policy.h; these files can't.

    policies.py SOURCE_ROOT
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from house import Tap

TABLE = "src/core/request/policy.c"
LISTS = (
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


def names(root: Path) -> list[str]:
    """The policies' names, from their table."""
    table = (root / TABLE).read_text()
    return [name for name in re.findall(r'\[POLICY_\w+\] = "([^"]*)"', table) if name]


def check(root: Path, tap: Tap) -> None:
    """Checks each list."""
    found = names(root)
    tap.check(f"{TABLE} has names", [] if len(found) > 1 else [f"found {found}"])
    for path in LISTS:
        text = (root / path).read_text()
        lacking = [name for name in found if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
        tap.check(f"{path} has all policies", [f"{path}: add {name}" for name in lacking])


def main() -> int:
    """See the top of this file."""
    tap = Tap()
    check(Path(sys.argv[1]), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
