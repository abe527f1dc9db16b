#!/usr/bin/env python3
"""Runs the examples of docs/kubectl.md, in the cluster of docs/explain.md.

    examples.py CARDPACK KUBECTL_CARDPACK DOCS

A command must print the answer below it, byte for byte. train.yaml is the pod that waits in that
cluster, as a file.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
from routes import listening  # noqa: E402

TRAIN = """
metadata: {name: train, namespace: ns}
spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 8}}}]}
"""


def main() -> int:
    cardpack, program, docs = (Path(arg).resolve() for arg in sys.argv[1:4])
    world = re.search(r"^```yaml\n(.*?)^```$", (docs / "explain.md").read_text(), re.M | re.S)[1]
    blocks = re.findall(r"^```\n(\$ .*?)^```$", (docs / "kubectl.md").read_text(), re.M | re.S)
    cases = [case.split("\n", 1) for block in blocks for case in re.split(r"^\$ ", block, flags=re.M)
             if case.startswith("kubectl cardpack ") and case.split("\n", 1)[1].strip()]
    assert len(cases) >= 4, cases
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(world)
        (folder / "train.yaml").write_text(TRAIN)
        daemon, port = listening([str(cardpack), "--cluster", str(folder / "cluster.yaml")])
        print(f"1..{len(cases)}")
        for number, (command, answer) in enumerate(cases, 1):
            args = command.removeprefix("kubectl cardpack ").split()
            done = subprocess.run([program, *args, "--daemon-url", f"http://127.0.0.1:{port}"],
                                  cwd=folder, capture_output=True, text=True, timeout=60)
            good = done.stdout.strip() == answer.strip() and not done.stderr
            print(f"{'ok' if good else 'not ok'} {number} - {command}")
            if not good:
                failed += 1
                print(f"# got {done.stdout!r} {done.stderr!r}")
        daemon.terminate()
        daemon.stderr.read()
        failed += daemon.wait() != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
