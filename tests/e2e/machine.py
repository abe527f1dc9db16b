"""A machine of a cluster for a test: namespaces of its own, in which programs run as on a node.

    machine = Machine("n1", folder, cards=2)
    machine.start()
    kubelet = Component("kubelet", argv, folder, ready, where=machine.inside)
    machine.cut_power()                # all its processes are gone at once, also containers
    machine.start()                    # /var/lib/kubelet is as it was; /run is empty
    machine.close()

The kubelet has paths that no option changes: /var/lib/kubelet/device-plugins, and /run, /dev, /proc/sys
and the control groups besides. So each machine has its own mount, PID, IPC, UTS and control group
namespaces, and several tests run on one host at the same time. The network is the host's. A process that
ends the machine's first process ends all of them, with their mounts; this happens also when the test is
killed. What is left then are empty control groups, which the next machine removes.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from component import Component, wait_for

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_CLONE_NEWPID = 0x20000000
# The mount namespace is the last: the paths of the others are those of the test.
_JOINED = ("cgroup", "ipc", "uts", "mnt")
_CGROUPS = Path("/sys/fs/cgroup")
_SERIAL = itertools.count(1)
_NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")


class Unsuited(Exception):
    """This host can't have such a machine, for the given reason."""


def _own_cgroups() -> dict[str, str]:
    """The control group of this process in each hierarchy of version 1, by the hierarchy's name."""
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds:
            found[kinds.removeprefix("name=")] = path.lstrip("/")
    return found


def _hierarchies() -> list[Path]:
    """The folders in which a machine's control groups are made: one for each hierarchy."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    # Below our own, so that what limits the test limits its machines.
    own = {kind: _CGROUPS / kind / path for kind, path in _own_cgroups().items()}
    present = {part for kind, path in own.items() if path.is_dir() for part in kind.split(",")}
    if lacking := set(_NEEDED) - present:
        raise Unsuited(f"no control groups for {', '.join(sorted(lacking))}")
    return [path for path in own.values() if path.is_dir()]


def _remove_cgroups(top: Path) -> None:
    """Removes a control group with those below it, as far as no process is in them."""
    for folder, _, _ in os.walk(top, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)


def _sweep(hierarchies: list[Path]) -> None:
    """Removes what the machines of tests left that were killed."""
    for parent in hierarchies:
        for old in parent.glob("cardpack-machine-*-*"):
            owner = old.name.split("-")[2]
            if owner.isdigit() and not Path("/proc", owner).exists():
                _remove_cgroups(old)


def remaining() -> list[Path]:
    """The control groups of this process' machines: none once they are closed."""
    pattern = f"cardpack-machine-{os.getpid()}-*"
    return [found for parent in _hierarchies() for found in parent.glob(pattern)]


def _enable_controllers(top: Path, group: Path) -> None:
    """Version 2: passes the controllers on to the machine's group."""
    try:
        for folder in (top, group):
            names = (folder / "cgroup.controllers").read_text().split()
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in names))
    except OSError as error:
        raise Unsuited(f"control groups: {error}") from None


class Machine:
    """One machine, with the host's network."""

    def __init__(self, name: str, folder: Path, cards: int = 0) -> None:
        if os.geteuid() != 0:
            raise Unsuited("a machine needs root")
        if shutil.which("unshare") is None:
            raise Unsuited("no unshare")
        self.name = name
        self.folder = folder.resolve()
        self.cards = cards
        self.folder.mkdir(parents=True, exist_ok=True)
        self._cgroups: list[Path] = []
        self._init = 0
        self._component: Component | None = None

    def start(self) -> None:
        """Boots it."""
        self._make_cgroups()
        (self.folder / "init").unlink(missing_ok=True)
        script = Path(__file__).resolve().with_name("machine_init.py")
        argv: list[str | os.PathLike[str]] = [
            "unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL",
            os.path.realpath(sys.executable), "-I", script,
            self.folder, self.name, str(self.cards), *self._cgroups,
        ]  # fmt: skip
        up = self.folder / "init"
        self._component = Component("machine", argv, self.folder, up.exists)
        self._component.start()
        self._init = int(up.read_text())

    @property
    def running(self) -> bool:
        """Whether its power is on."""
        return self._component is not None and self._component.alive

    def cut_power(self) -> None:
        """Kills all that runs in it, at once. Its Components' kill() then reaps them."""
        if self._component is not None:
            self._component.kill()
            self._component = None

    def close(self) -> None:
        """Cuts the power, and waits until nothing is left. The Components have been killed before."""
        self.cut_power()
        deadline = time.monotonic() + 30
        while any(one.exists() for one in self._cgroups):
            for one in self._cgroups:
                _remove_cgroups(one)
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name}: processes are left in {self._cgroups}")
            time.sleep(0.01)

    @contextmanager
    def inside(self) -> Iterator[Callable[[], None]]:
        """For a Component's `where`: what the calling thread forks meanwhile runs in the machine."""
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        held = [own]
        try:
            for kind in ("pid", *_JOINED):
                held.append(os.open(f"/proc/{self._init}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC))
            _setns(held[1], _CLONE_NEWPID)  # of this thread's children alone
            try:
                yield lambda: self._join(held[2:])
            finally:
                _setns(own, _CLONE_NEWPID)
        finally:
            for descriptor in held:
                os.close(descriptor)

    def path(self, inner: str) -> Path:
        """A file of the machine, as the test sees it."""
        return Path(f"/proc/{self._init}/root{inner}")

    def processes(self) -> Iterator[Path]:
        """The machine's processes: their folders in its /proc."""
        for entry in os.scandir(self.path("/proc")):
            if entry.name.isdigit():
                yield Path(entry.path)

    # ---- inside -----------------------------------------------------------------------------

    def _make_cgroups(self) -> None:
        self.close()
        hierarchies = _hierarchies()
        _sweep(hierarchies)
        name = f"cardpack-machine-{os.getpid()}-{next(_SERIAL)}"
        self._cgroups = [parent / name for parent in hierarchies]
        for one in self._cgroups:
            one.mkdir()
            for file in ("cpuset.cpus", "cpuset.mems"):  # empty in a new group of version 1
                if (one / file).exists() and (one.parent / "cgroup.clone_children").exists():
                    (one / file).write_text((one.parent / file).read_text())
        if hierarchies == [_CGROUPS]:
            # A group with processes can't pass controllers on, so they are in one below it.
            _enable_controllers(_CGROUPS, self._cgroups[0])

    def _join(self, namespaces: list[int]) -> None:
        """In the child, before it becomes the program."""
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != 0:  # the test is outside, so 0; it died if that is another
            os._exit(1)
        for one in self._cgroups:
            (one / "cgroup.procs").write_text("0")
        for descriptor in namespaces:
            _setns(descriptor, 0)
        os.chdir("/")


def _setns(descriptor: int, kind: int) -> None:
    if _LIBC.setns(descriptor, kind) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


__all__ = ["Machine", "Unsuited", "wait_for"]
