"""What the fake API server does wrong, and to which requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

VERBS = ("list", "watch", "get", "bind", "create", "update", "patch", "delete")

# Of a request; each with what else it may carry.
REQUEST_KINDS = {
    "delay": {"ms"},  # then as usual; adds up with any one of the others
    "status": {"code", "reason", "message", "retry_after", "text"},
    "drop": set(),  # the connection, before anything is done
    "drop_after_commit": {"ms"},
    "late_commit": {"ms", "code"},  # answered 504 at once, written ms later
    "hang": set(),  # never answered, nothing done, the connection stays open
    "truncate": {"bytes", "clean"},  # a list's body; clean: the HTTP message is whole
}
# Of a watch, at once or when it is next opened, after so many events.
WATCH_KINDS = {
    "cut": {"bytes"},  # so many bytes of the next event, then the connection drops
    "garbage": {"line"},
    "error_event": {"code", "reason", "message", "too_large"},
    "end": set(),  # in good order
    "quiet": set(),  # nothing any more, not even bookmarks, and it stays open
    "drop_event": set(),  # the next event is lost, as no API server may do
}
_MATCH = {"kind", "verb", "resource", "path", "continued", "count", "skip", "now", "after_events"}


@dataclass
class Fault:
    """One row: what it matches, how often, and what it does."""

    kind: str
    verb: str = "*"
    resource: str = "*"
    path: str = ""  # a regular expression that is searched in path and query
    continued: bool | None = None  # only list pages with (without) a continue token
    count: int = 1  # -1: for ever
    skip: int = 0  # so many matches go well first
    now: bool = False  # of a watch: those that are open, instead of the next one
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
        """Uses the fault up by one; False while it still skips."""
        if self.skip > 0:
            self.skip -= 1
            return False
        self.count -= self.count > 0
        return True

    def get(self, name: str, default: Any) -> Any:
        return self.options.get(name, default)


class Faults:
    """The rows in force, first come first served."""

    def __init__(self) -> None:
        self.rows: list[Fault] = []
        self.hits = 0

    def add(self, rows: Iterable[Fault]) -> None:
        self.rows += rows

    def clear(self) -> None:
        self.rows.clear()

    def pick(self, verb: str, resource: str, target: str, continued: bool) -> list[Fault]:
        """The faults of a request: at most one delay, one other, one of its watch."""
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
