"""A real Prometheus in its own folder, and its API."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

PATIENCE_S = 120  # for changes that come by themselves, on a busy machine
# Between scrapes, and for each: a program that waits for a CPU for a second must not count as one that is down.
SCRAPE = "5s"


class Prometheus:
    """Scrapes each of `jobs` (name: scheme and port) every five seconds, until `stop`."""

    def __init__(self, program: Path, folder: Path, port: int, jobs: dict[str, tuple[str, int]], rules: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        config = {
            "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {
                    "job_name": name,
                    "scheme": scheme,
                    "tls_config": {"insecure_skip_verify": True},
                    "static_configs": [{"targets": [f"127.0.0.1:{at}"]}],
                }
                for name, (scheme, at) in jobs.items()
            ],
        }
        (folder / "prometheus.json").write_text(json.dumps(config))  # JSON is also YAML
        self.log = (folder / "prometheus.log").open("w+")
        self.process = subprocess.Popen(
            [program, f"--config.file={folder}/prometheus.json", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=self.log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer; an error fails the test."""
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=60) as r:
            return json.load(r)["data"]

    def query(self, expression: str) -> list[tuple[dict, float]]:
        """Labels and value of each series; ValueError: the query is invalid."""
        try:
            result = self.get("/api/v1/query", query=expression)["result"]
        except urllib.error.HTTPError as e:
            raise ValueError(json.load(e)["error"]) from e
        return [(r["metric"], float(r["value"][1])) for r in result]

    def names(self) -> set[str]:
        """The names of all its metrics."""
        return set(self.get("/api/v1/label/__name__/values"))

    def until(self, what: str, is_so: Any) -> None:
        """Returns when is_so() is true."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if is_so():
                    return
            except (OSError, ValueError):
                pass
            if time.monotonic() > end or self.process.poll() is not None:
                self.log.seek(0)
                raise SystemExit(f"Prometheus: never {what}\n{self.log.read()[-3000:]}")
            time.sleep(0.2)

    def stop(self) -> None:
        """Ends it and waits for its end."""
        self.process.terminate()
        self.process.wait()
