/* The two tokens of JSON that have a grammar of their own: escapes and numbers. */
#pragma once

#include "str.h"

/*
 * The character that the escape at p (its backslash) stands for, and its length; -1 where it is
 * none: unknown letters and lone surrogates. A surrogate pair is one escape.
 */
int32_t jtoken_escape(const char *p, const char *end, size_t *ret_n);

/*
 * Writes the string `raw`, whose escapes are known to be good, without them; returns the length,
 * which is never above raw.n.
 */
size_t jtoken_unescape(struct str raw, char *to);

/* Length of the number at p, 0 where it is malformed. */
size_t jtoken_number(const char *p, const char *end);
