/* Both policies learn at the same time, from the same shapes. */
#include "core/policy/learned_costs.h"

void learned_costs_done(struct learned_costs *p)
{
    market_done(&p->market);
    fgd_done(&p->fgd);
}

enum policy learned_costs_able(const struct learned_costs *p, enum policy policy)
{
    if (policy == POLICY_BID_PRICE)
        return p != NULL && p->market.solved > 0 ? policy : POLICY_BINPACK;
    if (policy == POLICY_FGD)
        return p != NULL && p->fgd.n > 0 ? policy : POLICY_BINPACK;
    return policy;
}

bool learned_costs_order(const struct evaluation *e, enum policy policy, const struct node *n,
                         int64_t *ret)
{
    struct market_ask ask _uninitialized_;
    if (!policy_has_costs(policy) || e->request->dialect != DIALECT_OWN ||
        learned_costs_able(e->learned, policy) != policy)
        return false;
    market_ask(&e->learned->market, e, &ask);
    if (policy == POLICY_FGD)
        fgd_order(&e->learned->fgd, &ask, n, ret);
    else
        market_order(&ask, n, ret);
    return true;
}

bool learned_costs_are_due(const struct learned_costs *p)
{
    return market_is_due(&p->market);
}

/* No pod and no kind of cards came since fgd learned: a lesson that is tried again. */
static bool learned_costs_know_all(const struct learned_costs *p)
{
    return p->fgd.arrivals == p->market.shapes.arrivals && p->fgd.n_kinds == p->market.n_kinds;
}

bool learned_costs_begin(struct learned_costs *p, const struct map *nodes)
{
    bool freed = market_free_kinds(&p->market, nodes);
    if (freed)
        fgd_done(&p->fgd);
    if (freed || !learned_costs_know_all(p)) {
        fgd_learn(&p->fgd, &p->market);
        p->lessons++;
    }
    return market_begin(&p->market, nodes);
}

bool learned_costs_step(struct learned_costs *p)
{
    return market_step(&p->market);
}
