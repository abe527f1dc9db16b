#!/usr/bin/env python3
"""Runs kubectl-cardpack with --watch against a real daemon, whose cluster changes.

    watch.py CARDPACK KUBECTL_CARDPACK

Every read waits for the next bytes, with no time limit of its own; meson ends a test that hangs.
"""

from __future__ import annotations

import http.client
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
from routes import listening  # noqa: E402

WORLD = """
kind: List
items:
- kind: Node
  metadata: {name: n1}
  status: {capacity: {aliyun.com/gpu-mem: "32", aliyun.com/gpu-count: "2"}}
- kind: Pod
  metadata: {name: a, namespace: ns, uid: uid-a}
  spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 9}}}]}
- kind: Pod
  metadata: {name: b, namespace: ns, uid: uid-b}
  spec: {containers: [{name: c, resources: {limits: {aliyun.com/gpu-mem: 8}}}]}
"""
CLEAR = b"\x1b[H\x1b[2J"


def bind(port: int, name: str) -> None:
    """Binds a pod of the world."""
    body = {"PodName": name, "PodNamespace": "ns", "PodUID": f"uid-{name}", "Node": "n1"}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/gpushare-scheduler/bind", json.dumps(body))
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert not answer["Error"], answer


class Watch:
    """A command that watches, with its output in a pipe or a terminal."""

    def __init__(self, program: str, port: int, *args: str, terminal: bool = False) -> None:
        read, write = pty.openpty() if terminal else os.pipe()
        self.fd = read
        self.seen = b""
        self.process = subprocess.Popen(
            [program, *args, "--watch", "--interval", "100ms", "--daemon-url", f"http://127.0.0.1:{port}"],
            stdout=write, stderr=subprocess.PIPE, env={"TERM": "dumb"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(write)

    def wait_for(self, text: bytes) -> bytes:
        """The output up to and with the text, which is dropped."""
        while text not in self.seen:
            more = os.read(self.fd, 65536)
            assert more, f"it ended: {self.seen!r}"
            self.seen += more
        head, self.seen = self.seen.split(text, 1)
        return head + text

    def end(self, number: int | None) -> tuple[int, bytes]:
        """Its status and what it has said, after a signal; None: it ends by itself."""
        if number is not None:
            self.process.send_signal(number)
        said = self.process.stderr.read()
        return self.process.wait(), said


def table(program: str, port: int) -> None:
    watch = Watch(program, port, "top")
    assert watch.wait_for(b"0/32 (0%)\n").startswith(b"NAME   GPU0   GPU1   MEMORY(GiB)\nn1"), watch.seen
    bind(port, "a")
    again = watch.wait_for(b"9/32 (28%)\n")
    # Only a change is printed, behind an empty line.
    assert again.startswith(b"\nNAME") and again.count(b"NAME") == 1, again
    status, said = watch.end(signal.SIGINT)
    assert (status, said, watch.seen) == (-signal.SIGINT, b"", b""), (status, said, watch.seen)


def documents(program: str, port: int) -> None:
    watch = Watch(program, port, "cards", "-o", "json")
    assert json.loads(watch.wait_for(b"\n}\n"))["nodes"][0]["usedGPU"] == 9
    bind(port, "b")
    assert json.loads(watch.wait_for(b"\n}\n"))["nodes"][0]["usedGPU"] == 17
    os.close(watch.fd)  # as head does
    status, said = watch.end(None)
    assert (status, said) == (0, b""), (status, said)


def terminal(program: str, port: int) -> None:
    watch = Watch(program, port, "top", terminal=True)
    for _ in range(3):
        watch.wait_for(CLEAR)
        watch.wait_for(b"17/32 (53%)")
    status, said = watch.end(signal.SIGTERM)
    assert (status, said) == (-signal.SIGTERM, b""), (status, said)


def main() -> int:
    cardpack, program = (str(Path(arg).resolve()) for arg in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "cluster.yaml").write_text(WORLD)
        daemon, port = listening([cardpack, "--cluster", f"{name}/cluster.yaml"])
        print("1..4")
        for number, check in enumerate((table, documents, terminal), 1):
            check(program, port)
            print(f"ok {number} - {check.__name__}", flush=True)
        watch = Watch(program, port, "top", "--no-headers")
        watch.wait_for(b"17/32\n")
        daemon.terminate()
        daemon.stderr.read()
        daemon.wait()
        status, said = watch.end(None)
        good = status == 1 and said.startswith(b"kubectl cardpack: GET http://127.0.0.1")
        print(f"{'ok' if good else 'not ok'} 4 - the daemon ends\n# {status} {said!r}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
