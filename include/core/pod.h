/*
 * A pod that wants or holds memory on a card. Only cache.c changes these structs; everybody else
 * reads them through const pointers.
 */
#pragma once

#include "holding.h"
#include "labels.h"

struct node;
struct group;

enum pod_state {
    POD_PENDING,   /* shown by list or watch, holds nothing */
    POD_RESERVED,  /* holds a card while its Binding is under way or in doubt */
    POD_CONFIRMED, /* the API server has answered that it is bound; the watch has yet to show it */
    POD_BOUND,     /* the API server's object says so */
};

struct pod {
    struct str uid;       /* key of the cache's map; stored behind the struct, as the name */
    struct str namespace; /* the tenant's */
    struct str name;
    enum pod_state state;
    bool seen; /* by list or watch, not only by a bind */
    /* Holds by our word alone, and list or watch speak against it. */
    bool missing;
    bool asked; /* missing, and somebody was told so since: a read that follows is believed */
    /* The device plugin has not assigned it yet (contract: ASSIGNED, phase Pending). */
    bool awaiting;
    bool initialized;      /* its init containers are done, and what only they need is given back */
    bool said_initialized; /* its object says so, whether or not anything is given back for it */
    bool deleting;         /* its object says so; it holds its cards all the same */
    bool unwanting;        /* reserved; its object asks for nothing any more */
    bool kept;      /* the claim is ours, on the cards of its holding, and not a nomination */
    uint32_t epoch; /* of the last list that named it, or during which it was first heard of */
    struct quota_tenant *tenant; /* its namespace's; left when the cache forgets the pod */
    struct request *request;     /* of the cache's pool: shared, and never changed */
    struct request *edited;      /* likewise; reserved: what its object asks for by now, or NULL */
    struct holding *holding;     /* owned; NULL while pending without kept cards */
    struct labels *labels;  /* shared; of the bound object: who may be evicted is asked of those */
    int64_t mem;            /* the request's */
    struct node *node;      /* NULL while pending */
    struct group *group;    /* its affinity group, as long as it holds; or NULL */
    struct node *claim;     /* pending: the node that keeps room for it; or NULL */
    struct node *nominated; /* until it is bound: where a scheduler has made room; or NULL */
    int32_t card;           /* the first of its cards; -1: on the node, but no card of it */
    uint32_t created_s;     /* Unix time, or when it was first seen; 0: in no object yet */
    uint64_t assume_ns;
    struct pod *next; /* in node->pods, or in claim->claims */
    struct pod *prev;
    struct pod *pending_next; /* in the cache's list of those that are pending */
    struct pod *pending_prev;
};

static inline bool pod_holds(const struct pod *p)
{
    return p->state != POD_PENDING;
}

/* The rest is for cache.c. */

/* Pending, charged nowhere, and without a request or a namespace yet; NULL without memory. */
struct pod *pod_new(struct str uid, struct str name);

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

/* Asserts what is true of a pod alone. */
void pod_check(const struct pod *p);
