/*
 * What is read of a Pod and of a Node, as views into the bytes that they came in: nothing here
 * outlives the call that it is passed to. Codecs fill these, the cache takes from them what it
 * keeps.
 */
#pragma once

#include "str.h"

enum container_kind {
    CONTAINER_MAIN,
    CONTAINER_INIT,
    CONTAINER_SIDECAR, /* an init container with restartPolicy Always */
};

/* Only containers that name the resource; their order is the pod's, init containers first. */
struct container_view {
    struct str name;
    struct str mem; /* quantity: limits, or requests where limits don't name it */
    enum container_kind kind;
};

struct pod_view {
    struct str uid;
    struct str namespace;
    struct str name;
    struct str node;         /* spec.nodeName; absent or empty: not bound */
    struct str phase;        /* status.phase */
    struct str mem_overhead; /* spec.overhead of the resource; nearly always absent */
    bool deleting;           /* metadata.deletionTimestamp is set */
    struct str idx;          /* GPUSHARE_ANNOTATION_...; absent where the pod has none */
    struct str assigned;
    struct str assume_time;
    const struct container_view *containers;
    size_t n_containers;
};

static inline bool pod_view_bound(const struct pod_view *v)
{
    return v->node.n > 0;
}

/* Terminal: its card is free again. A deletionTimestamp alone frees nothing. */
static inline bool pod_view_terminal(const struct pod_view *v)
{
    return str_eq(v->phase, STR("Succeeded")) || str_eq(v->phase, STR("Failed"));
}

struct node_view {
    struct str name;
    struct str mem;             /* status.capacity of GPUSHARE_RESOURCE_MEM; absent: none */
    struct str count;           /* status.capacity of GPUSHARE_RESOURCE_COUNT */
    struct str mem_allocatable; /* status.allocatable of GPUSHARE_RESOURCE_MEM */
};
