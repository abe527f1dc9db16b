/*
 * Nodes, their cards, and the pods on them, in two forms of one JSON:
 *
 *     gpushare's, which its readers know:
 *     {"nodes": [{"name", "totalGPU", "usedGPU",
 *                 "devs": [{"id", "totalGPU", "usedGPU",
 *                           "pods": [{"name", "namespace", "usedGPU"}]}]}], "error"}
 *
 *     the same with all that is known of the cards, for people:
 *     node  "fault": what is wrong with its figures, "pool"
 *     card  "freeGPU", "compute": percent that is held, "state": ok, unhealthy, cordoned or aside,
 *           "model", "uuid", "profile", "numa"
 *     pod   "compute"
 *
 * What is not known, or 0 of a pod's compute, is left out. "error" is there where the node that was
 * asked for is not. Numbers are in the unit of aliyun.com/gpu-mem.
 */
#pragma once

#include "arena.h"
#include "cache.h"

enum inspect_form {
    INSPECT_GPUSHARE,
    INSPECT_CARDS,
};

/* `node` absent: all that have cards, or pods that hold some, by name. The arena is for the order.
 */
enum errc inspect_write(const struct cache *c, struct str node, enum inspect_form form,
                        struct arena *a, struct buf *out) _must_use_;
