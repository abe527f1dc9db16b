/* Containers on cards of their own. For fit.c. */
#pragma once

#include "core/fit.h"
#include "core/pick.h"
#include "core/swap.h"

/* Tries different cards for the containers, if they do not fit on one card together. together: why
 * not. */
enum verdict fit_place_apart(struct pick *pick, const struct swap *swap, enum verdict together,
                             struct placement *ret);

/* For request_by_container: finds cards for each container. */
enum verdict fit_place_each(const struct pick *pick, const struct swap *swap,
                            struct placement *ret);

/* Functions of fit.c. */

/* Evaluates each card for a share of r. Returns why too few are feasible. */
enum verdict fit_evaluate_cards(const struct node *n, const struct request *r,
                                const struct share *share, const struct swap *swap,
                                struct card_set *ret_fits);

/* Whether the node's sum has room for these cards. */
enum verdict fit_check_placement(const struct node *n, const struct request *r,
                                 const struct placement *there);
