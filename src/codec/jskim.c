/*
 * Skips a value without error messages. Each open level is one bit (0 for an object), so the whole
 * state fits into registers. On failure jread reads the value again and reports the error.
 */
#include "codec/jskim.h"

#include "codec/jscan.h"
#include "codec/jtoken.h"

/* Moves over white space. Returns the character behind it; -1: the end. */
static inline int jskim_next(const char **p, const char *end)
{
    const char *at = *p;
    if (at < end && (unsigned char)*at > ' ') /* nearly all */
        return (unsigned char)*at;
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    *p = at;
    return at < end ? (unsigned char)*at : -1;
}

/* Moves over a character that is not plain; NULL: it is invalid. */
static inline const char *jskim_over_odd(const char *p, const char *end)
{
    size_t n = 0;
    if (*p == '\\' && end - p >= 2 && (p[1] == '"' || p[1] == '\\')) /* nearly all */
        return p + 2;
    if (*p == '\\')
        return jtoken_escape(p, end, &n) < 0 ? NULL : p + n;
    n = (unsigned char)*p < 0x20 ? 0 : jscan_utf8(p, end);
    return n == 0 ? NULL : p + n;
}

/* p is behind the opening quote. */
static inline const char *jskim_over_string(const char *p, const char *end)
{
    for (;;) {
        p = jscan_plain(p, end);
        if (p == end)
            return NULL;
        if (*p == '"')
            return p + 1;
        p = jskim_over_odd(p, end);
        if (p == NULL)
            return NULL;
    }
}

static const char *jskim_over_literal(const char *p, const char *end, struct str literal)
{
    bool is = (size_t)(end - p) >= literal.n && memcmp(p, literal.p, literal.n) == 0;
    return is ? p + literal.n : NULL;
}

/* Moves over a value without brackets, of which c is the first character. NULL: it is invalid. */
static inline const char *jskim_over_scalar(const char *p, const char *end, int c)
{
    switch (c) {
    case '"':
        return jskim_over_string(p + 1, end);
    case 't':
        return jskim_over_literal(p, end, STR("true"));
    case 'f':
        return jskim_over_literal(p, end, STR("false"));
    case 'n':
        return jskim_over_literal(p, end, STR("null"));
    default: {
        size_t n = c == '-' || (c >= '0' && c <= '9') ? jtoken_number(p, end) : 0;
        return n == 0 ? NULL : p + n;
    }
    }
}

/* Moves over a member's name, of which c should be the quote, and the colon. Returns the first
 * character of its value; -1: it is invalid. */
static inline int jskim_over_name(const char **p, const char *end, int c)
{
    const char *behind = c == '"' ? jskim_over_string(*p + 1, end) : NULL;
    if (behind == NULL || jskim_next(&behind, end) != ':')
        return -1;
    *p = behind + 1;
    return jskim_next(p, end);
}

struct open {
    uint64_t arrays; /* one bit a level; the lowest bit is the innermost */
    unsigned depth;
};

static inline bool jskim_in_array(const struct open *o)
{
    return (o->arrays & 1) != 0;
}

/* Moves over closing brackets, of which c may be the first one. Returns the character behind them;
 * behind the last one of the value: 0. */
static inline int jskim_over_closing(const char **p, const char *end, struct open *o, int c)
{
    while (o->depth > 0 && c == (jskim_in_array(o) ? ']' : '}')) {
        (*p)++;
        o->arrays >>= 1;
        o->depth--;
        c = o->depth == 0 ? 0 : jskim_next(p, end);
    }
    return c;
}

const char *jskim_value(const char *p, const char *end, unsigned room)
{
    struct open o = {.depth = 0};
    int c = jskim_next(&p, end);
    for (;;) { /* c is the first character of a value, at p */
        bool first = c == '{' || c == '[';
        if (first && o.depth == room)
            return NULL;
        if (first && end - p >= 2 && p[1] == c + 2) { /* {} or []: half of a managedFields entry */
            first = false;
            p += 2;
        } else if (first) {
            o.depth++;
            o.arrays = o.arrays << 1 | (c == '[' ? 1 : 0);
            p++;
        } else {
            p = jskim_over_scalar(p, end, c);
        }
        if (p == NULL || o.depth == 0)
            return p;
        unsigned inside = o.depth;
        c = jskim_over_closing(&p, end, &o, jskim_next(&p, end));
        if (o.depth == 0)
            return p;
        /* The first element after an opening bracket has no comma before it. */
        if (!first || o.depth < inside) {
            if (c != ',')
                return NULL;
            p++;
            c = jskim_next(&p, end);
        }
        if (!jskim_in_array(&o))
            c = jskim_over_name(&p, end, c);
    }
}
