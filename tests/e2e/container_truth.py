"""What is true of a node's cards: containers' own environment, held against the API server's pods.

    containers = worker.containers()             # before the pods: an annotation is there first
    pods = cluster.list_all("/api/v1/pods")
    faults = judge(containers, pods, {"GPU-a": 0, "GPU-b": 1}, {0: 16, 1: 16})

It asks neither cardpack nor its agent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

GPU_MEM = "aliyun.com/gpu-mem"
IDX = "ALIYUN_COM_GPU_MEM_IDX"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"

Json = Any


class Running(Protocol):
    """What is asked of a container (worker.Container)."""

    @property
    def uid(self) -> str: ...  # of its pod

    @property
    def name(self) -> str: ...

    @property
    def env(self) -> Mapping[str, str]: ...


def share(pod: Json, container: str) -> int:
    """How much card memory a container of the pod has asked for."""
    spec = pod["spec"]
    for one in [*spec["containers"], *spec.get("initContainers", [])]:
        if one["name"] == container:
            return int(one.get("resources", {}).get("limits", {}).get(GPU_MEM, "0"))
    return 0


def judge(
    containers: Iterable[Running],
    pods: Iterable[Json],
    cards: Mapping[str, int],
    sizes: Mapping[int, int],
) -> list[str]:
    """The containers on a wrong card, and the cards that are over their size, at one moment.

    cards: the index of each UUID; sizes: how much each card has. A pod that is not in the list has been
    deleted since, and then its container has ended.
    """
    known = {pod["metadata"]["uid"]: pod for pod in pods}
    found, used = [], defaultdict(int)
    for one in containers:
        pod = known.get(one.uid)
        if pod is None or not (mem := share(pod, one.name)):
            continue
        what = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} {one.name}"
        visible = one.env.get(VISIBLE, "")
        card = cards.get(visible, int(visible) if visible.isdecimal() else -1)
        if card not in sizes:
            found.append(f"{what}: {VISIBLE} is {visible!r}")
            continue
        used[card] += mem
        annotated = pod["metadata"].get("annotations", {}).get(IDX)
        if annotated != str(card):
            found.append(f"{what} runs on card {card}, annotated is {annotated}")
        if one.env.get(IDX) != str(card):
            found.append(f"{what} runs on card {card}, its {IDX} is {one.env.get(IDX)!r}")
    return found + [
        f"card {card} has {mem} of {sizes[card]}"
        for card, mem in sorted(used.items())
        if mem > sizes[card]
    ]
