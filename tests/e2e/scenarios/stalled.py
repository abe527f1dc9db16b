"""The reader of cardpack's log stops reading."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import urllib.request

from bench import ROOT, Lab, check, scenario
from component import wait_for

LINES = 400  # several times the size of the pipe's buffer
DROPPED = "cardpack_log_lines_dropped_total"


class Server:
    """Requests to cardpack's port."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"

    def ask(self, path: str, body: bytes | None = None) -> str:
        """Sends a request; returns the answer's body."""
        with urllib.request.urlopen(f"{self.base}{path}", body, timeout=20) as answer:
            text: str = answer.read().decode()
            return text

    def answers(self) -> bool:
        """Whether it answers."""
        with contextlib.suppress(OSError):
            return bool(self.ask("/healthz"))
        return False

    def dropped(self) -> int:
        """The number of dropped log lines, by the metric."""
        rows = [row for row in self.ask("/metrics").splitlines() if row.startswith(f"{DROPPED} ")]
        return int(rows[0].split()[1])


@scenario("fake")
def a_log_reader_that_stalls(lab: Lab) -> None:
    """
    Requests get answers, the reader later gets the number of lost lines, and SIGTERM still ends
    cardpack.
    """
    port = lab.ports.take()
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    cluster = str(ROOT / "config" / "example-cluster.yaml")
    command = [str(lab.options.binary), "--cluster", cluster, "--port", str(port)]
    server = Server(port)
    with subprocess.Popen(command, stderr=theirs) as process:
        os.close(theirs)
        try:
            wait_for(server.answers, "an answer", 30)
            for _ in range(LINES):
                server.ask("/gpushare-scheduler/filter", b"{")  # each causes a warning
            check(server.dropped() > 0, "no line was dropped")
            os.read(ours, 65536)
            server.ask("/gpushare-scheduler/filter", b"{")
            said = os.read(ours, 65536).decode()
            check("log lines were dropped" in said, said)
            for _ in range(LINES):
                server.ask("/gpushare-scheduler/filter", b"{")
            process.send_signal(signal.SIGTERM)
            check(process.wait(60) == 0, f"status {process.returncode}")
        finally:
            process.kill()
            os.close(ours)
