/* Finds the prices, in steps. For market.c. */
#pragma once

#include "core/policy/market.h"

/* Copies the shapes, and what is idle on these nodes. `warm`: the shapes' prices are those of an
 * earlier solve. NULL: no memory, or no shape that asks for cards fits on any card. */
struct market_solve *market_solve_new(const struct market *m, const struct map *nodes);
void market_solve_free(struct market_solve *s);

/* True: there is more to do. */
bool market_solve_step(struct market_solve *s);

/* Writes the prices into m->shapes, m->core_price, and m->rates, and the values of the kinds into
 * new tables. False: no memory, and nothing has changed. */
bool market_solve_publish(struct market_solve *s, struct market *m);

/* In millionths, rounded. */
int32_t market_solve_millionths(double cards);

/* Sets m->reserved and m->reserve. */
void market_solve_reserve(const struct market_solve *s, struct market *m);
