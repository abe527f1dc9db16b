/* The names of the placement policies, and the choice among those of pod, node and configuration.
 */
#include "core/request/policy.h"

static const char *const names[] = {
    [POLICY_UNSET] = "",  [POLICY_BINPACK] = "binpack",     [POLICY_SPREAD] = "spread",
    [POLICY_FGD] = "fgd", [POLICY_BID_PRICE] = "bid-price",
};

bool policy_parse(struct str text, enum policy *ret)
{
    for (unsigned p = POLICY_BINPACK; p < COUNT_OF(names); p++) {
        if (str_eq(text, str_of(names[p]))) {
            *ret = (enum policy)p;
            return true;
        }
    }
    return false;
}

const char *policy_name(enum policy p)
{
    assert((unsigned)p < COUNT_OF(names));
    return names[p];
}

enum policy policy_choose(enum policy own, enum policy next, enum policy fallback)
{
    if (own != POLICY_UNSET)
        return own;
    if (next != POLICY_UNSET)
        return next;
    return fallback == POLICY_UNSET ? POLICY_BINPACK : fallback;
}
