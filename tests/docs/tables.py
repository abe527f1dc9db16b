"""Compares lists in the documents with the tree: log messages, modules, documents, routes."""

from __future__ import annotations

import re
from pathlib import Path

_LITERAL = r'"((?:[^"\\]|\\.)*)"'
_CALL = re.compile(r"\b(log_info\(|log_warn\(|log_error\(|log_write(?:_line)?\(LOG_LEVEL_WARN,)\s*((?:" + _LITERAL + r"\s*)+|[a-z_]+)")
# Messages that come by a variable: the notes of the libraries, and what the daemon says of TLS.
_NOTED = re.compile(
    r'(?:\.note = |note\(\w+->sink\.ctx, |reflector_note\(r, |report_certificate\(g, )(?:\w+ \? "((?:[^"\\]|\\.)*)" : )?' + _LITERAL
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
    """Log messages that docs/operating.md lacks, and listed ones that no longer exist."""
    listed = {message for message, _ in _ROW.findall((root / "docs" / "operating.md").read_text())}
    said = messages(root)
    if len(said) < 50:
        return [f"only {len(said)} found in the source: is the search right?"]
    missing = [f"docs/operating.md lacks {message!r}" for message in sorted(said - listed)]
    return missing + [f"docs/operating.md: no code logs {message!r}" for message in sorted(listed - said)]


def module_faults(root: Path) -> list[str]:
    """Modules that docs/architecture.md lacks, and listed ones that no longer exist."""
    text = (root / "docs" / "architecture.md").read_text()
    wrong = []
    for folder in sorted(path.name for path in (root / "src").iterdir() if path.is_dir()):
        section = text.partition(f"\n### {folder}\n")[2].partition("\n#")[0]
        named = {name for cell in re.findall(r"^\| ((?:`\w+`,? ?)+)", section, re.MULTILINE)
                 for name in re.findall(r"`(\w+)`", cell)}  # fmt: skip
        there = {path.stem for path in (root / "src" / folder).rglob("*.c")}
        there |= {path.stem for top in ("src", "include") for path in (root / top / folder).rglob("*.h")}
        wrong += [f"{folder}/{name} is not named" for name in sorted(there - named)]
        wrong += [f"{folder}/{name} is not there" for name in sorted(named - there)]
    return wrong


def index_faults(root: Path) -> list[str]:
    """Documents without a link in docs/README.md."""
    text = (root / "docs" / "README.md").read_text()
    documents = sorted(path.relative_to(root / "docs") for path in (root / "docs").rglob("*.md"))
    return [f"docs/README.md does not name {path}" for path in documents
            if f"]({path})" not in text and path.name != "README.md"]  # fmt: skip


def route_faults(root: Path) -> list[str]:
    """Routes of docs/openapi.yaml that docs/routes.md lacks, and listed ones that no longer exist."""
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


WRITTEN = {"cardpack.io/vacated-cards"}  # by cardpack-node: no part of a request


def annotation_faults(root: Path) -> list[str]:
    """Annotations of pods that cardpack reads, and the lists of them in the admission policies."""
    header = (root / "include" / "core" / "dialect" / "gpushare.h").read_text()
    names = dict(re.findall(r'^#define (CARDPACK_ANNOTATION_\w+)\s+STR\("(.*?)"\)', header, re.MULTILINE))
    table = re.search(r"pod_annotations\[\] = {(.*?)^};", (root / "src" / "objects" / "kube.c").read_text(), re.M | re.S)
    read = {names[key] for key in re.findall(r"CARDPACK_ANNOTATION_\w+", table[1] if table else "")}
    if len(read) < 8:
        return [f"only {sorted(read)} found in the source: is the search right?"]
    wrong = []
    for file in ("requests", "hints"):
        path = f"manifests/helm/cardpack/files/admission/{file}.yaml"
        listed = set(re.findall(r"'(cardpack\.io/[a-z-]+)'", (root / path).read_text()))
        wanted = read - WRITTEN if file == "requests" else read
        wrong += [f"{path} lacks {name}" for name in sorted(wanted - listed)]
        wrong += [f"{path}: cardpack does not read {name}" for name in sorted(listed - read)]
    return wrong


CHECKS = {
    "the admission policies know every annotation": annotation_faults,
    "docs/operating.md has every line of the log": log_faults,
    "docs/architecture.md has every module": module_faults,
    "docs/README.md leads to every document": index_faults,
    "docs/routes.md has every route": route_faults,
}
