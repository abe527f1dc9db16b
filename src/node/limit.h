/* The limits of cardpack-node, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Devices that a node offers. The kubelet reads a list of at most 4 MiB; a device takes 18 to 31
 * bytes of it. Its checkpoint and the requests of containers name each device again. */
#define LIMIT_DEVICES 100000

/* The list of devices as a message: what the kubelet reads. */
#define LIMIT_DEVICE_LIST (4 * MIB)

/* The path of the kubelet's folder: with the name of a socket it must fit in a socket's address. */
#define LIMIT_KUBELET_DIR 94
