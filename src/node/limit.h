/* The limits of cardpack-node, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Devices that a node offers. The kubelet reads a list of at most 4 MiB; a device takes 18 to 31
 * bytes of it. Its checkpoint and the requests of containers name each device again. */
#define LIMIT_DEVICES 100000

/* The list of devices as a message: what the kubelet reads. */
#define LIMIT_DEVICE_LIST (4 * MIB)

/* How long the API server may work on a PATCH of a pod, and how long etcd may take for it after
 * that. */
#define LIMIT_PATCH_MS        UINT64_C(10000)
#define LIMIT_PATCH_COMMIT_MS UINT64_C(1000)

/* The path of the kubelet's folder: with the name of a socket it must fit in a socket's address. */
#define LIMIT_KUBELET_DIR 94
