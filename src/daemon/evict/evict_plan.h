/* Chooses the victims for a pod: the cheapest set (see victims.h) of all nodes that refused it. */
#pragma once

#include "core/cache/cache.h"
#include "core/preempt/victims.h"
#include "daemon/evict/refusals.h"

struct evict_question {
    const struct cache *cache;
    struct budgets *budgets;
    const struct pod *pod; /* pending */
    struct str nodes;      /* as in struct refusal */
    uint32_t n_nodes;
    const struct pod *const *spared; /* pods that must not be victims, on any node */
    size_t n_spared;
};

struct evict_victim {
    struct str uid;
    struct str namespace;
    struct str name;
    int32_t priority;
};

struct evict_plan {
    bool found;
    struct str node;
    struct placement there; /* the cards for the pod */
    struct victims_cost cost;
    uint32_t n; /* victims; 0: the room becomes free without evictions */
    struct evict_victim *victims;
};

/* *ret points into the arena. ERR_NOMEM: no memory. ERR_LIMIT: the arena is full. */
enum errc evict_plan(const struct evict_question *q, struct arena *a, struct evict_plan *ret)
    _must_use_;

/* Whether one of the nodes is feasible for the pod now. */
bool evict_fits(const struct evict_question *q);
