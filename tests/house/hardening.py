"""
Checks the linked program for what makes a memory error hard to exploit: random addresses, no page both
writable and executable, tables that are read-only after relocation, stack canaries, checked copies.

    hardening.py READELF PROGRAM [OPTION...] LIBRARY...

Options: "fortified" for an optimised build without sanitizers, "branches" if the compiler marks the
targets of indirect jumps. The libraries are the program's own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from house import Tap

OPTIONS = ("fortified", "branches")


def readelf(tool: str, option: str, path: Path) -> str:
    """readelf's output for a file."""
    run = [tool, "--wide", option, path]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


def segments(text: str) -> list[tuple[str, str]]:
    """Type and flags of each program header."""
    line = re.compile(r"^  ([A-Z_]+) +(?:0x[0-9a-f]+ +){5}([RWE ]{3}) +0x", re.MULTILINE)
    return [(kind, rights.replace(" ", "")) for kind, rights in line.findall(text)]


def check_layout(tap: Tap, tool: str, program: Path) -> None:
    """Checks the addresses and the flags of the segments."""
    kind = re.search(r"Type:\s+(\S+)", readelf(tool, "--file-header", program))
    found = segments(readelf(tool, "--program-headers", program))
    dynamic = readelf(tool, "--dynamic", program)
    assert kind is not None and found, "readelf says nothing"
    pie = kind[1] == "DYN" and re.search(r"FLAGS_1.*\bPIE\b", dynamic)
    tap.check("position independent", [] if pie else [f"type {kind[1]}"])
    both = [f"{name} {rights}" for name, rights in found if "W" in rights and "E" in rights]
    tap.check("no segment is writable and executable", both)
    stack = [rights for name, rights in found if name == "GNU_STACK"]
    tap.check("the stack is not executable", [] if stack == ["RW"] else [f"GNU_STACK {stack}"])
    relro = any(name == "GNU_RELRO" for name, _ in found)
    now = re.search(r"\((?:FLAGS|FLAGS_1)\).*\bNOW\b", dynamic) or "BIND_NOW" in dynamic
    tap.check("relocations end read-only", [] if relro else ["no GNU_RELRO"])
    tap.check("symbols are bound at start", [] if now else ["bound when they are called"])
    paths = re.findall(r"\((?:RPATH|RUNPATH|TEXTREL)\).*", dynamic)
    tap.check("no library path, no relocation of code", paths)


def check_calls(tap: Tap, tool: str, program: Path, fortified: bool) -> None:
    """Checks the calls that the compiler added."""
    symbols = readelf(tool, "--dyn-syms", program)
    canary = "__stack_chk_fail" in symbols
    tap.check("canaries on the stack", [] if canary else ["no __stack_chk_fail"])
    if fortified:
        checked = [s for s in ("__memcpy_chk", "__snprintf_chk") if s not in symbols]
        tap.check("copies are checked", checked)


def check_branches(tap: Tap, tool: str, libraries: list[Path]) -> None:
    """
    Checks that each object is marked. The program also contains libc's start files, which Debian does
    not mark, so its own mark says nothing about this project's objects.
    """
    for library in libraries:
        notes = readelf(tool, "--notes", library)
        objects = re.split(r"^File: ", notes, flags=re.MULTILINE)[1:]
        bare = [o.split("\n", 1)[0] for o in objects if not re.search(r"\b(IBT|BTI)\b", o)]
        found = bare if objects else ["no object"]
        tap.check(f"{library.name}: targets of indirect jumps are marked", found)


def check(tool: str, program: Path, options: set[str], libraries: list[Path], tap: Tap) -> None:
    """Runs all checks."""
    check_layout(tap, tool, program)
    check_calls(tap, tool, program, "fortified" in options)
    if "branches" in options:
        check_branches(tap, tool, libraries)


def main() -> int:
    """See the top of this file."""
    tool, program, *rest = sys.argv[1:]
    options = {word for word in rest if word in OPTIONS}
    libraries = [Path(word) for word in rest if word not in OPTIONS]
    tap = Tap()
    check(tool, Path(program), options, libraries, tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
