/*
 * How many replicas of a request fit beside the present pods, on which nodes, and why the next one
 * does not fit. Each replica is placed as if the replicas before it were bound. The cache does not
 * change.
 *
 * Each replica goes to the best node by the node policy; among equals to the lowest name, as filter
 * does with a shortlist of one.
 */
#pragma once

#include "base/arena.h"
#include "core/cache/cache.h"
#include "core/place/score.h"

/* A node with the replicas that the plan has put there. */
struct plan_site {
    struct node node;        /* its cards become a copy with the first replica */
    const struct node *real; /* the cache's node */
    uint64_t score;
    uint32_t replicas;
};

/* The place of one replica. */
struct plan_spot {
    const struct plan_site *site;
    const struct pod_allocation *allocation;
};

struct plan {
    struct arena *arena;          /* all memory of the plan */
    struct evaluation evaluation; /* as after the replicas that have a spot */
    uint32_t replicas;            /* how many to place */
    uint32_t fit;                 /* how many have a spot */
    bool exhausted; /* stopped early by LIMIT_PLAN_LOOKS or LIMIT_REQUEST_STEPS; more may fit */
    struct plan_spot *spots; /* one for each replica that fits, in order */
    struct plan_site *sites; /* all nodes that the API server has, in no order */
    size_t n_sites;
    struct step_budget own; /* used if the given evaluation has none */

    struct quota_tenant tenant; /* the quota with the replicas added; entry NULL: no limits */
    struct score score;
    bool avoids_swaps;
    struct plan_site **heap; /* feasible sites, the best first */
    size_t n_heap;
};

/* e is for a pod that does not exist. While the plan is used, *p must not move, and the cache and
 * the request must not change. ERR_NOMEM, ERR_LIMIT: the arena has no room. */
enum errc plan_make(struct plan *p, const struct cache *c, const struct evaluation *e,
                    uint32_t replicas, struct arena *a) _must_use_;

/* Why the next replica can't go there. VERDICT_FITS only if all replicas fit, or if the plan is
 * exhausted. */
enum verdict plan_next(const struct plan *p, const struct plan_site *s);

/* fit_node, and a check that kube-scheduler and the kubelet make themselves: whether the node has
 * enough cards for GPUSHARE_RESOURCE_EXCLUSIVE, and for the devices that DRA is asked for. Filter
 * and bind do not check it: kube-scheduler does not send them nodes without enough. */
enum verdict plan_evaluate(const struct node *n, const struct evaluation *e);
