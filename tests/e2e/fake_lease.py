"""The fake API server's validation of a Lease."""

from __future__ import annotations

import re
from typing import Any

from fake_select import Refused

Json = Any

# Go's time.RFC3339Micro: exactly six digits.
_MICRO_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)", flags=re.ASCII
)


def check_lease(item: Json) -> None:
    """Refuses an invalid Lease with the status that both real releases use."""
    spec = item.get("spec") or {}
    for field in ("leaseDurationSeconds", "leaseTransitions"):
        value = spec.get(field)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise _unreadable(f"cannot unmarshal {value!r} into LeaseSpec.{field} of type int32")
    for field in ("acquireTime", "renewTime"):
        value = spec.get(field)
        if value is not None and not _MICRO_TIME.fullmatch(str(value)):
            raise _unreadable(f'parsing time "{value}" as "2006-01-02T15:04:05.000000Z07:00"')
    for field, least, text in (
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ):
        value = spec.get(field)
        if value is not None and value < least:
            raise invalid_lease(item["metadata"]["name"], f"spec.{field}", value, text)


def invalid_lease(name: str, field: str, value: Json, text: str) -> Refused:
    """422 that names the field."""
    why = f"Invalid value: {value}: {text}"
    cause = {"reason": "FieldValueInvalid", "message": why, "field": field}
    details = {
        "name": name,
        "group": "coordination.k8s.io",
        "kind": "leases",
        "causes": [cause],
    }
    message = f'leases.coordination.k8s.io "{name}" is invalid: {field}: {why}'
    return Refused(422, "Invalid", message, details)


def _unreadable(why: str) -> Refused:
    return Refused(
        400, "BadRequest", f'Lease in version "v1" cannot be handled as a Lease: {why}'
    )
