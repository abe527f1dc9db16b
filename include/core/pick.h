/* Which of the cards that fit are taken. For policy.c. */
#pragma once

#include "node.h"

/* Bits of the cards that may be taken; pack is BINPACK or SPREAD. */
struct pick {
    const struct node *node;
    const struct request *request;
    enum pack pack;
    struct card_set fits; /* TOGETHER: with room for a card's part; APART: that are not ruled out */
};

/* request_cards(request) of them, which are that many at least. */
void pick_together(const struct pick *p, struct placement *ret);

/* A card for each container, so that all have room; false where there is no way, or none was found
 * within a bounded search. */
bool pick_apart(const struct pick *p, struct placement *ret);
