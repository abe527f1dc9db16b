"""A real node of a cluster: a machine with containerd and the kubelet, whose containers run.

    with Worker(cluster, "n1", folder, cards=2) as worker:
        cluster.create_pod("p1", gpu_mem=8, node_name="n1", spec=worker.spec())
        container = worker.wait_container("p1")
        container.env["NVIDIA_VISIBLE_DEVICES"], container.devices()
        worker.kubelet.kill()          # containers go on
        worker.reboot()                # they do not

Programs come from scripts/control-plane. A container's environment, mounts and devices are read from
outside, through /proc: no program in it has to help, and it is quick enough to ask many times a second.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import image
from cluster import ControlPlane
from component import START_SECONDS, Component, Ports, wait_for
from machine import Machine, Unsuited

Json = Any

PROGRAMS = ("kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "busybox")
PLUGINS = "/var/lib/kubelet/device-plugins"
# Seconds until a deleted pod is gone. Most are gone when their container has ended; but kubelet 1.20 may wait until
# it collects sandboxes, once a minute, and tell the API server up to 10 s later (66 s were seen).
GONE = 120.0
_SOCKET = "/run/containerd/containerd.sock"
# A shell that ends at SIGTERM: process 1 of a container ignores signals that it has no handler for.
FOREVER = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 2147483647 & wait"]
# By these variables the test knows its containers; a plugin's come beside them.
_POD, _UID, _CONTAINER = "CARDPACK_TEST_POD", "CARDPACK_TEST_UID", "CARDPACK_TEST_CONTAINER"

_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  disable_apparmor = true
  disable_hugetlb_controller = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "{port}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{folder}/cni"
    bin_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
"""

_CONTAINERD2 = """\
version = 3
root = "{folder}/containerd"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{image}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  disable_hugetlb_controller = true
  restrict_oom_score_adj = true
  enable_cdi = {cdi}
  [plugins."io.containerd.cri.v1.runtime".cni]
    conf_dir = "{folder}/cni"
    bin_dirs = ["{folder}/cni"]
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "{port}"
"""

# Pods have the host's network, so this network is never joined; without one the node is not ready.
_CNI = {"cniVersion": "0.3.1", "name": "none", "type": "none"}


@dataclass(frozen=True)
class Container:
    """A container's first process, while it runs."""

    proc: Path  # its folder in /proc
    pod: str  # the names are those that the test gave it
    uid: str
    name: str
    env: Mapping[str, str]

    def mounts(self) -> dict[str, str]:
        """What is mounted: the path in the container, and the path on the node's file system."""
        lines = (self.proc / "mountinfo").read_text().splitlines()
        return {line.split()[4]: line.split()[3] for line in lines}

    def devices(self) -> dict[str, tuple[int, int]]:
        """The device nodes of NVIDIA's driver in it, with their numbers."""
        dev = self.proc / "root" / "dev"
        found = {}
        for node in dev.glob("nvidia*"):
            device = node.stat().st_rdev
            found[node.name] = (os.major(device), os.minor(device))
        return found


