"""The daemons that serve the page, and the registry of checks."""

from __future__ import annotations

import http.client
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import world
from browser import PATIENCE, Browser

CHECKS: dict[str, Callable[[Lab], None]] = {}


def check(function: Callable[[Lab], None]) -> Callable[[Lab], None]:
    """Registers a check: its name, and its docstring as the description."""
    CHECKS[function.__name__] = function
    return function


def equal(got: object, wanted: object, what: str = "") -> None:
    assert got == wanted, f"{what}: got {got!r}, not {wanted!r}"


class Daemon:
    """A cardpack with an embedded cluster, or with other arguments."""

    def __init__(self, binary: str, folder: Path, name: str, items: list[dict] | None,
                 *arguments: str) -> None:
        self.binary = binary
        self.log = folder / f"{name}.log"
        self.arguments = list(arguments)
        self.port = 0
        if items is not None:
            self.write(folder / f"{name}.json", items)
        self.process: subprocess.Popen | None = None
        self.start()

    def write(self, path: Path, items: list[dict]) -> None:
        path.write_text(world.text(items))
        self.arguments = ["--cluster", str(path)]

    def start(self) -> None:
        """Starts it, on its earlier port if it had one."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [self.binary, *self.arguments, "--port", str(self.port), "--log-format", "json"],
                stderr=log)
        try:
            self._wait_until_it_listens(self.process)
        except BaseException:  # the caller has no Daemon to stop then
            self.process.kill()
            self.process.wait()
            raise

    def _wait_until_it_listens(self, process: subprocess.Popen) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            text = self.log.read_text()
            for line in text[:text.rfind("\n") + 1].splitlines():  # whole lines; it may be writing one
                entry = json.loads(line) if line.startswith("{") else {}
                if entry.get("msg") == "listening":
                    self.port = entry["port"]
                    try:
                        self.ask("GET", "/healthz")
                        return
                    except OSError:
                        pass
            assert process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        raise AssertionError(f"does not listen: {self.log.read_text()}")

    def stop(self) -> int:
        if self.process is None:
            return 0
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        got = answer.read()
        connection.close()
        return answer.status, got, dict(answer.headers)

    def json(self, method: str, path: str, body: object = None):
        status, got, _ = self.ask(method, path, body)
        assert status in (200, 201), f"{method} {path}: {status} {got[:300]!r}"
        return json.loads(got)

    def inspect(self) -> dict[str, dict]:
        return {n["name"]: n for n in self.json("GET", "/gpushare-scheduler/inspect")["nodes"] or []}

    def make_pod(self, pod: dict) -> None:
        self.json("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

    def bind(self, pod: dict, node: str) -> None:
        meta = pod["metadata"]
        got = self.json("POST", "/gpushare-scheduler/bind", {
            "PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"],
            "Node": node})
        assert not got.get("Error"), got

    def refuse(self, pod: dict, nodes: list[str]) -> None:
        """Calls filter as the scheduler does, so that the pod has a reason to wait."""
        self.json("POST", "/gpushare-scheduler/filter", {"Pod": pod, "NodeNames": nodes})

    def url(self, place: str = "") -> str:
        return f"http://127.0.0.1:{self.port}/ui/{place}"


class Lab:
    """One browser for all checks; daemons are started when they are first asked for."""

    def __init__(self, binary: str) -> None:
        self.binary = binary
        self.temporary = tempfile.TemporaryDirectory(prefix="cardpack-ui-")
        self.folder = Path(self.temporary.name)
        self.browser = Browser()
        self.daemons: dict[str, Daemon] = {}
        self.expected: tuple[str, ...] = ()  # console messages that the running check allows

    def daemon(self, name: str, make: Callable[[], list[dict]] | None = None,
               *arguments: str) -> Daemon:
        if name not in self.daemons:
            items = None if arguments else (make or getattr(world, name))()
            self.daemons[name] = Daemon(self.binary, self.folder, name, items, *arguments)
        return self.daemons[name]

    def fresh(self, name: str, make: Callable[[], list[dict]]) -> Daemon:
        """A daemon that no other check has changed."""
        old = self.daemons.pop(name, None)
        if old:
            self.browser.open("about:blank")  # else the open page complains of its lost connection
            equal(old.stop(), 0, "the daemon's exit status")
        return self.daemon(name, make)

    def open(self, daemon: Daemon, place: str = "", width: int = 1400, height: int = 900) -> Browser:
        """Opens the page, and waits until it has all nodes."""
        b = self.browser
        b.size(width, height)
        b.open("about:blank")
        b.open(daemon.url(place))
        nodes = len(daemon.inspect())
        b.until("const d = document.querySelector('#totals .v');"
                "return document.getElementById('link').dataset.state === 'live' && d !== null"
                "  && d.textContent.replaceAll(',', '').split(' of ').pop() === arguments[0]", str(nodes))
        b.until("return document.querySelectorAll('.row').length > 0"
                "  || !document.getElementById('empty').hidden")
        self.settle()
        return b

    def settle(self) -> None:
        """Waits until the pending frames are drawn."""
        self.browser.wait_js("requestAnimationFrame(() => requestAnimationFrame(() => "
                             "setTimeout(() => requestAnimationFrame(() => "
                             "requestAnimationFrame(done)), 300)))")

    def stats(self) -> dict:
        return self.browser.wait_js(
            "import(new URL('rows.js', location.href)).then((m) => done({...m.stats}))")

    def close(self) -> list[str]:
        """The errors in the daemons' ends."""
        self.browser.close()
        wrong = [f"{name} ended with {status}" for name, d in self.daemons.items()
                 if (status := d.stop()) != 0]
        self.temporary.cleanup()
        return wrong
