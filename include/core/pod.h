/*
 * A pod that wants or holds memory on a card. Only cache.c changes these structs; everybody else
 * reads them through const pointers.
 */
#pragma once

#include "err.h"
#include "view.h"

struct node;

enum pod_state {
    POD_PENDING,   /* shown by list or watch, holds nothing */
    POD_RESERVED,  /* holds a card while its Binding is under way or in doubt */
    POD_CONFIRMED, /* the API server has answered that it is bound; the watch has yet to show it */
    POD_BOUND,     /* the API server's object says so */
};

struct pod {
    struct str uid; /* key of the cache's map; the strings are stored behind the struct */
    struct str namespace;
    struct str name;
    enum pod_state state;
    bool seen; /* by list or watch, not only by a bind */
    /* Holds by our word alone, and list or watch speak against it. */
    bool missing;
    bool asked; /* missing, and somebody was told so since: a read that follows is believed */
    /* The device plugin has not assigned it yet (contract: ASSIGNED, phase Pending). */
    bool awaiting;
    uint32_t epoch; /* of the last list that named it, or during which it was first heard of */
    int64_t mem;
    struct node *node; /* NULL while pending */
    int32_t card;      /* index; -1: on the node, but no card of it */
    uint64_t assume_ns;
    struct pod *next; /* in node->pods */
    struct pod *prev;
};

static inline bool pod_holds(const struct pod *p)
{
    return p->state != POD_PENDING;
}

/* The rest is for cache.c. */

/* Pending, charged nowhere; NULL without memory. mem_free frees it whole. */
struct pod *pod_new(struct str uid, struct str namespace, struct str name);

/* List or watch speak against a pod that holds by our word alone. */
void pod_doubt(struct pod *p);

/* They speak for it, or a read does that is younger than the doubt. */
void pod_believe(struct pod *p);

/*
 * Whether the pod is missing, and what is said for it now (read_back: the answer to a GET) can't be
 * known to be younger than that. From then on the answer to a GET is.
 */
bool pod_is_doubted(struct pod *p, bool read_back);

/* What the object says of a bound pod beside its place; who charges it sets that. An ASSUME_TIME
 * more than a day ahead of now is not taken over. */
void pod_take_annotations(struct pod *p, const struct pod_view *view, uint64_t now_ns);

/* The card that an object names, or -1. */
int32_t pod_view_card(const struct pod_view *view);

/* Asserts what is true of a pod alone. */
void pod_check(const struct pod *p);
