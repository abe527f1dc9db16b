"""
A floor's headers compile alone, for it and for those above; for a floor below they do
not even compile. The flags are those that meson really compiles the floor with, out of
compile_commands.json, so the check cannot drift from the build.

    includes.py SOURCE_ROOT BUILD_DIR
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from house import FLOORS, Tap

WITH_VALUE = ("-o", "-MQ", "-MF")
ALONE = ("-c", "-MD", "-MMD")


@dataclass(frozen=True)
class Command:
    """How a file of one floor is compiled, without its name and its outputs."""

    directory: str
    words: tuple[str, ...]


def strip(entry: dict[str, str]) -> Command:
    """The compiler and its options out of one entry of compile_commands.json."""
    words: list[str] = []
    skip = False
    for word in shlex.split(entry["command"]):
        if skip:
            skip = False
        elif word in WITH_VALUE:
            skip = True
        elif word not in ALONE and word != entry["file"]:
            words.append(word)
    return Command(entry["directory"], tuple(words))


def quoted_paths(command: Command) -> list[str]:
    """The -iquote folders, in order."""
    words = command.words
    return [words[i + 1] for i in range(len(words) - 1) if words[i] == "-iquote"]


def floor_commands(source: Path, build: Path) -> dict[str, list[Command]]:
    """Every floor's compile commands."""
    commands: dict[str, list[Command]] = {floor: [] for floor in FLOORS}
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        path = Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(source / "src"):
            commands[path.relative_to(source / "src").parts[0]].append(strip(entry))
    return commands


def run(command: Command, header: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Compiles a file that includes the header, twice."""
    return subprocess.run(
        [*command.words, *options, "-x", "c", "-"],
        cwd=command.directory,
        input=f'#include "{header}"\n#include "{header}"\n',
        text=True,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )


def sees(command: Command, header: Path) -> str:
    """What is wrong where the header must compile."""
    compiled = run(command, header.name, "-fsyntax-only")
    return f"{header} does not compile alone:\n{compiled.stderr}" if compiled.returncode else ""


def sees_not(command: Command, header: Path) -> str:
    """What is wrong where the header must not be found: a library's of the same name may be."""
    found = run(command, header.name, "-M")
    if found.returncode == 0:
        used = [Path(command.directory, word).resolve() for word in found.stdout.split()]
        return f"{header} can be included from below" if header in used else ""
    if "No such file or directory" in found.stderr or "file not found" in found.stderr:
        return ""
    return f"{header} is found, and fails for another reason:\n{found.stderr}"


def check(source: Path, commands: dict[str, list[Command]], tap: Tap) -> None:
    """Every floor against every floor's headers."""
    headers = {floor: sorted((source / "include" / floor).glob("*.h")) for floor in FLOORS}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for i, floor in enumerate(FLOORS):
            if not commands[floor]:
                continue
            first = commands[floor][0]
            same = all(quoted_paths(c) == quoted_paths(first) for c in commands[floor])
            tap.check(f"all of {floor} sees the same headers", [] if same else [f"{floor} differs"])
            for j, other in enumerate(FLOORS):
                look, what = (sees, "sees") if j <= i else (sees_not, "does not see")
                wrong = pool.map(partial(look, first), headers[other])
                tap.check(f"{floor} {what} {other}", [why for why in wrong if why])


def main() -> int:
    """See the top of this file."""
    source, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    tap = Tap()
    check(source, floor_commands(source, build), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
