/*
 * How many replicas of a request fit beside what is there, where, and what stops the next: as if
 * each were bound at once, and the next asked for. Nothing but the plan changes.
 *
 * Each goes to the best node by the node policy, the lowest name among equals: a shortlist of one.
 */
#pragma once

#include "arena.h"
#include "cache.h"

/* A node as it would be. */
struct plan_site {
    struct node node;        /* its cards are a copy once something is placed */
    const struct node *real; /* as it is */
    uint64_t score;
    uint32_t replicas;
};

/* Where a replica would be. */
struct plan_spot {
    const struct plan_site *site;
    const struct holding *holding;
};

struct plan {
    struct arena *arena; /* of all that is here */
    struct request request;
    uint32_t replicas;       /* asked for */
    uint32_t fit;            /* have a spot */
    bool exhausted;          /* LIMIT_PLAN_LOOKS: more may fit */
    struct plan_spot *spots; /* in the order of the replicas */
    struct plan_site *sites; /* every node that the API server has, in no order */
    size_t n_sites;
    uint64_t looks; /* at a card, or a pod beside it */

    struct quota_tenant tenant; /* with what the replicas hold; entry NULL: no limits */
    enum pack node_policy;
    struct plan_site **heap; /* of those that fit, the best first */
    size_t n_heap;
};

/*
 * r is resolved as that of a pod that is not there. *p stays where it is, and cache and what r
 * views as they are, as long as it is asked. ERR_NOMEM, ERR_LIMIT: no room in the arena.
 */
enum errc plan_make(struct plan *p, const struct cache *c, const struct request *r,
                    uint32_t replicas, struct arena *a) _must_use_;

/* Why the next one can't go there; VERDICT_FITS only where all that were asked for fit, or the plan
 * is exhausted. */
enum verdict plan_next(const struct plan *p, const struct plan_site *s);

/*
 * policy_fit, and what kube-scheduler and the kubelet count themselves: whether the node has so
 * many cards for GPUSHARE_RESOURCE_EXCLUSIVE. Filter and bind leave that to them, and are not asked
 * about nodes that have not.
 */
enum verdict plan_judge(const struct node *n, const struct request *r);
