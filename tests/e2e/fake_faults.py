"""The faults of the fake API server, and the requests that they hit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

VERBS = ("list", "watch", "get", "bind", "create", "update", "patch", "delete")

# Faults of a request, each with the further fields that it allows.
REQUEST_KINDS = {
    "delay": {"ms"},  # then the usual answer; may be combined with one other fault
    "status": {"code", "reason", "message", "retry_after", "text"},
    "drop": set(),  # closes the connection before anything is done
    "drop_after_commit": {"ms"},
    "late_commit": {"ms", "code"},  # answers 504 at once and writes ms later
    "hang": set(),  # no answer and no effect; the connection stays open
    "truncate": {"bytes", "clean"},  # a list's body; clean: the HTTP message is complete
}
# Faults of a watch: at once, or for the next one, after after_events events.
WATCH_KINDS = {
    "cut": {"bytes"},  # sends `bytes` bytes of the next event, then drops the connection
    "garbage": {"line"},
    "error_event": {"code", "reason", "message", "too_large"},
    "end": set(),  # with a complete HTTP response
    "quiet": set(),  # sends nothing more, not even bookmarks, and stays open
    "drop_event": set(),  # loses the next event; no real API server may do this
}
_MATCH = {"kind", "verb", "resource", "path", "continued", "count", "skip", "now", "after_events"}


@dataclass
class Fault:
    """One fault: the requests that it matches, how often, and its effect."""

    kind: str
    verb: str = "*"
    resource: str = "*"
    path: str = ""  # a regular expression that is searched in path and query
    continued: bool | None = None  # only list pages with (without) a continue token
    count: int = 1  # -1: for ever
    skip: int = 0  # how many matches succeed first
    now: bool = False  # for a watch: hits the open watches, not the next one
    after_events: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def parse(row: dict[str, Any]) -> Fault:
        kind = row.get("kind", "")
        allowed = REQUEST_KINDS.get(kind, WATCH_KINDS.get(kind))
        if allowed is None:
            raise ValueError(f"no kind {kind!r}: {sorted(REQUEST_KINDS | WATCH_KINDS)}")
        if unknown := set(row) - _MATCH - allowed:
            raise ValueError(f"{kind}: unknown {sorted(unknown)}")
        if kind in WATCH_KINDS:
            row = {"verb": "watch", **row}
        if row.get("verb", "*") not in (*VERBS, "*"):
            raise ValueError(f"no verb {row['verb']!r}: {VERBS}")
        re.compile(row.get("path", ""))
        matched = {name: value for name, value in row.items() if name in _MATCH}
        options = {name: value for name, value in row.items() if name in allowed}
        return Fault(**matched, options=options)

    @property
    def of_watch(self) -> bool:
        return self.kind in WATCH_KINDS

    def matches(self, verb: str, resource: str, target: str, continued: bool) -> bool:
        return (
            self.count != 0
            and self.verb in ("*", verb)
            and self.resource in ("*", resource)
            and self.continued in (None, continued)
            and re.search(self.path, target) is not None
        )

    def take(self) -> bool:
        """Uses one of the fault's counts; False while it still skips."""
        if self.skip > 0:
            self.skip -= 1
            return False
        self.count -= self.count > 0
        return True

    def get(self, name: str, default: Any) -> Any:
        return self.options.get(name, default)


class Faults:
    """The active faults; the first match wins."""

    def __init__(self) -> None:
        self.rows: list[Fault] = []
        self.hits = 0

    def add(self, rows: Iterable[Fault]) -> None:
        self.rows += rows

    def clear(self) -> None:
        self.rows.clear()

    def pick(self, verb: str, resource: str, target: str, continued: bool) -> list[Fault]:
        """The faults for a request: at most one delay, one other, and one for its watch."""
        picked: dict[str, Fault] = {}
        for row in self.rows:
            group = "watch" if row.of_watch else "delay" if row.kind == "delay" else "other"
            if group in picked or not row.matches(verb, resource, target, continued):
                continue
            if row.take():
                picked[group] = row
                self.hits += 1
        self.rows = [row for row in self.rows if row.count != 0]
        return list(picked.values())
