/* How good a feasible node is for a pod, as one number: any two nodes can be compared by it. */
#pragma once

#include "core/node.h"
#include "core/pack.h"

/* Not a score: the node is infeasible, or was not scored. */
#define SCORE_NONE UINT64_C(0)
/* Better than the score of any node: only this node may be chosen. */
#define SCORE_BEST UINT64_MAX

/*
 * Higher is better; the result is between the two above. binpack: the used share of the node's
 * memory with `mem` added; spread: the share that is left. Nodes with equal shares have equal
 * scores, whatever their sizes. Nodes with different shares have different scores if both have less
 * than 2^31 units. A node with more used than its total counts as full.
 */
uint64_t score_node(const struct node *n, int64_t mem, enum pack policy);

/* Makes a node better than nodes of the same score, but still worse than nodes of a better
 * score. */
static inline uint64_t score_favoured(uint64_t score)
{
    return score + 1;
}
