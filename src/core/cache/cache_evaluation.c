/* What the cache adds to a request when it is evaluated. */
#include "cache_dra.h"
#include "cache_store.h"

void cache_evaluation(const struct cache *c, struct str uid, const struct request *r,
                      struct evaluation *ret)
{
    enum policy nodes = policy_choose(r->node_policy, POLICY_UNSET, c->settings.node_policy);
    /* Node and card are chosen by the same costs, but spread is not the default: it was asked for.
     */
    bool costs = policy_has_costs(nodes) && c->settings.card_policy != POLICY_SPREAD;
    *ret = (struct evaluation){
        .request = r,
        .self = map_get(&c->pods, uid),
        .affinity_held = cache_group_holds(c, r->namespace, r->affinity),
        .devices = cache_dra_asked(c, r),
        .simple = request_simple(r),
        .fallback = costs ? nodes : c->settings.card_policy,
        .learned = &c->learned,
        .account = quota_account(&c->quota, r->namespace),
    };
}
