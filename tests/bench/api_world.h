/*
 * A cluster that is never held in memory: every object is a template with its digits filled in, of
 * a fixed width, so that to render one is a memcpy and a few bytes. The i-th object's name, place
 * and card follow from i alone; only what was bound since is kept.
 *
 * Pods 0 to pods - 1 are bound, gpu_pods of them, spread among them, with a card. The next
 * `pending` wait to be bound and want a card each.
 */
#pragma once

#include "buf.h"
#include "str.h"

enum api_kind {
    API_NODES,
    API_PODS,
    API_CONFIGMAPS,
    API_BUDGETS,
    API_KINDS
};

#define API_SPOTS      24
#define API_NAMESPACES 1000 /* pods of one stand together */

struct api_template {
    struct buf text;
    size_t n_spots;

    struct {
        size_t at;
        char kind;
    } spots[API_SPOTS];
};

struct api_bound {
    uint32_t node;     /* 1 + its index; 0: not bound */
    char *annotations; /* members of the object, as JSON */
};

struct api_world {
    uint64_t nodes, cards, pods, gpu_pods, pending;
    uint64_t card_mem, pod_mem;
    uint64_t pod_bytes, node_bytes; /* at least; filled up as real objects are */
    uint64_t version;               /* grows with every Binding */
    uint64_t n_bound;
    uint64_t n_twice; /* Bindings of a pod that was bound */
    struct api_bound *bound;
    struct api_template node, plain_pod, gpu_pod, pending_pod;
};

void api_world_init(struct api_world *w);
uint64_t api_world_count(const struct api_world *w, enum api_kind kind);

/* The i-th object of a list, behind what is in out. */
void api_render(const struct api_world *w, enum api_kind kind, uint64_t i, struct buf *out);

/* The index of a pod of that name, or false. */
bool api_world_pod(const struct api_world *w, struct str name, uint64_t *ret);

/* False where it is bound already, or nothing that can be bound. */
bool api_world_bind(struct api_world *w, uint64_t pod, struct str body);
