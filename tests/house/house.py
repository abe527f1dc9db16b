"""Shared code of the house checks: TAP output, and the files of the tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# The folders of src/, and for each the other folders whose headers it may include.
SEES = {
    "base": (),
    "core": ("base",),
    "json": ("base",),
    "objects": ("base", "core", "json"),
    "extender": ("base", "core", "json", "objects"),
    "kubelet": ("base", "json"),
    "io": ("base",),
    "grpc": ("base", "io"),
    "gpu": ("base", "io"),
    "kube": ("base", "core", "json", "objects", "io"),
    "report": ("base", "core", "json", "objects", "extender"),
    "daemon": ("base", "core", "json", "objects", "extender", "io", "kube", "report"),
    "kubectl": ("base", "core", "json", "objects", "extender", "io", "kube", "report"),
    "node": (
        *("base", "core", "json", "objects", "extender", "kubelet"),
        *("io", "grpc", "gpu", "kube", "report"),
    ),
    "sim": ("base", "core", "json", "objects", "extender", "report"),
}
FOLDERS = tuple(SEES)
PROGRAMS = ("daemon", "kubectl", "node", "sim")  # their headers are in the folder of their sources
MAY_LOG = ("kube", "report", *PROGRAMS)
SHOWN = 20  # the most findings that one check prints


class Tap:
    """
    Test Anything Protocol on standard output: a check passes if it has no findings. Findings go to
    standard error, which meson shows for a failed test.
    """

    def __init__(self) -> None:
        self.n = 0
        self.failed = 0

    def check(self, name: str, findings: list[str]) -> None:
        """Reports one check."""
        self.n += 1
        self.failed += bool(findings)
        print(f"{'not ok' if findings else 'ok'} {self.n} - {name}", flush=True)
        for finding in findings[:SHOWN]:
            print(f"{name}: {finding.strip()}", file=sys.stderr, flush=True)
        if len(findings) > SHOWN:
            print(f"{name}: ... and {len(findings) - SHOWN} more", file=sys.stderr, flush=True)

    def finish(self) -> int:
        """Prints the plan; returns the exit status."""
        print(f"1..{self.n}", flush=True)
        return 1 if self.failed else 0


def tree(root: Path) -> list[Path]:
    """
    Every file of the project, relative to root: the files that git tracks or would track; without git,
    all but build folders and hidden files.
    """
    try:
        out = subprocess.run(
            ["git", "-C", root, "ls-files", "-coz", "--exclude-standard"],
            check=True,
            capture_output=True,
        ).stdout
        paths = [Path(name.decode()) for name in out.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [p.relative_to(root) for p in root.rglob("*")]
        paths = [
            p
            for p in paths
            if not any(
                part in (".git", "__pycache__") or part.startswith("build") for part in p.parts
            )
        ]
    return sorted({p for p in paths if (root / p).is_file()})


def read(path: Path) -> str | None:
    """A file's text; None if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def folder_of(path: Path) -> str | None:
    """The folder that a file of src/ or include/ belongs to."""
    parts = path.parts
    if len(parts) >= 3 and parts[0] in ("src", "include") and parts[1] in FOLDERS:
        return parts[1]
    return None
