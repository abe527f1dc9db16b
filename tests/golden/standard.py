#!/usr/bin/env python3
"""A file that a program opens never takes the place of a closed standard descriptor.

    standard.py CARDPACK KUBECTL-CARDPACK

A socket with descriptor 2 would get the log. The test examines each program while it waits for a peer.
"""

import itertools
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

CLUSTER = Path(__file__).resolve().parents[2] / "config/example-cluster.yaml"
CASES = [c for n in range(4) for c in itertools.combinations((0, 1, 2), n)]
PATIENCE = 120


def start(argv: Sequence[str], closed: Iterable[int], **env: str) -> subprocess.Popen[bytes]:
    """Starts it with /dev/zero as the standard descriptors, except the closed ones."""

    def close() -> None:
        for fd in closed:
            os.close(fd)

    zero = os.open("/dev/zero", os.O_RDWR)
    known = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "PORT")}
    try:
        return subprocess.Popen(argv, stdin=zero, stdout=zero, stderr=zero, preexec_fn=close,
                                env=known | env)
    finally:
        os.close(zero)


def wrong(process: subprocess.Popen[bytes], closed: Iterable[int]) -> str:
    """Which of the three descriptors is wrong."""
    bad = []
    for fd in range(3):
        target = os.readlink(f"/proc/{process.pid}/fd/{fd}")
        if target != ("/dev/null" if fd in closed else "/dev/zero"):
            bad.append(f"{fd} is {target}")
    return ", ".join(bad)


def daemon(program: str, closed: Iterable[int], folder: Path) -> str:
    """Examines it when it is ready, and so has opened all its files."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        address = folder / "notify"
        address.unlink(missing_ok=True)
        notify.bind(str(address))
        notify.settimeout(PATIENCE)
        argv = [program, "--cluster", str(CLUSTER), "--port", "0"]
        process = start(argv, closed, NOTIFY_SOCKET=str(address))
        try:
            while b"READY=1" not in notify.recv(4096):
                pass
            found = wrong(process, closed)
            process.terminate()
            status = process.wait(PATIENCE)
            return found or (f"its end: {status}" if status else "")
        finally:
            process.kill()
            process.wait()


def plugin(program: str, closed: Iterable[int]) -> str:
    """Examines it while it waits for a silent server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        process = start([program, "top", "--server", url], closed)
        try:
            connection, _ = server.accept()
            with connection:
                return wrong(process, closed)
        finally:
            process.kill()
            process.wait()


def main() -> int:
    failed = 0
    print(f"1..{2 * len(CASES)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, closed in enumerate(CASES):
            for at, found in enumerate((daemon(sys.argv[1], closed, Path(folder)),
                                        plugin(sys.argv[2], closed))):
                failed += found != ""
                name = f"{('daemon', 'plugin')[at]}, closed: {', '.join(map(str, closed)) or 'none'}"
                print(f"{'not ok' if found else 'ok'} {2 * number + at + 1} - {name}")
                if found:
                    print(f"# {found}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
