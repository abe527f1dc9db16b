"""The device plugins of other projects, as scripts/agents builds them, on a node with a real kubelet.

    plugin = Plugin(bench, worker, KINDS["volcano"], cards=2, mib=1000)
    plugin.start()
    found = worker.wait_container("p1")
    plugin.kind.cards(found)      # the cards that the container really has

AGENT_PLUGINS names the folder of the programs and of the double of NVIDIA's library. A plugin runs in a
tree of files of its own, as in its container: /host/dev is the node's /dev there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import Bench, Skipped
from component import Component, Ports
from worker import Container, Worker

_NVIDIA = 195  # the major number of NVIDIA's driver

# Each folder of the node's root appears in the plugin's own root; so /host can be there without
# being made on the machine that runs the test.
_BOX = """\
set -e
root=$1; shift
mkdir -p "$root"
mount -t tmpfs tmpfs "$root"
for one in /*; do
    if [ -L "$one" ]; then cp -P "$one" "$root/"
    elif [ -d "$one" ]; then mkdir "$root$one"; mount --rbind "$one" "$root$one"; fi
done
mkdir -p "$root/host/dev"
mount --rbind /dev "$root/host/dev"
exec chroot "$root" "$@"
"""


_HAMI = """\
nvidia:
  resourceCountName: {prefix}{count}
  resourceMemoryName: {prefix}{memory}
  resourceMemoryPercentageName: {prefix}{memory}-percentage
  resourceCoreName: {prefix}cores
  overwriteEnv: false
  defaultMemory: 0
  defaultCores: 0
  defaultGPUNum: 1
  deviceSplitCount: {split}
  deviceMemoryScaling: 1
  deviceCoreScaling: 1
  gpuMemoryFactor: 1
  memoryFactor: 1
  preConfiguredDeviceMemory: 0
  enableNumaTopology: false
  gpuCorePolicy: default
  libCudaLogLevel: "1"
"""


def card_uuid(index: int) -> str:
    """The UUID of a card of the tests, in the form of NVIDIA's."""
    return f"GPU-{index:08x}-0000-4000-8000-{index:012x}"


def by_index(container: Container) -> list[int]:
    """The cards that NVIDIA's runtime would give it, by index."""
    return [int(one) for one in container.env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if one]


def by_uuid(container: Container) -> list[int]:
    """The same by UUID."""
    names = {card_uuid(index): index for index in range(64)}
    return [names[one] for one in container.env["NVIDIA_VISIBLE_DEVICES"].split(",")]


def by_node(folder: str, prefix: str) -> Callable[[Container], list[int]]:
    """The cards whose device nodes, of those with the prefix, are in that folder of the container."""

    def cards(container: Container) -> list[int]:
        found = set()
        for node in (container.proc / "root" / folder).glob(f"{prefix}*"):
            device = node.stat().st_rdev
            if os.major(device) == _NVIDIA and os.minor(device) < 64:
                found.add(os.minor(device))
        return sorted(found)

    return cards


@dataclass(frozen=True)
class Kind:
    """One project's plugin. argv, env: {node}, {config}, {folder}, {port} are filled in."""

    name: str
    memory: str  # the resource by which it is known to be ready: of memory, or of cards that are shared
    block: int  # MiB of one unit
    argv: Sequence[str]
    cards: Callable[[Container], list[int]]
    env: dict[str, str] = field(default_factory=dict)
    split: int = 0  # how many pods a card may have; 0: no limit, the resource is memory


KINDS = {
    one.name: one
    for one in (
        Kind("volcano", "volcano.sh/gpu-memory", 1, ["--gpu-strategy=share"], by_index,
             {"NODE_NAME": "{node}", "KUBECONFIG": "{config}", "DP_DISABLE_HEALTHCHECKS": "all"}),
        Kind("elastic", "elasticgpu.io/gpu-memory", 1,
             ["-gpuPluginName=gpushare", "-nodeName={node}", "-dbFile={folder}/elastic.db", "-kubeconf={config}",
              "-logtostderr", "-v=5"],
             by_node("host/dev", "elastic-gpu-")),
        Kind("tencent", "tencent.com/vcuda-memory", 256,
             ["--kubeconfig={config}", "--hostname-override={node}", "--share-mode", "--logtostderr", "--v=4",
              "--device-plugin-path=/var/lib/kubelet/device-plugins/", "--checkpoint-path={folder}/checkpoint",
              "--virtual-manager-path={folder}/vm", "--container-runtime-endpoint=/run/containerd/containerd.sock",
              "--query-port={port}", "--volume-config={folder}/volume.conf"],
             by_node("dev", "nvidia")),
        Kind("vgpu", "volcano.sh/vgpu-number", 1, ["--device-split-count=10"], by_uuid,
             {"NODE_NAME": "{node}", "KUBECONFIG": "{config}", "HOOK_PATH": "{folder}/hook",
              "DP_DISABLE_HEALTHCHECKS": "all"}, split=10),
        Kind("hami", "nvidia.com/gpu", 1,
             ["--config-file={folder}/hami.yaml", "--device-discovery-strategy=nvml"], by_uuid,
             {"NODE_NAME": "{node}", "KUBECONFIG": "{config}", "HOOK_PATH": "{folder}/hook",
              "KUBELET_SOCKET": "/var/lib/kubelet/device-plugins/kubelet.sock",
              "DP_DISABLE_HEALTHCHECKS": "all"}, split=10),
    )
}  # fmt: skip


def programs() -> Path:
    """Where scripts/agents has put the programs."""
    folder = os.environ.get("AGENT_PLUGINS", "")
    if not folder:
        raise Skipped("AGENT_PLUGINS is not set: scripts/agents builds the device plugins of other projects")
    return Path(folder).resolve()


class Plugin:
    """One plugin on a node with `cards` cards of `mib` MiB each; it ends with the node."""

    def __init__(self, bench: Bench, worker: Worker, kind: Kind, cards: int, mib: int) -> None:
        folder = programs()
        program, library = folder / kind.name, folder / "libnvidia-ml.so.1"
        for one in (program, library):
            if not one.exists():
                raise Skipped(f"there is no {one}")
        self.bench, self.worker, self.kind = bench, worker, kind
        self.total = cards * (kind.split or mib // kind.block)
        world = worker.folder / "nvml-world"
        world.write_text(
            "".join(
                f"card uuid={card_uuid(index)} name=NVIDIA_A100 bus={0x3B + index:#x} minor={index} mib={mib}\n"
                for index in range(cards)
            )
        )
        self._ports = Ports()
        values = {
            "node": worker.name,
            "config": str(worker.cluster.admin_kubeconfig),
            "folder": str(worker.folder),
            "port": str(self._ports.take()),
        }
        box: list[str | Path] = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _BOX, "box"]
        self.program = worker.add_program(
            Component(
                f"plugin-{kind.name}",
                [*box, worker.folder / "root", program, *(one.format(**values) for one in kind.argv)],
                worker.folder,
                lambda: worker.capacity(kind.memory, "allocatable") == self.total,
                env={
                    "CARDPACK_NVML_WORLD": str(world),
                    "LD_LIBRARY_PATH": str(folder),
                    **{key: value.format(**values) for key, value in kind.env.items()},
                },
                where=worker.machine.inside,
                timeout=60,
            )
        )

    def start(self) -> None:
        """Starts it, and waits until the API server has the node's units."""
        if self.kind.split:
            self._configure()
        if self.kind.name == "tencent":
            # gpu-manager does not start without it; the kubelet makes it when a plugin registers.
            plugins = self.worker.folder / "kubelet" / "device-plugins"
            empty = '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":0}'
            (plugins / "kubelet_internal_checkpoint").write_text(empty)
            volumes = [
                {"name": name, "base": f"{self.worker.folder}/vdriver", "mode": "ro", "components": {"libraries": []}}
                for name in ("nvidia", "origin")
            ]
            (self.worker.folder / "volume.conf").write_text(json.dumps({"volume": volumes}))
        self.program.start()

    def _configure(self) -> None:
        """HAMi's two plugins read the names of their resources, and give containers files of theirs."""
        prefix = "volcano.sh/vgpu-" if self.kind.name == "vgpu" else "nvidia.com/gpu"
        count = "number" if self.kind.name == "vgpu" else ""
        memory = "memory" if self.kind.name == "vgpu" else "mem"
        text = _HAMI.format(prefix=prefix, count=count, memory=memory, split=self.kind.split)
        (self.worker.folder / "hami.yaml").write_text(text)
        for hook in (self.worker.folder / "hook", self.worker.folder / "hook" / "vgpu"):
            hook.mkdir(parents=True, exist_ok=True)
            for name in ("libvgpu.so", "ld.so.preload"):
                (hook / name).touch()
        if self.kind.name == "vgpu":
            metadata = {"name": "volcano-vgpu-device-config"}
            body = {"metadata": metadata, "data": {"device-config.yaml": text}}
            self.bench.cluster.api("POST", "/api/v1/namespaces/kube-system/configmaps", body)
