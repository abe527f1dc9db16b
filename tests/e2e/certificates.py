"""Certificates for a test, made with openssl: CAs, and the certificates that they sign.

    ca = Authority(workdir, "ca")
    server = ca.sign("cardpack", "serverAuth", "IP:127.0.0.1")
    client = ca.sign("scheduler", "clientAuth")
    trust(ca, client)                  # an ssl.SSLContext: trusts ca, and shows client
"""

from __future__ import annotations

import itertools
import os
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_SERIAL = itertools.count(1)


def _openssl(*args: str | Path) -> None:
    done = subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]}: {done.stderr}")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    cert: Path
    key: Path

    def put(self, folder: Path) -> Pair:
        """Copies the pair as tls.crt and tls.key into the folder. An existing pair is replaced
        atomically with a symbolic link, as the kubelet does in a mounted Secret.
        """
        version = folder / f"..{next(_SERIAL)}"
        version.mkdir(parents=True)
        (version / "tls.crt").write_bytes(self.cert.read_bytes())
        (version / "tls.key").write_bytes(self.key.read_bytes())
        fresh = folder / "..fresh"
        fresh.symlink_to(version.name)
        os.replace(fresh, folder / "..data")
        for name in ("tls.crt", "tls.key"):
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(f"..data/{name}")
        return Pair(folder / "tls.crt", folder / "tls.key")


class Authority:
    """A CA, and a folder with the certificates that it signed."""

    def __init__(self, workdir: Path, name: str) -> None:
        self._folder = workdir / f"{name}-{next(_SERIAL)}"
        self._folder.mkdir(parents=True)
        self.pair = Pair(self._folder / "ca.crt", self._folder / "ca.key")
        _openssl(
            "req", "-x509", *_CURVE, "-days", "2", "-subj", f"/CN={name}",
            "-keyout", self.pair.key, "-out", self.pair.cert,
        )  # fmt: skip

    def sign(self, name: str, purpose: str, names: str = "", days: int = 2) -> Pair:
        """Signs a certificate; names: "IP:127.0.0.1,DNS:x"; days=-1: the certificate has expired."""
        serial = next(_SERIAL)
        path = self._folder / f"{serial}"
        pair = Pair(path.with_suffix(".crt"), path.with_suffix(".key"))
        text = f"extendedKeyUsage={purpose}\n" + (f"subjectAltName={names}\n" if names else "")
        path.with_suffix(".ext").write_text(text)
        _openssl(
            "req", *_CURVE, "-subj", f"/CN={name}",
            "-keyout", pair.key, "-out", path.with_suffix(".csr"),
        )  # fmt: skip
        _openssl(
            "x509", "-req", "-days", str(days), "-in", path.with_suffix(".csr"),
            "-extfile", path.with_suffix(".ext"), "-CA", self.pair.cert, "-CAkey", self.pair.key,
            "-set_serial", str(serial), "-out", pair.cert,
        )  # fmt: skip
        return pair


def trust(
    server: Authority, client: Pair | None = None, version: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """
    A client's SSLContext: the CA that it trusts, the certificate that it shows, and one TLS version or
    any.
    """
    context = ssl.create_default_context(cafile=str(server.pair.cert))
    if client is not None:
        context.load_cert_chain(client.cert, client.key)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context
