"""
What each floor's library calls, as the linker sees it: core calls nothing but base and
memory's arithmetic, codec does no I/O, base knows no library of the floors above, memory
is allocated in base's mem.o alone, and nobody starts a thread or a process, but for the one
module of kubectl-cardpack that is made for it, which the daemon does not have.

    symbols.py NM DAEMON LIBRARY...        (cardpack libbase.a libcore.a ...)
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from house import FLOORS, Tap

# What compiler and sanitizers put into any object (clang makes bcmp of a memcmp for equality), and
# functions that only compute.
HARMLESS = re.compile(
    r"""
      mem(cpy|move|set|cmp|chr|rchr|mem) | bcmp | strlen | strnlen | __mem(cpy|move|set)_chk
    | __assert_fail | __stack_chk_fail | _GLOBAL_OFFSET_TABLE_
    | __u?(div|mod|mul|divmod)[dt]i[34] | __(pop|par)count[dt]i2
    | __(asan|ubsan|lsan|tsan|msan|sanitizer|gcov|llvm|sancov|tls_get)_\w+
    """,
    re.VERBOSE,
)
# Parts of base that are not for the pure floors: a log line and a file are I/O.
BASE_IO = re.compile(r"(log|file)_\w+")
LIBRARIES = re.compile(r"(curl|MHD|json|yaml|epoll|gnutls|SSL)_\w+")
IO = re.compile(
    r"""
      (curl|MHD|json|epoll|file|log)_\w+
    | (open|openat|creat|fopen|fdopen|freopen|popen|opendir|stat|fstat|lstat|access|unlink)(64)?
    | (__)?p?(read|write)v?(64)?(_chk)? | f(read|write|gets|puts|printf|scanf|close|flush) | close
    | printf | puts | putchar | perror | sendfile(64)? | dup[23]? | pipe2? | mmap(64)? | ioctl | fcntl(64)?
    | socket | socketpair | connect | accept4? | bind | listen | send(to|msg)? | recv(from|msg)?
    | select | p?poll | getaddrinfo | getenv | secure_getenv | system | fork | exec\w+
    | time | clock | clock_gettime | gettimeofday | localtime(_r)? | nanosleep | u?sleep
    | rand(_r)? | random | getrandom | getentropy
    """,
    re.VERBOSE,
)
ALLOCATOR = re.compile(
    r"""
      malloc | calloc | realloc | reallocarray | free | memalign | posix_memalign | aligned_alloc
    | strn?dup | v?asprintf | (__)?v?asprintf_chk | getline | getdelim | open_memstream | realpath
    """,
    re.VERBOSE,
)
# One thread and no lock: nothing can race for the cache.
PROCESSES = r"v?fork|clone3?|posix_spawnp?|f?exec[lv]\w*|system|popen"
THREADS = re.compile(r"(pthread|thrd|mtx|cnd|tss|sem)_\w+|" + PROCESSES)
# The module that runs a kubeconfig's credential plugin, as kubectl itself does; and what it may call.
SPAWNER = "app_kubectl_exec.c.o"
SPAWNS = re.compile(r"posix_spawn")
STARTS = re.compile(PROCESSES + "|kubectl_exec")

Symbols = dict[str, set[str]]  # of each object in a library


def symbols(nm: str, library: Path, option: str) -> Symbols:
    """The undefined (-u) or defined (--defined-only) symbols of each object in a library."""
    out = subprocess.run(
        [nm, "--format=posix", option, library], check=True, capture_output=True, text=True
    ).stdout
    found: Symbols = {}
    member = ""
    for line in out.splitlines():
        head = re.fullmatch(r".*\[(.+)\]:", line)
        if head:
            member = Path(head[1]).name  # of a thin archive it is a path
        elif line.strip():
            found.setdefault(member, set()).add(line.split()[0])
    return found


def every(of: Symbols) -> set[str]:
    """A library's symbols, whatever object they are in."""
    return set().union(*of.values())


def findings(of: Symbols, wrong) -> list[str]:
    """A line for each call that is wrong."""
    return [f"{obj} calls {s}" for obj, names in sorted(of.items()) for s in sorted(names) if wrong(s)]


def check(nm: str, libraries: dict[str, Path], tap: Tap) -> None:
    """Every floor's own rules."""
    calls = {floor: symbols(nm, path, "-u") for floor, path in libraries.items()}
    has = {floor: every(symbols(nm, path, "--defined-only")) for floor, path in libraries.items()}
    pure = has["core"] | {s for s in has["base"] if not BASE_IO.fullmatch(s)}
    tap.check(
        "core calls core, base and nothing else",
        findings(calls["core"], lambda s: s not in pure and not HARMLESS.fullmatch(s)),
    )
    tap.check("base knows no library", findings(calls["base"], LIBRARIES.fullmatch))
    tap.check("codec does no I/O", findings(calls["codec"], IO.fullmatch))
    for floor, of in calls.items():
        if floor == "base":
            tap.check("base has an allocator", [] if of.get("base_mem.c.o") else ["no mem.o"])
            of = {obj: names for obj, names in of.items() if obj != "base_mem.c.o"}
        tap.check(f"{floor} allocates through mem.h", findings(of, ALLOCATOR.fullmatch))
        tap.check(f"{floor} starts no thread", findings(threads_of(calls[floor]), THREADS.fullmatch))


def threads_of(calls: Symbols) -> Symbols:
    """Without what the one module is allowed, and with all else that it calls."""
    return {
        obj: {s for s in names if obj != SPAWNER or not SPAWNS.fullmatch(s)} for obj, names in calls.items()
    }


def check_daemon(nm: str, daemon: Path, tap: Tap) -> None:
    """The module is not in the daemon, nor anything else by which it could start a program."""
    run = [nm, "--format=posix", daemon]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    names = {line.split()[0].split("@")[0] for line in out.splitlines() if line.strip()}
    assert "main" in names, f"{daemon} has no symbols"
    wrong = sorted(s for s in names if STARTS.fullmatch(s))
    tap.check("the daemon starts no process", [f"it has {s}" for s in wrong])


def main() -> int:
    """See the top of this file."""
    libraries = {Path(name).stem.removeprefix("lib"): Path(name) for name in sys.argv[3:]}
    assert set(libraries) == set(FLOORS), f"expected one library a floor, got {sys.argv[3:]}"
    tap = Tap()
    check(sys.argv[1], libraries, tap)
    check_daemon(sys.argv[1], Path(sys.argv[2]), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
