/* Writes the answers of the commands as a table, as JSON or as CSV. */
#pragma once

#include "sim/churns.h"
#include "sim/replays.h"
#include "sim/sim_fit.h"

void sim_show_replays(const struct replays *r, enum sim_output output, struct arena *a,
                      struct buf *out);
void sim_show_churns(const struct churns *c, enum sim_output output, struct arena *a,
                     struct buf *out);
void sim_show_fit(const struct sim_fit_answer *f, enum sim_output output, struct arena *a,
                  struct buf *out);
void sim_show_grow(const struct grow_answer *g, enum sim_output output, struct buf *out);
