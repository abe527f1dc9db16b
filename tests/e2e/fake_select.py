"""Which objects a list or a watch selects, and the Status of a refused request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = Any

_FIELDS = {
    "pods": {
        "metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy",
        "spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP",
        "status.nominatedNodeName",
    },
    "nodes": {"metadata.name", "spec.unschedulable"},
}  # fmt: skip
_FIELDS_OF_ALL = {"metadata.name", "metadata.namespace"}


class Refused(Exception):
    """A refused request: the API server answers with a Status of failure."""

    def __init__(
        self, code: int, reason: str, message: str, details: Json = None, next_page: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": next_page} if next_page else {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
        if details is not None:
            self.status["details"] = details


def _field(item: Json, path: str) -> str:
    for part in path.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    if item is None:
        return ""
    return str(item).lower() if isinstance(item, bool) else str(item)


@dataclass(frozen=True)
class Selection:
    """A namespace and the terms of both selectors: (field or label, wanted, value)."""

    resource: str
    namespace: str
    fields: tuple[tuple[str, bool, str], ...] = ()
    labels: tuple[tuple[str, bool, str | None], ...] = ()

    @staticmethod
    def parse(resource: str, namespace: str, fields: str, labels: str) -> Selection:
        terms: list[tuple[str, bool, str]] = []
        for term in filter(None, fields.split(",")):
            name, operator, value = term.partition("!=")
            if not operator:
                name, operator, value = term.partition("=")
                value = value.removeprefix("=")
            if not operator or name not in _FIELDS.get(resource, set()) | _FIELDS_OF_ALL:
                raise Refused(400, "BadRequest", f"field label not supported: {name}")
            terms.append((name, "!=" not in term, value))
        marks: list[tuple[str, bool, str | None]] = []
        for term in filter(None, labels.split(",")):
            if "!=" in term:
                name, _, value = term.partition("!=")
                marks.append((name, False, value))
            elif "=" in term:
                name, _, value = term.partition("=")
                marks.append((name, True, value.removeprefix("=")))
            else:
                marks.append((term.removeprefix("!"), not term.startswith("!"), None))
        return Selection(resource, namespace, tuple(terms), tuple(marks))

    def holds(self, item: Json) -> bool:
        if item is None:
            return False
        if self.namespace and item["metadata"].get("namespace") != self.namespace:
            return False
        for name, wanted, value in self.fields:
            if (_field(item, name) == value) != wanted:
                return False
        marks = item["metadata"].get("labels") or {}
        for name, wanted, label in self.labels:
            if (name in marks if label is None else marks.get(name) == label) != wanted:
                return False
        return True

    @property
    def everything(self) -> bool:
        return not (self.namespace or self.fields or self.labels)
