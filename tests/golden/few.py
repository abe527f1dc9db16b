#!/usr/bin/env python3
"""cardpack under a hard limit of descriptors that is too low for max-connections.

    few.py CARDPACK

It serves as many connections as it has descriptors for, and logs that. Clients that only hold
connections lock no other client out.
"""

import http.client
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLUSTER = Path(__file__).resolve().parents[2] / "config/example-cluster.yaml"
LOWERED = "max-connections is lowered: the process may open too few descriptors"
PATIENCE = 60
STARTED: list[subprocess.Popen[str]] = []

Json = Any


class Few:
    """A daemon with that limit of descriptors, and its log until it listens."""

    def __init__(self, cardpack: str, descriptors: int, *args: str) -> None:
        limits = (descriptors, descriptors)
        known = {k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "KUBECONFIG", "PORT")}
        self.process = subprocess.Popen(
            [cardpack, "--cluster", str(CLUSTER), "--port", "0", "--log-format", "json", *args],
            stderr=subprocess.PIPE, text=True, env=known,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits))
        STARTED.append(self.process)
        self.log: list[Json] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            if self.log[-1]["msg"] == "listening":
                self.port: int = self.log[-1]["port"]
                return
        raise AssertionError(f"ended with {self.process.wait()}: {self.log}")

    def lowered(self) -> list[Json]:
        """The lines that say that it serves fewer connections."""
        return [entry for entry in self.log if entry["msg"] == LOWERED]

    def ask(self) -> http.client.HTTPConnection:
        """Returns an open connection that has served one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/gpushare-scheduler/inspect")
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200 and b"nodes" in body, (answer.status, body[:200])
        return connection

    def end(self) -> None:
        """It must end without an error."""
        self.process.terminate()
        _, rest = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, (self.process.returncode, rest[-2000:])


def warns(cardpack: str) -> None:
    daemon = Few(cardpack, 100)
    lines = daemon.lowered()
    daemon.end()
    assert len(lines) == 1, daemon.log
    line = lines[0]
    figures = {k: line[k] for k in ("max_connections", "connections", "descriptors", "needed")}
    assert line["level"] == "warn", line
    assert figures == {"max_connections": 1000, "connections": 18, "descriptors": 100, "needed": 2064}, figures


def is_quiet(cardpack: str) -> None:
    for descriptors, wanted in ((100, "18"), (2064, "1000"), (80, "8"), (66, "1")):
        daemon = Few(cardpack, descriptors, "--max-connections", wanted)
        assert not daemon.lowered(), daemon.log
        daemon.ask().close()
        daemon.end()


def serves(cardpack: str, descriptors: int, holders: int) -> None:
    """Silent clients and kept connections, more of each than there are descriptors."""
    daemon = Few(cardpack, descriptors)
    silent = [socket.create_connection(("127.0.0.1", daemon.port), PATIENCE) for _ in range(holders)]
    kept = [daemon.ask() for _ in range(holders)]
    daemon.ask().close()
    for each in [*silent, *kept]:
        each.close()
    daemon.end()


CASES: dict[str, Callable[[str], None]] = {
    "it says how many connections it serves": warns,
    "enough descriptors are no reason for a line": is_quiet,
    "80 descriptors serve": lambda cardpack: serves(cardpack, 80, 100),
    "256 descriptors serve": lambda cardpack: serves(cardpack, 256, 300),
}


def main() -> int:
    failed = 0
    print(f"1..{len(CASES)}")
    for number, (name, case) in enumerate(CASES.items(), 1):
        try:
            case(sys.argv[1])
            print(f"ok {number} - {name}")
        except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"not ok {number} - {name}\n# {error!r}")
        finally:
            for process in STARTED:
                process.kill()  # no effect on a process that has ended
                process.wait()
            STARTED.clear()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
