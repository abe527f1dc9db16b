/* Whom to evict for a pod, of all nodes that it was refused on: the cheapest set of victims.h. */
#pragma once

#include "cache.h"
#include "refusals.h"
#include "victims.h"

struct evict_question {
    const struct cache *cache;
    struct budgets *budgets;
    const struct pod *pod; /* pending */
    struct str nodes;      /* as in struct refusal */
    uint32_t n_nodes;
    const struct pod *const *spared; /* of any node */
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
    struct placement there; /* where the pod will be */
    struct victims_cost cost;
    uint32_t n; /* 0: room is coming by itself */
    struct evict_victim *victims;
};

/* *ret is in the arena. ERR_NOMEM, ERR_LIMIT. */
enum errc evict_plan(const struct evict_question *q, struct arena *a, struct evict_plan *ret)
    _must_use_;

/* Whether the pod has room on one of the nodes as they are. */
bool evict_fits(const struct evict_question *q);
