#!/usr/bin/env python3
"""Measures the weight that cardpack's scores need against the scheduler's own: docs/policy.md's table.

    tests/e2e/weights.py VERSION [WEIGHT ...] [--binary PATH]

On three equal nodes of 16 CPUs, each in its own zone, it makes four pods of each kind one after the
other, and prints their nodes. Weight 0: the scheduler requests no scores. This is a measurement, not a
test.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from bench import PATIENCE, ROOT, Bench, Options, agree  # noqa: E402
from cluster import GPU_MEM, VERSIONS  # noqa: E402
from component import wait_for  # noqa: E402
from truth import GPU_COUNT  # noqa: E402

NODES = ("n0", "n1", "n2")
LABELS = {"app": "e2e"}
PREFERS = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [
                            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
                        ]
                    },
                }
            ]
        }
    }
}
KINDS: dict[str, dict[str, Any]] = {
    "nothing-else": {},
    "little-cpu": {"resources": {"cpu": "1", "memory": "8Gi"}},
    "service": {"labels": LABELS},
    "service-much-cpu": {"labels": LABELS, "resources": {"cpu": "4"}},
    "prefers-n1-beside-a-fuller-n0": {"spec": PREFERS},
}


def place(bench: Bench, name: str) -> str:
    """The pod's node, once it is bound."""
    node: str = wait_for(lambda: bench.get(name)["spec"].get("nodeName"), name, PATIENCE)
    return node


def measure(bench: Bench, weight: int, kind: str) -> list[str]:
    """The nodes of four pods of that kind."""
    bench.begin(f"weight-{weight}-{kind}")
    for name in NODES:
        bench.cluster.create_node(
            name,
            {GPU_MEM: 64, GPU_COUNT: 2, "cpu": "16"},
            labels={"topology.kubernetes.io/zone": f"zone-{name}"},
        )
    service = {
        "metadata": {"name": "e2e"},
        "spec": {"selector": LABELS, "ports": [{"port": 80}]},
    }
    bench.cluster.must("POST", f"/api/v1/namespaces/{bench.namespace}/services", service)
    if "spec" in KINDS[kind]:
        bench.placed_pod("held", 4, "n0", 0)
    agree(bench.cardpack(), bench.truth)
    nodes = []
    for i in range(4):
        bench.pod(f"p{i}", 4, **KINDS[kind])
        nodes.append(place(bench, f"p{i}"))
    bench.finish()
    bench.clear()
    return nodes


def main() -> int:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", choices=VERSIONS)
    parser.add_argument("weights", nargs="*", type=int, default=[0, 1, 5, 10, 20, 25, 30])
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "cardpack")
    args = parser.parse_args()
    binary = args.binary.resolve()
    with tempfile.TemporaryDirectory(prefix="cardpack-weights-") as folder:
        bench = Bench(Options(binary, binary), Path(folder), args.version)
        try:
            bench.open()
            for weight in args.weights:
                unasked = {"prioritizeVerb": '""'}
                bench.start_scheduler(overrides={"weight": str(weight)} if weight else unasked)
                for kind in KINDS:
                    print(f"{weight:4} {kind:30} {measure(bench, weight, kind)}", flush=True)
        finally:
            bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
