/* Containers on cards of their own. For fit.c. */
#pragma once

#include "core/place/choose_cards.h"
#include "core/state/swap.h"

/* Tries different cards for the containers, if they do not fit on one card together. together: why
 * not. */
enum verdict fit_place_apart(const struct card_choice *choice, const struct swap *swap,
                             enum verdict together, struct placement *ret);

/* For request_by_container: finds cards for each container. */
enum verdict fit_place_by_container(const struct card_choice *choice, const struct swap *swap,
                                    struct placement *ret);
