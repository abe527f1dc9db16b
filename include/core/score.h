/* How good a node is for a pod that fits on it, as one number that any two can be compared by. */
#pragma once

#include "node.h"
#include "pack.h"

/* No node's score: it does not fit, or nobody asked. */
#define SCORE_NONE UINT64_C(0)
/* Better than any node's: there and nowhere else. */
#define SCORE_BEST UINT64_MAX

/*
 * Higher is better, and between the two above. binpack: the share of the node's memory that is used
 * once `mem` is placed there; spread: the share that is left. Nodes of equal shares score alike,
 * whatever their sizes, and others don't where both nodes have less than 2^31 units. A node with
 * more used than it has is full.
 */
uint64_t score_node(const struct node *n, int64_t mem, enum pack policy);
