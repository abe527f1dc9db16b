"""
What makes an error in the program hard to use, as the linker left it: addresses that nobody
knows, no page both writable and executable, tables that are read-only once they are filled,
canaries on the stack, checked copies.

    hardening.py READELF PROGRAM [OPTION...] LIBRARY...

Options: "fortified" for a build that is optimised and has no sanitizer, "branches" where the
compiler marks the targets of indirect jumps. The libraries are the program's own floors.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from house import Tap

OPTIONS = ("fortified", "branches")


def readelf(tool: str, option: str, path: Path) -> str:
    """What it says of a file."""
    run = [tool, "--wide", option, path]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


def segments(text: str) -> list[tuple[str, str]]:
    """Type and rights of each program header."""
    line = re.compile(r"^  ([A-Z_]+) +(?:0x[0-9a-f]+ +){5}([RWE ]{3}) +0x", re.MULTILINE)
    return [(kind, rights.replace(" ", "")) for kind, rights in line.findall(text)]


def check_layout(tap: Tap, tool: str, program: Path) -> None:
    """Where it lies in memory, and with which rights."""
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
    """What the compiler put in."""
    symbols = readelf(tool, "--dyn-syms", program)
    canary = "__stack_chk_fail" in symbols
    tap.check("canaries on the stack", [] if canary else ["no __stack_chk_fail"])
    if fortified:
        checked = [s for s in ("__memcpy_chk", "__snprintf_chk") if s not in symbols]
        tap.check("copies are checked", checked)


def check_branches(tap: Tap, tool: str, libraries: list[Path]) -> None:
    """
    Each object is marked. The program is where libc's start files are as well: Debian's are not,
    so its own mark says nothing of ours.
    """
    for library in libraries:
        notes = readelf(tool, "--notes", library)
        objects = re.split(r"^File: ", notes, flags=re.MULTILINE)[1:]
        bare = [o.split("\n", 1)[0] for o in objects if not re.search(r"\b(IBT|BTI)\b", o)]
        found = bare if objects else ["no object"]
        tap.check(f"{library.name}: targets of indirect jumps are marked", found)


def check(tool: str, program: Path, options: set[str], libraries: list[Path], tap: Tap) -> None:
    """All of it."""
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
