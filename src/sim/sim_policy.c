/* Names and scores of policies. */
#include "sim/sim_policy.h"

#include "sim/bestfit.h"

bool sim_policy_parse(struct str name, struct sim_policy *ret)
{
    struct sim_policy p = {.name = name, .policy = POLICY_BINPACK};
    p.bestfit = str_eq(name, STR("bestfit"));
    p.foresees = str_eq(name, STR("fgd-paper"));
    if (p.foresees)
        p.policy = POLICY_FGD;
    else if (!p.bestfit && !policy_parse(name, &p.policy))
        return false;
    *ret = p;
    return true;
}

uint64_t sim_policy_score(const struct sim_policy *p, const struct node *n, struct host left,
                          const struct sim_shape *s, struct score *score)
{
    if (p->bestfit)
        return bestfit_score(n, left, s);
    if (!request_shares(&s->request) && !policy_has_costs(score->policy))
        return SCORE_BEST - 1;
    return score_node(score, n);
}
