"""Runs the blocks of the documents. README.md has the rules; `run` starts it."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import checks
from blocks import Block, Malformed, blocks_of
from grounds import ROOT, Cluster, Failed, Place
from links import broken
from tables import CHECKS

MOST_NOT_RUN = 0.25  # the largest allowed share of all blocks


class Counter:
    """Counts the results."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.not_run: list[str] = []
        self.skipped: list[str] = []
        self.elsewhere: list[str] = []

    def good(self, what: object) -> None:
        """Counts a check that passed."""
        self.passed += 1
        print(f"ok      {what}", flush=True)

    def bad(self, what: object, why: object) -> None:
        """Counts a check that failed, and prints the reason."""
        self.failed += 1
        indented = str(why).replace("\n", "\n        ")
        print(f"FAILED  {what}\n        {indented}", flush=True)


def documents(named: list[str]) -> list[Path]:
    """README.md and all of docs/, or the named documents."""
    if named:
        return [Path(name) for name in named]
    found = [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*.md"))]
    return [Path("README.md"), *found]


def world_of(blocks: list[Block]) -> str | None:
    """The cluster that a document describes."""
    for block in blocks:
        if block.language == "yaml" and re.match(r"(?:#.*\n)*kind: List$", block.text, re.MULTILINE):
            return block.text
    return None


def run_document(
    name: Path, blocks: list[Block], binary: Path, folder: Path, cluster: Cluster, counter: Counter
) -> None:
    """Runs its blocks in order, and last the blocks that are marked for the end."""
    place = Place(binary, folder, cluster, world_of(blocks))
    try:
        for block in sorted(blocks, key=lambda block: "last" in block.says):
            if reason := block.says.get("not run"):
                counter.not_run.append(f"{block}: {reason}")
                continue
            if scripts := block.scripts():
                for script in scripts:
                    if missing := checks.not_in_proof(script):
                        counter.bad(block, missing)
                    else:
                        counter.elsewhere.append(f"{block}: {script}")
                continue
            try:
                if checks.on_cluster(block, place) and not cluster.version:
                    counter.skipped.append(f"{block}: no control plane is here")
                    continue
                checks.check(block, place, SCHEMAS)
                counter.good(block)
            except (Failed, Malformed) as error:
                counter.bad(block, error)
            except Exception:
                counter.bad(block, traceback.format_exc())
    finally:
        place.close()


class Schemas:
    """docs/openapi.yaml, read when the first example needs it."""

    def errors(self, name: str, item: object) -> list[str]:
        """The schema errors of an item."""
        sys.path.insert(0, str(ROOT / "tests" / "openapi"))
        from document import Document

        return Document(ROOT / "docs" / "openapi.yaml").errors({"$ref": f"#/components/schemas/{name}"}, item)


SCHEMAS = Schemas()


def main() -> int:
    """See README.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="*")
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "cardpack")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    counter = Counter()
    total = 0
    workdir = Path(tempfile.mkdtemp(prefix="cardpack-docs-"))
    cluster = Cluster(args.binary.resolve(), workdir)
    try:
        for what, faults in () if args.documents or args.list else CHECKS.items():
            if wrong := faults(ROOT):
                counter.bad(what, "\n".join(wrong))
            else:
                counter.good(what)
        for name in documents(args.documents):
            try:
                blocks = blocks_of(ROOT / name, name)
            except Malformed as error:
                counter.bad(name, error)
                continue
            total += len(blocks)
            if args.list:
                print("\n".join(f"{block}  {block.says}" for block in blocks))
                continue
            count, wrong = broken(ROOT, ROOT / name)
            if wrong:
                counter.bad(f"{name}: links", "\n".join(wrong))
            else:
                counter.good(f"{name}: {count} links and paths")
            folder = workdir / str(name).replace("/", "-")
            run_document(name, blocks, args.binary.resolve(), folder, cluster, counter)
    finally:
        cluster.close()
    ends = (("in .ci/run", counter.elsewhere), ("not run", counter.not_run), ("skipped", counter.skipped))
    for heading, lines in ends:
        print("".join(f"{heading}: {line}\n" for line in lines), end="")
    if not args.documents and len(counter.not_run) > MOST_NOT_RUN * total:
        counter.bad("blocks that are not run", f"{len(counter.not_run)} of {total}")
    if counter.failed:
        print(f"what they left is in {workdir}")
    else:
        shutil.rmtree(workdir)
    print(f"{counter.passed} passed, {counter.failed} failed")
    return int(counter.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
