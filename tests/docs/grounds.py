"""Where a document's blocks run: a working folder, an embedded cluster, a real control plane."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import yaml  # noqa: E402
from bench import LEADS_ON, Bench, Options  # noqa: E402
from cluster import available_versions, find_programs  # noqa: E402
from component import Ports, die_with_parent, wait_for  # noqa: E402
from daemon import Daemon  # noqa: E402

COPIED = ("manifests", "config", "docs", "scripts")
PORTS = re.compile(r"127\.0\.0\.1:(?:32766|39999)\b")
SYSTEM = re.compile(r"(?<![\w./$}~-])/(etc|var/lib)(?=/)")

# A daemon that a document starts runs until the document's end, on the port of its requests.
_CARDPACK = """\
#!/bin/bash
case " $* " in *" --check-config "*|*" --help "*|*" -h "*|*" --version "*) exec {binary} "$@";; esac
{binary} "$@" --port {port} --log-format json >/dev/null 2>{log} &
echo $! >>{pids}
for try in {{1..200}}; do
    grep -q '"msg":"listening"' {log} && exit 0
    kill -0 $! 2>/dev/null || break
    sleep 0.05
done
cat {log} >&2
exit 1
"""

# No kubelet can give the log of a pod, so the test only asks the API server whether the object exists.
_KUBECTL = """\
#!/bin/bash
for word; do
    [[ $word != logs ]] || {{ {kubectl} -n kube-system get deployment/cardpack >/dev/null && exec grep '^{{' {log}; }}
done
exec {kubectl} "$@"
"""


class Failed(AssertionError):
    """A block is not right."""


class Cluster:
    """A real control plane, started when the first block needs it."""

    def __init__(self, binary: Path, workdir: Path) -> None:
        self.version = next(iter(reversed(available_versions())), "")
        self._binary = binary
        self._workdir = workdir / "cluster"
        self._bench: Bench | None = None
        self._taken_away = False

    @property
    def bench(self) -> Bench:
        """The bench, started, with nodes and cardpack."""
        if self._bench is None:
            self._bench = Bench(Options(self._binary, self._binary), self._workdir, self.version)
            self._bench.open()
            self._bench.scenario = "docs"
            text = (ROOT / "config" / "example-cluster.yaml").read_text()
            for item in yaml.safe_load(text)["items"]:
                if item["kind"] == "Node":
                    meta, status = item["metadata"], item["status"]
                    self._bench.cluster.create_node(
                        meta["name"], status["capacity"], meta.get("labels"),
                        meta.get("annotations"), allocatable=status["allocatable"],
                    )  # fmt: skip
            self._bench.cardpack(*LEADS_ON)
        return self._bench

    @property
    def kubectl(self) -> Path:
        """The path of kubectl."""
        return find_programs(self.version) / "kubectl"

    @property
    def log(self) -> Path:
        """cardpack's output."""
        return self.bench.daemons[0].process.log

    def begin(self) -> None:
        """The state at the beginning of every document: manifests/ applied."""
        manifests = ROOT / "manifests"
        base = manifests / "base"
        what = ("-k", str(base)) if base.is_dir() else ("-f", str(manifests))
        self.bench.cluster.kubectl("apply", *what)
        daemon = self.bench.daemons[0]
        if self._taken_away:  # with its ServiceAccount, and so its token
            daemon.stop()
            token = self.bench.cluster.service_account_token("kube-system", "cardpack")
            self.bench.cluster.write_kubeconfig(self.bench.kubeconfig, token)
            daemon.start()
            self._taken_away = False

    def clear(self) -> None:
        """Removes what a document has left."""
        if self._bench is None:
            return
        kubectl = self._bench.cluster.kubectl
        account = kubectl("-n", "kube-system", "get", "sa", "cardpack", check=False)
        self._taken_away = account.returncode != 0
        for kind in ("deployments", "daemonsets", "replicasets", "pods"):
            kubectl("delete", kind, "--all", "--all-namespaces", "--grace-period=0", "--force",
                    "--wait=false", check=False)  # fmt: skip
        for kind in ("services", "configmaps"):
            kubectl("-n", "kube-system", "delete", kind, "--all", check=False)

    def scheduler_reads(self, text: str) -> None:
        """Lets kube-scheduler read a configuration; it then ends because it has no API server."""
        folder = self._workdir / "read"
        folder.mkdir(parents=True, exist_ok=True)
        config = yaml.safe_load(text)
        (folder / "kubeconfig").write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
            "users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        )
        config["clientConnection"] = {"kubeconfig": str(folder / "kubeconfig")}
        for extender in config.get("extenders", []):
            extender.pop("tlsConfig", None)  # its files do not exist here
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        program = find_programs(self.version_for(config["apiVersion"])) / "kube-scheduler"
        run = subprocess.run(
            [program, "--config", folder / "config.yaml", "--write-config-to", folder / "out.yaml",
             "--secure-port", "0", "--authentication-skip-lookup"],
            capture_output=True, text=True, timeout=60, preexec_fn=die_with_parent(),
        )  # fmt: skip
        if not (folder / "out.yaml").exists():
            raise Failed(f"kube-scheduler does not read it: {run.stderr[-800:]}")
        (folder / "out.yaml").unlink()

    def version_for(self, api: str) -> str:
        """The release that reads a configuration of that API version."""
        return "1.20.2" if api.endswith("v1beta1") else self.version

    def close(self) -> None:
        """Ends the processes that run."""
        if self._bench is not None:
            self._bench.close()


