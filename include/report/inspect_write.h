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
 *     and in both, if asked for, what cardpack-node has measured, where it is known:
 *     node  "measured": when, by the node's clock
 *     card  "usedMiB", "sizeMiB", "busyPercent"
 *     pod   "usedMiB", "exceeds": true if that is more than its share of the card
 *
 * Unknown values, and a pod's compute of 0, are left out. "error" is set if the named node does not
 * exist. Numbers are in the unit of aliyun.com/gpu-mem.
 */
#pragma once

#include "base/arena.h"
#include "core/cache/cache.h"
#include "core/state/measured.h"

enum inspect_form {
    INSPECT_GPUSHARE,
    INSPECT_CARDS,
};

/* All nodes with gpu-mem or with pods that ask for it, by name. NULL: no memory. */
const struct node **inspect_write_collect(const struct cache *c, struct arena *a, size_t *ret_n);

/* m: NULL if nothing is known, or it is not asked for. `node` absent: all that
 * inspect_write_collect finds. */
enum errc inspect_write(const struct cache *c, const struct measured *m, struct str node,
                        enum inspect_form form, struct arena *a, struct buf *out) _must_use_;
