/*
 * A view of bytes: pointer and length, two words, passed by value. It never owns what it points to;
 * whoever makes one says how long it lives. The bytes need not end in NUL and may contain it.
 */
#pragma once

#include "macro.h"

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

/* Bytes compared as unsigned, a shorter prefix first: the order of strcmp. */
int str_cmp(struct str a, struct str b);

/* ASCII letters compare alike in either case, as Go's JSON decoder matches keys. */
bool str_eq_nocase(struct str a, struct str b);

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* Without the leading n bytes, or empty where it is shorter. */
struct str str_skip(struct str s, size_t n);

/* Its first bytes, `max` at most, that don't end within a character of UTF-8. */
struct str str_head(struct str s, size_t max);

/* Without ASCII white space at both ends. */
struct str str_trim(struct str s);

/*
 * Cut at the first `sep`: head before it, tail behind it. Without one, head is all of s, tail is
 * absent and the result is false.
 */
bool str_cut(struct str s, char sep, struct str *ret_head, struct str *ret_tail);

/*
 * The first character of s: how many bytes it takes, or 0 where s is empty or they are not valid
 * UTF-8 (RFC 3629: no surrogate, nothing longer than it must be, nothing above U+10FFFF).
 */
size_t str_utf8(struct str s, uint32_t *ret_rune);

/* Decimal digits only (i64: with one leading '-'), nothing before or behind, at most `max`. */
bool str_to_u64(struct str s, uint64_t max, uint64_t *ret);
bool str_to_i64(struct str s, int64_t *ret);

/*
 * Copies s to *at, which has the room, and moves *at behind it: for a struct whose strings stand
 * behind it in one block. Absent stays absent.
 */
struct str str_store(char **at, struct str s);
