"""The scenarios, in the order in which they are run."""

from __future__ import annotations

from . import (
    attacks, burst, changes, chaos, confined, crash, deploy, faults, flood, ha, input, packing,
    peers, races, scale, secrets, security, tokens,
)  # fmt: skip

MODULES = (
    deploy, confined, attacks, packing, burst, crash, changes, races, input, tokens, secrets, security,
    flood, faults, peers, scale, ha, chaos,
)  # fmt: skip
