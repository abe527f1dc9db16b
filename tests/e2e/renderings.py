"""Renders manifests/ with kustomize and Helm, as text and as objects.

kubectl of 1.20 is too old for the overlays, so the newest one here renders for all releases.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from bench import MANIFESTS, ROOT, Bench, Lab, Skipped, check
from cluster import available_versions, find_programs

Json = Any

OVERLAYS = MANIFESTS / "overlays"
CHART = MANIFESTS / "helm" / "cardpack"
# What replaces an overlay in releases before a minor version, which lack a feature that it uses.
BEFORE = {
    "high-availability": ((21, "high-availability-1.20"),),
    "second-scheduler": ((23, "second-scheduler-v1beta1"), (25, "second-scheduler-v1beta3")),
}
WORKLOADS = ("Deployment", "DaemonSet")


def overlay(bench: Bench, name: str) -> Path:
    """The folder of an overlay for this release."""
    older = (folder for before, folder in BEFORE.get(name, ()) if bench.minor < before)
    return OVERLAYS / next(older, name)


def overlays(bench: Bench) -> list[Path]:
    """All overlays for this release."""
    older = {folder for rows in BEFORE.values() for _, folder in rows}
    every = {p.name for p in OVERLAYS.iterdir() if p.is_dir()}
    check(older <= every, older - every)
    found = sorted(overlay(bench, name) for name in every - older)
    check(len(found) >= 5, found)
    return found


@cache
def find_renderer() -> Path:
    """The newest kubectl here, which must be newer than 1.20."""
    here = [version for version in available_versions() if version != "1.20.2"]
    if not here:
        raise Skipped("no kubectl that renders overlays: scripts/control-plane 1.36.3 makes one")
    return find_programs(here[-1]) / "kubectl"


def strictly(bench: Bench) -> str:
    """kubectl's flag that refuses unknown fields."""
    return "--validate=strict" if bench.minor > 24 else "--validate=true"


def unwarned(done: subprocess.CompletedProcess[str]) -> str:
    """The output of a kubectl to which the API server sent no warning."""
    check("Warning:" not in done.stderr, done.stderr)
    return done.stdout


def kustomize(folder: Path) -> str:
    """The rendering; kustomize must print no warning."""
    done = subprocess.run(
        [find_renderer(), "kustomize", folder], capture_output=True, text=True, timeout=60
    )
    check(done.returncode == 0 and not done.stderr, f"{folder}: {done.stderr}")
    return done.stdout


def helm(*args: str | Path, good: bool = True, kubeconfig: Path | None = None) -> str:
    """Runs Helm and returns its output; if good is False it must fail, and the error is returned."""
    version = re.search(r"helm\.sh/helm/v3 v(\S+)", (ROOT / "tests/helm/go.mod").read_text())
    assert version is not None
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    program = Path(cache) / "cardpack" / "helm" / version[1] / "helm"
    if not program.exists():
        raise Skipped(f"{program} is not there: run scripts/helm")
    # Nothing from the caller's environment: no plugins, no repositories, no cluster.
    env = {"PATH": os.defpath, "HOME": "/nonexistent"}
    if kubeconfig is not None:
        env |= {"KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}
    done = subprocess.run(
        [program, *args], capture_output=True, text=True, timeout=240, env=env, cwd="/"
    )
    check((done.returncode == 0) == good, f"helm {args}: {done.stdout}{done.stderr}")
    return done.stdout if good else done.stderr


def chart(bench: Bench, *args: str, name: str = "cardpack", node: bool = False) -> str:
    """Renders the chart for this release of Kubernetes. node: with cardpack-node, the chart's default."""
    more = () if node else ("--set", "node.enabled=false")
    release = (name, CHART, "--namespace", "kube-system", "--kube-version", bench.version)
    return helm("template", *release, *more, *args)


def objects(bench: Bench, text: str) -> list[Json]:
    """The objects in the YAML, parsed by kubectl: Python's library has no YAML."""
    argv = ("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
    out = bench.cluster.kubectl(*argv, stdin=text).stdout
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := _after_blanks(out, at)) < len(out):
        item, at = decoder.raw_decode(out, at)
        found += item["items"] if item["kind"] == "List" else [item]
    check(len(found) == len(re.findall(r"^kind: ", text, re.MULTILINE)), "an object is missing")
    return found


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def pick(found: Iterable[Json], *kinds: str) -> Json:
    """Returns the one object of these kinds."""
    fitting = [item for item in found if item["kind"] in kinds]
    check(len(fitting) == 1, [item["metadata"]["name"] for item in fitting])
    return fitting[0]


def template(found: Iterable[Json]) -> Json:
    """The pod template of the only workload."""
    return pick(found, *WORKLOADS)["spec"]["template"]


def container(found: Iterable[Json], name: str) -> Json:
    """A container of the only workload."""
    fitting = [c for c in template(found)["spec"]["containers"] if c["name"] == name]
    check(len(fitting) == 1, name)
    return fitting[0]


def map_strings(value: Json, change: Callable[[str], str]) -> Json:
    """The same JSON with `change` applied to every string in it."""
    if isinstance(value, dict):
        return {key: map_strings(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [map_strings(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


# ---- started here ---------------------------------------------------------------------------


def substitute(args: Iterable[str], table: dict[str, str]) -> list[str]:
    """Replaces arguments that are impossible here; each key of the table must occur."""
    args = list(args)
    check(set(table) <= set(args), f"{sorted(set(table) - set(args))} not in {args}")
    return [table.get(arg, arg) for arg in args]


def local_args(bench: Bench, args: Iterable[str], port: int = 0) -> list[str]:
    """cardpack's arguments on this machine: other ports, loopback; all others as shipped."""
    args = list(args)
    table = {"--port=39999": f"--port={port or bench.port}"}
    if "--probe-port=39998" in args:
        table["--probe-port=39998"] = f"--probe-port={bench.ports.take()}"
    for flag in ("--listen-address", "--probe-address"):
        if f"{flag}=0.0.0.0" in args:
            table[f"{flag}=0.0.0.0"] = f"{flag}=127.0.0.1"
    return substitute(args, table)


def check_config(lab: Lab, args: Iterable[str]) -> dict[str, str]:
    """Checks that cardpack accepts these arguments; returns the resulting settings."""
    argv = [lab.options.binary, *args, "--check-config"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"{args}: {done.stderr}")
    return dict(re.findall(r"^([a-z-]+): (.*?)(?: #.*)?$", done.stdout, re.MULTILINE))


def check_end(seconds: int, settings: dict[str, str]) -> None:
    """Checks that cardpack has ended before SIGKILL, which comes `seconds` after SIGTERM."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    told = [settings[f"shutdown-{part}"] for part in ("delay", "grace")]
    parts = re.findall(r"([0-9]+)(ms|s|m|h)", "".join(told))
    end = sum(int(number) * units[unit] for number, unit in parts)
    check(parts and seconds > end, f"killed after {seconds} s, shutdown-delay and -grace are {told}")
