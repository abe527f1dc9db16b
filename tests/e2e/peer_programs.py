"""The real schedulers of other projects, as scripts/agents builds them, with a kube-scheduler that calls them.

    program = program_of(bench, peer)     # None: OTHER_SCHEDULERS names no folder that has it
    program.start()
    program.compare()                     # its count is that of other_schedulers.py
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

from bench import Bench
from component import Component, wait_for
from other_agents import Family
from other_schedulers import Account, Peer

_MIB = 1 << 20
_HAMI = """\
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
  overwriteEnv: false
  defaultMemory: 0
  defaultCores: 0
  defaultGPUNum: 1
  memoryFactor: 1
"""


class Program:
    """One of them. argv and env: {config}, {port}, {other} and {folder} are filled in."""

    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}
    probe = "version"
    prefix = "scheduler"
    extender = ""  # the rest of its entry in kube-scheduler's configuration

    def __init__(self, bench: Bench, peer: Peer, binary: Path) -> None:
        self.bench, self.peer = bench, peer
        folder = bench.workdir / f"{bench.scenario}-program"
        folder.mkdir(exist_ok=True)
        (folder / "hami.yaml").write_text(_HAMI)
        self.port, self.other = bench.ports.take(), bench.ports.take()
        values = {"config": bench.cluster.admin_kubeconfig, "port": self.port, "other": self.other, "folder": folder}
        self.component = Component(
            peer.program,
            [binary, *(one.format(**values) for one in self.argv)],
            folder,
            self.answers,
            env={key: value.format(**values) for key, value in self.env.items()},
        )

    def answers(self) -> bool:
        """Whether it is ready."""
        try:
            return bool(self.get(self.port, self.probe))
        except OSError:
            return False

    def get(self, port: int, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def start(self) -> None:
        """Starts it, and kube-scheduler with its entry instead of cardpack's."""
        self.component.start()
        self.compare()
        lines = "".join(f"  {line}\n" for line in self.extender.splitlines())
        names = {"default-scheduler", self.peer.name}
        profiles = "".join(f"- schedulerName: {name}\n" for name in sorted(names))
        self.bench.cluster.end_scheduler()
        self.bench.cluster.start_scheduler(
            None,
            extra=f"podInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 2\nprofiles:\n{profiles}"
            f"extenders:\n- urlPrefix: http://127.0.0.1:{self.port}/{self.prefix}\n{lines}",
        )

    def stop(self) -> None:
        """Ends it, and kube-scheduler before."""
        self.compare()
        self.bench.cluster.end_scheduler()
        self.component.kill()

    def count(self) -> Account | None:
        """Its own count; None: it does not say it."""
        return None

    def compare(self) -> None:
        """Waits until its count is the one of other_schedulers.py."""
        if self.count() is None:
            return
        try:
            wait_for(lambda: self.count() == self.peer.account(), f"the count of {self.peer.program}", 40, poll=0.1)
        except TimeoutError:
            raise AssertionError(f"it counts {self.count()}, not {self.peer.account()}") from None


class GpuAdmission(Program):
    """gpu-admission, which says nothing of its count."""

    argv = ("--address=127.0.0.1:{port}", "--pprofAddress=127.0.0.1:{other}", "--kubeconfig={config}",
            "--logtostderr=true", "--v=4")  # fmt: skip
    extender = "filterVerb: predicates\nnodeCacheCapable: false\nenableHTTPS: false"


class ElasticScheduler(Program):
    """elastic-gpu-scheduler."""

    argv = ("-priority=binpack", "-mode=gpushare", "-kubeconf={config}", "-v=5")
    env = {"PORT": "{port}", "THREADNESS": "1"}
    extender = (
        "filterVerb: filter\nprioritizeVerb: priorities\nbindVerb: bind\nweight: 1\nnodeCacheCapable: true\n"
        "managedResources:\n- name: elasticgpu.io/gpu-memory\n- name: elasticgpu.io/gpu-core"
    )

    def count(self) -> Account | None:
        """It knows the nodes that it has been asked about, or that have pods of its label."""
        agents = self.peer.agents.items()
        found: Account = {name: {card: (0, 0) for card in range(agent.cards)} for name, agent in agents}
        for text in json.loads(self.get(self.port, "scheduler/status")).values():  # of each resource, both the same
            for node, cards in json.loads(text).items():
                for i, card in enumerate(cards):
                    used = card["MemoryTotal"] - card["MemoryAvailable"], card["CoreTotal"] - card["CoreAvailable"]
                    found[node][i] = used
        return found


class HamiScheduler(Program):
    """HAMi's, without its webhook."""

    argv = ("--http_bind=127.0.0.1:{port}", "--metrics-bind-address=127.0.0.1:{other}",
            "--scheduler-name=hami-scheduler", "--device-config-file={folder}/hami.yaml", "-v=4")  # fmt: skip
    env = {"KUBECONFIG": "{config}", "POD_NAMESPACE": "kube-system", "POD_NAME": "hami-scheduler"}
    probe, prefix = "healthz", ""
    extender = (
        "filterVerb: filter\nbindVerb: bind\nweight: 1\nnodeCacheCapable: true\nhttpTimeout: 30s\nmanagedResources:"
        + "".join(
            f"\n- name: nvidia.com/{name}\n  ignoredByScheduler: true"
            for name in ("gpu", "gpumem", "gpucores", "gpumem-percentage", "priority")
        )
    )

    def answers(self) -> bool:
        """It reads the nodes' tables every 15 s."""
        try:
            return self.count() is not None and all(self._rows("hami_gpu_memory_allocated_bytes"))
        except OSError:
            return False

    def _rows(self, metric: str) -> list[tuple[str, str, float]]:
        """Node, UUID and value of each row."""
        found = re.findall(rf"^{metric}{{(.*)}} (\S+)$", self.get(self.other, "metrics"), re.MULTILINE)
        rows = []
        for labels, value in found:
            of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            rows.append((of["node"], of["device_uuid"], float(value)))
        return rows

    def count(self) -> Account | None:
        found: Account = {name: {} for name in self.peer.agents}
        values = {key: {(n, u): v for n, u, v in self._rows(f"hami_gpu_{key}")}
                  for key in ("memory_allocated_bytes", "core_allocated_ratio")}  # fmt: skip
        for node, uuid in values["memory_allocated_bytes"]:
            agent = self.peer.agents.get(node)
            if isinstance(agent, Family):
                mem, cores = (of[node, uuid] for of in values.values())
                found[node][agent.card(uuid)] = (int(mem) // _MIB, round(cores))
        return found


_PROGRAMS: dict[str, Callable[[Bench, Peer, Path], Program]] = {
    "gpu-admission": GpuAdmission,
    "elastic-gpu-scheduler": ElasticScheduler,
    "hami-scheduler": HamiScheduler,
}


def program_of(bench: Bench, peer: Peer) -> Program | None:
    """The real program of a scheduler that other_schedulers.py plays."""
    folder = os.environ.get("OTHER_SCHEDULERS", "")
    binary = Path(folder).resolve() / peer.program
    if not (folder and peer.program and binary.exists()):
        return None
    return _PROGRAMS[peer.program](bench, peer, binary)
