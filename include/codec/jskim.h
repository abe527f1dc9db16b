/* Skips one JSON value, as strictly as jread, but without an error message. */
#pragma once

#include "base/str.h"

/*
 * Returns the position after the value that begins at p, optionally after white space. NULL if the
 * value is invalid, reaches `end`, or nests deeper than `room`, which is at most 64.
 */
const char *jskim_value(const char *p, const char *end, unsigned room) _must_use_;
