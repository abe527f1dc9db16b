/* What the evaluation of one request carries: the request itself, what the cache knows of its pod,
 * and where the answers and their cost are noted. cache_evaluation makes one. */
#pragma once

#include "core/quota.h"
#include "core/request/policy.h"
#include "core/request/request.h"
#include "core/step_budget.h"

struct pod;
struct shortfall;
struct quota_usage_memo;
struct learned_costs;

/* All pointers are borrowed. Only request must not be NULL: with zeros in all other fields the pod
 * is unknown, and nothing is limited, learned or noted. */
struct evaluation {
    const struct request *request; /* never changes meanwhile */
    const struct pod *self; /* the pod itself, its kept room is ignored; NULL: none is known */
    bool affinity_held;     /* pods of its affinity group hold a card on some node */
    uint32_t devices;       /* cards that DRA is asked for by implicit names of request->classes */
    bool simple;            /* request_simple: node.simple decides whether it fits */
    enum policy fallback;   /* the card policy if neither the pod nor the node sets one */
    const struct learned_costs *learned; /* what the policies with costs know; NULL: nothing */
    struct quota_account account;        /* of its namespace; without an entry: no limits */
    struct quota_usage_memo *memo;       /* cached answers of the account; NULL: no cache */
    struct step_budget *step_budget;     /* counts the cost of the answer; NULL: not counted */
    struct shortfall *shortfall; /* gets the figures of the node evaluated last; NULL: none */
};

static inline void evaluation_count_steps(const struct evaluation *e, uint64_t steps)
{
    if (e->step_budget != NULL)
        e->step_budget->steps += steps;
}

/* The evaluation of one container alone. part: request_part writes it, from e's request, before the
 * evaluation is used. */
static inline struct evaluation evaluation_part(const struct evaluation *e,
                                                const struct request *part)
{
    struct evaluation ret = *e;
    ret.request = part;
    if (request_by_container(e->request))
        ret.memo = NULL; /* its answers are for the amounts of the whole pod */
    return ret;
}
