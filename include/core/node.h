/*
 * A node: its cards, and the pods that hold memory on them. Sizes come from the Node object of this
 * moment and usage from the pods' list, kept apart: a node that is resized, loses cards or gets its
 * sizes late is recounted whole, so nothing derived can go stale.
 *
 * Only cache.c changes these structs; everybody else reads them through const pointers.
 */
#pragma once

#include "pod.h"

struct card {
    int64_t total; /* in the plugin's unit (GiB or MiB), as all memory here */
    /* May pass total after a resize or a bind by another hand; never by one of ours. */
    int64_t used;
    uint32_t pods;
    bool unhealthy;
};

/* What is wrong with the node's own numbers. */
enum node_fault {
    NODE_OK,
    NODE_ABSENT,       /* pods or a ConfigMap name it, the API server does not */
    NODE_NOT_SHARED,   /* no gpu-mem */
    NODE_NO_CARDS,     /* gpu-mem without gpu-count */
    NODE_BAD_QUANTITY, /* gpu-mem or gpu-count is no quantity, negative, or over LIMIT_CARDS */
};

struct node {
    struct str name; /* key of the cache's map; stored behind the struct */
    enum node_fault fault;
    uint32_t epoch;        /* of the last list that named it */
    uint32_t health_epoch; /* the same of its unhealthy ConfigMap */

    int64_t total;     /* capacity of all cards */
    int64_t limit;     /* what may be used of it: the smaller of capacity and allocatable */
    int64_t remainder; /* what an even split leaves over */
    struct card *cards;
    uint32_t n_cards;

    int64_t used;     /* by all pods, with a card or not */
    int64_t unplaced; /* by pods without a valid card */
    uint32_t n_pods;
    struct pod *pods; /* that hold memory here */

    int64_t largest;     /* total of the largest card, healthy or not */
    int64_t most_free;   /* what the freest healthy card has left: most verdicts need no more */
    uint64_t assume_ns;  /* the last ASSUME_TIME given or seen here */
    uint64_t *unhealthy; /* bit i: card i; LIMIT_CARDS bits, or NULL for none */
};

static inline int64_t card_free(const struct card *c)
{
    return c->used >= c->total || c->unhealthy ? 0 : c->total - c->used;
}

static inline int64_t node_free(const struct node *n)
{
    return n->used >= n->limit ? 0 : n->limit - n->used;
}

/* The rest is for cache.c. */

/* Sizes from the Node object. ERR_NOMEM: nothing has changed. */
enum errc node_resize(struct node *n, const struct node_view *view, bool *ret_changed) _must_use_;

/* Its Node object is gone. */
void node_vanish(struct node *n);

/*
 * The unhealthy cards: "0,2", white space allowed. Tokens that are no index are counted in
 * *ret_bad and left out. ERR_NOMEM: nothing has changed.
 */
enum errc node_set_unhealthy(struct node *n, struct str gpus, unsigned *ret_bad, bool *ret_changed)
    _must_use_;
void node_clear_unhealthy(struct node *n);

/* p->mem is charged to p->card of n, or to the node alone. */
void node_attach(struct node *n, struct pod *p, int32_t card);
void node_detach(struct pod *p);

void node_done(struct node *n);

/* Recounts from the pods' list and asserts that every figure agrees. */
void node_check(const struct node *n);
