/* Whether a node can hold a request, and on which of its cards. Pure functions of a const node. */
#pragma once

#include "draft.h"
#include "node.h"
#include "request.h"
#include "verdict.h"

/* Most of those that policy_fit has to say yes to, without a call. */
static inline bool policy_fits_simply(const struct node *n, const struct request *r)
{
    return n != NULL && r->simple && r->account.entry == NULL && r->mem <= n->simple;
}

/* n may be NULL: VERDICT_UNKNOWN_NODE. A request for nothing fits on every node there is. */
enum verdict policy_fit(const struct node *n, const struct request *r);

/*
 * The same, with the cards where it fits. r->fallback decides how they are chosen where neither the
 * pod nor the node says it:
 *   - binpack: those with the least free memory that still hold it; spread: with the most; the
 *     lowest index on ties;
 *   - before that, memory of one card goes to a card that already holds a pod of exactly this size
 *     which the device plugin has not assigned yet. The plugin tells such pods apart by size alone
 *     and may swap them (gpushare's allocate.go), which is harmless only on the same card;
 *   - several cards come from one NUMA node, if one has so many that fit;
 *   - containers stay together on one card; if none has the room, each may have its own.
 */
enum verdict policy_place(const struct node *n, const struct request *r, struct placement *ret);

/* verdict_reason, with what n, which may be NULL, has to say of itself. */
struct str policy_reason(const struct node *n, enum verdict v, struct str name,
                         struct buf *scratch);

/*
 * Why a card of n can't take the pod, or its part of it where it asks for several; of containers
 * that may part, all of them. Nothing that is kept for others is looked at.
 */
enum verdict policy_card(const struct node *n, const struct request *r, uint32_t card);

/*
 * What of the quota is behind VERDICT_QUOTA or _DENIED of a node, or of a card. The same for nodes
 * of the same pool and models, whichever they are. False: nothing is, v is another verdict.
 */
bool policy_refusal(const struct node *n, const struct request *r, enum verdict v,
                    struct quota_refusal *ret);
bool policy_card_refusal(const struct node *n, const struct request *r, uint32_t card,
                         struct quota_refusal *ret);

/* Whether a pending pod's claim, of a node's claims, goes before r: room is kept from r for it. */
bool policy_yields(const struct request *r, const struct pod *claim);

/* n as it is for r, with what is kept from it: for policy_card. */
void policy_keep_claims(struct draft *now, const struct node *n, const struct request *r);

/* About how much memory the request takes of n: of cards of several sizes, of the largest. */
int64_t policy_cost(const struct node *n, const struct request *r);

/* Whether a reserved pod's cards still are some for it: its node may have changed since. */
enum verdict policy_keep(const struct pod *p);
