"""A client that follows /ui/events without a browser: it reconnects when its stream ends."""

from __future__ import annotations

import http.client
import json
import threading
from types import TracebackType
from typing import Any

from component import wait_for
from daemon import Daemon

Json = Any
PATIENCE = 60


class Page:
    """What a page would show now. Use it in a `with` while the daemon runs."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.nodes: dict[str, Json] = {}
        self.pods: Json = {"pods": [], "total": 0}
        self.status: Json = {}
        self.quotas: Json = {}
        self.history: Json = {}
        self.opened = 0
        self.broken = ""
        self._ready = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Page:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            connection.sock.shutdown(2)
        self._thread.join(60)

    def settle(self) -> None:
        """Waits until it shows exactly what inspect returns."""
        differences: list[str] = []

        def same() -> bool:
            differences[:] = self.differs(self.daemon.inspect())
            return not differences

        try:
            wait_for(same, "the page to show what inspect says", PATIENCE, poll=0.1)
        except TimeoutError:
            raise AssertionError("\n".join(["the page differs:", *differences])) from None

    def waiting(self) -> dict[str, Json]:
        """The pods that it shows as pending, by name."""
        with self._lock:
            return {pod["name"]: pod for pod in self.pods["pods"]}

    def differs(self, inspect: Json) -> list[str]:
        """The differences from inspect's answer; empty if there is none."""
        with self._lock:
            if self.broken or not self._ready:
                return [self.broken or "no stream has said ready"]
            shown = {name: _of_page(node) for name, node in self.nodes.items()}
            counted = self.status.get("nodes")
        said = {node["name"]: _of_inspect(node) for node in inspect["nodes"]}
        lines = [
            f"{name}: page {shown.get(name)}, inspect {said.get(name)}"
            for name in sorted(shown.keys() | said.keys())
            if shown.get(name) != said.get(name)
        ]
        return lines + ([] if counted == len(said) else [f"status counts {counted} nodes"])

    # ---- the stream ---------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except (OSError, http.client.HTTPException, ValueError):
                self._stop.wait(0.2)  # EventSource also waits before it reconnects
            except Exception as error:
                self.broken = f"{type(error).__name__} {error}"
                return

    def _follow(self) -> None:
        self._connection = self.daemon.connection()
        try:
            self._connection.request("GET", "/ui/events")
            response = self._connection.getresponse()
            if response.status != 200:
                raise OSError(f"status {response.status}")
            kind = response.headers["Content-Type"]
            assert kind == "text/event-stream", kind
            self.opened += 1
            fields: dict[str, str] = {}
            while line := response.readline():
                text = line.decode().rstrip("\n")
                if text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                elif "event" in fields:
                    self._take(fields["event"], json.loads(fields["data"]))
                    fields = {}
        finally:
            self._connection.close()

    def _take(self, event: str, data: Json) -> None:
        with self._lock:
            if event == "hello":
                assert data["version"], data
                self.nodes.clear()
                self._ready = False
            elif event == "nodes":
                assert len(data["nodes"]) <= 200, len(data["nodes"])
                for name in data["gone"]:
                    self.nodes.pop(name, None)
                self.nodes.update((node["name"], node) for node in data["nodes"])
            elif event == "ready":
                self._ready = True
            elif event == "pods":
                self.pods = data
            elif event == "status":
                self.status = data
            elif event == "quotas":
                self.quotas = data
            elif event == "history":
                self.history = data
            else:
                raise AssertionError(f"event {event}")


def _of_page(node: Json) -> Json:
    return (
        node["total"],
        node["used"],
        {
            card["id"]: (
                card["total"],
                card["used"],
                sorted((pod["namespace"], pod["name"], pod["mem"]) for pod in card["pods"]),
            )
            for card in node["cards"]
        },
    )


def _of_inspect(node: Json) -> Json:
    return (
        node["totalGPU"],
        node["usedGPU"],
        {
            card["id"]: (
                card["totalGPU"],
                card["usedGPU"],
                sorted((pod["namespace"], pod["name"], pod["usedGPU"]) for pod in card["pods"]),
            )
            for card in node["devs"]
        },
    )
