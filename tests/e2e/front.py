"""Acts like a Service in front of replicas: one address that forwards to the ready replicas."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from daemon import Daemon

_POLL_SECONDS = 0.1


class Front:
    """Forwards each connection to a ready replica, and refuses it if no replica is ready."""

    def __init__(self, port: int, replicas: Callable[[], list[Daemon]]) -> None:
        self._replicas = replicas
        self._ready: list[int] = []
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self._threads = [
            threading.Thread(target=run, daemon=True) for run in (self._probe, self._accept)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stops listening."""
        self._stop.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _probe(self) -> None:
        """Probes like the kubelet: one probe after the other, with a timeout of one second."""
        while not self._stop.wait(_POLL_SECONDS):
            ready = [r.port for r in self._replicas() if r.process.alive and r.ready(timeout=1)]
            self._ready = ready

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._reach()
            if server is None:
                # A reset, as from a Service without endpoints.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.close()
                continue
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()

    def _reach(self) -> socket.socket | None:
        for port in list(self._ready):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), timeout=1)
        return None


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copies one direction until it ends."""
    source.settimeout(None)
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
