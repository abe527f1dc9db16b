#!/usr/bin/env python3
"""
Tests the shipped seccomp profile: it is well formed, it denies calls that cardpack does not need, and
cardpack answers every golden request under it. In that last test a denied call is fatal, so a new
system call in the program or in a library fails the test.

    profile_test.py PROFILE CARDPACK ROUTES.PY GOLDEN_FOLDER
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import seccomp_profile as profile

Json = Any

# No kernel returns this errno for any of these calls, so it comes from the filter.
DENIED = 133  # EHWPOISON
PR_SET_VMA = 0x53564D41
SIGCHLD = 17
CLONE_THREAD = 0x10000
CLONE_VM = 0x100
TIOCSTI = 0x5412
BAD = -1  # no valid descriptor, process or address: harmless if the filter fails

CALLS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("ptrace", (BAD,)),
    ("process_vm_readv", (BAD,)),
    ("process_vm_writev", (BAD,)),
    ("pidfd_getfd", (BAD,)),
    ("kcmp", (BAD,)),
    ("perf_event_open", (0, BAD)),
    ("bpf", (BAD,)),
    ("userfaultfd", (BAD,)),
    ("io_uring_setup", (0, 0)),
    ("memfd_create", (0, BAD)),
    ("mount", (0, 0, 0, 0, 0)),
    ("umount2", (0, 0)),
    ("pivot_root", (0, 0)),
    ("chroot", (0,)),
    ("unshare", (BAD,)),
    ("setns", (BAD, 0)),
    ("open_by_handle_at", (BAD, 0, 0)),
    ("init_module", (0, 0, 0)),
    ("finit_module", (BAD, 0, 0)),
    ("kexec_load", (0, 0, 0, BAD)),
    ("reboot", (0, 0, 0, 0)),
    ("swapon", (0, 0)),
    ("keyctl", (BAD,)),
    ("add_key", (0, 0, 0, 0, 0)),
    ("personality", (BAD,)),
    ("syslog", (BAD,)),
    ("execveat", (BAD, 0, 0, 0, 0)),
    ("fork", ()),
    ("vfork", ()),
    ("clone", (SIGCHLD, 0, 0, 0, 0)),
    ("kill", (BAD, 0)),
    ("rt_sigqueueinfo", (BAD, 0, 0)),
    ("unlinkat", (BAD, 0, 0)),
    ("renameat2", (BAD, 0, BAD, 0, 0)),
    ("linkat", (BAD, 0, BAD, 0, 0)),
    ("symlinkat", (0, BAD, 0)),
    ("mkdirat", (BAD, 0, 0)),
    ("mknodat", (BAD, 0, 0, 0)),
    ("fchmodat", (BAD, 0, 0)),
    ("ftruncate", (BAD, 0)),
    ("setsid", ()),
    ("sched_setattr", (BAD, 0, 0)),
    ("openat2", (BAD, 0, 0, 0)),
    ("openat", (BAD, 0, os.O_RDWR, 0)),
    ("openat", (BAD, 0, os.O_WRONLY | os.O_CREAT, 0)),
    ("openat", (BAD, 0, os.O_WRONLY | os.O_TRUNC, 0)),
    ("openat", (BAD, 0, os.O_WRONLY | os.O_APPEND, 0)),
    ("socket", (socket.AF_PACKET, socket.SOCK_RAW, 0)),
    ("socket", (38, socket.SOCK_SEQPACKET, 0)),  # AF_ALG
    ("socket", (40, socket.SOCK_STREAM, 0)),  # AF_VSOCK
    ("ioctl", (BAD, TIOCSTI, 0)),
    ("mprotect", (0, 0, mmap.PROT_READ | mmap.PROT_EXEC)),
    ("mmap", (0, 0, mmap.PROT_WRITE | mmap.PROT_EXEC, mmap.MAP_PRIVATE, BAD, 0)),
    ("pkey_mprotect", (0, 0, mmap.PROT_EXEC, 0)),
)
# Calls that the rules on an argument must allow.
ALLOWED: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("openat", (BAD, 0, os.O_RDONLY | os.O_CLOEXEC)),
    ("socket", (socket.AF_INET, socket.SOCK_STREAM, 0)),
    ("socket", (socket.AF_INET6, socket.SOCK_STREAM, 0)),
    ("mprotect", (0, 0, mmap.PROT_READ | mmap.PROT_WRITE)),
    ("mmap", (0, 0, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, BAD, 0)),
    ("mmap", (0, 0, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, BAD, 0)),
    ("clone", (CLONE_THREAD | CLONE_VM, 0, 0, 0, 0)),  # EINVAL: a thread shares signal handlers
    ("prctl", (PR_SET_VMA, BAD)),
)


class Tap:
    """Test Anything Protocol on standard output."""

    def __init__(self) -> None:
        self.n = 0
        self.failed = 0

    def check(self, name: str, wrong: object) -> None:
        """Fails if `wrong` is not empty."""
        self.n += 1
        self.failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {self.n} - {name}", flush=True)
        if wrong:
            print(f"{name}: {wrong}", file=sys.stderr, flush=True)

    def finish(self) -> int:
        """Prints the plan; returns the exit status."""
        print(f"1..{self.n}", flush=True)
        return int(self.failed > 0)


def names(shipped: Json) -> Iterator[str]:
    """The names of all calls that it allows."""
    for rule in shipped["syscalls"]:
        yield from rule["names"]


def form(tap: Tap, shipped: Json) -> None:
    """Checks the profile as a container runtime reads it."""
    lib = profile.library()
    tap.check("what is not named is denied", shipped["defaultAction"] != "SCMP_ACT_ERRNO")
    arches = profile.architectures(lib, shipped)
    tap.check("both architectures are known", len(arches) != 2 or 0 in arches)
    unknown = [
        name
        for name in names(shipped)
        if all(profile.number(lib, name, arch) == profile.NO_SUCH_CALL for arch in arches)
    ]
    tap.check("every call is known", unknown)
    whole = [name for rule in shipped["syscalls"] if "args" not in rule for name in rule["names"]]
    tap.check("none is named twice", sorted({name for name in whole if whole.count(name) > 1}))
    partly = {name for rule in shipped["syscalls"] if "args" in rule for name in rule["names"]}
    tap.check("no condition is void", partly & set(whole))
    tap.check("every rule says why", [r for r in shipped["syscalls"] if not r.get("comment")])


def answer_of(number: int, args: tuple[int, ...]) -> int:
    """The errno of a call, 0 for none; a child process that it creates does not return."""
    libc = ctypes.CDLL(None, use_errno=True)
    me = os.getpid()
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(arg) for arg in args))
    if os.getpid() != me:
        os._exit(0)
    return ctypes.get_errno() if result == -1 else 0


def confined(shipped: Json, look: Callable[[], Json]) -> Json:
    """What `look` returns in a process under the profile."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        profile.install({**shipped, "defaultErrnoRet": DENIED})
        os.write(writable, repr(look()).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as found:
        text = found.read()
    assert os.waitpid(pid, 0)[1] == 0, "a child under the profile died"
    return eval(text)  # the text is a repr from this file


def bites(tap: Tap, shipped: Json) -> None:
    """Checks system calls under the profile."""
    lib = profile.library()

    def numbers(calls: tuple[tuple[str, tuple[int, ...]], ...]) -> list[Json]:
        numbered = [(name, args, profile.number(lib, name)) for name, args in calls]
        return [one for one in numbered if one[2] >= 0]  # not every architecture has fork

    for what, calls in (("denied", numbers(CALLS)), ("allowed", numbers(ALLOWED))):
        found = confined(shipped, lambda c=calls: [answer_of(n, args) for _, args, n in c])
        for (name, args, _), code in zip(calls, found, strict=True):
            wrong = (code == DENIED) != (what == "denied")
            shown = f"{name}({', '.join(hex(arg) if arg > 9 else str(arg) for arg in args)})"
            tap.check(f"{shown} is {what}", wrong and f"it says {os.strerror(code)}")
    clone3 = profile.number(lib, "clone3")
    code = confined(shipped, lambda: answer_of(clone3, (0, 0)))
    tap.check("clone3 is not there, and libc uses clone", code != errno.ENOSYS and code)


def suffices(tap: Tap, shipped: Path, argv: list[str]) -> None:
    """cardpack runs every golden request and its shutdown without a denied call."""
    cardpack, routes, folder = argv
    with tempfile.TemporaryDirectory() as name:
        wrapped = profile.wrapper(
            Path(name, "cardpack"), shipped.resolve(), Path(cardpack).resolve(), fatal=True
        )
        # The leak check traces this process from another one.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        run = subprocess.run(
            [sys.executable, routes, wrapped, folder, "routes"],
            env={**os.environ, "ASAN_OPTIONS": options},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    answers = [line for line in run.stdout.splitlines() if line.startswith("ok ")]
    tap.check("there are golden requests", len(answers) < 50 and run.stdout + run.stderr)
    tap.check("cardpack answers them all, and ends", run.returncode and run.stdout + run.stderr)


def main() -> int:
    """See the top of this file."""
    tap = Tap()
    path = Path(sys.argv[1])
    try:
        profile.library()
    except OSError as error:
        print(f"1..0 # SKIP {error}")
        return 0
    shipped = profile.read(path)
    form(tap, shipped)
    bites(tap, shipped)
    suffices(tap, path, sys.argv[2:])
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
