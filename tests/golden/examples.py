#!/usr/bin/env python3
"""Runs the examples of a document: the curl lines with an answer below them.

    examples.py CARDPACK DOCUMENT

An embedded cluster serves the document's YAML block. The answer must be equal as JSON, with the
members in the same order.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from routes import listening

PORT = "127.0.0.1:39999"


def examples(text: str) -> list[tuple[str, str]]:
    """The commands and their answers."""
    found = []
    for block in re.findall(r"^```\n\$ (.*?)^```$", text, re.MULTILINE | re.DOTALL):
        command, answer = re.fullmatch(r"(.*?\n)(\{.*)?", block, re.DOTALL).groups()
        if answer:
            found.append((command, answer))
    return found


def ordered(text: str) -> list:
    """Parses objects as lists of pairs, as their order counts."""
    return json.loads(text, object_pairs_hook=list)


def main() -> int:
    cardpack, document = sys.argv[1], Path(sys.argv[2])
    text = document.read_text()
    failed = 0
    cases = examples(text)
    assert cases, "no examples"
    with tempfile.TemporaryDirectory() as folder:
        cluster = Path(folder) / "cluster.yaml"
        cluster.write_text(re.search(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1])
        daemon, port = listening([cardpack, "--cluster", str(cluster)])
        print(f"1..{len(cases)}")
        for number, (command, answer) in enumerate(cases, 1):
            assert PORT in command
            command = command.replace(PORT, f"127.0.0.1:{port}")
            got = subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout
            good = ordered(got) == ordered(answer)
            print(f"{'ok' if good else 'not ok'} {number} - {command.splitlines()[0]}")
            if not good:
                failed += 1
                print("#", got.replace("\n", "\n# "))
        daemon.terminate()
        daemon.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
