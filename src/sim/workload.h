/*
 * What a simulation runs on: nodes, and pods in the order of their arrival. Pods with equal fields
 * share a shape, so a pod is one number. All memory is the arena's that was passed to the reader.
 *
 * Card memory has the unit of the source: 1000 units are a card of a trace; GiB or MiB in a
 * cluster.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "core/request/request.h"

struct sim_node {
    struct node_view view;
};

struct sim_shape {
    struct pod_view view; /* without a name, a UID or a node */
    struct request request;
    int64_t mem;      /* card memory of all its cards together: see sim_workload_measure */
    int64_t card_mem; /* of one card */
};

/* A pod that is on a node already. */
struct sim_held {
    uint32_t shape;
    uint32_t node;         /* UINT32_MAX: no such node is there */
    struct pod_view place; /* the node, and the annotations with its cards; nothing else */
};

struct sim_workload {
    struct str name;
    const struct sim_node *nodes;
    uint32_t n_nodes;
    struct sim_shape *shapes;
    uint32_t n_shapes;
    const uint32_t *pods;    /* the shape of each; of a trace by name, of a cluster by creation */
    const uint32_t *in_file; /* the same as a trace's file has them; NULL: a cluster */
    uint32_t n_pods;
    /* Of a cluster; a trace has neither. `pods` has all its pods that ask for cards, these too. */
    const struct sim_held *held;
    uint32_t n_held;
    const uint32_t *pending; /* pods that ask for cards and have no node */
    uint32_t n_pending;
    uint32_t n_unread; /* pods that are left out, and why the first one is */
    struct err unread;
    int64_t capacity; /* card memory of all nodes */
};

/* Shapes, each once. */
struct sim_shapes {
    struct arena *arena;
    struct sim_shape *all;
    size_t n;
    size_t cap;
    uint32_t *slots; /* a hash table: the shape's number plus one, or 0 */
    size_t n_slots;
};

/* The number of the shape that the pod has. The view may end after the call. ERR_SYNTAX, ERR_RANGE:
 * its request can't be read; of a bound pod only *reterr says that, and the shape is what can be
 * read. ERR_NOMEM, ERR_LIMIT: the arena is full. */
enum errc sim_shapes_add(struct sim_shapes *t, const struct pod_view *view, uint32_t *ret,
                         struct err *reterr) _must_use_;

/* Appends one shape to the workload's. */
enum errc sim_workload_add(struct sim_workload *w, const struct pod_view *view, struct arena *a,
                           uint32_t *ret, struct err *reterr) _must_use_;

/* A copy of all that a node's view says of its cards, in the arena, which may fail. */
struct node_view sim_node_keep(const struct node_view *view, struct arena *a);

/* Opens a map from a node's name to its struct sim_node; map_done closes it, also after an error.
 * ERR_CONFLICT: two nodes have one name. */
enum errc sim_nodes_index(struct map *ret, struct sim_node *nodes, uint32_t n, struct err *reterr)
    _must_use_;

/* Computes the capacity of all nodes, as the cache reads their views; and for shapes that are
 * there, whose memory depends on the card, as a whole card's does, their memory on the largest
 * card. ERR_RANGE: no node has cards. */
enum errc sim_workload_measure(struct sim_workload *w, struct err *reterr) _must_use_;
