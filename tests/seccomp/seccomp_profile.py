#!/usr/bin/env python3
"""
Runs a program under a seccomp profile, as a container runtime does, with libseccomp, on which Debian's
apt depends.

    seccomp_profile.py [--fatal] PROFILE COMMAND...

--fatal kills the program at the first denied call, instead of failing the call: a test must also find
denied calls that the program survives.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

Json = Any

LIBRARY = "libseccomp.so.2"
ERRNO = 0x00050000
ACTIONS = {
    "SCMP_ACT_ALLOW": 0x7FFF0000,
    "SCMP_ACT_KILL_PROCESS": 0x80000000,
    "SCMP_ACT_ERRNO": ERRNO,
}
OPERATORS = {
    "SCMP_CMP_NE": 1,
    "SCMP_CMP_LT": 2,
    "SCMP_CMP_LE": 3,
    "SCMP_CMP_EQ": 4,
    "SCMP_CMP_GE": 5,
    "SCMP_CMP_GT": 6,
    "SCMP_CMP_MASKED_EQ": 7,
}
EPERM = 1
NO_SUCH_CALL = -1
KNOWN_KEYS = {"comment", "names", "action", "errnoRet", "args"}


class Compare(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


def library() -> ctypes.CDLL:
    """libseccomp; OSError if it is missing."""
    lib = ctypes.CDLL(LIBRARY, use_errno=True)
    lib.seccomp_init.restype = ctypes.c_void_p
    lib.seccomp_init.argtypes = [ctypes.c_uint32]
    lib.seccomp_release.argtypes = [ctypes.c_void_p]
    lib.seccomp_load.argtypes = [ctypes.c_void_p]
    lib.seccomp_arch_resolve_name.restype = ctypes.c_uint32
    lib.seccomp_arch_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    lib.seccomp_syscall_resolve_name_arch.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    lib.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p,
    ]  # fmt: skip
    return lib


def read(path: Path) -> Json:
    """The profile."""
    profile: Json = json.loads(path.read_text())
    for rule in profile["syscalls"]:
        assert set(rule) <= KNOWN_KEYS, f"{path}: {set(rule) - KNOWN_KEYS}"
    return profile


def architectures(lib: ctypes.CDLL, profile: Json) -> list[int]:
    """libseccomp's tokens of the profile's architectures."""
    names = [name.removeprefix("SCMP_ARCH_").lower() for name in profile["architectures"]]
    return [lib.seccomp_arch_resolve_name(name.encode()) for name in names]


def number(lib: ctypes.CDLL, name: str, arch: int = 0) -> int:
    """A call's number; NO_SUCH_CALL if no architecture has it; arch 0 is this machine's."""
    found: int = lib.seccomp_syscall_resolve_name_arch(arch, name.encode())
    return found


def _action(rule: Json) -> int:
    action = ACTIONS[rule["action"]]
    return action | rule.get("errnoRet", EPERM) if action == ERRNO else action


def _add(lib: ctypes.CDLL, context: int, rule: Json) -> None:
    args = rule.get("args", [])
    compares = (Compare * max(1, len(args)))()
    for i, arg in enumerate(args):
        compares[i] = Compare(
            arg["index"], OPERATORS[arg["op"]], arg["value"], arg.get("valueTwo", 0)
        )
    for name in rule["names"]:
        call = number(lib, name)
        if call == NO_SUCH_CALL:  # a runtime skips calls that its libseccomp does not know
            continue
        code = lib.seccomp_rule_add_array(context, _action(rule), call, len(args), compares)
        if code != 0:
            raise OSError(-code, f"{name}: {os.strerror(-code)}")


def install(profile: Json, *, fatal: bool = False) -> None:
    """Installs it for this thread and all its children."""
    lib = library()
    default = {"action": profile["defaultAction"], "errnoRet": profile.get("defaultErrnoRet", EPERM)}
    context = lib.seccomp_init(ACTIONS["SCMP_ACT_KILL_PROCESS"] if fatal else _action(default))
    for arch in architectures(lib, profile):
        code = lib.seccomp_arch_add(context, arch)
        assert code in (0, -17), os.strerror(-code)  # EEXIST: the native architecture
    for rule in profile["syscalls"]:
        _add(lib, context, rule)
    code = lib.seccomp_load(context)
    if code != 0:
        raise OSError(-code, f"seccomp_load: {os.strerror(-code)}")
    lib.seccomp_release(context)


def wrapper(path: Path, profile: Path, program: Path, *, fatal: bool) -> Path:
    """Writes a script that runs the program under the profile."""
    words = [sys.executable, __file__, *(["--fatal"] if fatal else []), str(profile), str(program)]
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o700)
    return path


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fatal", action="store_true")
    parser.add_argument("profile", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    install(read(args.profile), fatal=args.fatal)
    os.execv(args.command[0], args.command)


if __name__ == "__main__":
    main()
