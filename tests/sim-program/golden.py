#!/usr/bin/env python3
"""Compares cardpack-sim's output with golden files, and its pictures and processes with themselves.

    golden.py CARDPACK_SIM FOLDER             compare, byte for byte
    golden.py CARDPACK_SIM FOLDER --update    write FOLDER/golden/*.out again; review the diff

Each FOLDER/golden/*.cmd has the arguments on its first line, and standard input after that. The .out
file has the exit status, standard output, and standard error. FOLDER/trace/ has a trace that was drawn
once.
"""

import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
from routes import judge  # noqa: E402

RUN = "replay --nodes trace/nodes.csv --pods trace/mixed.csv --policy binpack,spread --seeds 6 -o json"


def run(program: str, folder: Path, args: str, text: str = "") -> str:
    """Exit status, standard output and standard error."""
    done = subprocess.run(
        [program, *shlex.split(args)], input=text, capture_output=True, text=True, timeout=120, cwd=folder
    )
    return f"{done.returncode}\n{done.stdout}{'---' if done.stderr else ''}{done.stderr and chr(10)}{done.stderr}"


def pictures(program: str, folder: Path) -> str:
    """What is wrong with the picture of a run; "": nothing."""
    texts = []
    with tempfile.TemporaryDirectory() as scratch:
        for jobs in (1, 4):
            path = Path(scratch, f"{jobs}.svg")
            run(program, folder, f"{RUN} --jobs {jobs} --plot {path}")
            texts.append(path.read_text())
    if texts[0] != texts[1]:
        return "two pictures of one run differ"
    root = xml.etree.ElementTree.fromstring(texts[0])
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    words = " ".join(e.text or "" for e in root.iter() if e.tag.endswith("text"))
    width, height = float(root.get("width")), float(root.get("height"))
    points = [tuple(map(float, p.split(","))) for e in lines for p in e.get("points").split()]
    if len(lines) != 2 or len(points) < 200:
        return f"{len(lines)} lines with {len(points)} points"
    if not all(0 < x < width and 0 < y < height for x, y in points):
        return "a point is outside"
    missing = [w for w in ("binpack", "spread", "arrived", "allocated", "130", "100") if w not in words]
    return f"no text has {missing}" if missing else ""


def processes(program: str, folder: Path) -> str:
    """Whether the number of processes changes a result."""
    texts = {run(program, folder, f"{RUN} --jobs {jobs}") for jobs in (1, 2, 7)}
    return "" if len(texts) == 1 and texts.pop().startswith("0\n") else "results depend on --jobs"


def main() -> int:
    """See the top of this file."""
    program, folder = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
    update = "--update" in sys.argv[3:]
    cases = sorted((folder / "golden").glob("*.cmd"))
    failed = 0
    print(f"1..{len(cases) + 2}")
    for number, case in enumerate(cases, 1):
        args, *rest = case.read_text().split("\n", 1)
        failed += not judge(number, case, run(program, folder, args, "".join(rest)), update)
    for number, check in enumerate((pictures, processes), len(cases) + 1):
        wrong = check(program, folder)
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {check.__name__} {wrong}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
