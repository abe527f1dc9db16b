/*
 * A cluster that is never completely in memory: each object is a template with digits of a fixed
 * width, so that rendering one is a memcpy and a few bytes. The i-th object's name, node and card
 * follow from i; only later Bindings are stored.
 *
 * Pods 0 to pods - 1 are bound; gpu_pods of these, evenly spread, have a card. The next `pending`
 * pods are pending and want a card each.
 */
#pragma once

#include "api/request.h"
#include "base/buf.h"
#include "base/str.h"

#define API_SPOTS      24
#define API_NAMESPACES 1000 /* the pods of a namespace are adjacent */

struct api_template {
    struct buf text;
    size_t n_spots;

    struct {
        size_t at;
        char kind;
    } spots[API_SPOTS];
};

struct api_bound {
    uint32_t node;     /* 1 + the node's index; 0: not bound */
    char *annotations; /* members of the object, as JSON */
};

struct api_world {
    uint64_t nodes, cards, pods, gpu_pods, pending;
    uint64_t card_mem, pod_mem;
    uint64_t pod_bytes, node_bytes; /* lower bounds; objects are filled up as real ones are */
    uint64_t version;               /* increases with every Binding */
    uint64_t n_bound;
    uint64_t n_twice; /* Bindings of pods that were bound already */
    struct api_bound *bound;
    uint64_t tables; /* 1: nodes have a table of cards with UUIDs */
    uint64_t slices; /* 1: each node has a ResourceSlice with all its cards; 0: DRA is not served */
    uint64_t claims; /* each holds a card of a node, from the last card on */
    struct api_template node, plain_pod, gpu_pod, pending_pod, slice, claim;
};

void api_world_init(struct api_world *w);
uint64_t api_world_count(const struct api_world *w, unsigned kind);

/* Appends the i-th object of a list to out. */
void api_render(const struct api_world *w, unsigned kind, uint64_t i, struct buf *out);

/* Finds the index of the pod with this name; false: no such pod. */
bool api_world_pod(const struct api_world *w, struct str name, uint64_t *ret);

/* False: the pod is bound already, or the Binding is invalid. */
bool api_world_bind(struct api_world *w, uint64_t pod, struct str body);
