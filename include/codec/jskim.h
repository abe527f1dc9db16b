/* Over a whole value of JSON, as strictly as the reader; but not a word of what is wrong. */
#pragma once

#include "str.h"

/*
 * Behind the value that begins at p, white space before it included. NULL where that is not valid,
 * where it ends at `end`, or where it nests deeper than `room`, 64 at most.
 */
const char *jskim_value(const char *p, const char *end, unsigned room) _must_use_;
