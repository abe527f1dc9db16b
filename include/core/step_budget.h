/*
 * The cost of answering one request so far, counted in steps and not in time. A step is a look at a
 * node, a card, a pod, a limit or a name in a list, and takes some ten nanoseconds.
 *
 * If the cost is a product of numbers that a pod's author or a client chooses, it must be counted
 * here. LIMIT_REQUEST_STEPS is how many steps a request may take. inspect, cards, metrics and the
 * page need no count: they read each node, card and share of a pod once, or a fixed number of
 * times.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "core/limit.h"

struct step_budget_item {
    struct str name;
    bool excludes;
};

/* A card's model, and whether the pod's list allows it. */
struct step_budget_model {
    struct str name;
    bool known;
    bool allowed;
};

struct step_budget {
    uint64_t steps;
    uint64_t looks; /* left for assign_place's searches on all nodes together */
    uint32_t nodes; /* nodes still to be evaluated; each gets an equal part of the looks */
    bool cut; /* a search had no looks or steps left: the answer depends on the other nodes of the
                 request */

    /* The lists that the fields below were computed from. For another list they are invalid. */
    struct str models;
    struct str uuids;
    struct step_budget_model seen[64]; /* indexed by a hash of the name */
    struct step_budget_item items[LIMIT_WISH_ITEMS];
    uint32_t n_items; /* of the uuids, sorted; 0: not read yet */
    bool excludes_only;
};

/* Starts to count; `nodes` nodes are to be evaluated. */
void step_budget_begin(struct step_budget *budget, size_t nodes);

/* One of the nodes has been evaluated. */
static inline void step_budget_next_node(struct step_budget *budget)
{
    budget->nodes -= budget->nodes > 0 ? 1 : 0;
}

/* Whether the request has taken more steps than it may. */
static inline bool step_budget_is_spent(const struct step_budget *budget)
{
    return budget->steps > LIMIT_REQUEST_STEPS;
}

/* ERR_LIMIT, because the budget is spent. */
enum errc step_budget_fail(struct err *reterr);

/* pattern_list_allows for a pod's list of models and for its list of uuids. Each model is matched
 * once per request; a uuid is found by binary search. w may be NULL: then nothing is cached. If
 * the budget is spent, no other model is allowed. */
bool step_budget_matches_model(struct step_budget *budget, struct str list, struct str model);
bool step_budget_matches_uuid(struct step_budget *budget, struct str list, struct str uuid);

/* step_budget_looks: how many steps assign_place may take for one node, never less than `least`.
 * step_budget_looked: records the steps that it took. cut: it ended for lack of steps. */
uint64_t step_budget_looks(const struct step_budget *budget, uint64_t least);
void step_budget_looked(struct step_budget *budget, uint64_t looks, bool cut);
