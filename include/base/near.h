/* Finds the known name that a mistyped one is meant to be. */
#pragma once

#include "base/str.h"

/* Longer names are compared with nothing. */
#define NEAR_BYTES ((size_t)64)

struct near {
    struct str name;
    struct str found; /* the nearest so far; absent: none is near */
    size_t best;      /* only a candidate with fewer differing letters is nearer */
};

/* At most a third of the letters may differ, or two of a short name: more would be a guess. */
struct near near_to(struct str name);

/* Of equally near candidates the first one counts. */
void near_offer(struct near *n, struct str candidate);
