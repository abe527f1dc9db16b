"""cardpack-node on a real node, with the double of NVIDIA's library.

    agent = Agent(bench, worker, sizes=(16, 16))
    agent.start()
    agent.show(...)                # changes what NVML answers
    faults = agent.judge()         # containers on a wrong card, cards over their size, now
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterable, Sequence
from http.client import HTTPException
from threading import Event, Thread

from bench import Bench, check
from component import START_SECONDS, Component, Ports, wait_for
from container_truth import judge
from worker import Worker

RESOURCE = "aliyun.com/gpu-mem"
COUNT = "aliyun.com/gpu-count"


def card_line(index: int, units: int, mib: int = 1024) -> str:
    """One card for the double; mib: of a unit."""
    return f"card uuid=GPU-{index} name=NVIDIA_A100 bus={0x3B + index:#x} minor={index} mib={units * mib}\n"


class Agent:
    """One cardpack-node; it ends with its node. sizes: units of each card, of so many MiB."""

    def __init__(self, bench: Bench, worker: Worker, sizes: Sequence[int], *flags: str, mib: int = 1024) -> None:
        self.bench = bench
        self.worker = worker
        self.sizes = list(sizes)
        self.world = worker.folder / "nvml-world"
        self._ports = Ports()
        self.port = self._ports.take()
        self.show([card_line(index, units, mib) for index, units in enumerate(sizes)])
        build = bench.options.binary.resolve().parent
        self.program = worker.add_program(
            Component(
                "cardpack-node",
                [
                    build / "cardpack-node",
                    f"--node-name={worker.name}",
                    f"--kubeconfig={worker.cluster.admin_kubeconfig}",
                    f"--nvml={build / 'tests' / 'nvml' / 'libnvidia-ml.so'}",
                    f"--state={worker.folder / 'cards'}",
                    f"--listen=127.0.0.1:{self.port}",
                    "--log-level=debug",
                    *flags,
                ],
                worker.folder,
                self.ready,
                env={"CARDPACK_NVML_WORLD": str(self.world)},
                where=worker.machine.inside,
            )
        )

    def show(self, lines: Iterable[str]) -> None:
        """What NVML answers from now on."""
        fresh = self.world.with_suffix(".new")
        fresh.write_text("".join(lines))
        fresh.rename(self.world)

    def start(self) -> None:
        """Starts it, and waits until the kubelet has its devices and the API server its cards."""
        self.program.start()
        self.wait_capacity()

    def wait_capacity(self) -> None:
        """Waits until the node has all units and cards."""
        wait_for(
            lambda: (self.worker.capacity(RESOURCE), self.worker.capacity(COUNT))
            == (sum(self.sizes), len(self.sizes)),
            f"{self.worker.name} to have {sum(self.sizes)} units",
            START_SECONDS,
            poll=0.1,
        )

    def ready(self) -> bool:
        """Whether it says that it is ready."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def metric(self, name: str) -> float:
        """A metric without labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.split()[1])
        raise KeyError(name)

    def judge(self) -> list[str]:
        """Containers on another card than annotated, and cards over their size, at this moment."""
        containers = self.worker.containers()  # first: an annotation is there before its container
        pods = self.bench.cluster.list_all("/api/v1/pods")
        cards = {f"GPU-{index}": index for index in range(len(self.sizes))}
        return judge(containers, pods, cards, dict(enumerate(self.sizes)))


class Watching:
    """Judges again and again in a thread, while the `with` runs; then no fault may have been seen."""

    def __init__(self, look: Callable[[], list[str]]) -> None:
        self._look = look
        self._end = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.moments = 0
        self.faults: list[str] = []
        self.trouble: list[str] = []

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._end.set()
        self._thread.join(60)
        if kind is None:
            check(not self.faults, self.faults[:5])
            check(self.moments > 0, f"nothing was looked at: {self.trouble[:3]}")

    def _run(self) -> None:
        while not self._end.wait(0.05):
            try:
                self.faults += self._look()
                self.moments += 1
            except (OSError, RuntimeError, HTTPException) as why:  # the API server is away
                self.trouble.append(str(why))
            except Exception as why:  # the thread may not end unnoticed
                self.faults.append(f"cannot look: {why!r}")
