"""The scenarios, in the order in which they are run."""

from __future__ import annotations

from importlib import import_module

MODULES = tuple(import_module(f"{__name__}.{name}") for name in (
    "deploy",
    "overlays",
    "beside",
    "chart",
    "confined",
    "attacks",
    "packing",
    "requests",
    "cards",
    "selection",
    "mixture",
    "ranking",
    "quota",
    "explain",
    "kubectl",
    "events",
    "budgets",
    "preemption",
    "evict",
    "burst",
    "crash",
    "changes",
    "races",
    "input",
    "tokens",
    "secrets",
    "reload",
    "security",
    "flood",
    "faults",
    "page",
    "peers",
    "migration",
    "scale",
    "ha",
    "chaos",
))  # fmt: skip
