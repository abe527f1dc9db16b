#!/usr/bin/env python3
"""Golden requests and answers of every route, against the running daemon.

    routes.py CARDPACK FOLDER WORLD            compare, byte for byte
    routes.py CARDPACK FOLDER WORLD --update   write FOLDER/WORLD/*.out anew; review the diff

An embedded cluster serves FOLDER/WORLD/cluster.yaml, with the settings of FOLDER/WORLD/config.yaml if
that exists. FOLDER/WORLD/*.req run in the order of their names against one daemon: "METHOD PATH" is on
the first line, the body starts on the third; a body "@FILE" means FOLDER/FILE. The answer is in the
.out file: the status, the content type, the body.
"""

import http.client
import json
import re
import subprocess
import sys
from pathlib import Path


def listening(command: list[str]) -> tuple[subprocess.Popen, int]:
    """The daemon and its port, from its log."""
    daemon = subprocess.Popen(
        [*command, "--port", "0", "--log-format", "json"], stderr=subprocess.PIPE, text=True)
    for line in daemon.stderr:
        entry = json.loads(line)
        if entry["msg"] == "listening":
            return daemon, entry["port"]
    raise SystemExit(f"cardpack ended with {daemon.wait()} before it listened")


def start(cardpack: str, world: Path) -> tuple[subprocess.Popen, int]:
    """The daemon of a world, and its port."""
    config = world / "config.yaml"
    return listening(
        [cardpack, "--cluster", str(world / "cluster.yaml"), "--max-body", "64KiB",
         *(["--config", str(config)] if config.exists() else [])])


def ask(port: int, folder: Path, case: Path) -> str:
    head, _, body = case.read_text().partition("\n\n")
    method, path = head.strip().split(" ", 1)
    body = body.rstrip("\n")
    data = (folder / body[1:]).read_bytes() if body.startswith("@") else body.encode()
    repeat = re.fullmatch(r"(.)\*(\d+)", body)
    if repeat:
        data = repeat[1].encode() * int(repeat[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, data or None)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return f"{answer.status} {answer.headers['Content-Type']}\n\n{text}\n"


def judge(number: int, case: Path, got: str, update: bool) -> bool:
    """Whether the case's .out file has that answer; prints a line of TAP."""
    expected = case.with_suffix(".out")
    if update:
        expected.write_text(got)
    want = expected.read_text() if expected.exists() else ""
    print(f"{'ok' if got == want else 'not ok'} {number} - {case.stem}")
    if got != want:
        print(f"# wanted {want!r}\n# got    {got!r}")
    return got == want


def main() -> int:
    cardpack, folder = sys.argv[1], Path(sys.argv[2])
    world = folder / sys.argv[3]
    update = "--update" in sys.argv[4:]
    cases = sorted(world.glob("*.req"))
    daemon, port = start(cardpack, world)
    failed = 0
    print(f"1..{len(cases) + 1}")
    for number, case in enumerate(cases, 1):
        got = ask(port, folder, case)
        failed += not judge(number, case, got, update)
    daemon.terminate()
    daemon.stderr.read()
    status = daemon.wait()
    print(f"{'ok' if status == 0 else 'not ok'} {len(cases) + 1} - the daemon ends with 0")
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
