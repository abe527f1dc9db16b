"""Clusters for the page: a small one with each kind of state, and one of 5,000 nodes."""

from __future__ import annotations

import json

HOSTILE = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
MODELS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-A10", "Tesla-T4", "NVIDIA-H100-80GB-HBM3")


def node(name: str, total: int, cards: int, **more) -> dict:
    amounts = {"aliyun.com/gpu-mem": str(total), "aliyun.com/gpu-count": str(cards)}
    return {"kind": "Node",
            "metadata": {"name": name, "labels": more.get("labels", {}),
                         "annotations": more.get("annotations", {})},
            "status": {"capacity": amounts,
                       "allocatable": {**amounts, **more.get("allocatable", {})}}}


def pod(name: str, mem: int, **more) -> dict:
    """`node` and `card` bind it; the rest is its request."""
    limits = {"aliyun.com/gpu-mem": str(mem)}
    if "cores" in more:
        limits["aliyun.com/gpu-core.percentage"] = str(more["cores"])
    annotations = dict(more.get("annotations", {}))
    spec = {"containers": [{"name": "c", "resources": {"limits": limits}}]}
    if "node" in more:
        spec["nodeName"] = more["node"]
        annotations.update({"ALIYUN_COM_GPU_MEM_IDX": str(more["card"]),
                            "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                            "ALIYUN_COM_GPU_MEM_POD": str(mem)})
    return {"kind": "Pod",
            "metadata": {"name": name, "namespace": more.get("namespace", "default"),
                         "uid": f"uid-{more.get('namespace', 'default')}-{name}",
                         "labels": more.get("labels", {}), "annotations": annotations,
                         "creationTimestamp": more.get("since", "2026-01-01T00:00:00Z")},
            "spec": spec, "status": {"phase": "Running" if "node" in more else "Pending"}}


def table(*cards: dict) -> dict:
    return {"cardpack.io/cards": json.dumps(cards)}


def small() -> list[dict]:
    """Five nodes with each kind of state, two pending pods."""
    a100, a10, t4, h100 = ({"nvidia.com/gpu.product": m} for m in MODELS)
    return [
        node("train-0", 320, 4, labels=a100, annotations={"cardpack.io/cordoned-cards": "3"}),
        node("train-1", 320, 4, labels=h100, annotations={"cardpack.io/exclusive-cards": "2,3"}),
        node("infer-0", 60, 4, labels=t4),
        node("mixed-0", 61, 3, annotations=table(
            {"index": 0, "memory": 16, "model": "NVIDIA-A10", "uuid": "GPU-5a1f", "numa": 0},
            {"index": 1, "memory": 40, "model": "NVIDIA-A100", "uuid": "GPU-77c0", "numa": 1},
            {"index": 4, "memory": 5, "model": "NVIDIA-A100", "uuid": "MIG-19", "numa": 1})),
        node("notebooks-0", 44, 2, labels=a10, allocatable={"aliyun.com/gpu-mem": "40"}),
        {"kind": "ConfigMap", "metadata": {"name": "unhealthy-gpu-infer-0",
                                           "namespace": "kube-system"}, "data": {"gpus": "2"}},
        pod("llama-70b-0", 80, node="train-0", card=0, namespace="research", cores=90),
        pod("llama-7b-eval", 24, node="train-0", card=1, namespace="research", cores=30),
        pod("whisper", 12, node="train-0", card=1, namespace="speech"),
        pod("tts", 16, node="train-0", card=1, namespace="speech", cores=20),
        pod("diffusion", 40, node="train-1", card=0, namespace="images"),
        pod("upscaler", 20, node="train-1", card=0, namespace="images"),
        pod("ranker-6d5f9c7b8-2xkqv", 6, node="infer-0", card=0, namespace="search"),
        pod("ranker-6d5f9c7b8-9wzlp", 6, node="infer-0", card=0, namespace="search"),
        pod("spell", 3, node="infer-0", card=1, namespace="search"),
        pod("ocr", 10, node="infer-0", card=3, namespace="images"),
        pod("lost", 7, node="infer-0", card=9, namespace="ghosts"),
        pod("notebook-ada", 11, node="notebooks-0", card=0, namespace="lab"),
        pod("notebook-bob", 11, node="notebooks-0", card=0, namespace="lab"),
        pod("notebook-cyd", 14, node="notebooks-0", card=1, namespace="lab"),
        pod("probe", 4, node="mixed-0", card=0, namespace="lab"),
        pod("big-job", 96, namespace="research"),
        pod("train", 60, namespace="research", since="2026-02-01T00:00:00Z"),
    ]


def measured() -> list[dict]:
    """small(), and what is really used on two of its nodes: one pod uses more than its share. Memory of
    the first is in GiB, of the second in MiB."""
    def usage(name: str, cards: list[dict], *pods: tuple[str, str, int, int]) -> dict:
        text = {"seen": "2026-11-25T19:20:00Z", "cards": cards,
                "pods": [{"uid": f"uid-{space}-{pod}", "namespace": space, "name": pod, "card": card,
                          "usedMiB": mib} for space, pod, card, mib in pods]}
        return {"kind": "ConfigMap", "metadata": {"name": f"cardpack-usage-{name}", "namespace": "kube-system"},
                "data": {"usage": json.dumps(text)}}

    size = 81920
    return [*small(), node("mib-0", 2 * size, 2), pod("tiny", 4096, node="mib-0", card=0, namespace="lab"),
            usage("train-0", [{"index": 0, "usedMiB": 31000, "totalMiB": size, "busyPercent": 37},
                              {"index": 1, "usedMiB": 60000, "totalMiB": size},
                              {"index": 2, "usedMiB": 0, "totalMiB": size, "busyPercent": 0}],
                  ("research", "llama-70b-0", 0, 30500), ("research", "llama-7b-eval", 1, 30000),
                  ("speech", "whisper", 1, 12288)),
            usage("mib-0", [{"index": 0, "usedMiB": 5000, "totalMiB": size}], ("lab", "tiny", 0, 4096))]


def hostile() -> list[dict]:
    """Names that no API server accepts, and that the page must show as text. cardpack itself refuses
    such names of pods."""
    return [
        node(HOSTILE, 32, 2, annotations=table(
            {"index": 0, "memory": 16, "model": HOSTILE, "uuid": HOSTILE},
            {"index": 1, "memory": 16, "model": HOSTILE, "uuid": HOSTILE + "2"})),
        pod("a" * 200, 8, node=HOSTILE, card=0),
        pod("w", 99),
    ]


def large(nodes: int = 5000, pods: int = 20000) -> list[dict]:
    """Nodes with eight cards each and pods spread over them, of many sizes; nothing is random."""
    items = [node(f"gpu-{i:04}", 640, 8, labels={"nvidia.com/gpu.product": MODELS[i % 4]},
                  annotations={"cardpack.io/cordoned-cards": "7"} if i % 97 == 0 else {})
             for i in range(nodes)]
    for i in range(pods):
        at, card = i * 7919 % nodes, i * 31 % 7
        items.append(pod(f"job-{i}", (4, 8, 10, 16, 20, 6, 12)[i * 13 % 7],
                         node=f"gpu-{at:04}", card=card, namespace=f"team-{i * 17 % 23}"))
    items.append({"kind": "ConfigMap",
                  "metadata": {"name": "cardpack-quota", "namespace": "kube-system"},
                  "data": {"quota.yaml": "namespaces: {team-3: {limits: {memory: 10000}}, team-5: {limits:"
                                         " {memory: 20000, cards: 870}, perModel: {'*A100*': {cards: 400}}}}"}})
    items += [pod(f"wait-{i}", (8, 90, 40)[i % 3], namespace=f"team-{i % 23}") for i in range(60)]
    return items


def medium() -> list[dict]:
    """500 nodes in four pools, more of them in use."""
    items = large(500, 9000)
    for i, item in enumerate(items[:500]):
        item["metadata"]["labels"]["cardpack.io/pool"] = ("gold", "gold", "silver", "batch")[i % 4]
    return items


def twenty() -> list[dict]:
    return large(20, 320)


def text(items: list[dict]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
