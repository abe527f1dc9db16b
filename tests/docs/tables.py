"""What the documents list, held against the tree: lines of the log, modules, documents, routes."""

from __future__ import annotations

import re
from pathlib import Path

_LITERAL = r'"((?:[^"\\]|\\.)*)"'
_CALL = re.compile(r"\blog_(info|warn|error)\(\s*((?:" + _LITERAL + r"\s*)+|[a-z_]+)")
# Where a message comes by a variable: what the floors below app note, and what app says of TLS.
_NOTED = re.compile(
    r'(?:\.note = |note\(\w+->sink\.ctx, |tell_certificate\(g, )(?:\w+ \? "((?:[^"\\]|\\.)*)" : )?' + _LITERAL
)
_ROW = re.compile(r"^\| `([^`]+)` \| (info|warn|error) \|", re.MULTILINE)


def messages(root: Path) -> set[str]:
    """Every message of the source at info and above."""
    found: set[str] = set()
    for path in sorted((root / "src").rglob("*.c")):
        text = path.read_text()
        for _, said, _ in _CALL.findall(text):
            if said.startswith('"'):
                found.add("".join(re.findall(_LITERAL, said)))
            elif said not in ("what", "message"):
                raise ValueError(f"{path}: log of {said}: tests/docs/tables.py does not know it")
        for pair in _NOTED.findall(text):
            found.update(part for part in pair if part)
    return found


def log_faults(root: Path) -> list[str]:
    """Lines of the log that docs/operating.md lacks, and those that are no more."""
    listed = {message for message, _ in _ROW.findall((root / "docs" / "operating.md").read_text())}
    said = messages(root)
    if len(said) < 50:
        return [f"only {len(said)} found in the source: is the search right?"]
    missing = [f"docs/operating.md lacks {message!r}" for message in sorted(said - listed)]
    return missing + [f"docs/operating.md: nobody says {message!r}" for message in sorted(listed - said)]


def module_faults(root: Path) -> list[str]:
    """Modules that docs/architecture.md lacks, and those that are no more."""
    text = (root / "docs" / "architecture.md").read_text()
    wrong = []
    for floor in ("base", "core", "codec", "io", "app"):
        section = text.partition(f"\n### {floor}\n")[2].partition("\n#")[0]
        named = {name for cell in re.findall(r"^\| ((?:`\w+`,? ?)+)", section, re.MULTILINE)
                 for name in re.findall(r"`(\w+)`", cell)}  # fmt: skip
        there = {path.stem for path in (root / "src" / floor).glob("*.c")}
        there |= {path.stem for path in (root / "include" / floor).glob("*.h")}
        wrong += [f"{floor}/{name} is not named" for name in sorted(there - named)]
        wrong += [f"{floor}/{name} is not there" for name in sorted(named - there)]
    return wrong


def index_faults(root: Path) -> list[str]:
    """Documents that docs/README.md does not lead to."""
    text = (root / "docs" / "README.md").read_text()
    documents = sorted(path.relative_to(root / "docs") for path in (root / "docs").rglob("*.md"))
    return [f"docs/README.md does not name {path}" for path in documents
            if f"]({path})" not in text and path.name != "README.md"]  # fmt: skip


def route_faults(root: Path) -> list[str]:
    """Routes of docs/openapi.yaml that docs/routes.md lacks, and those that are no more."""
    listed = set()
    for method, path in re.findall(r"`(GET|POST|DELETE) (/[^`]*)`", (root / "docs" / "routes.md").read_text()):
        stem, _, rest = path.partition("[")
        listed |= {f"{method} {stem}"} | ({f"{method} {stem}{rest[:-1]}"} if rest else set())
    served, path = set(), ""
    for line in (root / "docs" / "openapi.yaml").read_text().splitlines():
        if found := re.match(r"  (/\S*):$", line):
            path = re.sub(r"{(\w+)}", lambda name: name[1].upper(), found[1])
        elif found := re.match(r"    (get|post|delete|put|patch):$", line):
            served.add(f"{found[1].upper()} {path}")
    if len(served) < 15:
        return [f"only {len(served)} routes in docs/openapi.yaml: is the search right?"]
    missing = [f"docs/routes.md lacks {route}" for route in sorted(served - listed)]
    return missing + [f"docs/routes.md: there is no {route}" for route in sorted(listed - served)]


CHECKS = {
    "docs/operating.md has every line of the log": log_faults,
    "docs/architecture.md has every module": module_faults,
    "docs/README.md leads to every document": index_faults,
    "docs/routes.md has every route": route_faults,
}
