/* Both policies learn at the same time, from the same shapes. */
#include "core/policies.h"

void policies_done(struct policies *p)
{
    market_done(&p->market);
    fgd_done(&p->fgd);
}

enum pack policies_able(const struct policies *p, enum pack policy)
{
    if (policy == PACK_BID_PRICE)
        return p != NULL && p->market.solved > 0 ? policy : PACK_BINPACK;
    if (policy == PACK_FGD)
        return p != NULL && p->fgd.n > 0 ? policy : PACK_BINPACK;
    return policy;
}

bool policies_order(const struct request *r, enum pack policy, const struct node *n, int64_t *ret)
{
    struct market_ask ask _uninitialized_;
    if (!pack_has_costs(policy) || r->dialect != DIALECT_GPUSHARE ||
        policies_able(r->policies, policy) != policy)
        return false;
    market_ask(&r->policies->market, r, &ask);
    if (policy == PACK_FGD)
        fgd_order(&r->policies->fgd, &ask, n, ret);
    else
        market_order(&ask, n, ret);
    return true;
}

bool policies_are_due(const struct policies *p)
{
    return market_is_due(&p->market);
}

/* No pod and no kind of cards came since fgd learned: a lesson that is tried again. */
static bool policies_know_all(const struct policies *p)
{
    return p->fgd.arrivals == p->market.shapes.arrivals && p->fgd.n_kinds == p->market.n_kinds;
}

bool policies_begin(struct policies *p, const struct map *nodes)
{
    bool freed = market_free_kinds(&p->market, nodes);
    if (freed)
        fgd_done(&p->fgd);
    if (freed || !policies_know_all(p)) {
        fgd_learn(&p->fgd, &p->market);
        p->lessons++;
    }
    return market_begin(&p->market, nodes);
}

bool policies_step(struct policies *p)
{
    return market_step(&p->market);
}
