/* Whether a request is feasible on a node, and on which of its cards. Pure functions of a const
 * node. */
#pragma once

#include "core/request/evaluation.h"
#include "core/request/verdict.h"
#include "core/state/node.h"
#include "core/state/overlay.h"
#include "core/state/swap.h"

/* A fast path without a call: true for most nodes that fit_node accepts. */
static inline bool fit_simply(const struct node *n, const struct evaluation *e)
{
    return n != NULL && e->simple && e->account.entry == NULL && e->request->mem <= n->simple;
}

/* Whether fit_node uses only the node's own figures and looks at no card. */
static inline bool fit_is_cheap(const struct node *n, const struct evaluation *e)
{
    return n == NULL || (e->simple && e->account.entry == NULL && e->request->mem <= n->crowded);
}

/* n may be NULL: VERDICT_UNKNOWN_NODE. A request for nothing fits on every existing node. */
enum verdict fit_node(const struct node *n, const struct evaluation *e);

/*
 * The same, and the cards where it fits. e->fallback is the card policy if neither the pod nor the
 * node sets one:
 *   - binpack: the cards with the least free memory that have room; spread: with the most; ties go
 *     to the lowest index;
 *   - before that, memory of one card goes to a card that already holds a pod of exactly this size
 *     which the device plugin has not assigned yet. The plugin distinguishes such pods by size
 *     alone and may swap them (gpushare's allocate.go), which is harmless only on the same card:
 *     see swap.h. Under SWAP_GUARD_REQUIRE no other card is feasible: VERDICT_SWAP;
 *   - several cards come from one NUMA node, if one has enough feasible cards;
 *   - the containers stay together on one card; if no card has room for all, each may have its own.
 */
enum verdict fit_place(const struct node *n, const struct evaluation *e, struct placement *ret);

/* verdict_reason, with details from n, which may be NULL. */
struct str fit_reason(const struct node *n, enum verdict v, struct str name, struct buf *scratch);

/* Why a card of n can't take the pod, or one card's part of it if it asks for several cards.
 * Containers that may have different cards count together. Room that is kept for other pods is
 * ignored. For many cards of a node: card_check_one. */
enum verdict fit_card(const struct node *n, const struct evaluation *e, uint32_t card);

/* The quota's reason for VERDICT_QUOTA or VERDICT_QUOTA_DENIED of a node or a card. It is the same
 * for all nodes of the same pool and models. False: v is another verdict, or no quota refuses. */
bool fit_refusal(const struct node *n, const struct evaluation *e, enum verdict v,
                 struct quota_refusal *ret);
bool fit_card_refusal(const struct node *n, const struct evaluation *e, uint32_t card,
                      struct quota_refusal *ret);

/* Makes `now` an overlay of n in which the room that is kept from the pod is taken, and returns for
 * how many pods it is. None is kept for a pod that its quota denies even without usage. For
 * fit_card. */
uint32_t fit_keep_room(struct overlay *now, const struct node *n, const struct evaluation *e);

/* Whether the device plugin may confuse the pod, placed by fit_place, with a pod that waits on
 * another card of n. */
bool fit_swaps(const struct node *n, const struct evaluation *e);

/* Roughly how much memory of n the request takes; for cards of several sizes, of the largest. */
int64_t fit_cost(const struct node *n, const struct request *r);

/* Evaluates a reserved pod's cards again: the node may have changed since. */
enum verdict fit_keep(const struct pod *p);
