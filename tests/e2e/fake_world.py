"""A large cluster that is never held in memory: every object is one template with values.

The key, content and place of the i-th object depend on i alone, and the keys of a resource are in the
order of i. Every pod that wants a card has one, and no card holds more than fits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Json = Any

_PODS_A_NAMESPACE = 1000
_WORLD_RV = 999


@dataclass(frozen=True)
class Shape:
    """The size of the world; a card's memory is in the cluster's unit."""

    nodes: int = 0
    cards: int = 8
    card_mem: int = 80
    pods: int = 0
    gpu_pods: int = 0  # how many of the pods want a card; they are spread evenly
    pod_mem: int = 8


def _managed_fields(prefix: str, names: list[str]) -> Json:
    fields: dict[str, Json] = {f"f:{name}": {} for name in names}
    return [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": fields}, f"f:{prefix}": fields},
        }
        for manager in ("kube-controller-manager", "kubelet")
    ]


def _container(mem: str | None) -> Json:
    env: list[Json] = [
        {"name": f"SERVICE_SETTING_{i:02d}", "value": f"value-of-setting-{i:02d}-of-this-service"}
        for i in range(14)
    ]
    env.append({"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    resources: dict[str, Json] = {"limits": {"cpu": "2", "memory": "4Gi"}}
    resources["requests"] = {"cpu": "500m", "memory": "1Gi"}
    if mem is not None:
        resources["limits"]["aliyun.com/gpu-mem"] = mem
        resources["requests"]["aliyun.com/gpu-mem"] = mem
    return {
        "name": "main",
        "image": "registry.example/team/service@sha256:" + "0123456789abcdef" * 4,
        "command": ["/usr/bin/serve", "--listen=:8080", "--note=\"quoted\" and \\ more"],
        "env": env,
        "resources": resources,
        "volumeMounts": [
            {"name": "kube-api-access", "readOnly": True,
             "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
                          "periodSeconds": 10, "failureThreshold": 3},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }  # fmt: skip


def _pod(gpu: bool) -> Json:
    annotations = {"example.com/config-hash": "0123456789abcdef" * 2}
    if gpu:
        annotations |= {
            "ALIYUN_COM_GPU_MEM_IDX": "@card@",
            "ALIYUN_COM_GPU_MEM_DEV": "@card_mem@",
            "ALIYUN_COM_GPU_MEM_POD": "@pod_mem@",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767322800000000000",
        }
    names = [f"field-{i:02d}-that-some-manager-owns" for i in range(14)]
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None,
         "lastTransitionTime": "2026-01-02T03:04:05Z"}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]  # fmt: skip
    return {
        "metadata": {
            "name": "@name@",
            "generateName": "load-",
            "namespace": "@namespace@",
            "uid": "@uid@",
            "resourceVersion": str(_WORLD_RV),
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "load", "pod-template-hash": "5d9f8c7b6d"},
            "annotations": annotations,
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "load-5d9f8c7b6d",
                 "uid": "11111111-2222-3333-4444-555555555555", "controller": True,
                 "blockOwnerDeletion": True}
            ],
            "managedFields": _managed_fields("spec", names),
        },
        "spec": {
            "volumes": [{"name": "kube-api-access", "projected": {"sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt",
                               "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ], "defaultMode": 420}}],
            "containers": [_container("@pod_mem@" if gpu else None)],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": "@node@",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                 "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "priority": 0,
            "enableServiceLinks": True,
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "startTime": "2026-01-02T03:04:05Z",
            "containerStatuses": [
                {"name": "main", "ready": True, "restartCount": 0, "started": True,
                 "image": "registry.example/team/service:1",
                 "state": {"running": {"startedAt": "2026-01-02T03:04:06Z"}}, "lastState": {}},
            ],
            "qosClass": "Burstable",
        },
    }  # fmt: skip


def _node(shape: Shape) -> Json:
    total = {
        "cpu": "96",
        "memory": "1056270484Ki",
        "pods": "110",
        "aliyun.com/gpu-mem": str(shape.cards * shape.card_mem),
        "aliyun.com/gpu-count": str(shape.cards),
    }
    images = [
        {"names": [f"registry.example/image-{i:02d}@sha256:" + "0123456789abcdef" * 4,
                   f"registry.example/image-{i:02d}:1"], "sizeBytes": 123456789}
        for i in range(25)
    ]  # fmt: skip
    names = [f"field-{i:02d}-that-some-manager-owns" for i in range(10)]
    return {
        "metadata": {
            "name": "@name@",
            "uid": "@uid@",
            "resourceVersion": str(_WORLD_RV),
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"kubernetes.io/hostname": "@name@", "gpushare": "true"},
            "managedFields": _managed_fields("status", names),
        },
        "spec": {"podCIDR": "10.1.0.0/24", "providerID": "example://@name@"},
        "status": {
            "capacity": total,
            "allocatable": total,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady",
                 "lastHeartbeatTime": "2026-01-02T03:04:05Z",
                 "lastTransitionTime": "2026-01-02T03:04:05Z",
                 "message": "kubelet is posting ready status"},
            ],
            "addresses": [{"type": "Hostname", "address": "@name@"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "architecture": "amd64"},
            "images": images,
        },
    }  # fmt: skip


class _Template:
    """JSON with placeholders, turned into one bytes % mapping."""

    def __init__(self, item: Json, constants: dict[str, str], marks: list[str]) -> None:
        text = json.dumps(item, separators=(",", ":")).replace("%", "%%")
        for name, value in constants.items():
            text = text.replace(f"@{name}@", value)
        order = sorted(
            (at, mark)
            for mark in marks
            for at in range(len(text))
            if text.startswith(f"@{mark}@", at)
        )
        for mark in marks:
            text = text.replace(f"@{mark}@", "%s")
        self.text = text.encode()
        self.order = [mark for _, mark in order]

    def fill(self, values: dict[str, bytes]) -> bytes:
        return self.text % tuple([values[mark] for mark in self.order])


class World:
    """Nodes node-00000 and following, pods load-000/pod-000000 and following."""

    def __init__(self, shape: Shape) -> None:
        room = shape.nodes * shape.cards * (shape.card_mem // max(shape.pod_mem, 1))
        if shape.gpu_pods > min(shape.pods, room):
            raise ValueError(f"{shape.gpu_pods} GPU pods: {shape.pods} pods, room for {room}")
        if shape.pods and not shape.nodes:
            raise ValueError("pods need nodes")
        self.shape = shape
        constants = {"card_mem": str(shape.card_mem), "pod_mem": str(shape.pod_mem)}
        self._plain = _Template(_pod(False), constants, ["name", "namespace", "uid", "node"])
        self._gpu = _Template(_pod(True), constants, ["name", "namespace", "uid", "node", "card"])
        self._node = _Template(_node(shape), constants, ["name", "uid"])

    def size(self, resource: str) -> int:
        if resource == "nodes":
            return self.shape.nodes
        return self.shape.pods if resource == "pods" else 0

    def key(self, resource: str, i: int) -> str:
        if resource == "nodes":
            return f"node-{i:05d}"
        return f"load-{i // _PODS_A_NAMESPACE:03d}/pod-{i:06d}"

    def index_of(self, resource: str, key: str) -> int:
        """The first object whose key is not less than this key."""
        low, high = 0, self.size(resource)
        while low < high:
            middle = (low + high) // 2
            if self.key(resource, middle) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def index_after(self, resource: str, key: str) -> int:
        i = self.index_of(resource, key)
        return i + 1 if i < self.size(resource) and self.key(resource, i) == key else i

    def get(self, resource: str, key: str) -> bytes | None:
        i = self.index_of(resource, key)
        if i == self.size(resource) or self.key(resource, i) != key:
            return None
        return self._render_one(resource, i)

    def render(self, resource: str, start: int, stop: int, selection: Any) -> list[bytes]:
        """The selected objects of a range."""
        items = range(start, stop)
        if selection.namespace or selection.labels or any(
            name != "status.phase" for name, _, _ in selection.fields
        ):
            return [
                content
                for content in (self._render_one(resource, i) for i in items)
                if selection.holds(json.loads(content))
            ]
        if resource == "pods":
            for _, wanted, phase in selection.fields:
                if (phase == "Running") != wanted:
                    return []
        return [self._render_one(resource, i) for i in items]

    def place(self, i: int) -> tuple[int, int | None]:
        """The i-th pod's node and card; None: the pod wants no card."""
        shape = self.shape
        # A pod wants a card where the running share increases by one.
        before = i * shape.gpu_pods // shape.pods
        if (i + 1) * shape.gpu_pods // shape.pods == before:
            return i % shape.nodes, None
        return before % shape.nodes, before // shape.nodes % shape.cards

    def _render_one(self, resource: str, i: int) -> bytes:
        if resource == "nodes":
            name = b"node-%05d" % i
            return self._node.fill({"name": name, "uid": b"00000000-0000-4000-8000-%012d" % i})
        node, card = self.place(i)
        values = {
            "name": b"pod-%06d" % i,
            "namespace": b"load-%03d" % (i // _PODS_A_NAMESPACE),
            "uid": b"00000000-0000-4000-9000-%012d" % i,
            "node": b"node-%05d" % node,
        }
        if card is None:
            return self._plain.fill(values)
        values["card"] = b"%d" % card
        return self._gpu.fill(values)
