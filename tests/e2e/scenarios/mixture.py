"""Random requests of every kind on random nodes of every kind, with restarts of cardpack."""

from __future__ import annotations

import random
from typing import Any

from bench import check
from ground import Ground, card, on_all_grounds
from share_truth import (
    AFFINITY,
    ANTI_AFFINITY,
    CORDONED,
    COUNT_LABEL,
    MAX_PODS,
    MODEL,
    PERCENT,
    PLACEMENT,
    UUID,
    WHOLE,
)

Json = Any

MODELS = ("Tesla-T4", "NVIDIA-A100", "Tesla-V100")
PODS = 40


def any_node(dice: random.Random, ground: Ground, name: str) -> None:
    """An even split or a card table, with random optional annotations and labels."""
    labels, notes = {}, {}
    if dice.random() < 0.3:
        labels["ack.node.gpu.placement"] = dice.choice(["binpack", "spread"])
    if dice.random() < 0.3:
        labels[MAX_PODS] = str(dice.randint(1, 4))
    if dice.random() < 0.3:
        notes[CORDONED] = str(dice.randint(0, 3))
    if dice.random() < 0.3:
        exclusive = dice.choice([0, 0, 2])
        more: Json = {"labels": labels, "notes": notes, "exclusive": exclusive}
        ground.node(name, dice.randint(1, 6), dice.choice([8, 16]), **more)
        return
    indices = sorted(dice.sample(range(8), dice.randint(1, 6)))
    table = [
        card(
            index,
            dice.choice([8, 10, 16, 24]),
            model=dice.choice(MODELS),
            uuid=f"GPU-{name}-{index}",
            numa=index // 4,
            health=dice.choice(["Healthy", "Healthy", "Healthy", True, "Unhealthy"]),
        )
        for index in indices
    ]
    ground.node(name, table, labels=labels, notes=notes)


def any_pod(dice: random.Random) -> tuple[Json, dict[str, Json]]:
    """The memory of the pod's containers and its further options."""
    if dice.random() < 0.1:
        return None, {"exclusive": 1}
    if dice.random() < 0.1:
        return None, {"init": [dice.choice([1, 4, 6]) for _ in range(dice.choice([1, 2]))]}
    count = dice.choice([0, 0, 0, 1, 2, 2, 3])
    parts = max(count, 1)
    mem: Json = [dice.choice([1, 2, 3, 4, 6]) * parts for _ in range(dice.choice([1, 1, 1, 2, 3]))]
    labels: dict[str, str] = {COUNT_LABEL: str(count)} if count else {}
    notes: dict[str, str] = {}
    options: dict[str, Json] = {"labels": labels, "notes": notes}
    if dice.random() < 0.3:
        options["cores"] = [dice.choice([5, 20, 50]) * parts for _ in mem]
    if dice.random() < 0.2:
        options["init"] = [dice.choice([1, 5, 9]) * parts]
    if dice.random() < 0.15:
        options["sidecars"] = [dice.choice([1, 3]) * parts]
    if dice.random() < 0.1:
        labels[PLACEMENT] = WHOLE
    elif dice.random() < 0.15:
        notes[PERCENT] = str(dice.choice([1, 10, 33, 50, 100]))
    if dice.random() < 0.2:
        notes[MODEL] = dice.choice(["Tesla-*", "!Tesla-T4", "*a100*", "*,!NVIDIA-*"])
    if dice.random() < 0.1:
        notes[UUID] = dice.choice(["!GPU-n0-1,!GPU-n1-3", "GPU-n1-0,GPU-n2-1,GPU-n0-2"])
    if dice.random() < 0.2 and parts == 1:  # else it may be on any of several cards
        notes[AFFINITY] = dice.choice(["a", "b"])
    if dice.random() < 0.2:
        notes[ANTI_AFFINITY] = dice.choice(["x", "y"])
    if dice.random() < 0.3:
        notes["cardpack.io/card-policy"] = dice.choice(["binpack", "spread"])
    return mem, options


def some_of(dice: random.Random, names: list[str], most: int) -> list[str]:
    """Removes some names from the list and returns them."""
    chosen = dice.sample(names, min(most, len(names)))
    names[:] = [name for name in names if name not in chosen]
    return chosen


@on_all_grounds
def mixture(ground: Ground) -> None:
    """
    Pods are created, start, end and are deleted. A refused pod that requests only memory did not fit
    on any card. After a restart cardpack restores its state from the annotations.
    """
    dice = random.Random(f"cardpack mixture {ground.seed}")
    for i in range(3):
        any_node(dice, ground, f"n{i}")
    ground.cardpack()
    here: list[str] = []
    placed = 0  # the last pods may not fit in a full cluster
    for turn in range(3):
        pods = {f"p{turn}-{i}": any_pod(dice) for i in range(PODS // 3)}
        refused = ground.burst(pods)
        placed += len(pods) - len(refused)
        ground.judge()
        here += [name for name in pods if name not in refused]
        for name in some_of(dice, here, 2):
            ground.initialized(name)
            here.append(name)
        ground.delete(*some_of(dice, here, 2))
        ground.daemon.stop()
        ground.daemon.start()
        ground.settle()
    check(placed > 0, f"--seed {ground.seed}: all are refused")
