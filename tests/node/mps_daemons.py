"""
The shell script of manifests/node-mps.yaml, with doubles of NVIDIA's two programs: one control daemon
for each card, in directories that all users may write in; one that ends starts again, and the other
ones go on; a card that comes later gets one, too. At the end the cards are for all again.

    mps_daemons.py NODE_MPS_YAML
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import suppress
from pathlib import Path

CARDS = ("GPU-1", "GPU-2")
LATER = "GPU-4"
# Of another card the driver says at first that it is ill in place of its UUID, and of a third it refuses the mode. A card
# without persistence mode has forgotten its mode by then. A card that is opened may take seconds.
SMI = r"""echo "smi $*" >>"$WORLD/calls"
case $1 in
--query-gpu=uuid,compute_mode)
    for card in GPU-1 GPU-2 GPU-3; do
        mode=$(cat "$WORLD/mode.$card" 2>/dev/null)
        [ "$mode" = EXCLUSIVE_PROCESS ] && echo "$card, Exclusive_Process" || echo "$card, Default"
    done
    [ -e "$WORLD/asked" ] && echo GPU-4, Exclusive_Process || echo 'Unable to determine the device handle for GPU0000:01:00.0: Unknown Error'
    touch "$WORLD/asked"
    exit 15 ;;
--id=GPU-3) exit 15 ;;
--id=*)
    if [ "$2" = --persistence-mode=1 ]; then
        [ -e "$WORLD/slow" ] && touch "$WORLD/sets" && /bin/sleep 4
        exit 1
    fi
    echo "${2#*=}" >"$WORLD/mode.${1#*=}" ;;
