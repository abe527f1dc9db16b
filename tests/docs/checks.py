"""The checks of a block, by its kind."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from typing import Any

import yaml
from blocks import COMMANDS, Block, commands_of
from grounds import PORTS, ROOT, Failed, Place

Json = Any
_KUSTOMIZATION = {"resources", "components", "images", "configMapGenerator", "namespace", "patches",
                  "secretGenerator", "namePrefix", "replicas", "labels"}  # fmt: skip


def on_cluster(block: Block, place: Place) -> bool:
    """Whether the block needs a control plane."""
    if on := block.says.get("on"):
        place.asks_cluster = on == "cluster"
    if block.language in ("yaml", "json"):
        return _needs_api(_objects(block))
    asks = place.asks_cluster and PORTS.search(block.text)
    return bool(asks or re.search(r"\bkubectl\b", block.text + block.says.get("before", "")))


def check(block: Block, place: Place, schemas: Any) -> None:
    """Raises Failed unless the block is right."""
    if flags := block.says.get("cardpack"):
        place.restart(tuple(shlex.split(flags)))
    if before := block.says.get("before"):
        _good(place.run(before, bool(re.search(r"\bkubectl\b", before))), "before")
    if name := block.says.get("file"):
        _file(block, place, name)
    if block.session:
        _session(block, place)
    elif block.language in ("sh", "bash", "shell"):
        _good(place.run(block.text, on_cluster(block, place)), "it")
    elif block.language in ("yaml", "json"):
        _data(block, place, schemas)
    elif block.shown_only:
        for line in block.text.splitlines():
            if COMMANDS.match(line):
                raise Failed(f'"{line}" is a command: call the block sh')
    else:
        raise Failed(f'blocks of "{block.language}" are not known')


def not_in_proof(script: str) -> str:
    """The reason why .ci/run does not run a script of the project; empty if it does."""
    if not os.access(ROOT / script, os.X_OK):
        return f"{script} is no program"
    proof = (ROOT / ".ci" / "run").read_text()
    return "" if re.search(rf"(?<![\w/]){re.escape(script)}\b", proof) else f".ci/run does not run {script}"


def _good(run: subprocess.CompletedProcess[str], what: str) -> None:
    if run.returncode != 0:
        said = (run.stdout[-1500:] + run.stderr[-1500:]).strip()
        raise Failed(f"{what} ended with {run.returncode}: {said}")


def _file(block: Block, place: Place, name: str) -> None:
    """The block must equal that file."""
    path = place.folder / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
    elif path.read_text() != block.text and yaml.safe_load(path.read_text()) != yaml.safe_load(
        block.text
    ):
        raise Failed(f"{name} is another: {path.read_text()[:1500]}")


# ---- sessions ---------------------------------------------------------------------------------


def _session(block: Block, place: Place) -> None:
    for command, output in commands_of(block):
        run = place.run(command, on_cluster(block, place))
        _good(run, command.splitlines()[0])
        if output.strip() and "output" not in block.says and not _same(run.stdout, output):
            raise Failed(f"{command.splitlines()[0]} prints:\n{run.stdout[:3000]}")


def _same(got: str, shown: str) -> bool:
    if shown.lstrip().startswith(("{", "[")):
        try:
            return _ordered(got) == _ordered(shown)
        except ValueError:
            pass
    return _fits(" ".join(got.split()), " ".join(shown.split()).split("..."))


def _fits(text: str, parts: list[str]) -> bool:
    """
    Whether the text is these parts with anything between them. A regular expression with many ".*" would
    take hours to find that it is not.
    """
    first, *more = parts
    if not more:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for part in more[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text.endswith(more[-1]) and len(text) - len(more[-1]) >= at


def _ordered(text: str) -> Json:
    """Parses objects as lists of pairs, as their order counts."""
    return json.loads(text, object_pairs_hook=list)


# ---- YAML and JSON ----------------------------------------------------------------------------


def _objects(block: Block) -> list[Json]:
    """The documents of a block."""
    try:
        if block.language == "json":
            return [json.loads(block.text)]
        return [item for item in yaml.safe_load_all(block.text) if item is not None]
    except (ValueError, yaml.YAMLError) as error:
        raise Failed(f"it can't be read: {error}") from None


def _shape(item: Json) -> str:
    """The kind of a document."""
    if isinstance(item, list):
        return "cards" if item and all({"index", "memory"} <= row.keys() for row in item) else ""
    if not isinstance(item, dict):
        return ""
    keys = item.keys()
    if item.get("kind") == "List" and "apiVersion" not in item:
        return "world"
    if item.get("kind") == "KubeSchedulerConfiguration":
        return "scheduler"
    if item.get("kind") in ("Kustomization", "Component") or {"resources"} < keys <= _KUSTOMIZATION:
        return "kustomization"
    if {"apiVersion", "kind"} <= keys:
        return "object"
    for key, shape in (("extenders", "extenders"), ("namespaces", "quota"), ("resources", "limits")):
        if keys == {key}:
            return shape
    if keys and keys <= {"metadata", "spec"}:
        return "pod"
    return "settings" if keys and keys <= _settings() else ""


def _settings() -> set[str]:
    """Every key of a configuration, from config/cardpack.yaml, which has them all."""
    text = (ROOT / "config" / "cardpack.yaml").read_text()
    return set(re.findall(r"^#? ?([a-z][a-z-]+):", text, re.MULTILINE))


def _needs_api(items: list[Json]) -> bool:
    return any(_shape(item) in ("object", "limits", "pod", "scheduler", "extenders") for item in items)


def _data(block: Block, place: Place, schemas: Any) -> None:
    items = _objects(block)
    if name := block.says.get("schema"):
        for item in items:
            if errors := schemas.errors(name, item):
                raise Failed(f"not a {name}: {errors[:5]}")
        return
    for item in items:
        shape = _shape(item)
        if not shape:
            raise Failed("a block of unknown kind: see tests/docs/README.md")
        _CHECKS[shape](item, place)


def _apply(item: Json, place: Place) -> None:
    """A server-side dry run, in the namespace that it names, or default."""
    text = json.dumps(item)
    place.on_cluster()
    strict = "--validate=true" if place.cluster.version == "1.20.2" else "--validate=strict"
    run = place.cluster.bench.cluster.kubectl(
        "apply", strict, "--dry-run=server", "-f", "-", stdin=text, check=False
    )
    _good(run, "the dry run")


def _pod(item: Json, place: Place) -> None:
    """A part of a pod, which is completed first."""
    pod = {"apiVersion": "v1", "kind": "Pod", **item}
    pod["metadata"] = {"name": "example", "namespace": "default", **pod.get("metadata", {})}
    spec = {"containers": [{"name": "main"}], **pod.get("spec", {})}
    spec["containers"] = [{"name": "main", "image": "example/none", **c} for c in spec["containers"]]
    pod["spec"] = spec
    _apply(pod, place)
    answer = _ask(place, "explain", pod)
    if answer["error"]:
        raise Failed(f"cardpack refuses it: {answer['error']}")


def _limits(item: Json, place: Place) -> None:
    _pod({"spec": {"containers": [{"resources": item["resources"]}]}}, place)


def _ask(place: Place, verb: str, body: Json) -> Json:
    env = place.embedded()
    url = f"http://127.0.0.1:{place.port}/gpushare-scheduler/{verb}"
    run = subprocess.run(
        ["curl", "-sS", url, "--data-binary", "@-"], input=json.dumps(body), env=env,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    _good(run, verb)
    return json.loads(run.stdout)


def _object(item: Json, place: Place) -> None:
    _apply(item, place)
    if item["kind"] == "ConfigMap" and item["metadata"]["name"] == "cardpack-quota":
        _quota(yaml.safe_load(next(iter(item["data"].values()))), place)


def _quota(item: Json, place: Place) -> None:
    """A cardpack that starts with it must accept it."""
    maps = {"kind": "ConfigMap", "metadata": {"name": "cardpack-quota", "namespace": "kube-system"},
            "data": {"quota.yaml": yaml.safe_dump(item)}}  # fmt: skip
    _world({"kind": "List", "items": [maps]}, place, "quotas")


def _cards(item: Json, place: Place) -> None:
    """A node's card table."""
    total = str(sum(card["memory"] for card in item))
    status = {"capacity": {"aliyun.com/gpu-mem": total, "aliyun.com/gpu-count": str(len(item))}}
    notes = {"cardpack.io/cards": json.dumps(item)}
    node = {"kind": "Node", "metadata": {"name": "n", "annotations": notes}, "status": status}
    _world({"kind": "List", "items": [node]}, place, "node")


