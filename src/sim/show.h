/* Writes the answers of the commands as a table, as JSON or as CSV. */
#pragma once

#include "sim/churns.h"
#include "sim/fit.h"
#include "sim/replays.h"

void show_replays(const struct replays *r, enum sim_output output, struct arena *a,
                  struct buf *out);
void show_churns(const struct churns *c, enum sim_output output, struct arena *a, struct buf *out);
void show_fit(const struct fit_answer *f, enum sim_output output, struct arena *a, struct buf *out);
void show_grow(const struct grow_answer *g, enum sim_output output, struct buf *out);
