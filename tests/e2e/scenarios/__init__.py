"""The scenarios, in the order in which they are run."""

from __future__ import annotations

from . import deploy, packing, burst, crash, changes, races, input, tokens, faults, scale

MODULES = (deploy, packing, burst, crash, changes, races, input, tokens, faults, scale)
