"""What the steps of gpu-proof share: its options, its facts, and its processes."""

from __future__ import annotations

import fnmatch
import json
import os
import queue
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

CLIENT_S = 60  # after which a client ends by itself


@dataclass
class Options:
    """Of one run; `home` is the packed folder."""

    home: str
    tmp: str
    cgroup: str  # an empty one of this run; "": none can be made here
    nvml: str = "libnvidia-ml.so.1"
    card: int = 0
    rest: int = 60  # seconds


@dataclass
class Card:
    """What the first step has found out."""

    uuid: str
    name: str
    usable_mib: int  # without what the driver keeps
    compute_mode: int
    absent: str  # why no process can compute on it; "": one can


# ---- facts ----

FACTS = [
    "nvml-opens", "nvml-describes", "nvml-memory-versions", "nvml-reserved", "nvml-health-calls",
    "nvml-recovery-action", "nvml-holds-the-card", "nvml-lets-go", "nvml-reopens", "nvml-limits", "nvml-limits-unset",
    "nvml-limits-below-processes", "nvml-opens-without-capabilities", "nvml-limits-without-capabilities",
    "events-are-quiet", "xid-of-a-bad-store", "xid-names-the-card", "processes", "processes-end", "context-memory",
    "processes-without-capabilities", "node-table", "node-devices", "node-allocates", "node-allocates-200-a-second",
    "node-usage-of-a-pod", "node-over-share", "node-health-after-an-xid", "node-processor-at-rest",
    "node-memory-at-rest", "node-ends", "mps-socket", "mps-client", "mps-processes", "mps-memory-limit",
    "mps-read-only-pipe", "mps-kill", "mps-other-user", "mps-quit", "mps-several-users", "mps-shm-of-a-card",
    "mps-own-shm", "mps3-namespace-caps", "mps3-leaf-only",
]  # fmt: skip
told: dict[str, dict[str, str]] = {}
about: dict[str, str] = {}  # the card, its driver


def tell(verdict: str, names: str, seen: str, expected: str = "") -> None:
    """One fact, or with a * each one that fits; what is told already stays."""
    for name in fnmatch.filter(FACTS, names):
        if name not in told:
            told[name] = {"fact": name, "verdict": verdict, "seen": seen, "expected": expected}
            print(f"{verdict} {name}: {seen}" + (f", expected: {expected}" if expected else ""), flush=True)


def fact(name: str, so: Any, seen: str, expected: str) -> None:
    """Proved or refuted."""
    tell("proved" if so else "refuted", name, seen, "" if so else expected)


def not_here(names: str, why: str) -> None:
    """This machine can't show it."""
    tell("not here", names, why)


def unseen() -> bool:
    """NVML has named no process as it is here: this is not the host's PID namespace."""
    return told.get("processes", {}).get("verdict") == "not here"


# ---- processes ----


def command(o: Options, program: str, *arguments: str, with_: tuple[str, ...] = ()) -> list[str]:
    """Runs a program of the folder, or one of the machine's by its path, so that it ends with us.
    with_: see `probe as`. Our own run under our own loader: the machine's C library may be older."""
    path = ":".join([f"{o.home}/lib", *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    ours = [f"{o.home}/lib/ld-linux-x86-64.so.2", "--library-path", path]
    run = [program] if program.startswith("/") else [*ours, f"{o.home}/bin/{program}"]
    return [*ours, f"{o.home}/bin/probe", "as", *with_, "--", *run, *arguments]


class Process:
    """One that is talked with, line by line."""

    def __init__(self, arguments: list[str], **env: str) -> None:
        self.process = subprocess.Popen(
            arguments, env={**os.environ, **env}, text=True, bufsize=1, errors="replace",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.pid = self.process.pid
        self._lines: queue.Queue[str] = queue.Queue()
        self.ended = False  # its output
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self.ended = True
        self._lines.put("")

    def line(self, seconds: float) -> str:
        """The next line; empty: none in that time, or it has ended."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return ""

    def say(self, text: str) -> None:
        """A line."""
        assert self.process.stdin
        self.process.stdin.write(text + "\n")

    def finish(self) -> str:
        """Ends its input; the last line that it prints."""
        assert self.process.stdin
        self.process.stdin.close()
        last = ""
        while line := self.line(10):
            last = line
        return last

    @property
    def runs(self) -> bool:
        """Whether it goes on."""
        return self.process.poll() is None

    def kill(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait(10)


class Client(Process):
    """A process that uses CUDA; `first` is "ready ..." or says why it can't."""

    def __init__(self, o: Options, mib: int, *with_: str, seconds: int = 20, **env: str) -> None:
        super().__init__(command(o, "probe", "client", str(mib), str(CLIENT_S), with_=with_), **env)
        self.first = self.line(seconds) or (
            "absent: it has ended without a word" if self.ended else f"it says nothing for {seconds} s"
        )
        self.ready = self.first.startswith("ready ")


class Nvml(Process):
    """NVIDIA's management library in a process of its own; see nvml.c."""

    def __init__(self, o: Options) -> None:
        super().__init__(command(o, "probe", "nvml", o.nvml, str(o.card)))

    def ask(self, question: str, seconds: float = 60) -> Any:
        """The answer."""
        self.say(question)
        answer = self.line(seconds)
        if not answer:
            raise TimeoutError(f"no answer of NVML to: {question}")
        return json.loads(answer)


def until(seconds: float, done: Callable[[], Any]) -> Any:
    """What done() has returned last: true, unless the time is over."""
    end = time.monotonic() + seconds
    while not (result := done()) and time.monotonic() < end:
        time.sleep(0.02)
    return result


def folder(o: Options, name: str) -> Path:
    """A new one of this run."""
    path = Path(o.tmp) / name
    path.mkdir()
    return path
