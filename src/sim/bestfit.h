/*
 * The BestFit of "Beware of Fragmentation" (USENIX ATC 2023), with which the simulator is compared
 * with published figures. For traces only: a card has 1000 units.
 */
#pragma once

#include "core/state/node.h"
#include "sim/workload.h"

/*
 * int(100 x (1 - 0.5 x cores left / 128 - 0.5 x cards left / 8)), both after the pod; higher is
 * better, never SCORE_NONE. The reference spreads these numbers to 0..100 for each pod. That
 * changes no order, and no two different numbers become equal: they lie between 0 and 100.
 */
uint64_t bestfit_score(const struct node *n, struct host left, const struct sim_shape *s);
