/* A picture (SVG) of a replay: allocated against arrived card memory, a line for each row. */
#pragma once

#include "sim/replays.h"

void plot_replays(const struct replays *r, struct buf *out);