class Worker:
    """One node; its kubelet makes the Node object.

    cdi: containerd 2, with or without CDI; None: Debian's containerd, which has no CDI.
    """

    def __init__(
        self, cluster: ControlPlane, name: str, folder: Path, cards: int = 0, cdi: bool | None = None
    ) -> None:
        self.cluster = cluster
        self.name = name
        self.programs = cluster.programs
        missing = [one for one in PROGRAMS if not os.access(self.programs / one, os.X_OK)]
        if missing:
            raise Unsuited(f"{self.programs} lacks {', '.join(missing)}: run scripts/control-plane")
        self.runtime = self.programs if cdi is None else self.programs / "containerd2"
        if not os.access(self.runtime / "containerd", os.X_OK):
            raise Unsuited(f"{self.runtime} has no containerd")
        self._cdi = cdi
        self.folder = folder.resolve()
        self.machine = Machine(name, self.folder, cards)
        self._ports = Ports()
        self.kubelet_port, self._health = self._ports.take(), self._ports.take()
        (self.folder / "cni").mkdir(exist_ok=True)
        (self.folder / "cni" / "10-none.conf").write_text(json.dumps(_CNI))
        image.write(self.programs / "busybox", self.folder / "image.tar")
        self._environment = {"PATH": f"{self.runtime}:{self.programs}:{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
        self.containerd = self._make_containerd()
        self.kubelet = self._make_kubelet()
        self._guests: list[Component] = []

    # ---- life ---------------------------------------------------------------------------

    def __enter__(self) -> Worker:
        try:
            self.boot()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all that runs on it; no process, mount or control group is left."""
        self.cut_power()
        self.machine.close()
        self._ports.close()

    def boot(self) -> None:
        """Switches it on, and waits until it is ready for pods."""
        self.start_runtime()
        self.kubelet.launch()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Waits until it is ready for pods."""
        self.kubelet.wait_ready()
        wait_for(self.ready, f"{self.name} to be ready", START_SECONDS, poll=0.1)

    def start_runtime(self) -> None:
        """Switches it on, without the kubelet."""
        self.machine.start()
        self.containerd.start()
        if image.NAME not in self.ctr("images", "list", "-q").stdout.split():
            self.import_image(self.folder / "image.tar")

    def cut_power(self) -> None:
        """All that runs ends at once, also containers and what add_program() made."""
        self.machine.cut_power()
        for component in (*self._guests, self.kubelet, self.containerd):
            component.kill()

    def reboot(self, *, wipe: bool = False) -> None:
        """Power off and on. wipe: containerd and the kubelet have lost their state."""
        self.cut_power()
        self.machine.close()
        if wipe:
            self.wipe()
        self.boot()

    def wipe(self) -> None:
        """Removes the state of containerd and the kubelet, while the power is off."""
        for part in ("containerd", "kubelet"):
            shutil.rmtree(self.folder / part, ignore_errors=True)

    def add_program(self, component: Component) -> Component:
        """For a program that runs in this machine: it ends with the machine."""
        self._guests.append(component)
        return component

    # ---- pods ---------------------------------------------------------------------------

    def spec(self, names: tuple[str, ...] = ("c0",), sizes: tuple[int, ...] = (0,)) -> Json:
        """For create_pod's spec: containers that run until they are deleted."""
        resources = [{"limits": {"aliyun.com/gpu-mem": str(n)}} if n else {} for n in sizes]
        return {
            "containers": [
                self.container(name, resource)
                for name, resource in zip(names, resources, strict=True)
            ],
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 2,
        }

    def container(self, name: str, resources: Json, command: list[str] | None = None) -> Json:
        """One container of a pod, known to containers()."""
        fields = {_POD: "metadata.name", _UID: "metadata.uid"}
        env: list[Json] = [
            {"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for key, path in fields.items()
        ]
        return {
            "name": name,
            "image": image.NAME,
            "imagePullPolicy": "Never",
            "command": command or FOREVER,
            "env": [*env, {"name": _CONTAINER, "value": name}],
            "resources": resources,
        }

    def containers(self) -> list[Container]:
        """The test's containers that run now."""
        found = []
        for proc in self.machine.processes():
            try:
                if os.readlink(proc / "exe") != "/bin/busybox":
                    continue
                if (proc / "status").read_text().split("NSpid:")[1].split("\n")[0].split()[-1] != "1":
                    continue  # not the first process of its container
                text = (proc / "environ").read_bytes().decode()
            except OSError:
                continue  # it ended
            env = dict(one.split("=", 1) for one in text.split("\0") if "=" in one)
            if _UID in env:
                found.append(Container(proc, env[_POD], env[_UID], env[_CONTAINER], env))
        return found

    def find(self, pod: str, container: str = "c0") -> Container | None:
        """A pod's container, if it runs."""
        for one in self.containers():
            if one.pod == pod and one.name == container:
                return one
        return None

    def wait_container(self, pod: str, container: str = "c0", timeout: float = 60) -> Container:
        """Waits until a pod's container runs."""
        what = f"container {container} of {pod}"
        found = wait_for(lambda: self.find(pod, container), what, timeout, poll=0.05)
        assert found is not None
        return found

    # ---- the node -----------------------------------------------------------------------

    def node(self) -> Json:
        """Its Node object, or None."""
        status, answer = self.cluster.api("GET", f"/api/v1/nodes/{self.name}")
        return answer if status == 200 else None

    def ready(self) -> bool:
        """Whether the kubelet says so."""
        node = self.node() or {}
        conditions = node.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def capacity(self, resource: str, field: str = "capacity") -> int:
        """How much of a resource the Node object has, which may be "100k"; 0 without it."""
        node = self.node() or {}
        text = str(node.get("status", {}).get(field, {}).get(resource, "0"))
        return int(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)

    def ctr(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs containerd's client, from outside the machine."""
        socket = self.machine.path(_SOCKET)
        return subprocess.run(
            [self.programs / "ctr", "--address", socket, "-n", "k8s.io", *args],
            capture_output=True, text=True, timeout=180, check=check,
        )  # fmt: skip

    def import_image(self, archive: Path) -> None:
        """Gives containerd an image, of which its CRI part then knows."""
        argv = ("images", "import", "--snapshotter", "native", str(archive))
        done = self.ctr(*argv, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"ctr images import: {done.stdout}{done.stderr}")

    # ---- inside -------------------------------------------------------------------------

    def _make_containerd(self) -> Component:
        config = self.folder / "containerd.toml"
        config.write_text(
            (_CONTAINERD if self._cdi is None else _CONTAINERD2).format(
                folder=self.folder,
                image=image.NAME,
                port=self._ports.take(),
                cdi=str(bool(self._cdi)).lower(),
            )
        )
        return Component(
            "containerd",
            [self.runtime / "containerd", "--config", config],
            self.folder,
            lambda: self.ctr("version", check=False).returncode == 0,
            env=self._environment,
            where=self.machine.inside,
        )

    def _make_kubelet(self) -> Component:
        old = self.cluster.minor < 27
        config = self.folder / "kubelet.yaml"
        config.write_text(json.dumps(self._kubelet_config(old)))
        argv: list[str | os.PathLike[str]] = [
            self.programs / "kubelet",
            "--config", config,
            "--kubeconfig", self.cluster.admin_kubeconfig,
            "--hostname-override", self.name,
            "--cert-dir", "/var/lib/kubelet/pki",
            "--v", "3",
        ]  # fmt: skip
        if old:
            argv += ["--container-runtime=remote", f"--container-runtime-endpoint=unix://{_SOCKET}"]
        return Component(
            "kubelet", argv, self.folder, self._healthy, env=self._environment,
            where=self.machine.inside,
        )  # fmt: skip

    def _kubelet_config(self, old: bool) -> Json:
        never = ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available")
        config: Json = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": self.kubelet_port,
            "readOnlyPort": 0,
            "healthzBindAddress": "127.0.0.1",
            "healthzPort": self._health,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.cluster.clients.pair.cert)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "makeIPTablesUtilChains": False,
            "failSwapOn": False,
            "evictionHard": {signal: "0%" for signal in never},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "1s",
            "syncFrequency": "2s",
            "kubeAPIQPS": 500,
            "kubeAPIBurst": 1000,
            "eventRecordQPS": 0,
            "registryPullQPS": 0,
        }
        if old:
            config["featureGates"] = {"LocalStorageCapacityIsolation": False}
            return config
        return config | {
            "containerRuntimeEndpoint": f"unix://{_SOCKET}",
            "failCgroupV1": False,
            "localStorageCapacityIsolation": False,
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        }

    def _healthy(self) -> bool:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self._health, timeout=5)
            try:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return False
