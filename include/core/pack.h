/* Where the next pod goes among places that can hold it: fill one, or share the load. */
#pragma once

#include "str.h"

enum pack {
    PACK_UNSET, /* nobody said */
    PACK_BINPACK,
    PACK_SPREAD,
};

/* "binpack" or "spread", to the letter; false: neither, and *ret is as it was. */
bool pack_parse(struct str text, enum pack *ret);

/* How it is spelled; "" for PACK_UNSET. */
const char *pack_name(enum pack p);

/* The first that is said, the closest first; else binpack. */
enum pack pack_choose(enum pack own, enum pack next, enum pack fallback);