class Place:
    """One document's working folder, and the server of its requests."""

    def __init__(self, binary: Path, folder: Path, cluster: Cluster, world: str | None) -> None:
        self.binary = binary
        self.folder = folder
        self.cluster = cluster
        self._ports = Ports()
        self.port = self._ports.take()
        self._daemon: Daemon | None = None
        self._began = False
        self._started = 0
        self.flags: tuple[str, ...] = ()
        self.asks_cluster = False  # also blocks without kubectl
        folder.mkdir(parents=True)
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name)
        (folder / "root" / "etc").mkdir(parents=True)
        (folder / "root" / "var" / "lib").mkdir(parents=True)
        self.world = folder / "config" / "example-cluster.yaml"
        if world is not None:
            self.world = folder / "document-cluster.yaml"
            self.world.write_text(world)
        self._programs()

    def _programs(self) -> None:
        """Makes cardpack and kubectl available under the names in the blocks."""
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        (self.folder / "build").mkdir()
        text = _CARDPACK.format(
            binary=self.binary, port=self.port,
            log=self.folder / "started.log", pids=self.folder / "pids",
        )  # fmt: skip
        for path in (self.bin / "cardpack", self.folder / "build" / "cardpack"):
            path.write_text(text)
            path.chmod(0o755)
        (self.bin / "cardpack-sim").symlink_to(self.binary.with_name("cardpack-sim"))

    def on_cluster(self) -> dict[str, str]:
        """The environment of a block that uses the control plane."""
        log = self.cluster.log
        if not self._began:
            self.cluster.begin()
            self._began = True
        shim = self.bin / "kubectl"
        shim.write_text(_KUBECTL.format(kubectl=self.cluster.kubectl, log=log))
        shim.chmod(0o755)
        return self._env() | {"KUBECONFIG": str(self.cluster.bench.cluster.admin_kubeconfig)}

    def embedded(self) -> dict[str, str]:
        """The environment of a block that uses the embedded cluster."""
        if self._daemon is None and not (self.folder / "pids").exists():
            self._daemon = self.start(*self.flags)
        return self._env()

    def start(self, *flags: str) -> Daemon:
        """Starts cardpack with the document's cluster; returns when it listens."""
        self._started += 1
        args = ["--cluster", str(self.world), *flags]
        daemon = Daemon(self.binary, self.folder, self.port, None, args, name=f"own-{self._started}")
        daemon.launch()
        wait_for(lambda: daemon.log("listening") or not daemon.process.alive, "cardpack to listen")
        if not daemon.process.alive:
            raise Failed(f"cardpack does not start: {daemon.process.tail(5)}")
        return daemon

    def restart(self, flags: tuple[str, ...]) -> None:
        """Starts cardpack with these flags for the following blocks."""
        self.stop()
        self.flags = flags

    def _env(self) -> dict[str, str]:
        path = f"{self.bin}:{os.environ.get('PATH', os.defpath)}"
        return {"PATH": path, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}

    def run(self, text: str, on_cluster: bool) -> subprocess.CompletedProcess[str]:
        """Runs a script of the document."""
        if not on_cluster and re.search(r"(?m)^\s*(?:build/)?cardpack\b(?!.*--check-config)", text):
            self.stop()
        env = self.on_cluster() if on_cluster else self.embedded_unless(text)
        port = self.cluster.bench.port if on_cluster else self.port
        text = PORTS.sub(f"127.0.0.1:{port}", text)
        text = SYSTEM.sub(rf"{self.folder}/root/\1", text)
        text = re.sub(r"(?m)^(.*\S)\s+# refused\b.*$", r"if \1; then exit 90; fi", text)
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text], cwd=self.folder, env=env, timeout=300,
            capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent(),
        )  # fmt: skip

    def embedded_unless(self, text: str) -> dict[str, str]:
        """The embedded environment, or an empty one for a block that sends no requests."""
        return self.embedded() if PORTS.search(text) else self._env()

    def stop(self) -> None:
        """Ends the document's own cardpacks."""
        if self._daemon is not None:
            self._daemon.stop()
            self._daemon = None
        pids = self.folder / "pids"
        if pids.exists():
            for pid in pids.read_text().split():
                try:
                    os.kill(int(pid), signal.SIGTERM)
                    wait_for(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"{pid} to end")
                except ProcessLookupError:
                    pass
            pids.unlink()

    def close(self) -> None:
        """Ends the document."""
        try:
            self.stop()
        finally:
            self._ports.close()
            if self._began:
                self.cluster.clear()
