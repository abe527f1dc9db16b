"""The scenarios, in the order in which they are run."""

from __future__ import annotations

from . import burst, changes, crash, deploy, faults, input, packing, races, scale, tokens

MODULES = (deploy, packing, burst, crash, changes, races, input, tokens, faults, scale)
