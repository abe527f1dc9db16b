/* Chooses among the feasible cards. For fit.c. */
#pragma once

#include "core/state/node.h"

/* The question: policy is BINPACK or SPREAD. */
struct pick {
    const struct node *node;
    const struct evaluation *evaluation;
    enum policy policy;
    const int64_t *costs; /* by card, less first, in place of policy; for pick.c. NULL: none */
    struct card_set fits; /* cards with room for a card's part */
};

/* Takes request_cards of the request. p->fits must have at least that many. */
void pick_together(const struct pick *p, struct placement *ret);

/*
 * Removes cards of the largest size from p->fits, the highest index first, and leaves at least as
 * many cards as the request asks for. False, and nothing is removed, if no other choice of smaller
 * cards is left. For requests whose charge depends on the card's size: a whole card, or a
 * percentage.
 */
bool pick_smaller(struct pick *p);
