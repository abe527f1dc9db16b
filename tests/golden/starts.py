#!/usr/bin/env python3
"""Starts that fail, each at another step: cardpack closes what it opened, and the log has the reason.

    starts.py CARDPACK

The exit status is cardpack's own (1), and not a sanitizer's; each error names its cause.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

CLUSTER = Path(__file__).resolve().parents[2] / "config/example-cluster.yaml"


class Start(NamedTuple):
    """A start, and the text of its error."""

    name: str
    arguments: list[str]
    environment: dict[str, str]
    says: list[str]
    descriptors: int | None = None  # the hard limit of descriptors
    warns: str = ""  # a warning that comes before


def starts(folder: Path, taken: int) -> list[Start]:
    """The starts in the order of main's steps; the port `taken` is in use."""
    broken, missing = folder / "broken.yaml", folder / "missing.yaml"
    broken.write_text("nodes: [")
    at_good = ["--cluster", str(CLUSTER), "--port", "0"]
    long = "@" + "x" * 200
    return [
        Start("NOTIFY_SOCKET is a word", at_good, {"NOTIFY_SOCKET": "nonsense"},
              ["NOTIFY_SOCKET", '"nonsense"', "absolute path"]),
        Start("NOTIFY_SOCKET is relative", at_good, {"NOTIFY_SOCKET": "./run/notify"},
              ["NOTIFY_SOCKET", "./run/notify"]),
        Start("NOTIFY_SOCKET is too long", at_good, {"NOTIFY_SOCKET": long}, ["NOTIFY_SOCKET", "107 bytes"]),
        Start("the same before an API server", ["--kubeconfig", str(missing)], {"NOTIFY_SOCKET": "nonsense"},
              ["NOTIFY_SOCKET", '"nonsense"']),
        Start("the cluster's file is missing", ["--cluster", str(missing), "--port", "0"], {}, [str(missing)]),
        Start("the cluster's file is broken", ["--cluster", str(broken), "--port", "0"], {}, [str(broken)]),
        Start("the kubeconfig is missing", ["--kubeconfig", str(missing)], {}, [str(missing)]),
        Start("the certificate is missing",
              [*at_good, "--tls-cert-file", str(missing), "--tls-key-file", str(missing)], {}, [str(missing)]),
        Start("the port is taken", ["--cluster", str(CLUSTER), "--port", str(taken)], {}, [str(taken)]),
        Start("the same, with evictions that nothing could do",
              ["--cluster", str(CLUSTER), "--port", str(taken), "--evict-for-cards=true"], {}, [str(taken)],
              warns="evict-for-cards does nothing with an embedded cluster"),
        Start("the port for probes is taken", [*at_good, "--probe-port", str(taken)], {}, [str(taken)]),
        Start("too few descriptors", at_good, {}, ["RLIMIT_NOFILE", " 79 ", " 80 ", " 8 "], 79),
        Start("hardly any descriptors", at_good, {}, ["RLIMIT_NOFILE", " 12 ", " 80 ", " 8 "], 12),
    ]


def limit(descriptors: int | None) -> None:
    """Runs in the process that becomes cardpack."""
    if descriptors is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))


def why(cardpack: str, start: Start) -> str:
    """What is wrong with its end; empty if nothing is."""
    known = {k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "KUBECONFIG", "PORT")}
    done = subprocess.run([cardpack, *start.arguments, "--log-format", "json"], capture_output=True,
                          text=True, timeout=120, env=known | start.environment,
                          preexec_fn=lambda: limit(start.descriptors))
    if done.returncode != 1:
        return f"exit status {done.returncode}: {done.stderr[-2000:]}"
    try:
        log = [json.loads(line) for line in done.stderr.splitlines()]
    except json.JSONDecodeError as e:
        return f"{e}: {done.stderr[-2000:]}"
    errors = [entry["error"] for entry in log if entry["level"] == "error"]
    if len(errors) != 1 or not all(word in errors[0] for word in start.says):
        return f"wanted one error with {start.says}, got {errors}"
    if start.warns and not any(entry["msg"] == start.warns for entry in log):
        return f"no warning {start.warns!r}"
    return "" if log[-1]["msg"] == "stopped" else f"the last line is {log[-1]}"


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as other:
        todo = starts(Path(folder), other.getsockname()[1])
        print(f"1..{len(todo)}")
        for number, start in enumerate(todo, 1):
            wrong = why(sys.argv[1], start)
            failed += wrong != ""
            print(f"{'not ok' if wrong else 'ok'} {number} - {start.name}")
            if wrong:
                print(f"# {wrong!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
