/*
 * Nodes, their cards and the pods on them as JSON, in two forms:
 *
 *     gpushare's, for the tools that read it:
 *     {"nodes": [{"name", "totalGPU", "usedGPU",
 *                 "devs": [{"id", "totalGPU", "usedGPU",
 *                           "pods": [{"name", "namespace", "usedGPU"}]}]}], "error"}
 *
 *     the same with all known details, for people:
 *     node  "freeGPU", "fault": what is wrong with its resources, "pool"
 *     card  "freeGPU", "compute": percent in use, "state": ok, unhealthy, cordoned or aside,
 *           "model", "uuid", "profile", "numa"
 *     pod   "compute"
 *
 * Unknown values, and a pod's compute of 0, are left out. "error" is set if the named node does not
 * exist. Numbers are in the unit of aliyun.com/gpu-mem.
 */
#pragma once

#include "base/arena.h"
#include "core/cache.h"

enum inspect_form {
    INSPECT_GPUSHARE,
    INSPECT_CARDS,
};

/* `node` absent: all nodes with gpu-mem or with pods that ask for it, by name. Uses the arena to
 * sort them. */
enum errc inspect_write(const struct cache *c, struct str node, enum inspect_form form,
                        struct arena *a, struct buf *out) _must_use_;
