/* Chooses among the feasible cards. For fit.c. */
#pragma once

#include "core/node.h"

/* The question: pack is BINPACK or SPREAD. */
struct pick {
    const struct node *node;
    const struct request *request;
    enum pack pack;
    const int64_t *costs; /* by card, less first, in place of pack; for pick.c. NULL: none */
    struct card_set fits; /* pick_together: cards with room for a card's part; pick_apart: cards
                             that are not ruled out */
};

/* Takes request_cards(request) cards. p->fits must have at least that many. */
void pick_together(const struct pick *p, struct placement *ret);

/*
 * Removes cards of the largest size from p->fits, the highest index first, and leaves at least as
 * many cards as the request asks for. False, and nothing is removed, if no other choice of smaller
 * cards is left. For requests whose charge depends on the card's size: a whole card, or a
 * percentage.
 */
bool pick_smaller(struct pick *p);

/* Chooses a card for each container, so that all have room. False if there is no solution, or none
 * was found within a bounded search. */
bool pick_apart(const struct pick *p, struct placement *ret);
