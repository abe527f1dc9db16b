/* What a policy with costs says of a feasible node, in explain's answer. */
#pragma once

#include "core/place/score.h"
#include "json/jwrite.h"

/* The question of one pod. */
struct cost_write {
    const struct score *score; /* begun; its policy is one with costs and has learned enough */
    const struct node *best;   /* the best feasible node */
};

/* Whether the policy has costs, and they are known. */
static inline bool cost_write_applies(const struct score *s)
{
    return policy_has_costs(s->policy) && request_shares(s->request);
}

/*
 * Adds to the node's object: "cost", in cards with six decimals (bid-price), or "score", 0 to 100
 * (fgd). With a place, which is what fit_place says, also "why": the same as a sentence, with what
 * would be left of the pod's cards. For a node other than the best it says how much worse it is.
 * Nothing, if there is no cost.
 */
void cost_write(struct jwrite *w, const struct cost_write *c, const struct node *n,
                const struct placement *place);
