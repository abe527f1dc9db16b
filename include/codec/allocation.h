/*
 * Cards in a pod's annotations: which container has how much of which card.
 *
 *     ALIYUN_COM_GPU_MEM_IDX                     "1", or "0,2"
 *     scheduler.framework.gpushare.allocation    {"0":{"1":8},"2":{"0":4}}
 *     gpushare.alibabacloud.com/core-percentage  {"0":{"1":30}}
 *
 * A container's key is its index in spec.containers; that of a sidecar is its index in
 * spec.initContainers behind those, so that who sums all of it (kubectl inspect gpushare) counts
 * sidecars too.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "holding.h"

/* Without a word where it can't be read: then the pod has none. False only if the arena failed. */
bool allocation_read(struct str text, struct arena *a, struct pod_view *ret) _must_use_;

void allocation_write_index(struct buf *out, const struct holding *h);

enum allocation_of {
    ALLOCATION_OF_MEM,
    ALLOCATION_OF_CORES,
};

void allocation_write(struct buf *out, const struct holding *h, enum allocation_of what);
