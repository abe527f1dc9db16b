"""cardpack as a test runs it: start, requests, stop, and checks of its log.

    daemon = Daemon(binary, workdir, port, kubeconfig)
    daemon.start()
    daemon.filter(pod, ["n1", "n2"])["NodeNames"]
    daemon.bind(pod, "n1") == ""
    daemon.stop()                      # SIGTERM; raises unless its end is clean

cardpack prints only lines of JSON. Any other output (a sanitizer's report, a failed assertion) and any
exit status other than 0 fails the test.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from component import Component

Json = Any

VERBS = "/gpushare-scheduler"
_SANITIZERS = {
    "ASAN_OPTIONS": "abort_on_error=0:exitcode=99:detect_leaks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99:print_stacktrace=1",
}
_VALGRIND = (
    "valgrind", "--tool=memcheck", "--leak-check=full", "--show-leak-kinds=definite,possible",
    "--errors-for-leak-kinds=definite,possible", "--error-exitcode=99", "--quiet",
)  # fmt: skip


def is_sanitized(binary: Path) -> bool:
    """Whether the binary has AddressSanitizer, which makes figures of memory meaningless."""
    return b"__asan_init" in binary.read_bytes()


class Unclean(AssertionError):
    """cardpack ended with a wrong status, or printed something other than its log."""


class Daemon:
    """One cardpack; after a kill and a new start it has the same port and log."""

    def __init__(
        self,
        binary: Path,
        workdir: Path,
        port: int,
        kubeconfig: Path | None,
        args: Sequence[str] = (),
        *,
        name: str = "cardpack",
        valgrind: bool = False,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
        log_level: str = "debug",
    ) -> None:
        self.port = port
        self.tls = tls  # the SSLContext of requests; None: plain HTTP
        self.token = token
        self.kubeconfig = kubeconfig
        self.kills = 0
        argv: list[str | os.PathLike[str]] = [*_VALGRIND] if valgrind else []
        argv += [binary, "--listen-address", "127.0.0.1", "--port", str(port)]
        argv += ["--kubeconfig", kubeconfig] if kubeconfig is not None else []
        # Only scenarios that say so leave a Binding in flight over a restart.
        argv += ["--start-settle", "1s"]
        argv += ["--log-level", log_level] if log_level else []  # else the file of --config has it
        argv += ["--log-format", "json", *args]
        self.process = Component(name, argv, workdir, self.ready, env=_SANITIZERS)

    # ---- life ---------------------------------------------------------------------------

    def start(self) -> None:
        """Starts it and waits until it is ready."""
        self.process.start()

    def launch(self) -> None:
        """Starts it without waiting."""
        self.process.launch()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.kills += 1

    def stop(self, timeout: float = 60.0) -> None:
        """SIGTERM; raises Unclean unless it ends with status 0 and printed only its log."""
        if self.process.alive:
            self.process.terminate(timeout)
            if self.process.status != 0:
                raise Unclean(f"cardpack ended with status {self.process.status}: {self.strange()}")
        if strange := self.strange():
            raise Unclean(f"cardpack printed: {strange}")

    def strange(self) -> str:
        """The beginning of its output that is not log lines."""
        lines = [line for line in self._lines() if line and not _is_log(line)]
        return "\n".join(lines[:40])

    def peak_rss(self) -> int:
        """Its peak resident memory, in bytes."""
        return self._status("VmHWM") * 1024

    def threads(self) -> int:
        """The current number of its threads."""
        return self._status("Threads")

    def _status(self, field: str) -> int:
        """A number from /proc/PID/status; in kB if the field has a unit."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{field}:\s+(\d+)( kB)?$", status, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def log(self, message: str) -> list[Json]:
        """The log lines with that message."""
        entries = (json.loads(line) for line in self._lines() if _is_log(line))
        return [entry for entry in entries if entry.get("msg") == message]

    # ---- requests -----------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        body: Json | bytes = None,
        timeout: float = 60.0,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Json]:
        """Sends one request on a new connection; returns the status, and the body parsed or as text."""
        status, answer, _ = self.exchange(method, path, body, timeout, headers)
        try:
            return status, json.loads(answer)
        except ValueError:
            return status, answer.decode(errors="replace")

    def metric(self, series: str) -> float:
        """The value of this series, with its labels."""
        rows = [row.rsplit(" ", 1) for row in self.exchange("GET", "/metrics")[1].decode().splitlines()]
        return float(dict(row for row in rows if len(row) == 2)[series])

    def exchange(
        self,
        method: str,
        path: str,
        body: Json | bytes = None,
        timeout: float = 60.0,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        """Sends one request; returns the status, the bytes and the headers."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = self.connection(timeout)
        headers = dict(headers or {"Content-Type": "application/json"})
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def connection(self, timeout: float = 60.0) -> http.client.HTTPConnection:
        """A connection that is not open yet."""
        if self.tls is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=timeout, context=self.tls
        )

    def ready(self, timeout: float = 10) -> bool:
        """Whether it answers kube-scheduler now; a follower does not."""
        try:
            return self.exchange("GET", "/readyz/leader", timeout=timeout)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def listens(self, timeout: float = 5) -> bool:
        """Whether it accepts requests: from then on SIGTERM ends it with status 0."""
        try:
            return self.exchange("GET", "/livez", timeout=timeout)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def verb(self, name: str, body: Json | bytes, timeout: float = 60.0) -> Json:
        """Calls filter or bind, which must answer 200: kube-scheduler reads no other answer."""
        status, answer = self.call("POST", f"{VERBS}/{name}", body, timeout)
        if status != 200 or not isinstance(answer, dict):
            raise AssertionError(f"{name}: {status} {answer}")
        return answer

    def filter(self, pod: Json, nodes: Sequence[str]) -> Json:
        """The answer to ExtenderArgs with NodeNames."""
        return self.verb("filter", {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)})

    def fitting(self, pod: Json, nodes: Sequence[str]) -> list[str]:
        """The nodes that filter returns as feasible."""
        answer = self.filter(pod, nodes)
        if answer["Error"]:
            raise AssertionError(f"filter: {answer['Error']}")
        names: list[str] = answer["NodeNames"]
        return names

    def reason(self, pod: Json, node: str) -> str:
        """filter's reason for the node; empty if the node is feasible."""
        answer = self.filter(pod, [node])
        text: str = answer["Error"] or answer["FailedNodes"].get(node, "")
        return text

    def bind(
        self, pod: Json, node: str, uid: str | None = None, timeout: float = 60.0
    ) -> str:
        """The answer's Error; empty for success."""
        metadata = pod["metadata"]
        ask = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"] if uid is None else uid,
            "Node": node,
        }
        error: str = self.verb("bind", ask, timeout)["Error"]
        return error

    def inspect(self, node: str | None = None) -> Json:
        """The answer of inspect, of one node or of all."""
        path = f"{VERBS}/inspect" + (f"/{node}" if node else "")
        status, answer = self.call("GET", path)
        if status != 200:
            raise AssertionError(f"inspect: {status} {answer}")
        return answer

    # ---- inside -------------------------------------------------------------------------

    def _lines(self) -> list[str]:
        """The log without the lines that Component writes at each start."""
        if not self.process.log.exists():
            return []
        lines = self.process.log.read_text(errors="replace").split("\n")
        return [line for line in lines if not line.startswith("---- ")]


def _is_log(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
