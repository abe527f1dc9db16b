/* Chooses cards for each container of a pod of HAMi's family. For fit_apart.c. */
#pragma once

#include "core/pick.h"

/*
 * Cards for containers that have their own (request_by_container): so many different cards for
 * each, of those in `fits`, a set for each demand. Containers may share a card that none of them
 * wants whole. Each takes the cards that the policy prefers after the choice of those before it, as
 * HAMi's scheduler does; where a later container then finds none, the search goes back. False if
 * there is no solution, or none was found within a bounded search.
 */
bool each_place(const struct pick *p, const struct card_set *fits, struct placement *ret);
