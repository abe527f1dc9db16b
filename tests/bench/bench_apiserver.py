"""The first list of many pods from the real kube-apiserver, next to plain curl; see
scripts/bench-apiserver.

Two programs run by turns: cardpack, from its start until it logs that all pods are read; and curl,
which downloads the same pages of pods with the same token on one connection and discards them.
cardpack also lists nodes, configmaps and budgets; curl does not, and it knows each page's continue
token in advance. The API server's audit log shows whether both requested the same pages.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
sys.dont_write_bytecode = True

from cluster import GPU_MEM, VERSIONS, ControlPlane, available_versions  # noqa: E402
from component import Ports, wait_for  # noqa: E402
from daemon import Daemon  # noqa: E402
from truth import ANNOTATIONS, GPU_COUNT  # noqa: E402

Json = Any

ROOT = Path(__file__).resolve().parents[2]
CARDS, CARD_SIZE = 8, 16
SIZES = (2, 4, 8)  # gpu-mem of the pods that request it, in turn
EVERY = 5  # every Nth pod requests gpu-mem
HANDS = 12  # parallel requests while nodes and pods are created
PATIENCE = 300.0
PAUSE_SECONDS = 1.0  # between turns: the API server finishes its background work
MIB = 1024 * 1024
SELECTOR = "fieldSelector=" + quote("status.phase!=Succeeded,status.phase!=Failed")
_CONTINUE = re.compile(rb'"continue":"([^"]+)"')
_VARIABLE_BYTES = 205  # of one environment variable, with its managedFields
_BARE_BYTES = 1850  # of a pod without environment variables


@dataclass
class Turn:
    """The measurements of one program in one turn."""

    seconds: float
    processor: float
    bytes: int = 0  # curl's
    peak: int = 0  # cardpack's


@dataclass
class Round:
    """One turn of each program."""

    cardpack: Turn
    curl: Turn


def processor_seconds(pid: int) -> float:
    """The CPU time of all threads of a process so far, finer than clock ticks."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class World:
    """etcd and kube-apiserver with nodes, and pods that are bound already."""

    def __init__(self, version: str, workdir: Path, nodes: int) -> None:
        self.version = version
        self.cluster = ControlPlane(version, workdir)
        self.nodes = [f"node-{i:05}" for i in range(nodes)]
        self.held: dict[str, int] = {}  # gpu-mem, by node
        self.carded: set[str] = set()  # pods that have a card
        self.ports = Ports()
        self.port = self.ports.take()
        self.token = ""
        self._audit_read = 0

    def __enter__(self) -> World:
        self.cluster.__enter__()
        try:
            self.token = self.cluster.cardpack_token()
            self.kubeconfig = self.cluster.workdir / "cardpack.kubeconfig"
            self.cluster.write_kubeconfig(self.kubeconfig, self.token)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all programs."""
        self.cluster.close()
        self.ports.close()

    def fill(self, pods: int, pod_bytes: int) -> None:
        """Creates nodes and pods, as fast as possible."""
        variables = [
            {"name": f"SETTING_{i:03}", "value": f"value-{i:03}-" + "0123456789abcdef" * 6}
            for i in range(max(0, pod_bytes - _BARE_BYTES) // _VARIABLE_BYTES)
        ]
        with ThreadPoolExecutor(HANDS) as hands:
            for _ in hands.map(self._make_node, self.nodes):
                pass
            for _ in hands.map(lambda i: self._make_pod(i, variables), range(pods)):
                pass
        for i in range(0, pods, EVERY):
            _, node, _, size = self._place(i)
            self.held[node] = self.held.get(node, 0) + size
            self.carded.add(f"pod-{i:05}")

    def _make_node(self, name: str) -> None:
        sizes = {GPU_MEM: CARDS * CARD_SIZE, GPU_COUNT: CARDS, "pods": 500}
        self.cluster.create_node(name, sizes)

    def _place(self, i: int) -> tuple[int, str, int, int]:
        """A pod's number within its round and kind, its node, its card and its size."""
        nth = i // EVERY
        lap, at = divmod(nth, len(self.nodes))
        return nth, self.nodes[at], lap % CARDS, SIZES[nth % len(SIZES)]

    def _make_pod(self, i: int, variables: list[Json]) -> None:
        """Creates a pod as it is after kube-scheduler has bound it."""
        nth, node, card, size = self._place(i)
        notes: dict[str, str] = {}
        if i % EVERY == 0:
            values = (card, CARD_SIZE, size, "true", 10**18 + nth)
            notes = {key: str(value) for key, value in zip(ANNOTATIONS, values, strict=True)}
        limits = {GPU_MEM: str(size)} if notes else {"cpu": "100m"}
        container = {
            "name": "main",
            "image": "example.invalid/none",
            "env": variables,
            "resources": {"limits": limits, "requests": limits},
        }
        self.cluster.create_pod(
            f"pod-{i:05}",
            labels={"app": "load", "pod-template-hash": "5d9f8c7b6d"},
            annotations=notes,
            node_name=node,
            spec={"containers": [container]},
        )

    def asked_for_pods(self, agent: str, pages: int) -> list[str]:
        """The lists of pods that an agent has received since the last call, without continue tokens."""
        found: list[str] = []

        def all_logged() -> bool:
            found[:] = self._lists_of(agent)
            return len(found) >= pages

        try:  # the API server logs a request after its answer
            wait_for(all_logged, f"{pages} pages in the audit log", 10.0)
        except TimeoutError:
            pass
        self._audit_read = self.cluster.audit_log.stat().st_size
        return found

    def _lists_of(self, agent: str) -> Iterable[str]:
        with self.cluster.audit_log.open("rb") as log:
            log.seek(self._audit_read)
            lines = log.read().decode().split("\n")[:-1]
        for entry in map(json.loads, lines):
            path, _, query = entry["requestURI"].partition("?")
            if (
                path == "/api/v1/pods"
                and entry["verb"] == "list"
                and entry["userAgent"].startswith(agent)
            ):
                parts = re.sub(r"continue=[^&]*", "continue=", query).split("&")
                yield f"{entry['responseStatus']['code']} {' '.join(sorted(parts))}"


