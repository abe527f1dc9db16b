"""Checks the links of the documents, and the paths that they name."""

from __future__ import annotations

import re
from pathlib import Path

_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
_USE = re.compile(r"\[([^\]]+)\]\[([^\]]*)\]")
_PATH = re.compile(
    r"`((?:docs|manifests|config|scripts|tests|src|include|\.ci)/[\w./-]*)(?::(\w+))?`"
)


def _without_code(text: str) -> str:
    text = re.sub(r"^( *)(`{3,}).*?^\1\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def anchors_of(path: Path) -> set[str]:
    """The anchor of each heading, as GitHub makes it."""
    found: set[str] = set()
    seen: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", _without_code(path.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(slug if count == 0 else f"{slug}-{count}")
    return found | set(re.findall(r'<a (?:name|id)="([^"]+)"', path.read_text()))


def broken(root: Path, path: Path) -> tuple[int, list[str]]:
    """The number of links and paths in a document, and the broken ones."""
    text = path.read_text()
    plain = _without_code(text)
    targets = _LINK.findall(re.sub(r"`[^`\n]*`", "", plain)) + _REFERENCE.findall(plain)
    defined = {name.lower() for name in re.findall(r"^\[([^\]]+)\]:", plain, re.MULTILINE)}
    wrong = []
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            wrong.append(f"{target}: no such file")
        elif anchor and anchor not in anchors_of(file):
            wrong.append(f"{target}: no such heading")
    for label, name in _USE.findall(re.sub(r"`[^`\n]*`", "", plain)):
        if (name or label).lower() not in defined:
            wrong.append(f"[{label}][{name}]: not defined")
    named = _PATH.findall(plain)
    for name, function in named:
        if not (root / name).exists() and not list(root.glob(f"{name}*")):
            wrong.append(f"`{name}`: no such file")
        elif function and function not in (root / name).read_text():
            wrong.append(f"`{name}:{function}`: not in that file")
    return len(targets) + len(named), wrong
