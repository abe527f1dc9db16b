"""cardpack-node as it is shipped: its image, from the DaemonSet and with the rights of manifests/node.

The image has what scripts/image-root puts into it. The node has no card and no NVIDIA runtime, its network is the
host's, and there is no Service of the API server. So a patch adds to the DaemonSet:

- the double of NVIDIA's library and preload.c, a clock that can be set, in a folder of the node, and the variables that
  name them;
- a port that no other run of the tests has, and a liveness probe that asks each second;
- the files of the ServiceAccount and the API server's address, as in rollout.py;
- as /sys/fs/cgroup what the machine shows as cgroups of version 2 (machine_init.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import image
from agent import card_line
from bench import MANIFESTS, ROOT, Bench, Skipped, check, message, scenario
from cluster import CONTROLLERS
from component import Ports, wait_for
from renderings import kustomize
from worker import GONE, Worker

from scenarios.agents import all_run, gpu_pod, isolation
from scenarios.chart_node import label
from scenarios.overlays import relative

Json = Any

_DOUBLES = "/var/lib/nvml-double"  # the folder on the node, and in the container
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_PODS = "/api/v1/namespaces/kube-system/pods"
_STEP_MS = 20_000  # less than what the program takes for a call that hangs


class Shipped:
    """The DaemonSet on one node."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.ports = Ports()
        self.port = self.ports.take()
        self.later_ms = 0
        self.worker = bench.worker("n1", 1, self._image())
        self.doubles = self.worker.folder / "lib" / Path(_DOUBLES).name  # below /var/lib of the node
        self.doubles.mkdir(mode=0o755)
        nvml = [ROOT / "tests/nvml" / name for name in ("nvml.c", "limits.c", "world.c")]
        self._compile("libnvidia-ml.so.1", *nvml)
        self._compile("preload.so", ROOT / "tests/e2e/preload.c")
        self.manifest = self._render()

    def _image(self) -> Path:
        program = self.bench.options.plain.parent / "cardpack-node"
        if not program.exists():
            raise Skipped(f"there is no {program}")
        root, archive = self.bench.workdir / "image-node", self.bench.workdir / "cardpack-node.tar"
        version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout.split()[-1]
        argv = [ROOT / "scripts/image-root", program, version, root]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
        check(done.returncode == 0, done.stderr)
        image.write_cardpack(root, archive, node=True)
        return archive

    def _compile(self, name: str, *files: Path) -> None:
        """A library without sanitizers, as the image's program has none."""
        argv = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", self.doubles / name, *files]
        done = subprocess.run([*argv, "-pthread"], capture_output=True, text=True, timeout=120)
        check(done.returncode == 0, done.stderr)

    def _render(self) -> str:
        """The manifest with the patch."""
        bench = self.bench
        pod, first = "/spec/template/spec", "/spec/template/spec/containers/0"
        env = {"LD_LIBRARY_PATH": _DOUBLES, "LD_PRELOAD": f"{_DOUBLES}/preload.so",
               "CARDPACK_PRELOAD": _DOUBLES, "CARDPACK_NVML_WORLD": f"{_DOUBLES}/world",
               "KUBERNETES_SERVICE_HOST": "127.0.0.1",
               "KUBERNETES_SERVICE_PORT": str(bench.cluster.port)}  # fmt: skip
        own = [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "shipped-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        ]
        volumes: list[tuple[Json, str, bool]] = [
            ({"name": "doubles", "hostPath": {"path": _DOUBLES, "type": "Directory"}}, _DOUBLES, False),
            ({"name": "account", "projected": {"sources": own}}, _ACCOUNT, True),
        ]
        changes: list[Json] = [
            {"op": "add", "path": f"{first}/args", "value": [f"--listen=127.0.0.1:{self.port}"]},
            *({"op": "add", "path": f"{first}/env/-", "value": {"name": k, "value": v}} for k, v in env.items()),
            *({"op": "add", "path": f"{pod}/volumes/-", "value": volume} for volume, _, _ in volumes),
            *({"op": "add", "path": f"{first}/volumeMounts/-",
               "value": {"name": volume["name"], "mountPath": path, "readOnly": only}}
              for volume, path, only in volumes),
            *({"op": "replace", "path": f"{first}/{probe}/httpGet/port", "value": self.port}
              for probe in ("readinessProbe", "livenessProbe")),
            {"op": "replace", "path": f"{first}/readinessProbe/periodSeconds", "value": 1},
            {"op": "add", "path": f"{first}/livenessProbe/periodSeconds", "value": 1},
        ]  # fmt: skip
        folder = bench.workdir / "shipped"
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(json.dumps({
            "resources": [relative(folder, MANIFESTS / "node")],
            "patches": [{"target": {"kind": "DaemonSet"}, "patch": json.dumps(changes)}],
        }))  # fmt: skip
        text, cgroup = kustomize(folder), "          path: /sys/fs/cgroup\n"
        check(text.count(cgroup) == 1, text)
        return text.replace(cgroup, f"          path: {self.worker.folder / 'cgroup'}\n")

    # ---- life ----

    def apply(self) -> None:
        """Installs it, as docs/node.md says."""
        ca = {"ca.crt": self.bench.cluster.ca_file.read_text()}
        maps = "/api/v1/namespaces/kube-system/configmaps"
        self.bench.cluster.must("POST", maps, {"metadata": {"name": "shipped-ca"}, "data": ca})
        self.bench.cluster.kubectl("apply", "-f", "-", stdin=self.manifest)

    def remove(self) -> None:
        """All of it."""
        self.bench.cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=self.manifest)
        self.bench.cluster.kubectl("-n", "kube-system", "delete", "--ignore-not-found", "configmap/shipped-ca")
        wait_for(lambda: self.pod() is None, "cardpack-node to be gone", GONE)
        self.ports.close()

    def runs(self, on: bool) -> None:
        """By the node's label; it ends without its state, as on a new node."""
        label(self.bench, "n1", {"cardpack.io/node": "true" if on else None})
        if on:
            try:
                wait_for(self.ready, "cardpack-node to be ready", 60)
            except TimeoutError:
                raise AssertionError(f"not ready: {self.log()}") from None
        else:
            wait_for(lambda: self.pod() is None, "cardpack-node to leave", GONE)
            shutil.rmtree(self.worker.folder / "lib/cardpack-node")

    def pod(self) -> Json | None:
        """Its pod."""
        found = self.bench.cluster.list_all(_PODS, labelSelector="app.kubernetes.io/name=cardpack-node")
        return found[0] if found else None

    def container(self) -> Json:
        """What the kubelet says of its container."""
        statuses = ((self.pod() or {}).get("status") or {}).get("containerStatuses") or [{}]
        return statuses[0]

    def ready(self) -> bool:
        """Whether the kubelet says so."""
        return bool(self.container().get("ready"))

    def log(self) -> str:
        """The end of what its container says."""
        logs = self.worker.machine.path("/var/log/pods").glob("kube-system_cardpack-node*/*/*.log")
        return "\n".join(line for log in logs for line in log.read_text().splitlines()[-20:])

    def restarts(self) -> int:
        """How often."""
        return int(self.container().get("restartCount", 0))

    def metric(self, name: str) -> float:
        """A figure; 0: it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return 0
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0)

    # ---- its world ----

    def _write(self, name: str, text: str) -> None:
        fresh = self.doubles / f"{name}.new"
        fresh.write_text(text)
        fresh.rename(self.doubles / name)

    def show(self, lines: Iterable[str]) -> None:
        """What the driver says from now on."""
        self._write("world", "".join(lines))

    def pass_time(self, done: Callable[[], bool]) -> None:
        """Lets its clock run until that is so; in steps, as a call that takes a minute would be one that hangs."""
        end = time.monotonic() + 60
        while not done():
            check(time.monotonic() < end, f"not within {self.later_ms} ms: {self.log()}")
            self.later_ms += _STEP_MS
            self._write("clock", str(self.later_ms))
            time.sleep(0.2)


def _slices(bench: Bench, worker: Worker, it: Shipped) -> None:
    """A card in MIG mode, of which the driver tells no memory: its slices are cards, each for its own pods."""
    lines = [card_line(0, 40).replace("\n", " mig=1\n")]
    minors = ""
    for gi in (1, 2):
        lines.append(f"slice uuid=MIG-{gi} profile=1g.5gb gi={gi} ci=0 mib=4864\n")
        minors += f"gpu0/gi{gi}/access {10 * gi}\ngpu0/gi{gi}/ci0/access {10 * gi + 1}\n"
    table = it.doubles / "driver/nvidia-caps/mig-minors"
    table.parent.mkdir(parents=True)
    table.write_text(minors)
    it.show(lines)
    it.runs(True)
    wait_for(lambda: isolation(bench) == "mig", "the label mig", 30)
    names, asks = ["one", "two"], {"cardpack.io/require-isolation": "true"}
    for name in names:
        gpu_pod(bench, worker, name, 3, annotations=asks)
    all_run(bench, worker, names)
    given = {worker.wait_container(name).env["NVIDIA_VISIBLE_DEVICES"] for name in names}
    check(given == {"MIG-1", "MIG-2"}, given)
    check(it.metric("cardpack_node_left_out_cards") == 0, "a slice is left out")
    gpu_pod(bench, worker, "third", 2)
    wait_for(lambda: "nsufficient" in message(bench.get("third")), "no slice with room", 30)
    bench.cluster.delete_pod("one", bench.namespace, grace=1)
    all_run(bench, worker, ["third"])
    for name in ("two", "third"):
        bench.cluster.delete_pod(name, bench.namespace, grace=1)
    it.runs(False)


def _no_limit(bench: Bench, worker: Worker, it: Shipped) -> None:
    """An old container toolkit sets no limit, and the driver wants CAP_SYS_ADMIN for one: the node enforces nothing."""
    it.show([card_line(0, 16), "limits set=4\n"])
    it.runs(True)
    # The label was mig: limits that nobody has checked are not announced for 30 s.
    wait_for(lambda: isolation(bench) == "driver-limits", "the label driver-limits", 90)
    gpu_pod(bench, worker, "free", 2)
    all_run(bench, worker, ["free"])
    wait_for(lambda: isolation(bench) == "none", "the label none for want of a limit", 60)
    check(it.metric('cardpack_node_cards{health="healthy"}') == 1, "the card is not healthy")


def _exchanged(bench: Bench, it: Shipped) -> None:
    """The driver is exchanged under the program: after five minutes the kubelet starts a new container."""
    it.show([card_line(0, 16), "init error=18\n"])
    it.pass_time(lambda: it.metric('cardpack_node_driver{state="no-driver"}') == 1)
    seen = it.later_ms
    it.pass_time(lambda: it.later_ms > seen + 240_000)
    check(it.restarts() == 0, it.container())
    it.pass_time(lambda: it.restarts() == 1)
    it.show([card_line(0, 16)])
    wait_for(it.ready, "the new container to be ready", 60)
    check(it.restarts() == 1, it.container())
    check(it.metric('cardpack_node_cards{health="healthy"}') == 1, "the card is not healthy")
    check(bench.get("free")["status"]["phase"] == "Running", "a pod has ended")


@scenario("node")
def the_shipped_daemonset(bench: Bench) -> None:
    """The shipped DaemonSet: slices, limits that can't be set, and a driver that is exchanged under the program."""
    it = Shipped(bench)
    controllers = bench.cluster.start_controller_manager((*CONTROLLERS, "daemonset"))
    try:
        bench.cardpack()
        it.apply()
        _slices(bench, it.worker, it)
        _no_limit(bench, it.worker, it)
        _exchanged(bench, it)
    finally:
        it.remove()
        controllers.terminate()
