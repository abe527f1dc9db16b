/* The two JSON tokens with a grammar of their own: escapes and numbers. */
#pragma once

#include "base/str.h"

/*
 * The character of the escape at p (p is its backslash), and the length of the escape. -1: unknown
 * letter or lone surrogate. A surrogate pair is one escape.
 */
int32_t jtoken_escape(const char *p, const char *end, size_t *ret_n);

/*
 * Writes the string `raw` without its escapes, which must be valid. Returns the length, which is at
 * most raw.n.
 */
size_t jtoken_unescape(struct str raw, char *to);

/* How long all strings in the text of a value are together, keys too, without their escapes. What
 * is no valid escape counts as it is written. */
size_t jtoken_strings(struct str raw);

/* Length of the number at p; 0 if it is malformed. */
size_t jtoken_number(const char *p, const char *end);
