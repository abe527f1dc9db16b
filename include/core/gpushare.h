/*
 * The names of the gpushare contract (AliyunContainerService/gpushare-scheduler-extender): what its
 * device plugin, its kubectl plugin and its users' manifests read and write. All values are
 * strings.
 */
#pragma once

#include "str.h"

/* On a pod's containers and in a node's capacity: memory in the plugin's unit (GiB or MiB). */
#define GPUSHARE_RESOURCE_MEM STR("aliyun.com/gpu-mem")
/* In a node's capacity: how many cards share that memory. Patched by the plugin. */
#define GPUSHARE_RESOURCE_COUNT STR("aliyun.com/gpu-count")

/* On a bound pod: card index, decimal. */
#define GPUSHARE_ANNOTATION_IDX STR("ALIYUN_COM_GPU_MEM_IDX")
/* The card's whole memory. */
#define GPUSHARE_ANNOTATION_DEV STR("ALIYUN_COM_GPU_MEM_DEV")
/* The pod's memory. */
#define GPUSHARE_ANNOTATION_POD STR("ALIYUN_COM_GPU_MEM_POD")
/* "false" until the plugin has handed the card to the pod's container. */
#define GPUSHARE_ANNOTATION_ASSIGNED STR("ALIYUN_COM_GPU_MEM_ASSIGNED")
/* Nanoseconds of Unix time; the plugin takes pods in this order and then overwrites it. */
#define GPUSHARE_ANNOTATION_ASSUME_TIME STR("ALIYUN_COM_GPU_MEM_ASSUME_TIME")

/* ConfigMaps kube-system/unhealthy-gpu-<node>, key gpus: "0,2". */
#define GPUSHARE_UNHEALTHY_NAMESPACE STR("kube-system")
#define GPUSHARE_UNHEALTHY_PREFIX    STR("unhealthy-gpu-")
#define GPUSHARE_UNHEALTHY_KEY       STR("gpus")
