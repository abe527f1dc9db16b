"""The fenced blocks of a document, with the instructions in the comments above them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *([\w+-]*)[^`]*$")
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_DIRECTIVES = ("not run", "on", "before", "cardpack", "file", "schema", "output", "last")
COMMANDS = re.compile(r"^(kubectl|curl|scripts/|tests/|helm|systemctl|apt|dpkg|docker|podman|meson)\b")


class Malformed(ValueError):
    """A comment or a block with unknown content."""


@dataclass
class Block:
    """One fenced block."""

    path: Path
    line: int
    language: str
    text: str
    says: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.language or 'text'}"

    @property
    def session(self) -> bool:
        """Whether it has commands after a prompt."""
        return self.language in ("", "console", "text") and bool(
            re.search(r"^\$ ", self.text, re.MULTILINE)
        )

    def scripts(self) -> list[str]:
        """The project's scripts in the block, if the block runs nothing else."""
        lines = [line.split()[0] for line in self.text.splitlines() if line.split("#")[0].strip()]
        mine = [word for word in lines if re.fullmatch(r"scripts/[\w-]+|tests/\w+/run", word)]
        shell = self.language in ("sh", "bash") and "before" not in self.says
        return mine if shell and len(mine) == len(lines) else []

    @property
    def shown_only(self) -> bool:
        """Whether it has nothing to run."""
        return self.language in ("", "text", "console", "logfmt") and not self.session


def blocks_of(path: Path, name: Path) -> list[Block]:
    """All blocks, in order."""
    found: list[Block] = []
    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        if opened is None:
            number += 1
            continue
        begin = number
        number += 1
        body = []
        while number < len(lines) and lines[number].strip() != opened[2]:
            body.append(lines[number][len(opened[1]) :])
            number += 1
        if number == len(lines):
            raise Malformed(f"{name}:{begin + 1}: the block does not end")
        number += 1
        says = _says(lines[:begin], name, begin + 1)
        found.append(Block(name, begin + 1, opened[3], "\n".join(body) + "\n", says))
    return found


def _says(above: list[str], name: Path, line: int) -> dict[str, str]:
    """The instructions in the comments directly above; one blank line may be between."""
    says: dict[str, str] = {}
    end = len(above)
    while end > 0:
        while end > 0 and not above[end - 1].strip():
            end -= 1
        if end == 0 or not above[end - 1].rstrip().endswith("-->"):
            break
        begin = end - 1
        while begin > 0 and "<!--" not in above[begin]:
            begin -= 1
        comment = _COMMENT.fullmatch("\n".join(above[begin:end]).strip())
        if comment is None:
            break
        key, colon, value = comment[1].partition(":")
        if key.strip() in _DIRECTIVES and colon and value.strip():
            says[key.strip()] = value.strip()
        elif key.strip() in _DIRECTIVES:
            raise Malformed(f"{name}:{line}: the comment {key.strip()!r} gives no reason or value")
        end = begin
    return says


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a session, each with its expected output."""
    found: list[tuple[str, str]] = []
    lines = block.text.splitlines()
    number = 0
    while number < len(lines):
        if not lines[number].startswith("$ "):
            raise Malformed(f"{block}: output before the first command")
        command = lines[number][2:]
        number += 1
        while number < len(lines) and _goes_on(command):
            command += "\n" + lines[number]
            number += 1
        output = []
        while number < len(lines) and not lines[number].startswith("$ "):
            output.append(lines[number])
            number += 1
        found.append((command + "\n", "\n".join(output)))
    return found


def _goes_on(command: str) -> bool:
    """Whether the command continues on the next line."""
    if command.rstrip().endswith(("|", "\\", "&&")):
        return True
    asked = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)
    return "unexpected EOF" in asked.stderr or "unexpected end of file" in asked.stderr
