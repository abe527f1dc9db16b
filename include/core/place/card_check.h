/*
 * What the cards of a node have for a request: one card, all cards for a share, the node's sum. No
 * cards are chosen here; see fit.h, which is above this. Room that is kept for other pods is
 * ignored, and cards are only asked of a node that shares them and has no fault.
 */
#pragma once

#include "core/request/evaluation.h"
#include "core/request/verdict.h"
#include "core/state/node.h"
#include "core/state/swap.h"

/* What does not depend on the card: the node's pods are searched once for all its cards. It may
 * also be used for a part of the request (evaluation_part) if its groups are the same. */
struct card_check {
    const struct node *node;
    struct card_set friends; /* cards with pods of the affinity group */
    struct card_set foes;    /* cards with pods of the anti-affinity group */
    struct swap swap; /* cards where the device plugin cannot confuse this pod with another */
};

void card_check_begin(struct card_check *check, const struct node *n, const struct evaluation *e);

/* The same without `swap`. */
void card_check_begin_groups(struct card_check *check, const struct node *n,
                             const struct evaluation *e);

/* Under SWAP_GUARD_REQUIRE: finds the cards on which no swap is possible. */
static inline void card_check_swap(struct swap *ret, const struct node *n,
                                   const struct evaluation *e)
{
    *ret = (struct swap){.cards = SWAP_ANY};
    /* Under a lock the rule is the plugin's, not a matter of the setting. */
    if (!node_is_guarded(n) && dialect_facts(e->request->dialect)->match != DIALECT_MATCH_LOCK)
        return;
    evaluation_count_steps(e, n->n_pods);
    swap_find(n, e, ret);
}

/* Why the card can't take the pod, or one card's part of it if it asks for several cards. */
enum verdict card_check_one(const struct card_check *check, const struct evaluation *e,
                            uint32_t card);

/* The same for a share, and without regard to swaps. */
enum verdict card_check_share(const struct card_check *check, const struct evaluation *e,
                              const struct share *share, uint32_t card);

/* Checks each card of n for a share of the request. Returns why too few are feasible. If the
 * evaluation wants figures (e->shortfall), writes them. */
enum verdict card_check_all(const struct node *n, const struct evaluation *e,
                            const struct share *share, const struct swap *swap,
                            struct card_set *ret_fits);

/* Whether the node's sum has room for such a charge. The node may already hold more than its limit:
 * then even a request for nothing is infeasible. */
static inline enum verdict card_check_sum(const struct node *n, const struct request *r,
                                          int64_t charge)
{
    bool full = n->counted + r->mem > n->limit || charge > n->total - n->used;
    return full ? VERDICT_NODE_FULL : VERDICT_FITS;
}

/* What the node is charged with for these cards. */
int64_t card_check_charge(const struct node *n, const struct request *r,
                          const struct placement *there);

/* Whether its sum has room for them. */
static inline enum verdict card_check_placement(const struct node *n, const struct request *r,
                                                const struct placement *there)
{
    return card_check_sum(n, r, card_check_charge(n, r, there));
}
