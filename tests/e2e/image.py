"""The image of the tests' containers, made without any tool: Debian's busybox, as an OCI archive.

    write(busybox, folder / "image.tar")
    # ctr -n k8s.io images import image.tar

It is the image of pods' sandboxes too, so its command sleeps.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import Any

NAME = "docker.io/cardpack/busybox:1"
_APPLETS = ("sh", "sleep", "cat", "env", "ls", "mount", "true")
_TYPE = "application/vnd.oci.image"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def _layer(busybox: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        program = tarfile.TarInfo("bin/busybox")
        program.mode, program.size = 0o755, busybox.stat().st_size
        with busybox.open("rb") as file:
            tar.addfile(program, file)
        for name in _APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return out.getvalue()


def write(busybox: Path, archive: Path) -> None:
    """Writes the image as an archive that `ctr images import` reads."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    layer = _layer(busybox)
    config = {
        "architecture": _MACHINES[platform.machine()],
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "2147483647"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), f"{_TYPE}.config.v1+json"),
        "layers": [blob(gzip.compress(layer, 1), f"{_TYPE}.layer.v1.tar+gzip")],
    }
    entry = blob(json.dumps(manifest).encode(), f"{_TYPE}.manifest.v1+json")
    entry["annotations"] = {"io.containerd.image.name": NAME}
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    with tarfile.open(archive, "w") as tar:
        for name, content in blobs.items():
            file = tarfile.TarInfo(name)
            file.size = len(content)
            tar.addfile(file, io.BytesIO(content))
