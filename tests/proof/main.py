"""
Shows on a machine with an NVIDIA card what cardpack-node builds on, fact by fact; docs/real-cards.md.

    gpu-proof run       prints a line for each fact, and writes all of them to a file
    gpu-proof facts     prints the names of the facts

It ends every process that has come from it, also when the run fails or is interrupted. When it is killed, they
end by themselves.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import of_mps
import of_node
import of_nvml
from base import FACTS, Options, about, not_here, told

ALL_S = 285  # the run, with its end, takes five minutes
STEP_S = {"nvml": 120, "node": 150}  # MPS has what is left
PR_SET_CHILD_SUBREAPER = 36
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What users have set for their own programs is not for ours.
THEIRS = ("CUDA_", "NVIDIA_", "DP_", "PYTHON", "NODE_NAME", "KUBECONFIG", "LOG_LEVEL", "NOTIFY_SOCKET")


class Late(Exception):
    """A step takes too long; the next ones show what they can."""


class Stop(BaseException):
    """Of the whole run."""


def on_signal(signo: int, _: object) -> None:
    """In the middle of a step."""
    if signo == signal.SIGALRM:
        raise Late("the step takes too long")
    raise Stop("the run was interrupted")


def step(name: str, end: float, run: Any, *arguments: Any) -> Any:
    """What it has found; None: it has failed."""
    seconds = min(STEP_S.get(name, ALL_S), int(end - time.monotonic()))
    if seconds <= 0:
        not_here(f"{name}*", "the five minutes are over")
        return None
    signal.alarm(seconds)
    try:
        return run(*arguments)
    except Exception as e:  # noqa: BLE001
        traceback.print_exc()
        not_here("*" if name == "nvml" else f"{name}*", f"the step has failed: {e!r}")
        return None
    finally:
        signal.alarm(0)


def work(o: Options) -> None:
    """All steps."""
    end = time.monotonic() + ALL_S
    card = step("nvml", end, of_nvml.facts, o)
    if card is not None:
        step("node", end, of_node.facts, o, card)
        step("mps", end, of_mps.facts, o, card)


def run(o: Options, path: str) -> int:
    """The exit status."""
    ended = "complete"
    for signo in (*SIGNALS, signal.SIGALRM):
        signal.signal(signo, on_signal)
    try:
        work(o)
    except Stop as e:
        ended = str(e)
    for signo in SIGNALS:
        signal.signal(signo, signal.SIG_IGN)
    end_all()
    not_here("*", "the step that shows it has ended before" if ended == "complete" else ended)
    facts = [{k: v for k, v in told[name].items() if v} for name in FACTS]
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = json.dumps({"when": when, "ended": ended, **about, "facts": facts}, indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")
    return 2 if ended != "complete" else int(any(f["verdict"] == "refuted" for f in facts))


def parent_of(pid: str) -> int:
    """0: it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])  # the name before it may have anything


def end_all() -> None:
    """Ends the processes that have come from this one: orphans are its children, too."""
    stop = time.monotonic() + 10
    while time.monotonic() < stop:
        mine = [pid for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == os.getpid()]
        for pid in mine:
            with suppress(ProcessLookupError):  # some kernels say so of one that has ended, and is not waited for
                os.kill(int(pid), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)
    print("gpu-proof: a process of this run can't be ended", file=sys.stderr)


def make_cgroup() -> str:
    """One of version 2; empty: none can be made here."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        path = f"{root}/gpu-proof-{os.getpid()}"
        try:
            if os.path.exists(f"{root}/cgroup.procs"):
                os.mkdir(path)
                return path
        except OSError:
            pass
    return ""


def remove_cgroup(path: str) -> None:
    """With those in it."""
    for folder in sorted(Path(path).rglob("*/"), reverse=True) if path else []:
        if folder.is_dir():
            folder.rmdir()
    if path:
        os.rmdir(path)


def main() -> int:
    """See the top of this file."""
    home, *arguments = sys.argv[1:]
    for name in [n for n in os.environ if n.startswith(THEIRS)]:
        del os.environ[name]
    p = argparse.ArgumentParser(prog="gpu-proof", description=__doc__, add_help=True,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    p.add_argument("verb", choices=["run", "facts"])
    p.add_argument("--card", type=int, default=0, help="its index in NVIDIA's library")
    p.add_argument("--nvml", default=Options.nvml, help="NVIDIA's library, where the loader does not find it")
    p.add_argument("--json", default=f"{home}/facts.json", help="the file for the facts")
    p.add_argument("--rest", type=int, default=60, help="seconds for which cardpack-node is looked at while it rests")
    a = p.parse_args(arguments)
    if a.verb == "facts":
        print("\n".join(FACTS))
        return 0
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tmp = tempfile.mkdtemp(prefix="gpu-proof-")
    os.chmod(tmp, 0o755)  # other users' clients read it
    os.environ |= {"CUDA_MPS_PIPE_DIRECTORY": f"{tmp}/no-mps", "CUDA_CACHE_DISABLE": "1"}
    o = Options(home, tmp, make_cgroup(), a.nvml, a.card, a.rest)
    try:
        return run(o, a.json)
    finally:
        end_all()
        remove_cgroup(o.cgroup)
        shutil.rmtree(tmp)


if __name__ == "__main__":
    sys.exit(main())
