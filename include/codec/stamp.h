/* metav1.Time: "2026-11-22T05:40:00Z". */
#pragma once

#include "str.h"

/* Unix time; false where it is none, or not between 1970 and 2106. A fraction is cut off. */
bool stamp_read(struct str text, uint32_t *ret_s);

#define STAMP_BYTES sizeof("2026-11-22T05:40:00Z")

/* Into text, which is returned as a view. */
struct str stamp_print(uint32_t unix_s, char text[static STAMP_BYTES]);
