/*
 * Fragmentation gradient descent, the policy fgd: a pod goes where it adds least to the part of the
 * idle cards that the expected pods cannot use. From "Beware of Fragmentation: Scheduling
 * GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC 2023).
 *
 * The expected pods are the most frequent shapes, until they are 95 % of all pods. The
 * fragmentation of a node is the sum over them of probability x idle cards that are of no use to
 * the shape: all of them if the pod does not fit on the node or asks for no card, else those on
 * cards with too little room.
 */
#pragma once

#include "core/policy/market.h"

struct fgd_shape {
    int64_t cpu;
    uint32_t cards;
    double share;
    uint8_t steps[MARKET_KINDS + 1]; /* by card.kind */
};

struct fgd {
    struct fgd_shape *all; /* owned */
    uint32_t n;
    uint64_t arrivals; /* of the shapes that it has learned */
    uint32_t n_kinds;  /* of cards that there were then */
};

void fgd_done(struct fgd *f);

/* Takes the expected pods from the shapes seen so far. Without memory the old ones stay. */
void fgd_learn(struct fgd *f, const struct market *m);

/* Idle cards of the node that the expected pods cannot use, in cards. */
double fgd_waste(const struct fgd *f, const struct node *n);

/*
 * The paper's score of the node with the pod, 0 to 100; higher is better. 50 without expected pods.
 */
uint32_t fgd_score(const struct fgd *f, const struct market_ask *ask, const struct node *n);

/* ret, n->n_cards of them: 100 less the score of a pod of one card on this card; for a pod of
 * several cards all free cards are alike. MARKET_NO_COST: the card has no room. */
void fgd_order(const struct fgd *f, const struct market_ask *ask, const struct node *n,
               int64_t *ret);
