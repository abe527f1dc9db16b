"""
Plants bugs into a copy of the tree, all in one build, and runs the tests against each of them.

Each bug ("mutant") is a replacement of one statement or expression, in tests/mutants/*.mut. In the copy
both texts stay, behind a switch that the environment variable CARDPACK_MUTANT sets when a process
starts, so the tree is compiled once for all mutants:

    if (mutant_is(7)) { REPLACEMENT } else { ORIGINAL }        a statement: it ends in ; or }
    (mutant_is(7) ? (REPLACEMENT) : (ORIGINAL))                an expression

A mutant is found when a test fails that passes without it. The tests are those of scripts/test, then
the simulation over --seeds seeds.

    mutants.py list   SOURCE_ROOT                 checks that each mutant applies, as TAP
    mutants.py plant  SOURCE_ROOT TARGET          writes the copy
    mutants.py run    SOURCE_ROOT BUILD_FOLDER    [--only REGEX] [--near] [--seeds N] [--least PERCENT]

With --near only the test that the list names for a mutant runs, which may be the simulation, and those
whose name matches the mutant's file. That takes seconds for each mutant. The other tests may still find a
mutant that this misses.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

SWITCH = "CARDPACK_MUTANT"
HEADER = "base/mutant.h"  # every folder sees base

# Weak, so that each source file may define it and a program has it once. The variable is read before
# main, because the programs start others and pass the environment on.
HEADER_TEXT = f"""#pragma once
#include <stdbool.h>
#include <stdlib.h>
__attribute__((weak, visibility("default"))) int mutant_planted;
__attribute__((constructor, used)) static void mutant_read(void)
{{
    const char *text = getenv("{SWITCH}");
    mutant_planted = text == NULL ? 0 : atoi(text);
}}
static inline __attribute__((always_inline, unused)) bool mutant_is(int n)
{{
    return mutant_planted == n;
}}
"""


@dataclass
class Mutant:
    """One planted bug."""

    number: int
    name: str
    path: str
    find: str
    replace: str
    by: str  # the test to run first; empty: unknown
    where: str  # for messages
    found: str = field(default="", compare=False)

    @property
    def statement(self) -> bool:
        """Whether it replaces statements, not an expression."""
        return self.find.rstrip().endswith((";", "}"))


class Malformed(Exception):
    """A list of mutants that cannot be read or applied."""


BLOCK = re.compile(
    r"^== (?P<name>[^\n]+)\n(?P<path>\S+)\n(?:by: (?P<by>\S+)\n)?--\n(?P<find>.*?)\n\+\+\n(?P<replace>.*?)\n?(?=^==|^#|\Z)",
    re.MULTILINE | re.DOTALL,
)


LITERAL = re.compile(r"""'(?:\\.|[^'\\])+'|"(?:\\.|[^"\\])*\"""")
DECLARATION = re.compile(r"\s*(?:const\s+)?(?:bool|char|int|size_t|u?int\d+_t|struct \w+|enum \w+)\s+\**\w+\s*(?:=|;|\[)")


