/* A watch of this machine's own Node object: the fields that cardpack-node writes, and the label
 * that an administrator sets for it. */
#pragma once

#include "kube/kube_api.h"

struct own_node;

/* Absent: the node has no such field. Views are valid during the call. */
struct own_node_view {
    uint64_t version;             /* resourceVersion; 0: not a number */
    struct str cards;             /* annotation cardpack.io/cards, as it is */
    struct str isolation;         /* label cardpack.io/isolation */
    struct str late;              /* annotation cardpack.io/late-binding */
    struct str count;             /* aliyun.com/gpu-count in capacity */
    struct str count_allocatable; /* in allocatable */
    struct str mem;               /* aliyun.com/gpu-mem in capacity; the kubelet writes it */
    bool mps;                     /* label cardpack.io/mps is "true" */
    struct str kubelet;           /* its version, as the kubelet writes it */
    struct str runtime;           /* "containerd://2.0.1" */
    bool disable_cgpu;            /* label cgpu.disable.isolation is "true" */
};

/* Reads a Node's JSON; views point into it or into the arena. */
enum errc own_node_read(struct str json, struct arena *a, struct own_node_view *ret,
                        struct err *reterr) _must_use_;

/* changed: the node was listed or has changed. It must not free the watch. */
enum errc own_node_new(struct loop *l, struct kube_api *api, struct str node,
                       void (*changed)(void *ctx, const struct own_node_view *node), void *ctx,
                       struct own_node **ret, struct err *reterr) _must_use_;
struct own_node *own_node_free(struct own_node *o); /* returns NULL */

/* Whether a list has arrived that has the node. */
bool own_node_seen(const struct own_node *o);