class Curl:
    """
    curl with cardpack's headers and user agent; for curl's own agent the API server would indent the
    JSON.
    """

    AGENT = "bench-apiserver/1"

    def __init__(self, world: World, page: int) -> None:
        self.url = f"{world.cluster.url}/api/v1/pods?limit={page}"
        self.config = world.cluster.workdir / "curl.config"
        self.config.touch(mode=0o600)
        self.config.write_text(
            f'cacert = "{world.cluster.ca_file}"\n'
            f'header = "Authorization: Bearer {world.token}"\n'
            'header = "Accept: application/json"\n'
            f'user-agent = "{self.AGENT}"\n'
            "silent\nshow-error\nfail\nhttp1.1\n"
        )
        self.pages = world.cluster.workdir / "curl.pages"

    def learn(self) -> int:
        """
        Counts the pages and keeps their addresses, so that the tokens are known for later downloads.
        """
        urls: list[str] = []
        token = b""
        while token or not urls:
            urls.append(self._address(token.decode()))
            argv = ("curl", "-q", "--config", self.config, urls[-1])
            page = subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout
            found = _CONTINUE.search(page, 0, 4096)
            token = found[1] if found else b""
        lines = [f'url = "{url}"\noutput = "/dev/null"\n' for url in urls]
        lines.append(r'write-out = "%{http_code} %{size_download} %{num_connects}\n"' + "\n")
        self.pages.write_text("".join(lines))
        return len(urls)

    def _address(self, token: str) -> str:
        return self.url + (f"&continue={quote(token, safe='')}" if token else "") + "&" + SELECTOR

    def download(self) -> tuple[Turn, int]:
        """Downloads all pages in one process; also returns the number of connections."""
        argv = ("curl", "-q", "--config", self.config, "--config", self.pages)
        began = time.monotonic()
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        said = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stdout.close()
        if child.returncode != 0:
            raise RuntimeError(f"curl ended with status {child.returncode}: {said}")
        rows = [line.split() for line in said.splitlines()]
        size = sum(int(row[1]) for row in rows)
        connections = sum(int(row[2]) for row in rows)
        return Turn(seconds, used.ru_utime + used.ru_stime, bytes=size), connections


