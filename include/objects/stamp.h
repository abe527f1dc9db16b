/* metav1.Time: "2026-11-22T05:40:00Z". */
#pragma once

#include "base/str.h"

/*
 * Unix time; false if the text is no time between 1970 and 2106. A fraction of a second is cut off.
 */
bool stamp_read(struct str text, uint32_t *ret_s);

#define STAMP_BYTES sizeof("2026-11-22T05:40:00Z")

/* Writes into text and returns a view of it. */
struct str stamp_print(uint32_t unix_s, char text[static STAMP_BYTES]);
