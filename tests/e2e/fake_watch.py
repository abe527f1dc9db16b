"""One watch of the fake API server: its queue of events, and its faults."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from fake_faults import Fault
from fake_select import Refused, Selection
from fake_store import Change, Store, dump, event_line, with_kind

Json = Any

_BOOKMARK_BEFORE_END = 2.0
_DEFAULT_SECONDS = 1800.0


class Watch:
    """The store adds events, and the connection reads them."""

    def __init__(
        self, store: Store, selection: Selection, query: dict[str, str], bookmark_seconds: float
    ) -> None:
        self.store, self.selection = store, selection
        self.dropped = False  # whether it ended without the end of the HTTP message
        self._bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
        self._bookmark_seconds = bookmark_seconds
        self._until = time.monotonic() + float(query.get("timeoutSeconds") or _DEFAULT_SECONDS)
        self._queue: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._faults: list[Fault] = []
        self._sent = 0
        self._ended = self._quiet = False
        asked = query.get("resourceVersion", "")
        try:
            for change in self._past(asked):
                self.changed(change)
        except Refused as refused:
            # Status 200 and an ERROR event, not an HTTP status: so does the real API server.
            self._queue.append(event_line("ERROR", dump(refused.status)))
            self._ended = True

    def _past(self, asked: str) -> list[Change]:
        if asked in ("", "0"):
            pieces: list[bytes] = list(self.store.list(self.selection, 0, "")[2])
            for content in pieces:
                line = event_line("ADDED", with_kind(self.selection.resource, content))
                self._queue.append(line)
            return []
        if not asked.isdigit():
            raise Refused(400, "BadRequest", f"invalid resource version: {asked!r}")
        return self.store.replay(self.selection.resource, int(asked))

    def changed(self, change: Change) -> None:
        if change.resource != self.selection.resource:
            return
        if (line := change.event(self.selection)) is not None:
            self._queue.append(line)
            self._wake.set()

    def bookmark(self) -> None:
        if not self._bookmarks or self._ended:
            return
        item = {"metadata": {"resourceVersion": str(self.store.rv), "creationTimestamp": None}}
        content = with_kind(self.selection.resource, dump(item))
        self._queue.append(event_line("BOOKMARK", content))
        self._wake.set()

    def inject(self, fault: Fault) -> None:
        self._faults.append(fault)
        self._wake.set()

    async def stream(self) -> AsyncIterator[bytes]:
        """The lines to send; ends with the watch."""
        bookmark_at = time.monotonic() + self._bookmark_seconds
        last_words = False
        while True:
            for piece in self._due():
                yield piece
            if self._ended and not self._queue:
                return
            now = time.monotonic()
            if now >= self._until:
                return
            if not last_words and now >= self._until - _BOOKMARK_BEFORE_END:
                last_words = True
                self.bookmark()
                continue
            if now >= bookmark_at:
                bookmark_at = now + self._bookmark_seconds
                self.bookmark()
                continue
            wait = min(bookmark_at, self._until if last_words else self._until - 2) - now
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), max(wait, 0.001))
            except asyncio.TimeoutError:
                pass

    def _due(self) -> list[bytes]:
        """Takes the queued events, with the faults applied."""
        out: list[bytes] = []
        while not self._quiet and not self.dropped:
            if fault := self._next_fault():
                out += self._apply(fault)
            elif self._queue:
                out.append(self._queue.popleft())
                self._sent += 1
            else:
                break
        if self._quiet or self.dropped:
            self._queue.clear()
        return out

    def _next_fault(self) -> Fault | None:
        for i, fault in enumerate(self._faults):
            if self._sent < fault.after_events:
                continue
            if fault.kind in ("cut", "drop_event") and not self._queue:
                continue  # it needs an event to damage
            return self._faults.pop(i)
        return None

    def _apply(self, fault: Fault) -> list[bytes]:
        if fault.kind == "cut":
            line = self._queue.popleft()
            self.dropped = self._ended = True
            return [line[: min(fault.get("bytes", len(line) // 2), len(line) - 2)]]
        if fault.kind == "drop_event":
            self._queue.popleft()
            return []
        if fault.kind == "garbage":
            return [fault.get("line", "<html>not an event</html>").encode() + b"\n"]
        if fault.kind == "quiet":
            self._quiet = True
            return []
        self._ended = True
        self._queue.clear()
        if fault.kind == "end":
            return []
        details = None
        if fault.get("too_large", False):
            details = {"causes": [{"reason": "ResourceVersionTooLarge"}]}
        refused = Refused(fault.get("code", 410), fault.get("reason", "Expired"),
                          fault.get("message", "too old resource version"), details)  # fmt: skip
        return [event_line("ERROR", dump(refused.status))]
