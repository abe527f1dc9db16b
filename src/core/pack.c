/* The names of the packing policies, and the choice among those of pod, node and configuration. */
#include "core/pack.h"

static const char *const names[] = {
    [PACK_UNSET] = "",  [PACK_BINPACK] = "binpack",     [PACK_SPREAD] = "spread",
    [PACK_FGD] = "fgd", [PACK_BID_PRICE] = "bid-price",
};

bool pack_parse(struct str text, enum pack *ret)
{
    for (unsigned p = PACK_BINPACK; p < COUNT_OF(names); p++) {
        if (str_eq(text, str_of(names[p]))) {
            *ret = (enum pack)p;
            return true;
        }
    }
    return false;
}

const char *pack_name(enum pack p)
{
    assert((unsigned)p < COUNT_OF(names));
    return names[p];
}

enum pack pack_choose(enum pack own, enum pack next, enum pack fallback)
{
    if (own != PACK_UNSET)
        return own;
    if (next != PACK_UNSET)
        return next;
    return fallback == PACK_UNSET ? PACK_BINPACK : fallback;
}
