"""
Checks that the headers of each folder of src/ compile alone, in it and in the folders above, and do
not compile in the folders below; and that the own folders of each include each other in one direction. The flags come from compile_commands.json, so they are those of the
build.

    includes.py SOURCE_ROOT BUILD_DIR
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from house import FOLDERS, PROGRAMS, SEES, Tap

WITH_VALUE = ("-o", "-MQ", "-MF")
ALONE = ("-c", "-MD", "-MMD")


@dataclass(frozen=True)
class Command:
    """The compile command of a folder's files, without file names and outputs."""

    directory: str
    words: tuple[str, ...]


def strip(entry: dict[str, str]) -> Command:
    """The compiler and its options from one entry of compile_commands.json."""
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


def folder_commands(source: Path, build: Path) -> dict[str, list[Command]]:
    """Every folder's compile commands."""
    commands: dict[str, list[Command]] = {folder: [] for folder in FOLDERS}
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        path = Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(source / "src"):
            commands[path.relative_to(source / "src").parts[0]].append(strip(entry))
    return commands


def run(command: Command, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Compiles the text of a file."""
    return subprocess.run(
        [*command.words, *options, "-x", "c", "-"],
        cwd=command.directory,
        input=text,
        text=True,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )


def headers_of(source: Path, folder: str) -> list[Path]:
    """The headers that other folders may include; for a program, those of its parts."""
    return sorted((source / ("src" if folder in PROGRAMS else "include") / folder).rglob("*.h"))


def spelled(header: Path) -> str:
    """The header's name in an #include: include/core/state/node.h is "core/state/node.h"."""
    parts = header.parts
    roots = [i for i, part in enumerate(parts) if part in ("include", "src")]
    return "/".join(parts[roots[-1] + 1 :])


def include(header: Path) -> str:
    """The line that includes the header."""
    return f'#include "{spelled(header)}"\n'


def sees(command: Command, header: Path) -> str:
    """The error where the header must compile, alone and included twice."""
    compiled = run(command, include(header) * 2, "-fsyntax-only")
    return f"{header} does not compile alone:\n{compiled.stderr}" if compiled.returncode else ""


def sees_not(command: Command, header: Path) -> str:
    """The error where the header must not be found. A library header of the same name may be found."""
    found = run(command, include(header), "-M")
    if found.returncode == 0:
        used = [Path(command.directory, word).resolve() for word in found.stdout.split()]
        return f"{header} can be included, and must not be" if header in used else ""
    if "No such file or directory" in found.stderr or "file not found" in found.stderr:
        return ""
    return f"{header} is found, and fails for another reason:\n{found.stderr}"


def doubtful(command: Command, headers: list[Path]) -> list[Path]:
    """
    Those headers of a folder below that do not compile here, or all of them. Each compiles alone in its own
    folder, and the flags differ only in what can be found: so one compilation of all of them finds the same.
    """
    text = "".join(include(header) for header in headers)
    return headers if run(command, text, "-fsyntax-only").returncode else []


def findable(command: Command, headers: list[Path]) -> list[Path]:
    """Those headers that an #include would find under their names, or all if the compiler does not say."""
    text = "".join(
        f'#if __has_include("{spelled(header)}")\nfound {i}\n#endif\n' for i, header in enumerate(headers)
    )
    said = run(command, text, "-E", "-P")
    if said.returncode:
        return headers
    return [headers[int(line.split()[1])] for line in said.stdout.splitlines() if line.startswith("found ")]


def own_folders(source: Path, folder: str) -> dict[str, dict[str, str]]:
    """
    For each own folder of a folder ("place" of core) those that its files include, and a file that does.
    Files that lie in no own folder are left out: they are below all of them, or above.
    """
    found: dict[str, dict[str, str]] = {}
    for root in ("src", "include"):
        for path in sorted((source / root / folder).glob("*/*.[ch]")):
            own = found.setdefault(path.parent.name, {})
            for other in re.findall(rf'^#include "{folder}/(\w+)/', path.read_text(), re.MULTILINE):
                if other != path.parent.name:
                    own.setdefault(other, path.name)
    return found


def circles(found: dict[str, dict[str, str]]) -> list[str]:
    """The includes between own folders that are part of a circle."""

    def reaches(start: str) -> set[str]:
        seen: set[str] = set()
        left = [start]
        while left:
            for other in found.get(left.pop(), {}):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    return [
        f"{name} of {own} includes {other}, which includes {own}"
        for own, others in found.items()
        for other, name in others.items()
        if own in reaches(other)
    ]


def check(source: Path, commands: dict[str, list[Command]], tap: Tap) -> None:
    """Checks each folder against the headers of each folder."""
    headers = {folder: headers_of(source, folder) for folder in FOLDERS}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder in FOLDERS:
            if not commands[folder]:
                continue
            first = commands[folder][0]
            same = all(quoted_paths(c) == quoted_paths(first) for c in commands[folder])
            tap.check(f"all of {folder} sees the same headers", [] if same else [f"{folder} differs"])
            for other in FOLDERS:
                # A process for each header only where one for all of them does not settle it.
                if other == folder:
                    look, what, which = sees, "sees", headers[other]
                elif other in SEES[folder]:
                    look, what, which = sees, "sees", doubtful(first, headers[other])
                else:
                    look, what, which = sees_not, "does not see", findable(first, headers[other])
                wrong = pool.map(partial(look, first), which)
                tap.check(f"{folder} {what} {other}", [why for why in wrong if why])
    for folder in FOLDERS:
        tap.check(f"no circle between the own folders of {folder}", circles(own_folders(source, folder)))


def main() -> int:
    """See the top of this file."""
    source, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    tap = Tap()
    check(source, folder_commands(source, build), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
