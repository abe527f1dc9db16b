/* Where the next pod goes among feasible cards or nodes: fill one (binpack), or share the load
 * (spread). */
#pragma once

#include "base/str.h"

enum pack {
    PACK_UNSET, /* not set */
    PACK_BINPACK,
    PACK_SPREAD,
};

/* Accepts exactly "binpack" or "spread". False: another text, and *ret is unchanged. */
bool pack_parse(struct str text, enum pack *ret);

/* The policy's name; "" for PACK_UNSET. */
const char *pack_name(enum pack p);

/* The first that is set, in the order of the arguments; else binpack. */
enum pack pack_choose(enum pack own, enum pack next, enum pack fallback);
