"""The first process of a machine (machine.py): makes its file systems, then reaps orphans.

It runs as process 1 of its own mount, PID, IPC and UTS namespaces, which `unshare` made:

    machine_init.py FOLDER NAME CARDS CGROUP...

FOLDER/kubelet becomes /var/lib/kubelet; CGROUP is a folder of the machine's own in each hierarchy of
control groups, and becomes the root of that hierarchy. CARDS: how many /dev/nvidiaN there are. Nothing
that it mounts is seen outside, and all of it goes when it ends. FOLDER/init has its PID, as the test
sees it, once the machine is up.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import stat
import sys
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWCGROUP = 0x02000000
_BIND, _REC, _PRIVATE, _SHARED, _DETACH = 1 << 12, 1 << 14, 1 << 18, 1 << 20, 2
_NOSUID, _NODEV, _NOEXEC = 2, 4, 8
_NVIDIA = 195  # the major number of NVIDIA's driver

# What the kubelet wants of the kernel, and else sets for the whole machine: it finds it so in files
# that lie over those of the kernel.
_TUNABLES = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "kmsg")


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    done = _LIBC.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags),
        data.encode() or None,
    )  # fmt: skip
    _check(done, f"mount {source} on {target}")


def _tmpfs(target: str, mode: str = "755") -> None:
    _mount("tmpfs", target, "tmpfs", _NOSUID, f"mode={mode}")


def _enter_cgroups(cgroups: list[Path]) -> None:
    """Joins the machine's control groups, which are the roots from here on."""
    for cgroup in cgroups:
        (cgroup / "cgroup.procs").write_text("0")
    _check(_LIBC.unshare(_CLONE_NEWCGROUP), "unshare the control groups")


def _mount_cgroups(cgroups: list[Path]) -> None:
    if (cgroups[0] / "cgroup.controllers").exists():  # version 2: one hierarchy
        _check(_LIBC.umount2(b"/sys/fs/cgroup", _DETACH), "umount /sys/fs/cgroup")
        _mount("cgroup2", "/sys/fs/cgroup", "cgroup2", _NOSUID | _NODEV | _NOEXEC)
        return
    kinds = [hierarchy(cgroup) for cgroup in cgroups]
    _check(_LIBC.umount2(b"/sys/fs/cgroup", _DETACH), "umount /sys/fs/cgroup")
    _tmpfs("/sys/fs/cgroup")
    for kind in kinds:
        target = f"/sys/fs/cgroup/{kind}"
        os.mkdir(target)
        data = "none,name=systemd" if kind == "systemd" else kind
        _mount("cgroup", target, "cgroup", _NOSUID | _NODEV | _NOEXEC, data)


def _show_cgroups(folder: Path) -> None:
    """The containers' control groups in a tree that looks like one of version 2: FOLDER/cgroup.

    NVIDIA's driver wants folders of version 2. On a host with version 1 the folders of one of its
    hierarchies take their place: the same names, made and removed by the same runtime.
    """
    tree = folder / "cgroup"
    tree.mkdir(exist_ok=True)
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        _mount("/sys/fs/cgroup", str(tree), flags=_BIND)
        return
    (tree / "cgroup.controllers").touch()
    (tree / "memory").mkdir(exist_ok=True)
    _mount("/sys/fs/cgroup/memory", str(tree / "memory"), flags=_BIND)


def hierarchy(cgroup: Path) -> str:
    """The name of the hierarchy of version 1 that a folder is in: "cpu", "cpu,cpuacct", "systemd"."""
    return cgroup.relative_to("/sys/fs/cgroup").parts[0]


def _mount_proc(folder: Path) -> None:
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    for name, value in _TUNABLES.items():
        if not os.path.exists(f"/proc/sys/{name}"):
            continue
        own = folder / "tunables" / name
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(f"{value}\n")
        _mount(str(own), f"/proc/sys/{name}", flags=_BIND)


def _mount_dev(folder: Path, cards: int) -> None:
    """A /dev of its own: the usual devices, and those of NVIDIA's driver, which nobody can open."""
    dev = folder / "dev"
    dev.mkdir(exist_ok=True)
    _tmpfs(str(dev))
    for name in _DEVICES:
        if os.path.exists(f"/dev/{name}"):
            (dev / name).touch()
            _mount(f"/dev/{name}", str(dev / name), flags=_BIND)
    for name in ("pts", "shm", "mqueue"):
        (dev / name).mkdir()
    _mount("devpts", str(dev / "pts"), "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    _tmpfs(str(dev / "shm"), "1777")
    _mount("mqueue", str(dev / "mqueue"), "mqueue", _NOSUID | _NODEV | _NOEXEC)
    (dev / "ptmx").symlink_to("pts/ptmx")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (dev / name).symlink_to(f"/proc/self/fd/{number}")
    (dev / "fd").symlink_to("/proc/self/fd")
    nodes = {f"nvidia{card}": (_NVIDIA, card) for card in range(cards)}
    nodes |= {"nvidiactl": (_NVIDIA, 255), "nvidia-uvm": (510, 0), "nvidia-uvm-tools": (510, 1)}
    for name, (major, minor) in nodes.items() if cards else ():
        os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        os.chmod(dev / name, 0o666)
    _mount(str(dev), "/dev", flags=_BIND | _REC)


def _mount_var(folder: Path) -> None:
    """/var/lib/kubelet outlives the machine, as a disk does; /run and /var/log do not."""
    (folder / "kubelet").mkdir(exist_ok=True)
    lib = folder / "lib"
    lib.mkdir(exist_ok=True)
    (lib / "kubelet").mkdir(exist_ok=True)
    _mount(str(folder / "kubelet"), str(lib / "kubelet"), flags=_BIND)
    _mount(str(lib), "/var/lib", flags=_BIND | _REC)
    # The folder may lie below one of these: then it has to stay visible.
    for path in ("/run", "/var/log"):
        if not folder.is_relative_to(os.path.realpath(path)):
            _tmpfs(os.path.realpath(path))


def _reap() -> None:
    while True:
        signal.sigwait([signal.SIGCHLD])
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def main(argv: list[str]) -> None:
    """See the top of this file."""
    folder, name, cards = Path(argv[0]), argv[1], int(argv[2])
    cgroups = [Path(one) for one in argv[3:]]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    outside = os.readlink("/proc/self")  # /proc is still the test's
    socket.sethostname(name)
    _enter_cgroups(cgroups)
    _mount("none", "/", flags=_PRIVATE | _REC)
    _mount_proc(folder)
    _tmpfs("/proc/driver")  # where NVIDIA's driver names the device nodes of slices
    _mount_cgroups(cgroups)
    _show_cgroups(folder)
    _mount_dev(folder, cards)
    _mount_var(folder)
    _mount("none", "/", flags=_SHARED | _REC)  # as systemd has it; only within this machine
    fresh = folder / ".init"
    fresh.write_text(outside)
    fresh.rename(folder / "init")
    _reap()


if __name__ == "__main__":
    main(sys.argv[1:])
