/*
 * The names of the gpushare contract (AliyunContainerService/gpushare-scheduler-extender, and
 * additions of later Alibaba Cloud releases): the resources, labels and annotations that its device
 * plugin, its kubectl plugin and its users' manifests read and write. Names that only cardpack uses
 * begin with CARDPACK_. All values are strings.
 */
#pragma once

#include "base/str.h"

/* On a pod's containers and in a node's capacity: memory in the plugin's unit (GiB or MiB). */
#define GPUSHARE_RESOURCE_MEM STR("aliyun.com/gpu-mem")
/* In a node's capacity: how many cards share that memory. Patched by the plugin. */
#define GPUSHARE_RESOURCE_COUNT STR("aliyun.com/gpu-count")

/* On a pod's containers: percent of a card's compute; each card has 100. */
#define GPUSHARE_RESOURCE_CORES STR("aliyun.com/gpu-core.percentage")
/* On a pod's containers and in a node's capacity: whole cards that NVIDIA's device plugin
 * allocates. */
#define GPUSHARE_RESOURCE_EXCLUSIVE STR("nvidia.com/gpu")

/* On a pod, label: the number of cards; each gets an equal part of the request. */
#define GPUSHARE_LABEL_COUNT STR("aliyun.com/gpu-count")
/* On a pod, label: "require-whole-device". */
#define GPUSHARE_LABEL_PLACEMENT STR("ack.gpushare.placement")
#define GPUSHARE_WHOLE_DEVICE    STR("require-whole-device")
/* On a node, labels: a policy of core/request/policy.h for its cards; the largest number of pods on
 * a card.
 */
#define GPUSHARE_LABEL_NODE_PLACEMENT STR("ack.node.gpu.placement")
#define GPUSHARE_LABEL_MAX_PODS       STR("ack.node.gpu.max-pod")

/* On a bound pod: {"CONTAINER": {"CARD": MEMORY}}. kubectl inspect reads it before the index, and
 * sums. */
#define GPUSHARE_ANNOTATION_ALLOCATION STR("scheduler.framework.gpushare.allocation")
/* On a bound pod with a share of compute: {"CONTAINER": {"CARD": PERCENT}}. */
#define GPUSHARE_ANNOTATION_CORES STR("gpushare.alibabacloud.com/core-percentage")

/* On a bound pod: card index, decimal; "0,2" for several, which the stock plugin refuses. */
#define GPUSHARE_ANNOTATION_IDX STR("ALIYUN_COM_GPU_MEM_IDX")
/* The card's whole memory. */
#define GPUSHARE_ANNOTATION_DEV STR("ALIYUN_COM_GPU_MEM_DEV")
/* The pod's memory. */
#define GPUSHARE_ANNOTATION_POD STR("ALIYUN_COM_GPU_MEM_POD")
/* "false" until the plugin has handed the card to the pod's container. */
#define GPUSHARE_ANNOTATION_ASSIGNED STR("ALIYUN_COM_GPU_MEM_ASSIGNED")
/* Unix time in nanoseconds. The device plugin takes pods in this order and then overwrites it. */
#define GPUSHARE_ANNOTATION_ASSUME_TIME STR("ALIYUN_COM_GPU_MEM_ASSUME_TIME")

/* ConfigMaps kube-system/unhealthy-gpu-<node>, key gpus: "0,2". */
#define GPUSHARE_UNHEALTHY_NAMESPACE STR("kube-system")
#define GPUSHARE_UNHEALTHY_PREFIX    STR("unhealthy-gpu-")
#define GPUSHARE_UNHEALTHY_KEY       STR("gpus")

/* The ConfigMap in kube-system with the quotas of all namespaces (docs/quota.md), and its key. */
#define CARDPACK_QUOTA_NAME STR("cardpack-quota")
#define CARDPACK_QUOTA_KEY  STR("quota.yaml")

/* What the names of cardpack's own annotations begin with. */
#define CARDPACK_ANNOTATION_PREFIX STR("cardpack.io/")

/* On a pod: memory as a percentage of each of its cards. */
#define CARDPACK_ANNOTATION_PERCENT STR("cardpack.io/gpu-mem-percent")
/* On a pod: "A,B" allows only these, "!C" excludes C. In a model, "*" matches any characters. */
#define CARDPACK_ANNOTATION_MODEL STR("cardpack.io/card-model")
#define CARDPACK_ANNOTATION_UUID  STR("cardpack.io/card-uuid")
/* On a pod: the pods of an affinity group (of one namespace) are on the same card, those of an
 * anti-affinity group never on the same card. */
#define CARDPACK_ANNOTATION_AFFINITY      STR("cardpack.io/card-affinity-group")
#define CARDPACK_ANNOTATION_ANTI_AFFINITY STR("cardpack.io/card-anti-affinity-group")
/* On a pod: a policy of core/request/policy.h, for both nodes and cards, or for one of them. */
#define CARDPACK_ANNOTATION_POLICY      STR("cardpack.io/policy")
#define CARDPACK_ANNOTATION_NODE_POLICY STR("cardpack.io/node-policy")
#define CARDPACK_ANNOTATION_CARD_POLICY STR("cardpack.io/card-policy")

/* On a pod: "true": only on a node whose CARDPACK_LABEL_ISOLATION names what it enforces. */
#define CARDPACK_ANNOTATION_ISOLATION STR("cardpack.io/require-isolation")

/* On a node: a JSON list of its cards; see struct card_view. */
#define CARDPACK_ANNOTATION_CARDS STR("cardpack.io/cards")
/* On a node: "0,2": no new pod is placed on the cordoned cards; the exclusive cards belong to
 * another device plugin. */
#define CARDPACK_ANNOTATION_CORDONED  STR("cardpack.io/cordoned-cards")
#define CARDPACK_ANNOTATION_EXCLUSIVE STR("cardpack.io/exclusive-cards")
/* On a node: the cards that belong to a driver of Dynamic Resource Allocation, "0,2"; as a label,
 * "true": all of them. No shared pod is placed on them. */
#define CARDPACK_ANNOTATION_DRA STR("cardpack.io/dra-cards")
#define CARDPACK_LABEL_DRA      STR("cardpack.io/dra")
/* On a node, labels: its pool for quotas; the model of its cards if no table names it. */
#define CARDPACK_LABEL_POOL STR("cardpack.io/pool")
#define NVIDIA_LABEL_MODEL  STR("nvidia.com/gpu.product")
#define ALIYUN_LABEL_MODEL  STR("aliyun.accelerator/nvidia_name")
/* Of a pod that exchanges its cards with another one: the cards that it had before, "0,2". Written
 * by cardpack-node. While a pod of a node has it, no pod is bound to the node. */
#define CARDPACK_ANNOTATION_VACATED STR("cardpack.io/vacated-cards")

/* On a node, label: what it enforces of a pod's share of a card; see enum isolation. */
#define CARDPACK_LABEL_ISOLATION STR("cardpack.io/isolation")

/* On a node, annotation "true": its containers get their cards by their IDs, when they start, so
 * the device plugin confuses no pods of one size. Written by cardpack-node. */
#define CARDPACK_ANNOTATION_LATE STR("cardpack.io/late-binding")

/* On a node, label "true": NVIDIA's MPS is to serve its cards. An administrator sets it. */
#define CARDPACK_LABEL_MPS STR("cardpack.io/mps")
