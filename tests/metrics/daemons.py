"""cardpack in this test."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

from component import Ports

VERBS = "/gpushare-scheduler"
PORTS = Ports()


def free_port() -> int:
    """A port that no process uses, and that stays free: other tests may run beside this one."""
    return PORTS.take()


class Cardpack:
    """The daemon, running until `stop`."""

    def __init__(self, binary: str, *flags: str, tls: bool = False) -> None:
        self.tls, self.probes = tls, free_port()
        self.process = subprocess.Popen(
            [binary, "--port=0", f"--probe-port={self.probes}", "--log-format=json", *flags],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = 0
        for line in self.process.stderr:
            entry = json.loads(line)
            if entry["msg"] == "listening":
                self.port = entry["port"]
            if entry["msg"] == "probes":
                break
        else:
            raise SystemExit(f"cardpack ended with {self.process.wait()} before it listened")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, method: str, path: str, body: Any = None, port: int = 0) -> tuple[int, str, str]:
        """Sends a request; returns the status, the content type, the body."""
        if self.tls and not port:
            context = ssl._create_unverified_context()
            c = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        else:
            c = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        c.request(method, path, data)
        answer = c.getresponse()
        text = answer.read().decode()
        c.close()
        return answer.status, answer.headers.get("Content-Type", ""), text

    def verb(self, verb: str, body: Any) -> Any:
        """The answer to one of kube-scheduler's verbs."""
        return json.loads(self.ask("POST", f"{VERBS}/{verb}", body)[2])

    def inspect(self) -> Any:
        """inspect's answer for all nodes."""
        return json.loads(self.ask("GET", f"{VERBS}/inspect")[2])["nodes"]

    def stop(self) -> int:
        """Ends it; returns its exit status."""
        self.process.terminate()
        return self.process.wait()


def pod(name: str, mem: int, **limits: str) -> dict:
    """A pod that requests `mem` of one card."""
    wanted = {"aliyun.com/gpu-mem": str(mem), **limits}
    return {
        "metadata": {"name": name, "namespace": "secret-namespace", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": wanted}}]},
    }


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate, and its key."""
    crt, key = folder / "tls.crt", folder / "tls.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-keyout", key, "-out", crt, "-days", "30", "-subj", "/CN=cardpack",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return crt, key