def read_list(root: Path) -> list[Mutant]:
    """All mutants, numbered from 1 in the order of the files' names."""
    mutants: list[Mutant] = []
    for file in sorted((root / "tests/mutants").glob("*.mut")):
        text = file.read_text(encoding="utf-8")
        blocks = list(BLOCK.finditer(text))
        if len(blocks) != len(re.findall(r"^== ", text, re.MULTILINE)):
            raise Malformed(f"{file.name}: a block is not '== NAME', PATH, ['by: TEST'], '--', text, '++', text")
        for block in blocks:
            line = text.count("\n", 0, block.start()) + 1
            mutants.append(
                Mutant(
                    number=len(mutants) + 1,
                    name=block["name"],
                    path=block["path"],
                    find=block["find"].strip("\n"),
                    replace=block["replace"].strip("\n"),
                    by=block["by"] or "",
                    where=f"{file.name}:{line}",
                )
            )
    names = [mutant.name for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            raise Malformed(f'two mutants are called "{name}"')
    return mutants


def trouble(root: Path, mutant: Mutant) -> str:
    """The reason why a mutant can't be applied; empty if it can."""
    path = root / mutant.path
    if not path.is_file():
        return f"{mutant.path} does not exist"
    hits = path.read_text(encoding="utf-8").count(mutant.find)
    if hits != 1:
        return f"its text is in {mutant.path} {hits} times, not once"
    if mutant.find == mutant.replace:
        return "it replaces its text by the same text"
    before = path.read_text(encoding="utf-8").split(mutant.find)[0].rstrip()
    compares = re.search(r"[<>?]|[=!]=|&&|\|\|", mutant.find.replace("->", ""))
    if not mutant.statement and compares and re.search(r"[\w)\]]\s*[-+*/%]$", before):
        return f"it begins in the middle of an expression, after {before[-1]}"
    if not mutant.statement and re.match(r"\s*(if|for|while|switch|return)\b", mutant.find):
        return "it begins like a statement, but ends like an expression"
    for text in (mutant.find, mutant.replace):
        if any(text.count(a) != text.count(b) for a, b in ("()", "{}", "[]")):
            return "it is no whole expression or statement: a bracket in it has no partner"
        bare = LITERAL.sub("", text)
        if not mutant.statement and bare.count("?") != bare.count(":"):
            return "it is no whole expression: a '?' or ':' in it has no partner"
        if mutant.statement and DECLARATION.match(bare):
            return "it declares a variable, which ends with the block of the switch"
    return ""


def switched(mutants: list[Mutant]) -> str:
    """The text that replaces the original, with all its mutants."""
    find = mutants[0].find
    if mutants[0].statement:
        arms = "".join(f"if (mutant_is({m.number})) {{ {m.replace} }} else " for m in mutants)
        return f"{{ {arms}{{ {find} }} }}"
    arms = "".join(f"mutant_is({m.number}) ? ({m.replace}) : " for m in mutants)
    return f"({arms}({find}))"


def plant_file(text: str, mutants: list[Mutant]) -> str:
    """A source file with its mutants behind the switch."""
    spans: dict[tuple[int, int], list[Mutant]] = {}
    for mutant in mutants:
        start = text.index(mutant.find)
        spans.setdefault((start, start + len(mutant.find)), []).append(mutant)
    end = 0
    out = [f'#include "{HEADER}"\n#line 1\n']
    for (start, stop), group in sorted(spans.items()):
        if start < end:
            raise Malformed(f"{group[0].where}: overlaps another mutant of {group[0].path}")
        out += [text[end:start], switched(group)]
        end = stop
    return "".join(out) + text[end:]


def plant(root: Path, target: Path) -> None:
    """Writes the copy of the tree; unchanged files keep their times, for the build."""
    by_path: dict[str, list[Mutant]] = {}
    for mutant in read_list(root):
        why = trouble(root, mutant)
        if why:
            raise Malformed(f"{mutant.where}: {mutant.name}: {why}")
        by_path.setdefault(mutant.path, []).append(mutant)
    write_copy(root, target, by_path)


def write_copy(root: Path, target: Path, by_path: dict[str, list[Mutant]]) -> None:
    """Copies the files that git tracks or would track."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard", "--deduplicate"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, copy = root / name, target / name
        if not source.is_file():
            continue
        data = source.read_bytes()
        if name in by_path:
            data = plant_file(data.decode(), by_path[name]).encode()
        if not copy.is_file() or copy.read_bytes() != data:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            shutil.copymode(source, copy)
    header = target / "include" / HEADER
    if not header.is_file() or header.read_text() != HEADER_TEXT:
        header.write_text(HEADER_TEXT)


# ---- the tests ----

LEFT_OUT = ("house", "control-plane", "slow", "bench", "lint")


class Tests:
    """The tests of the build, and which of them pass without a mutant."""

    def __init__(self, build: Path, seeds: int) -> None:
        self.build = build
        self.seeds = seeds
        listed = json.loads(
            subprocess.run(["meson", "introspect", "--tests", str(build)], check=True, capture_output=True).stdout
        )
        self.names = [
            test["name"]
            for test in listed
            if not any(suite.rpartition(":")[2] in LEFT_OUT for suite in test["suite"]) and test["name"] != "sim"
        ]

    def meson(self, number: int, names: list[str]) -> list[str]:
        """
        The failing tests among `names`; stops at the first one, except in the run without a mutant.
        """
        log = self.build / "meson-logs/testlog.json"
        log.unlink(missing_ok=True)
        command = ["meson", "test", "-C", str(self.build), "--no-rebuild", "--quiet"]
        if number > 0:
            command += ["--maxfail", "1"]
        subprocess.run(
            command + names,
            env=os.environ | {SWITCH: str(number)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        results = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
        return [r["name"].rpartition(" / ")[2] for r in results if r["result"] in ("FAIL", "ERROR", "TIMEOUT")]

    def simulation(self, number: int) -> str:
        """The seed that fails; empty if none does."""
        command = [str(self.build / "tests/sim/sim"), "--jobs", str(os.cpu_count() or 1), "--seeds"]
        for first in range(1, self.seeds + 1, 250):
            last = min(first + 249, self.seeds)
            try:
                ran = subprocess.run(
                    command + [f"{first}..{last}"],
                    env=os.environ | {SWITCH: str(number)},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=300,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"{first}..{last}, which hang"
            if ran.returncode != 0:
                seed = re.search(rb"seed=(\d+)", ran.stderr + ran.stdout)
                return seed[1].decode() if seed else f"{first}..{last}"
        return ""

    def check_named(self, mutants: list[Mutant]) -> None:
        """Raises if the list names a test that does not exist: another test would run in its place."""
        for mutant in mutants:
            if mutant.by not in ("", "sim", *self.names):
                raise Malformed(f"{mutant.where}: by: {mutant.by}: there is no such test")

    def near(self, mutant: Mutant) -> list[str]:
        """The tests whose name matches the mutant's file, without the one that the list names."""
        stem = Path(mutant.path).stem
        return [n for n in self.names if n != mutant.by and (n.startswith(stem) or stem.startswith(n))]

    def keep_near(self, mutants: list[Mutant]) -> None:
        """Drops the tests that --near does not run."""
        kept = {mutant.by for mutant in mutants}.union(*(self.near(mutant) for mutant in mutants))
        self.names = [name for name in self.names if name in kept]

    def keep_sound(self) -> None:
        """Drops tests that fail without a mutant, as they would seem to find every mutant."""
        bad = set(self.meson(0, self.names)) if self.names else set()
        for name in sorted(bad):
            print(f"left out, it fails without a mutant: {name}", flush=True)
        self.names = [name for name in self.names if name not in bad]

    def find(self, mutant: Mutant, near_only: bool) -> str:
        """The test that finds it; empty if none does."""
        near = self.near(mutant)
        rest = [n for n in self.names if n != mutant.by and n not in near]
        first = [mutant.by] if mutant.by in self.names else []
        for names in (first, near):
            failed = self.meson(mutant.number, names) if names else []
            if failed:
                return failed[0]
        if mutant.by == "sim":
            seed = self.simulation(mutant.number)
            if seed:
                return f"sim, seed {seed}"
        if near_only:
            return ""
        failed = self.meson(mutant.number, rest)
        if failed:
            return failed[0]
        seed = "" if mutant.by == "sim" else self.simulation(mutant.number)
        return f"sim, seed {seed}" if seed else ""


def run(root: Path, build: Path, args: argparse.Namespace) -> int:
    """Runs all mutants, one after the other."""
    tests = Tests(build, args.seeds)
    chosen = [m for m in read_list(root) if re.search(args.only, f"{m.path} {m.name}")]
    if not chosen:
        print(f"no mutant matches {args.only}", file=sys.stderr)
        return 2
    tests.check_named(chosen)
    if args.near:
        tests.keep_near(chosen)
    tests.keep_sound()
    if (not args.near or any(m.by == "sim" for m in chosen)) and tests.simulation(0):
        print("the simulation fails without a mutant", file=sys.stderr)
        return 1
    for mutant in chosen:
        began = time.monotonic()
        mutant.found = tests.find(mutant, args.near)
        took = time.monotonic() - began
        said = f"found by {mutant.found}" if mutant.found else "NOT FOUND"
        print(f"{mutant.number:4d} {took:5.0f}s {said:32} {mutant.path}: {mutant.name}", flush=True)
    found = sum(1 for m in chosen if m.found)
    print(f"{found} of {len(chosen)} found")
    print(f"{found} passed, {len(chosen) - found} failed")
    return 0 if found * 100 >= len(chosen) * args.least else 1


def check(root: Path) -> int:
    """Whether each mutant still applies to the tree, as TAP."""
    mutants = read_list(root)
    bad = 0
    print(f"1..{len(mutants) + 1}")
    by_path: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        why = trouble(root, mutant)
        bad += bool(why)
        if not why:
            by_path.setdefault(mutant.path, []).append(mutant)
        print(f"{'not ok' if why else 'ok'} {mutant.number} - {mutant.name}" + (f": {mutant.where}: {why}" if why else ""))
    for path, here in by_path.items():
        plant_file((root / path).read_text(encoding="utf-8"), here)
    print(f"ok {len(mutants) + 1} - none overlaps another")
    return 1 if bad else 0


def main() -> int:
    """See the top of this file."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("list", "plant", "run"):
        command = commands.add_parser(name)
        command.add_argument("root", type=Path)
        if name == "plant":
            command.add_argument("target", type=Path)
        if name == "run":
            command.add_argument("build", type=Path)
            command.add_argument("--only", default="")
            command.add_argument("--near", action="store_true")
            command.add_argument("--seeds", type=int, default=3000)
            command.add_argument("--least", type=int, default=95)
    args = parser.parse_args()
    try:
        if args.command == "list":
            return check(args.root)
        if args.command == "plant":
            plant(args.root, args.target)
            return 0
        return run(args.root, args.build, args)
    except Malformed as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
