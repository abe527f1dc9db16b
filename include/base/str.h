/* A view of bytes: pointer and length, two words, passed by value. It never owns the bytes; the
 * code that makes one documents how long it is valid. The bytes need not end in NUL and may contain
 * NUL. */
#pragma once

#include "base/macro.h"

#include <string.h>

struct str {
    const char *p; /* borrowed; NULL means "absent", which is not the same as empty */
    size_t n;      /* bytes */
};

#define STR(lit)   ((struct str){"" lit, sizeof(lit) - 1})
#define STR_NULL   ((struct str){NULL, 0})
#define STR_ARG(s) (int)(s).n, (s).p /* for "%.*s" */

static inline struct str str_of(const char *z)
{
    return (struct str){z, z == NULL ? 0 : strlen(z)};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Copies the bytes to `to`, which must have room, and returns the place behind them. For short
 * strings: a call of memcpy takes longer than such a copy. */
static inline char *str_copy(char *to, struct str s)
{
    const size_t half = 8;
    const size_t step = 16;
    const size_t stride = 32;
    if (s.n >= stride) {
        for (size_t i = 0; i + stride < s.n; i += stride)
            memcpy(to + i, s.p + i, stride);
        memcpy(to + s.n - stride, s.p + s.n - stride, stride);
    } else if (s.n < half) {
        for (size_t i = 0; i < s.n; i++)
            to[i] = s.p[i];
    } else if (s.n < step) {
        memcpy(to, s.p, half);
        memcpy(to + s.n - half, s.p + s.n - half, half);
    } else {
        memcpy(to, s.p, step);
        memcpy(to + s.n - step, s.p + s.n - step, step);
    }
    return to + s.n;
}

/* Compares bytes as unsigned, a shorter prefix first: the order of strcmp. */
int str_cmp(struct str a, struct str b);

/* ASCII letters compare alike in either case, as Go's JSON decoder matches keys. */
bool str_eq_nocase(struct str a, struct str b);

/* How many bytes at the start of both are equal; ASCII letters compare alike in either case. */
size_t str_common_nocase(struct str a, struct str b);

/* As str_cmp, by bytes; ASCII letters compare alike in either case. */
int str_cmp_nocase(struct str a, struct str b);

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* s without its first n bytes; empty if s is shorter. */
struct str str_skip(struct str s, size_t n);

/* The first bytes of s, at most `max`, without cutting a UTF-8 character. */
struct str str_head(struct str s, size_t max);

/* Without ASCII white space at both ends. */
struct str str_trim(struct str s);

/* Cuts s at the first `sep`: head before it, tail behind it. Without a `sep`: head is s, tail is
 * absent and the result is false. */
bool str_cut(struct str s, char sep, struct str *ret_head, struct str *ret_tail);

/* The number of bytes of the first character of s; 0 if s is empty or they are not valid UTF-8 (RFC
 * 3629: no surrogate, no overlong form, nothing above U+10FFFF). */
size_t str_utf8(struct str s, uint32_t *ret_rune);

/* Whether the character must be escaped before it is printed, because a terminal takes it for a
 * command or shows nothing or another text: the C0 and C1 controls, the two line separators, the
 * marks for text direction, and zero-width characters except the joiners U+200C and U+200D. */
bool str_is_unprintable(uint32_t rune);

/* Decimal digits only, at most `max`; i64: also one leading '-'. Nothing before or behind them. */
bool str_to_u64(struct str s, uint64_t max, uint64_t *ret);
bool str_to_i64(struct str s, int64_t *ret);

/* Copies s to *at, which must have room, and moves *at behind the copy. Used for a struct whose
 * strings are stored behind it in the same block. An absent string stays absent. */
struct str str_store(char **at, struct str s);
