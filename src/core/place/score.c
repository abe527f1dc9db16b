/*
 * binpack and spread: the score is the share as a fraction of 2^62, rounded down. Equal shares p/q
 * give equal scores. Unequal shares differ by at least 1/(q1*q2), which is over 2^-62 for any two
 * nodes of less than 2^31 units (2 PiB in MiB). Comparing cross products would be exact for larger
 * nodes as well, but gives only an order: prioritize must know which nodes are equal, and a heap
 * needs a key.
 */
#include "core/place/score.h"

#include "core/place/fit.h"

#define WHOLE (UINT64_C(1) << 62)

/* Costs beyond this are alike: no node has so many cards. */
#define COST_MAX (INT64_C(1) << 60)

void score_begin(struct score *s, const struct evaluation *e, enum policy policy)
{
    bool known = e->request->dialect == DIALECT_OWN || !policy_has_costs(policy);
    *s = (struct score){.policy = known ? learned_costs_able(e->learned, policy) : POLICY_BINPACK,
                        .request = e->request,
                        .learned = e->learned,
                        .total = -1};
    if (policy_has_costs(s->policy))
        market_ask(&s->learned->market, e, &s->ask);
}

static uint64_t score_used(const struct node *n, int64_t mem)
{
    int64_t used = 0;
    bool over = __builtin_add_overflow(MAX_OF(n->used, (int64_t)0), MAX_OF(mem, (int64_t)0), &used);
    if (over || used >= n->total)
        return WHOLE;
    unsigned __int128 scaled = (unsigned __int128)(uint64_t)used * WHOLE;
    return (uint64_t)(scaled / (uint64_t)n->total);
}

uint64_t score_share(const struct node *n, int64_t mem, enum policy policy)
{
    uint64_t share = score_used(n, mem);
    assert(share <= WHOLE);
    return 2 * (1 + (policy == POLICY_SPREAD ? WHOLE - share : share));
}

static uint64_t score_memory(struct score *s, const struct node *n)
{
    if (request_fixed(s->request) && n->total == s->total && n->used == s->used)
        return s->last;
    s->total = n->total;
    s->used = n->used;
    s->last = score_share(n, fit_cost(n, s->request), s->policy);
    return s->last;
}

static uint64_t score_cost(int64_t cost)
{
    int64_t kept = MIN_OF(MAX_OF(cost, -COST_MAX), COST_MAX);
    return 2 * (uint64_t)(1 + COST_MAX - kept);
}

uint64_t score_node(struct score *s, const struct node *n)
{
    if (s->policy == POLICY_BID_PRICE)
        return score_cost(market_cost(&s->ask, n));
    if (s->policy == POLICY_FGD)
        return 2 * (1 + (uint64_t)fgd_score(&s->learned->fgd, &s->ask, n));
    return score_memory(s, n);
}