class Bench:
    """Everything that the command line selects."""

    def __init__(self, options: argparse.Namespace, workdir: Path) -> None:
        self.options = options
        self.workdir = workdir
        self.passed = self.failed = 0

    def check(self, good: bool, what: str) -> None:
        """Counts a check, which must pass at any speed, and names it if it fails."""
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAILED {what}", flush=True)

    def run(self) -> None:
        """Runs release by release."""
        for version in self.options.releases:
            try:
                with World(version, self.workdir / version, self.options.nodes) as world:
                    self.release(world)
            except Exception:
                traceback.print_exc()
                self.check(False, f"{version}: see above")

    def release(self, world: World) -> None:
        """Runs both by turns; the first one alternates."""
        options = self.options
        began = time.monotonic()
        world.fill(options.pods, options.pod_bytes)
        print(f"{world.version}: {options.pods} pods made in {time.monotonic() - began:.0f} s")
        curl = Curl(world, options.page)
        rounds: list[Round] = []
        for i in range(options.rounds):
            pages = curl.learn()
            world.asked_for_pods(Curl.AGENT, pages)
            turns: dict[str, Turn] = {}
            for who in ("cardpack", "curl") if i % 2 == 0 else ("curl", "cardpack"):
                time.sleep(PAUSE_SECONDS)
                before = processor_seconds(world.cluster.apiserver.pid)
                if who == "curl":
                    turns[who] = self.curl_turn(world, curl, pages)
                else:
                    turns[who] = self.cardpack_turn(world, pages)
                served = processor_seconds(world.cluster.apiserver.pid) - before
                took = turns[who]
                print(
                    f"{world.version}, round {i + 1}, {who}: {took.seconds:.3f} s,"
                    f" {took.processor:.3f} s of a processor, the API server {served:.3f} s",
                    flush=True,
                )
            rounds.append(Round(turns["cardpack"], turns["curl"]))
        self.tell(world.version, rounds)

    def curl_turn(self, world: World, curl: Curl, pages: int) -> Turn:
        """One turn of curl."""
        turn, connections = curl.download()
        where = f"{world.version}, curl"
        self.check(turn.bytes > 0, f"{where}: nothing was downloaded")
        self.check(connections == 1, f"{where}: {connections} connections")
        self.same_pages(world, Curl.AGENT, pages)
        return turn

    def cardpack_turn(self, world: World, pages: int) -> Turn:
        """One turn of cardpack, from its start to its end."""
        workdir = world.cluster.workdir
        args = (
            "--log-level", "info", "--leader-elect=false", "--start-settle", "0s",
            "--list-page-size", str(self.options.page),
        )  # fmt: skip
        daemon = Daemon(self.options.binary, workdir, world.port, world.kubeconfig, args)
        daemon.process.log.unlink(missing_ok=True)
        began = time.time()
        daemon.launch()
        try:
            entry = wait_for(lambda: pods_are_in(daemon), "all pods", PATIENCE, poll=0.005)
            turn = Turn(when(entry) - began, processor_seconds(daemon.process.pid))
            turn.peak = daemon.peak_rss()
            daemon.process.wait_ready()
            self.knows_all(world, daemon.inspect())
        except BaseException:
            daemon.kill()
            raise
        daemon.stop()
        self.same_pages(world, "cardpack/", pages)
        return turn

    def same_pages(self, world: World, agent: str, pages: int) -> None:
        """Checks that the agent requested exactly these pages, each once."""
        first = f"200 {' '.join(sorted((SELECTOR, f'limit={self.options.page}')))}"
        expected = [first] + [f"200 continue= {first[4:]}"] * (pages - 1)
        asked = world.asked_for_pods(agent, pages)
        self.check(asked == expected, f"{world.version}, {agent} asked {asked}, not {expected}")

    def knows_all(self, world: World, inspect: Json) -> None:
        """Checks that cardpack knows every pod with a card, and its memory."""
        held = {node["name"]: node["usedGPU"] for node in inspect["nodes"]}
        expected = {name: world.held.get(name, 0) for name in world.nodes}
        wrong = sorted(set(held.items()) ^ set(expected.items()))
        self.check(not wrong, f"{world.version}: inspect beside what was made: {wrong[:10]}")
        devs = (dev for node in inspect["nodes"] for dev in node["devs"])
        named = {pod["name"] for dev in devs for pod in dev["pods"]}
        lacking = sorted(world.carded - named)
        self.check(named == world.carded, f"{world.version}: {len(lacking)} pods lack {lacking[:5]}")

    def tell(self, version: str, rounds: list[Round]) -> None:
        """Prints the results for people, and writes the lines of JSON that bench.c also writes."""
        lines = list(figures(version, rounds))
        size = statistics.median(one.curl.bytes for one in rounds) / MIB
        print(f"\n{version}: {self.options.pods} pods, {size:.1f} MiB in pages of {self.options.page}")
        for line in lines:
            text = f"  {line['what']:28} {line['value']:9.4g} {line['unit']}"
            if "limit" in line:
                ratio = line["value"] / line["limit"]
                text += f"  beside {line['beside']} {line['limit']:.4g}: {ratio:.2f}"
            if "target" in line:
                text += f", {line['sense']} {line['target']}"
            print(text, flush=True)
        if path := os.environ.get("BENCH_FIGURES"):
            with open(path, "a", encoding="utf-8") as out:
                for line in lines:
                    out.write(json.dumps(line, separators=(",", ":")) + "\n")


