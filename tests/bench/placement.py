#!/usr/bin/env python3
"""
What share of the cards each policy fills: cardpack-sim on mixes of pods that are hard for a policy
that learns, and on the traces of a folder.

    placement.py CARDPACK_SIM

    TRACES          a folder with openb_node_list_gpu_node.csv and openb_pod_list_*.csv
    BENCH_FIGURES   a file that gets a line of JSON for each figure
    BENCH_QUICK     one seed, small mixes: shows that it works
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Pod = tuple[int, int, int, str]  # thousandths of a core, cards, thousandths of each card, models
Nodes = list[tuple[int, int, int, str]]  # how many, thousandths of a core, cards, model

MIXED: Nodes = [(100, 96000, 8, "A100"), (50, 64000, 4, "V100"), (30, 32000, 2, "T4")]
MODELS = [f"M{i:02d}" for i in range(40)]
QUICK = bool(os.environ.get("BENCH_QUICK"))
SEEDS = 1 if QUICK else 10
CHURN_SEEDS = 1 if QUICK else 4

# Points below the better of fgd and binpack that bid-price may be, of about a hundred.
NEVER_WORSE = 0.997
# The gain over fgd on a trace at 130 %: 0.4 points.
BETTER = 1.004


def cards(nodes: Nodes) -> int:
    return sum(n * gpus for n, _, gpus, _ in nodes)


def draw(r: random.Random, nodes: Nodes, parts: float, one: Callable[[float], Pod]) -> list[Pod]:
    """Pods until they ask for `parts` times all cards. one() gets how far that is, 0 to 1."""
    pods: list[Pod] = []
    wanted = cards(nodes) * 1000 * parts
    asked = 0.0
    while asked < wanted:
        pods.append(one(asked / wanted))
        asked += pods[-1][1] * pods[-1][2]
    return pods


def mixes(seed: int) -> dict[str, tuple[Nodes, list[Pod], bool]]:
    """Name: nodes, pods, and whether their order matters. Only with those the seed matters, too."""
    r = random.Random(seed)
    cpu = [2000, 4000, 8000]

    def any_of(*kinds: tuple[int, int]) -> Callable[[float], Pod]:
        return lambda _: (r.choice(cpu), *r.choice(kinds), "")

    def of_forty(_: float) -> Pod:
        models = r.choice(["", r.choice(MODELS), "|".join(r.sample(MODELS, 4))])
        return (r.choice(cpu), *r.choice([(1, 500), (1, 250), (1, 750), (1, 1000), (2, 1000), (1, 100)]), models)

    def drifting(at: float) -> Pod:
        small, large = [(1, 150), (1, 300)], [(1, 700), (1, 1000), (4, 1000)]
        return (r.choice(cpu), *r.choice(large if r.random() < at else small), "")

    gang: list[Pod] = []

    def gangs(_: float) -> Pod:
        if not gang:
            kind = r.choice([(4, 1, 1000), (8, 1, 500), (16, 1, 250), (2, 8, 1000)])
            gang.extend([(4000, kind[1], kind[2], "")] * kind[0])
        return gang.pop()

    tiny4: Nodes = [(3, 64000, 4, "A100")]
    tiny8: Nodes = [(3, 96000, 8, "A100")]
    small: Nodes = [(12, 96000, 8, "A100")]
    forty: Nodes = [(5, 64000, 4, m) for m in MODELS]
    cores: Nodes = [(60, 32000, 4, "A100"), (60, 128000, 4, "A100")]
    short = [(2000, 1, 250, ""), (12000, 1, 500, ""), (8000, 1, 1000, ""), (16000, 0, 0, "")]
    all_mixes = {
        "three nodes of 4 cards": (
            tiny4, draw(r, tiny4, 3, any_of((1, 500), (1, 300), (1, 200), (1, 1000), (2, 1000))), False),
        "three nodes of 8 cards": (
            tiny8, draw(r, tiny8, 3, any_of((1, 500), (1, 300), (1, 700), (1, 1000), (4, 1000))), False),
        "sizes in hundredths": (MIXED, draw(r, MIXED, 1, lambda _: (r.choice(cpu), 1, r.randint(5, 100) * 10, "")), False),
        "any sizes": (MIXED, draw(r, MIXED, 1, lambda _: (r.choice(cpu), 1, r.randint(50, 1000), "")), False),
        "one shape": (MIXED, draw(r, MIXED, 1, any_of((1, 300))), False),
        "one shape of 8 cards": (MIXED, draw(r, MIXED, 1, any_of((8, 1000))), False),
        "halves and quarters": (MIXED, draw(r, MIXED, 1, any_of((1, 500), (1, 250), (1, 125), (1, 1000))), False),
        "40 models": (forty, draw(r, forty, 1, of_forty), False),
        "short of cores": (cores, draw(r, cores, 1, lambda _: r.choice(short)), False),
        "a mix that drifts": (MIXED, draw(r, MIXED, 1.3, drifting), True),
        "gangs": (MIXED, draw(r, MIXED, 1.3, gangs), True),
        "a mix that drifts, 12 nodes": (small, draw(r, small, 1.3, drifting), True),
        "gangs, 12 nodes": (small, draw(r, small, 1.3, gangs), True),
    }
    quick = ("three nodes of 4 cards", "gangs, 12 nodes")
    return {what: all_mixes[what] for what in quick} if QUICK else all_mixes


def write(folder: Path, nodes: Nodes, pods: list[Pod]) -> tuple[Path, Path]:
    to_nodes, to_pods = folder / "nodes.csv", folder / "pods.csv"
    rows = [f"{cores},1048576,{gpus},{model}" for n, cores, gpus, model in nodes for _ in range(n)]
    to_nodes.write_text(
        "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i:04d},{row}\n" for i, row in enumerate(rows)))
    to_pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
        + "".join(f"p{i:06d},{p[0]},1024,{p[1]},{p[2]},{p[3]}\n" for i, p in enumerate(pods)))
    return to_nodes, to_pods


def simulate(program: str, command: str, nodes: Path, pods: Path, *more: str) -> list[dict[str, Any]]:
    run = subprocess.run(
        [program, command, "--nodes", str(nodes), "--pods", str(pods), "-o", "json", *more],
        check=True, stdout=subprocess.PIPE)
    result: list[dict[str, Any]] = json.loads(run.stdout)
    return result


def at(result: dict[str, Any], percent: int) -> float:
    """What was allocated when as much had arrived; the end if the arrivals end before."""
    known = [x["allocatedPercent"] for x in result["series"] if x["arrivedPercent"] == percent]
    return known[0] if known and known[0] is not None and known[0] >= 0 else result["allocatedPercent"]


def figure(table: str, what: str, value: float, beside: str, limit: float, target: float, sense: str) -> None:
    print(f"{table:20} {what:40} {value:7.2f} %   {beside}: {limit:7.2f} %", flush=True)
    if os.environ.get("BENCH_FIGURES"):
        with open(os.environ["BENCH_FIGURES"], "a", encoding="utf-8") as f:
            wanted = {"target": target, "sense": sense} if target > 0 else {}
            f.write(json.dumps({"table": table, "what": what, "value": value, "unit": "%",
                                "beside": beside, "limit": limit, **wanted}) + "\n")


Filled = dict[int, dict[str, float]]  # percent arrived: policy: percent allocated


def replay(program: str, nodes: Path, pods: Path, *more: str) -> Filled:
    results = simulate(program, "replay", nodes, pods, "--policy", "binpack,fgd,bid-price", *more)
    return {percent: {r["policy"]: at(r, percent) for r in results} for percent in (100, 130)}


def replay_in_order(program: str, what: str) -> Filled:
    """The order is part of such a mix, so each run has pods of its own."""
    runs: list[Filled] = []
    for seed in range(SEEDS):
        with tempfile.TemporaryDirectory() as folder:
            nodes, pods, _ = mixes(5 + seed)[what]
            runs.append(replay(program, *write(Path(folder), nodes, pods), "--in-order"))
    return {percent: {name: statistics.fmean(run[percent][name] for run in runs) for name in values}
            for percent, values in runs[0].items()}


def fill(what: str, filled: Filled, target: float) -> None:
    for percent, values in filled.items():
        best = max(("fgd", "binpack"), key=lambda name: values[name])
        figure("placement", f"{what}, {percent} % arrived", values["bid-price"], best, values[best],
               target if percent == 130 else min(target, 1.0), "at least")


def churn(program: str, what: str, nodes: Path, pods: Path) -> None:
    results = simulate(program, "churn", nodes, pods, "--policy", "bestfit,fgd,bid-price",
                       "--seeds", str(CHURN_SEEDS))
    for load in sorted({r["load"] for r in results}):
        values = {r["policy"]: r["rejectedPercent"] for r in results if r["load"] == load}
        best = min(("fgd", "bestfit"), key=lambda name: values[name])
        figure("placement-churn", f"{what}, load {load:.2f}: rejected", values["bid-price"], best,
               values[best], 0, "at most")


def main() -> None:
    program = sys.argv[1]
    seeds = ["--seeds", str(SEEDS)]
    for what, (nodes, pods, ordered) in mixes(5).items():
        with tempfile.TemporaryDirectory() as folder:
            files = write(Path(folder), nodes, pods)
            filled = replay_in_order(program, what) if ordered else replay(program, *files, *seeds)
            fill(what, filled, NEVER_WORSE)
    traces = Path(os.environ["TRACES"]) if os.environ.get("TRACES") and not QUICK else None
    for pods_file in sorted(traces.glob("openb_pod_list_*.csv")) if traces else []:
        nodes_file = pods_file.parent / "openb_node_list_gpu_node.csv"
        name = pods_file.stem.removeprefix("openb_pod_list_")
        fill(name, replay(program, nodes_file, pods_file, *seeds), BETTER)
        churn(program, name, nodes_file, pods_file)


main()
