"""
Checks the calls of each library of src/ in its symbols: core calls only base and the arithmetic of
memory, json, objects, extender and kubelet also the formatting of text, json also libyaml, base calls no library above it, only base's
mem.o allocates memory, and nothing starts a thread or a process, except one module of
kubectl-cardpack, one of cardpack-sim and the thread for NVML, which the daemon lacks.

    symbols.py NM DAEMON LIBRARY...        (cardpack libbase.a libcore.a ...)
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from house import FOLDERS, Tap

# Functions that compilers and sanitizers add to any object (clang replaces an equality memcmp with
# bcmp), and functions that only compute.
HARMLESS = re.compile(
    r"""
      mem(cpy|move|set|cmp|chr|rchr|mem) | bcmp | strlen | strnlen | __mem(cpy|move|set)_chk
    | __assert_fail | __stack_chk_fail | _GLOBAL_OFFSET_TABLE_
    | __u?(div|mod|mul|divmod)[dt]i[34] | __(pop|par)count[dt]i2
    | __(asan|ubsan|lsan|tsan|msan|sanitizer|gcov|llvm|sancov|tls_get)_\w+
    """,
    re.VERBOSE,
)
# What core may call of the C library beyond that: functions of numbers.
MATH = re.compile(r"exp2? | log | sqrt | lrint", re.VERBOSE)
# Parts of base that the pure libraries may not call: a log line and a file are I/O.
BASE_IO = re.compile(r"(log|file)_\w+")
LIBRARIES = re.compile(r"(curl|MHD|json|yaml|epoll|gnutls|nghttp2|SSL)_\w+")
# What the libraries of formats may call beyond the pure ones: text and numbers in memory; json alone
# also libyaml, on a text in memory.
TEXT = re.compile(r"(__)?v?snprintf(_chk)? | strchr | strtod | qsort_r", re.VERBOSE)
YAML = re.compile(r"yaml_(event|parser)_(?!set_input_file)\w+")
FORMATS = ("json", "objects", "extender", "kubelet")
ALLOCATOR = re.compile(
    r"""
      malloc | calloc | realloc | reallocarray | free | memalign | posix_memalign | aligned_alloc
    | strn?dup | v?asprintf | (__)?v?asprintf_chk | getline | getdelim | open_memstream | realpath
    """,
    re.VERBOSE,
)
# Forbidden calls: with one thread and no lock there can be no race for the cache.
PROCESSES = r"v?fork|clone3?|posix_spawnp?|f?exec[lv]\w*|system|popen"
THREADS = re.compile(r"(pthread|thrd|mtx|cnd|tss|sem)_\w+|" + PROCESSES)
# The module that makes NVML's calls in a thread of its own, and the calls that it may make for that.
THREADER = "gpu_gpu_thread.c.o"
THREAD = re.compile(r"pthread_\w+")
# The module that runs kubectl, and the calls that it may make.
SPAWNER = "kubectl_child.c.o"
SPAWNS = re.compile(r"fork|execv")
# The module that runs simulations in child processes of this program.
FORKER = "sim_jobs.c.o"
FORKS = re.compile(r"fork")
STARTS = re.compile(PROCESSES + "|kubectl_child_start|jobs_run|gpu_thread_start")

Symbols = dict[str, set[str]]  # by object of a library


@cache
def symbols(nm: str, library: Path, option: str) -> Symbols:
    """
    The undefined (-u) or defined (--defined-only) symbols of each object in a library. A library is read
    once: selftest.py asks again and again for those that it does not change.
    """
    out = subprocess.run(
        [nm, "--format=posix", option, library], check=True, capture_output=True, text=True
    ).stdout
    found: Symbols = {}
    member = ""
    for line in out.splitlines():
        head = re.fullmatch(r".*\[(.+)\]:", line)
        if head:
            member = Path(head[1]).name  # in a thin archive it is a path
        elif line.strip():
            found.setdefault(member, set()).add(line.split()[0])
    return found


def every(of: Symbols) -> set[str]:
    """The symbols of all objects of a library."""
    return set().union(*of.values())


def findings(of: Symbols, wrong) -> list[str]:
    """A line for each forbidden call."""
    return [f"{obj} calls {s}" for obj, names in sorted(of.items()) for s in sorted(names) if wrong(s)]


def check(nm: str, libraries: dict[str, Path], tap: Tap) -> None:
    """Checks each library's rules."""
    calls = {folder: symbols(nm, path, "-u") for folder, path in libraries.items()}
    has = {folder: every(symbols(nm, path, "--defined-only")) for folder, path in libraries.items()}
    pure = has["core"] | {s for s in has["base"] if not BASE_IO.fullmatch(s)}

    def harmless(s: str) -> bool:
        return s in pure or HARMLESS.fullmatch(s) is not None

    tap.check(
        "core calls core, base and nothing else",
        findings(calls["core"], lambda s: not harmless(s) and not MATH.fullmatch(s)),
    )
    tap.check("base knows no library", findings(calls["base"], LIBRARIES.fullmatch))
    formats = set().union(*(has[folder] for folder in FORMATS))
    for folder in FORMATS:
        tap.check(
            f"{folder} calls pure libraries, and what TEXT and YAML allow",
            findings(
                calls[folder],
                lambda s, f=folder: s not in formats
                and not harmless(s)
                and not TEXT.fullmatch(s)
                and not (f == "json" and YAML.fullmatch(s)),
            ),
        )
    for folder, of in calls.items():
        if folder == "base":
            tap.check("base has an allocator", [] if of.get("base_mem.c.o") else ["no mem.o"])
            of = {obj: names for obj, names in of.items() if obj != "base_mem.c.o"}
        tap.check(f"{folder} allocates through mem.h", findings(of, ALLOCATOR.fullmatch))
        tap.check(f"{folder} starts no thread", findings(threads_of(calls[folder]), THREADS.fullmatch))


def threads_of(calls: Symbols) -> Symbols:
    """Removes the calls that the three modules may make, and keeps all other calls."""
    may = {SPAWNER: SPAWNS, FORKER: FORKS, THREADER: THREAD}
    return {
        obj: {s for s in names if obj not in may or not may[obj].fullmatch(s)} for obj, names in calls.items()
    }


def check_daemon(nm: str, daemon: Path, tap: Tap) -> None:
    """The daemon has neither of these modules, nor another call that could start a program."""
    run = [nm, "--format=posix", daemon]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    names = {line.split()[0].split("@")[0] for line in out.splitlines() if line.strip()}
    assert "main" in names, f"{daemon} has no symbols"
    wrong = sorted(s for s in names if STARTS.fullmatch(s))
    tap.check("the daemon starts no process", [f"it has {s}" for s in wrong])


def main() -> int:
    """See the top of this file."""
    libraries = {Path(name).stem.removeprefix("lib"): Path(name) for name in sys.argv[3:]}
    assert set(libraries) == set(FOLDERS), f"expected one library a folder, got {sys.argv[3:]}"
    tap = Tap()
    check(sys.argv[1], libraries, tap)
    check_daemon(sys.argv[1], Path(sys.argv[2]), tap)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