--compute-mode=*) for card in "$WORLD"/mode.*; do echo "${1#*=}" >"$card"; done ;;
esac
"""
SLEEP = 'if [ "$1" = 60 ]; then set -- 1; fi; exec /bin/sleep "$@"\n'  # a minute passes in a second
CONTROL = 'echo "$CUDA_VISIBLE_DEVICES $$ $CUDA_MPS_PIPE_DIRECTORY $*" >>"$WORLD/daemons"; exec sleep 600\n'


# Of a driver that is not the library's; and of one that was, at the first call.
MISMATCH = """case $1 in --query-gpu*) echo mismatch >>"$WORLD/calls"
echo "Failed to initialize NVML: Driver/library version mismatch" ;; esac; exit 18
"""
FIRST = """case $1 in --query-gpu*) [ -e "$WORLD/calls" ] || { echo first >"$WORLD/calls"; echo GPU-1, Default; exit 0; } ;; esac
"""
MOUNT = 'echo "mount$WHERE $*" >>"$WORLD/calls"\n'
UNSHARE = 'export WHERE=" inside"; [ "$1" = -m ] && shift && exec "$@"\n'


def script(manifest: str, folder: Path) -> str:
    """The container's script, with a folder of the test in place of the node's."""
    body = manifest.split("        - |\n", 1)[1].split("        securityContext:", 1)[0]
    assert body.count("/run/cardpack/mps") == 1, body
    return textwrap.dedent(body).replace("/tmp/", f"{folder}/").replace("/run/cardpack/mps", str(folder / "mps"))


def value(manifest: str, name: str) -> str:
    """Of a variable of the container."""
    found = re.search(rf'- {{name: {name}, value: "(.*)"}}', manifest)
    assert found, name
    return found[1]


def pre_stop(manifest: str, folder: Path) -> list[str]:
    """The command that the kubelet runs before it ends the container."""
    found = re.search(r"preStop:.*\n +exec: \{command: \[(.*)\]\}", manifest)
    assert found, manifest
    return [word.replace("/tmp/stop", f"{folder}/stop") for word in found[1].split(", ")]


def daemons(folder: Path, least: int) -> list[list[str]]:
    """The starts of daemons so far: card, process, directory, flags."""
    until = time.monotonic() + 60
    path = folder / "daemons"
    while time.monotonic() < until:
        rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        if len(rows) >= least:
            return rows
        time.sleep(0.05)
    raise AssertionError(f"{least} starts of daemons: {path.read_text() if path.exists() else 'none'}")


def check(manifest: str, folder: Path, *more: str) -> None:
    """With these flags of MPS_FLAGS; without any, the manifest's own value of it."""
    (folder / "mps").mkdir()
    for name, text in (("nvidia-smi", SMI), ("nvidia-cuda-mps-control", CONTROL),
                       ("mount", MOUNT), ("mountpoint", "exit 1\n"), ("sleep", SLEEP),
                       ("unshare", UNSHARE)):
        (folder / name).write_text("#!/bin/sh\n" + text)
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "WORLD": str(folder),
                   "MPS_FLAGS": " ".join(more) or value(manifest, "MPS_FLAGS")}  # fmt: skip
    with subprocess.Popen(["bash", "-euc", script(manifest, folder)], env=environment, start_new_session=True) as shell:
        try:
            first = daemons(folder, 3)
            assert sorted(row[0] for row in first) == [*CARDS, LATER], first
            for card, _, pipe, *flags in first:
                assert pipe == str(folder / "mps" / card) and flags == ["-f", *more], first
            for name in (*(f"mps/{card}" for card in CARDS), *(f"log/{card}" for card in (*CARDS, LATER))):
                assert stat.S_IMODE((folder / name).stat().st_mode) == 0o1777, name
            log = folder / "log" / CARDS[0] / "server.log"
            log.write_bytes(bytes(11 << 20))
            calls = (folder / "calls").read_text()
            assert all(f"--id={card} --compute-mode=EXCLUSIVE_PROCESS" in calls for card in CARDS), calls
            for card in (*CARDS, LATER):  # each has a /dev/shm of its own, of bounded size
                assert re.search(rf"^mount -t tmpfs .*size=1g cardpack-mps {card}\.shm$", calls, re.MULTILINE), calls
                assert f"mount inside --bind {card}.shm /dev/shm\n" in calls, calls
            assert calls.count("/dev/shm") == calls.count("mount inside --bind"), calls
            os.kill(int(first[0][1]), signal.SIGTERM)
            again = daemons(folder, 4)
            assert again[3][0] == first[0][0], again
            for _, pid, *_ in first[1:]:
                os.kill(int(pid), 0)  # it goes on
            until = time.monotonic() + 60
            while (folder / "calls").read_text().count("--id=GPU-3") < 2:
                assert time.monotonic() < until, "the card that is ill is tried again"
                time.sleep(0.05)
            assert shell.poll() is None
            while log.stat().st_size > 0:
                assert time.monotonic() < until, "a large log is cut"
                time.sleep(0.05)
            modes = [folder / f"mode.{card}" for card in (*CARDS, LATER)]
            assert {mode.read_text() for mode in modes} == {"EXCLUSIVE_PROCESS\n"}
            modes[1].write_text("DEFAULT\n")  # the card has no persistence mode, and forgets its compute mode
            while modes[1].read_text() != "EXCLUSIVE_PROCESS\n":
                assert time.monotonic() < until, "the mode is set again"
                time.sleep(0.05)
            (folder / "slow").touch()
            modes[0].write_text("DEFAULT\n")  # the mode is being set when the kubelet ends the pod
            while not (folder / "sets").exists():
                assert time.monotonic() < until, "the mode is set again"
                time.sleep(0.05)
            subprocess.run(pre_stop(manifest, folder), env=environment, check=True)
            os.kill(int(again[3][1]), signal.SIGTERM)  # what ends from now on does not start again
            time.sleep(2)
            assert {mode.read_text() for mode in modes} == {"DEFAULT\n"}
            assert len(daemons(folder, 4)) == 4
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def check_no_driver(manifest: str, folder: Path, smi: str) -> None:
    """The container ends, so that the next one gets the programs and libraries of the driver."""
    (folder / "mps").mkdir()
    for name, text in (("nvidia-smi", smi), ("sleep", SLEEP), ("mount", MOUNT), ("mountpoint", "exit 1\n"), ("unshare", "")):
        (folder / name).write_text("#!/bin/sh\n" + text)
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "WORLD": str(folder)}
    with subprocess.Popen(["bash", "-euc", script(manifest, folder)], env=environment, start_new_session=True) as shell:
        try:
            assert shell.wait(60) == 1 and (folder / "calls").read_text().count("mismatch") == 5, shell
        finally:
            with suppress(ProcessLookupError):  # its loops may all have ended
                os.killpg(shell.pid, signal.SIGKILL)


def main() -> int:
    """See the top of this file."""
    print("1..4")
    for number, more in enumerate(((), ("-M", "-v")), 1):
        with tempfile.TemporaryDirectory() as folder:
            check(Path(sys.argv[1]).read_text(), Path(folder), *more)
        print(f"ok {number} - a control daemon of MPS for each card, with flags {more}, which starts again by itself")
    with tempfile.TemporaryDirectory() as folder:
        check_no_driver(Path(sys.argv[1]).read_text(), Path(folder), MISMATCH)
    print("ok 3 - a container without the driver's own programs ends")
    with tempfile.TemporaryDirectory() as folder:
        check_no_driver(Path(sys.argv[1]).read_text(), Path(folder), FIRST + MISMATCH)
    print("ok 4 - so does one whose driver was exchanged, once it has served a card")
    return 0


if __name__ == "__main__":
    sys.exit(main())
