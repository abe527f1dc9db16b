"""The images of the tests' containers, made without any tool, as OCI archives.

    write(busybox, folder / "image.tar")        # Debian's busybox
    write_cardpack(root, folder / "cardpack.tar")   # what scripts/image-root has put into a folder
    # ctr -n k8s.io images import image.tar

busybox is the image of pods' sandboxes too, so its command sleeps.
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
CARDPACK = "docker.io/library/cardpack:0.1.0"  # "cardpack:0.1.0" in manifests/
CARDPACK_NODE = "docker.io/library/cardpack-node:0.1.0"
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
    """Writes busybox' image as an archive that `ctr images import` reads."""
    running = {"Cmd": ["/bin/sleep", "2147483647"], "Env": ["PATH=/bin"]}
    _write(NAME, _layer(busybox), running, archive)


def write_cardpack(root: Path, archive: Path, *, node: bool = False) -> None:
    """Writes the image of manifests/image/Containerfile, or its target cardpack-node, of the files that it takes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in sorted(root.iterdir()):
            tar.add(path, path.name)
    running = {"Entrypoint": ["/usr/bin/cardpack"], "User": "65532:65532"}
    if node:
        running = {"Entrypoint": ["/usr/bin/cardpack-node"], "User": "0:0"}
    _write(CARDPACK_NODE if node else CARDPACK, out.getvalue(), running, archive)


def _write(name: str, layer: bytes, running: dict[str, Any], archive: Path) -> None:
    """Writes an image of one layer; running: what its containers run."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    config = {
        "architecture": _MACHINES[platform.machine()],
        "os": "linux",
        "config": running,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), f"{_TYPE}.config.v1+json"),
        "layers": [blob(gzip.compress(layer, 1), f"{_TYPE}.layer.v1.tar+gzip")],
    }
    entry = blob(json.dumps(manifest).encode(), f"{_TYPE}.manifest.v1+json")
    entry["annotations"] = {"io.containerd.image.name": name}
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    with tarfile.open(archive, "w") as tar:
        for name, content in blobs.items():
            file = tarfile.TarInfo(name)
            file.size = len(content)
            tar.addfile(file, io.BytesIO(content))
