/* Skips one JSON value by its quotes and brackets alone: it may hold any bytes between them, at any
 * depth. */
#pragma once

#include "base/str.h"

/*
 * Returns the position after the value that begins at p, optionally after white space. NULL: no
 * value begins there, or it has no end. A closing bracket of either kind closes the last opening
 * one, as in jcut.h.
 */
const char *jskim_value(const char *p, const char *end) _must_use_;