def _world(item: Json, place: Place, message: str = "embedded cluster") -> None:
    """cardpack must serve it from memory without a warning."""
    place.stop()
    kept = place.world
    place.world = place.folder / "served.yaml"
    place.world.write_text(yaml.safe_dump(item))
    try:
        daemon = place.start()
        text = daemon.process.log.read_text()
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        daemon.stop()
    finally:
        place.world = kept
    bad = [line for line in lines if line.get("level") in ("warn", "error") and not _of_machine(line)]
    if bad:
        raise Failed(f"cardpack complains: {bad[:3]}")
    if not any(line["msg"] == message for line in lines):
        raise Failed(f'cardpack does not say "{message}"')


def _of_machine(line: Json) -> bool:
    """Whether a log line is about the machine that runs the test."""
    return line["msg"].startswith(("running as root", "not all that the process"))


def _configuration(item: Json, place: Place) -> None:
    path = place.folder / "checked.yaml"
    path.write_text(yaml.safe_dump(item))
    run = subprocess.run(
        [place.binary, "--config", path, "--check-config"], capture_output=True, text=True, timeout=60
    )
    _good(run, "--check-config")


def _scheduler(item: Json, place: Place) -> None:
    place.cluster.scheduler_reads(yaml.safe_dump(item))


def _extenders(item: Json, place: Place) -> None:
    whole = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    _scheduler(whole | item, place)


def _kustomization(item: Json, _place: Place) -> None:
    if not item.get("apiVersion", "kustomize.config.k8s.io/").startswith("kustomize.config.k8s.io/"):
        raise Failed("apiVersion is not kustomize's")


_CHECKS = {
    "cards": _cards,
    "world": _world,
    "scheduler": _scheduler,
    "kustomization": _kustomization,
    "object": _object,
    "extenders": _extenders,
    "quota": _quota,
    "limits": _limits,
    "pod": _pod,
    "settings": _configuration,
}
