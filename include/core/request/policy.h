/* Where the next pod goes among feasible cards or nodes: fill one (binpack), share the load
 * (spread), or where the expected pods lose least (fgd.h, market.h). */
#pragma once

#include "base/str.h"

enum policy {
    POLICY_UNSET, /* not set */
    POLICY_BINPACK,
    POLICY_SPREAD,
    POLICY_FGD,
    POLICY_BID_PRICE,
};

/* Whether the policy compares costs that depend on the pods seen so far. Unless a pod or a node
 * sets a policy for cards, such a policy for nodes chooses the cards, too. */
static inline bool policy_has_costs(enum policy p)
{
    return p == POLICY_FGD || p == POLICY_BID_PRICE;
}

/* Their names in the order of the enum: for messages, and for help. */
#define POLICY_NAMES "binpack, spread, fgd or bid-price"
#define POLICY_WORDS "binpack|spread|fgd|bid-price"

/* Accepts exactly these names. False: another text, and *ret is unchanged. */
bool policy_parse(struct str text, enum policy *ret);

/* The policy's name; "" for POLICY_UNSET. */
const char *policy_name(enum policy p);

/* The first that is set, in the order of the arguments; else binpack. */
enum policy policy_choose(enum policy own, enum policy next, enum policy fallback);
