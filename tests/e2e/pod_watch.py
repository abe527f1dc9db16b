"""A watch of all pods (or another resource) for the test: a thread that follows the API server across
its restarts."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import traceback
from typing import Any

from cluster import ControlPlane

Json = Any


class PodWatch:
    """Calls the derived class's listed() and changed() from its own thread."""

    path = "/api/v1/pods"

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._connection: http.client.HTTPSConnection | None = None
        self.version = ""
        self.lists = 0
        self.broken = ""  # the error that ended the thread, if any
        self._thread = threading.Thread(target=self._run, name="pod watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            connection.sock.close()
        self._thread.join(10)

    def listed(self, pods: list[Json], version: int) -> None:
        """All pods at a version: called at first, and after the watch lost history."""
        raise NotImplementedError

    def changed(self, kind: str, pod: Json) -> None:
        """ADDED, MODIFIED or DELETED; each write, in order."""
        raise NotImplementedError

    # ---- its thread ---------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._follow()
        except Exception:
            self.broken = traceback.format_exc()

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                if not self.version:
                    self._list()
                self._watch()
            except (OSError, ValueError, http.client.HTTPException, AttributeError):
                time.sleep(0.1)  # the API server is down

    def _get(self, query: str) -> http.client.HTTPResponse:
        context = ssl.create_default_context(cafile=str(self._cluster.ca_file))
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", self._cluster.port, timeout=600, context=context
        )
        headers = {"Authorization": f"Bearer {self._cluster.admin_token}"}
        self._connection.request("GET", f"{self.path}?{query}", headers=headers)
        response = self._connection.getresponse()
        if response.status == 410:
            self.version = ""
        if response.status != 200:
            raise ValueError(f"{self.path}?{query}: {response.status}")
        return response

    def _list(self) -> None:
        answer = json.loads(self._get("").read().decode(errors="replace"))
        version = answer["metadata"]["resourceVersion"]
        self.listed(answer["items"] or [], int(version))
        self.lists += 1
        self.version = version

    def _watch(self) -> None:
        response = self._get(f"watch=true&resourceVersion={self.version}&allowWatchBookmarks=true")
        while line := response.readline():
            event = json.loads(line.decode(errors="replace"))
            if event["type"] == "ERROR":
                self.version = ""
                return
            if event["type"] != "BOOKMARK":
                self.changed(event["type"], event["object"])
            self.version = event["object"]["metadata"]["resourceVersion"]