def pods_are_in(daemon: Daemon) -> Json | None:
    """The log line that says that all pods are read."""
    if not daemon.process.alive:
        raise RuntimeError(f"cardpack has ended: {daemon.process.tail()}")
    entries = daemon.log("list is in")
    return next((entry for entry in entries if entry["kind"] == "Pod"), None)


def when(entry: Json) -> float:
    """A log line's time, in seconds since 1970."""
    return datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00")).timestamp()


def figures(version: str, rounds: Sequence[Round]) -> Iterable[dict[str, Any]]:
    """Medians of cardpack next to curl's."""

    def median(values: Iterable[float]) -> float:
        return float(f"{statistics.median(values):.9g}")

    def line(what: str, value: float, unit: str) -> dict[str, Any]:
        return {
            "table": "sync-apiserver", "what": f"{what}, {version}", "value": value, "unit": unit,
        }  # fmt: skip

    yield line(
        "start to all pods",
        median(one.curl.bytes / MIB / one.cardpack.seconds for one in rounds),
        "MiB/s",
    ) | {
        "beside": "curl alone",
        "limit": median(one.curl.bytes / MIB / one.curl.seconds for one in rounds),
        "target": 0.5,
        "sense": "at least",
    }
    yield line("processor time", median(one.cardpack.processor for one in rounds), "s") | {
        "beside": "curl alone",
        "limit": median(one.curl.processor for one in rounds),
    }
    yield line("peak memory", median(one.cardpack.peak / MIB for one in rounds), "MiB")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="bench-apiserver",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--releases", type=lambda text: text.split(","), metavar="X,Y",
        help="default: all that are here",
    )  # fmt: skip
    parser.add_argument("--pods", type=int, help="default: 8000")
    parser.add_argument("--pod-bytes", type=int, default=7500, help="about; default: 7500")
    parser.add_argument("--nodes", type=int, help="default: 200")
    parser.add_argument("--page", type=int, help="pods a page; default: 500, as cardpack's")
    parser.add_argument("--rounds", type=int, help="default: 7")
    parser.add_argument("--quick", action="store_true", help="shows that it works, in half a minute")
    parser.add_argument("--keep", action="store_true", help="keep the logs in any case")
    parser.add_argument("--binary", type=Path, default=ROOT / "build-bench" / "cardpack")
    options = parser.parse_args(argv)
    options.quick = options.quick or "BENCH_QUICK" in os.environ
    options.pods = options.pods or (300 if options.quick else 8000)
    options.nodes = options.nodes or (20 if options.quick else 200)
    options.page = options.page or (100 if options.quick else 500)
    options.rounds = options.rounds or (1 if options.quick else 7)
    options.binary = options.binary.resolve()
    if -(-options.pods // EVERY) * max(SIZES) > options.nodes * CARDS * CARD_SIZE:
        parser.error(f"{options.pods} pods want more than {options.nodes} nodes have")
    for version in options.releases or ():
        if version not in VERSIONS:
            parser.error(f'--releases "{version}": {" or ".join(VERSIONS)}')
    return options


def main() -> int:
    """See the top of this file."""
    options = parse(sys.argv[1:])
    here = available_versions()
    for version in options.releases or VERSIONS:
        if version not in here:
            print(f"skipped: {version} is not here, scripts/control-plane {version} makes it")
    options.releases = [v for v in options.releases or here if v in here]
    if not options.releases:
        return 77
    workdir = Path(tempfile.mkdtemp(prefix="cardpack-bench-"))
    bench = Bench(options, workdir)
    bench.run()
    if bench.failed or options.keep:
        print(f"logs are in {workdir}")
    else:
        shutil.rmtree(workdir)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return int(bench.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
