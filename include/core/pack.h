/* Where the next pod goes among feasible cards or nodes: fill one (binpack), share the load
 * (spread), or where the expected pods lose least (fgd.h, market.h). */
#pragma once

#include "base/str.h"

enum pack {
    PACK_UNSET, /* not set */
    PACK_BINPACK,
    PACK_SPREAD,
    PACK_FGD,
    PACK_BID_PRICE,
};

/* Whether the policy compares costs that depend on the pods seen so far. Unless a pod or a node
 * sets a policy for cards, such a policy for nodes chooses the cards, too. */
static inline bool pack_has_costs(enum pack p)
{
    return p == PACK_FGD || p == PACK_BID_PRICE;
}

/* Accepts exactly "binpack", "spread", "fgd" or "bid-price". False: another text, and *ret is
 * unchanged. */
bool pack_parse(struct str text, enum pack *ret);

/* The policy's name; "" for PACK_UNSET. */
const char *pack_name(enum pack p);

/* The first that is set, in the order of the arguments; else binpack. */
enum pack pack_choose(enum pack own, enum pack next, enum pack fallback);
