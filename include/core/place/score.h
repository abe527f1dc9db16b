/* How good a feasible node is for a pod, as one number: any two nodes can be compared by it. */
#pragma once

#include "core/policy/learned_costs.h"

/* Not a score: the node is infeasible, or was not scored. */
#define SCORE_NONE UINT64_C(0)
/* Better than the score of any node: only this node may be chosen. */
#define SCORE_BEST UINT64_MAX

/* The question of one request, for many nodes. */
struct score {
    enum policy policy;
    const struct request *request; /* of the evaluation */
    const struct learned_costs *learned;
    struct market_ask ask; /* fgd, bid-price */

    /* binpack, spread: of the last node. The next node often has the same, and a score costs a slow
     * division. */
    int64_t total;
    int64_t used;
    uint64_t last;
};

/* e->learned may be NULL: then, and until the policies have learned enough, fgd and
 * bid-price score as binpack. */
void score_begin(struct score *s, const struct evaluation *e, enum policy policy);

/*
 * binpack: the used share of the node's memory with `mem` added; spread: the share that is left.
 * Nodes with equal shares have equal scores, whatever their sizes. Nodes with different shares have
 * different scores if both have less than 2^31 units. A node with more used than its total counts
 * as full.
 */
uint64_t score_share(const struct node *n, int64_t mem, enum policy policy);

/* The score of a node where the request fits. Higher is better; the result is between the two
 * above. binpack, spread: score_share; fgd: fgd_score; bid-price: by market_cost. */
uint64_t score_node(struct score *s, const struct node *n);

/* Makes a node better than nodes of the same score, but still worse than nodes of a better
 * score. */
static inline uint64_t score_favoured(uint64_t score)
{
    return score + 1;
}
