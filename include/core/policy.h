/* Whether a node can hold a request, and on which of its cards. Pure functions of a const node. */
#pragma once

#include "node.h"
#include "request.h"
#include "verdict.h"

/* n may be NULL: VERDICT_UNKNOWN_NODE. A request for nothing fits on every node there is. */
enum verdict policy_fit(const struct node *n, const struct request *r);

/* Whether a reserved pod's card still is one for it: its node may have changed since. */
enum verdict policy_keep(const struct pod *p);

/*
 * The card for a request that fits: the one with the least free memory that still holds it, the
 * lowest index on ties. Before that: a card that already holds a pod of exactly this size which the
 * device plugin has not assigned yet. The plugin tells such pods apart by size alone and may swap
 * them (gpushare's allocate.go), which is harmless only if they are on the same card.
 */
uint32_t policy_pick(const struct node *n, const struct request *r);
