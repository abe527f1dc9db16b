/* Chooses a card for each container of a pod whose containers may have different ones. For
 * fit_apart.c. */
#pragma once

#include "core/place/choose_cards.h"

/*
 * Cards for the containers, so that all have room. `fits` are the cards that are not ruled out: one
 * set for each demand where containers have cards of their own (request_by_container), else one for
 * all. There each container gets as many different cards as it asks for, in the order of the pod;
 * else the lasting containers get one each, the largest first. Containers may share a card that
 * none of them wants whole. Each takes the cards that the policy prefers after the choice of those
 * before it, as HAMi's scheduler does; where a later container then finds none, the search goes
 * back. A policy with costs counts as binpack: no card has room for the whole pod, so none has a
 * cost. False if there is no solution, or none was found within a bounded search.
 */
bool assign_place(const struct card_choice *p, const struct card_set *fits, struct placement *ret);
