/* Chooses among the feasible cards. For fit.c. */
#pragma once

#include "core/state/node.h"

/* The question: policy is BINPACK or SPREAD. */
struct card_choice {
    const struct node *node;
    const struct evaluation *evaluation;
    enum policy policy;
    const int64_t *costs; /* by card, less first, in place of policy; the .c file sets it */
    struct card_set fits; /* cards with room for a card's part */
};

/* Takes request_cards of the request. p->fits must have at least that many. */
void choose_cards_together(const struct card_choice *p, struct placement *ret);

/*
 * Removes cards of the largest size from p->fits, the highest index first, and leaves at least as
 * many cards as the request asks for. False, and nothing is removed, if no other choice of smaller
 * cards is left. For requests whose charge depends on the card's size: a whole card, or a
 * percentage.
 */
bool choose_cards_smaller(struct card_choice *p);
