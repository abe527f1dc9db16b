/*
 * Cards in a pod's annotations: which container has how much of which card.
 *
 *     ALIYUN_COM_GPU_MEM_IDX                     "1", or "0,2"
 *     scheduler.framework.gpushare.allocation    {"0":{"1":8},"2":{"0":4}}
 *     gpushare.alibabacloud.com/core-percentage  {"0":{"1":30}}
 *
 * The key of a container is its index in spec.containers. The key of a sidecar is the number of
 * those containers plus its index in spec.initContainers. So tools that add up all entries (kubectl
 * inspect gpushare) count sidecars too.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/state/pod_allocation.h"

/*
 * If the text cannot be read, the pod has no allocation; no error is reported. False only if the
 * arena failed.
 */
bool allocation_read(struct str text, struct arena *a, struct pod_view *ret) _must_use_;

void allocation_write_index(struct buf *out, const struct pod_allocation *h);

enum allocation_of {
    ALLOCATION_OF_MEM,
    ALLOCATION_OF_CORES,
};

void allocation_write(struct buf *out, const struct pod_allocation *h, enum allocation_of what);

/*
 * For a plain request (request_plain) on one card, whose grant does not name the container. Written
 * only to replace the allocation of another Binding. "{}" if only an init container requests
 * memory.
 */
void allocation_write_plain(struct buf *out, const struct request *r, uint32_t card);
