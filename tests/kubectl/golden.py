#!/usr/bin/env python3
"""Compares kubectl-cardpack's output with golden files, against the daemon of a golden world.

    golden.py CARDPACK KUBECTL_CARDPACK FOLDER             compare, byte for byte
    golden.py CARDPACK KUBECTL_CARDPACK FOLDER --update    write FOLDER/*.out again; review the diff

Each FOLDER/*.cmd has the world on its first line (a folder of tests/golden), the arguments on its
second, and standard input after that. The .out file has the exit status, standard output, and standard
error.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
from routes import judge, start  # noqa: E402

WORLDS = Path(__file__).resolve().parents[1] / "golden"


def ask(program: str, port: int, case: Path) -> str:
    _, args, *rest = case.read_text().split("\n", 2)
    done = subprocess.run(
        [program, *shlex.split(args), "--daemon-url", f"http://127.0.0.1:{port}"],
        input="".join(rest), capture_output=True, text=True, timeout=60,
        env={k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "HOME")},
    )
    said = done.stderr.replace(f":{port}", ":PORT")
    return f"{done.returncode}\n{done.stdout}{'---' if said else ''}{said and chr(10)}{said}"


def main() -> int:
    cardpack, program, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    update = "--update" in sys.argv[4:]
    cases = sorted(folder.glob("*.cmd"))
    daemons = {}
    failed = 0
    print(f"1..{len(cases)}")
    for number, case in enumerate(cases, 1):
        world = case.read_text().split("\n", 1)[0]
        if world not in daemons:
            daemons[world] = start(cardpack, WORLDS / world)
        got = ask(program, daemons[world][1], case)
        failed += not judge(number, case, got, update)
    for daemon, _ in daemons.values():
        daemon.terminate()
        daemon.stderr.read()
        failed += daemon.wait() != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
