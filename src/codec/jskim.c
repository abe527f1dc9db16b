/*
 * Skips a value without error messages. Each open level is one bit (0 for an object), so the whole
 * state fits into registers. On failure jread reads the value again and reports the error.
 */
#include "codec/jskim.h"

#include "codec/jscan.h"
#include "codec/jtoken.h"

static inline const char *jskim_over_space(const char *p, const char *end)
{
    while (p < end && (unsigned char)*p <= ' ' &&
           (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
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

/* Moves over a value without brackets. p < end */
static inline const char *jskim_over_scalar(const char *p, const char *end)
{
    switch (*p) {
    case '"':
        return jskim_over_string(p + 1, end);
    case 't':
        return jskim_over_literal(p, end, STR("true"));
    case 'f':
        return jskim_over_literal(p, end, STR("false"));
    case 'n':
        return jskim_over_literal(p, end, STR("null"));
    default: {
        size_t n = *p == '-' || (*p >= '0' && *p <= '9') ? jtoken_number(p, end) : 0;
        return n == 0 ? NULL : p + n;
    }
    }
}

/* Moves over a member's name and the colon; p is where the name must begin. */
static inline const char *jskim_over_name(const char *p, const char *end)
{
    p = jskim_over_space(p, end);
    if (p == end || *p != '"')
        return NULL;
    p = jskim_over_string(p + 1, end);
    if (p == NULL)
        return NULL;
    p = jskim_over_space(p, end);
    return p < end && *p == ':' ? p + 1 : NULL;
}

struct open {
    uint64_t arrays; /* one bit a level; the lowest bit is the innermost */
    unsigned depth;
};

static inline bool jskim_in_array(const struct open *o)
{
    return (o->arrays & 1) != 0;
}

/* Moves over closing brackets and white space. NULL: the end came while a level was open. */
static inline const char *jskim_over_closing(const char *p, const char *end, struct open *o)
{
    for (; o->depth > 0; o->depth--, o->arrays >>= 1) {
        p = jskim_over_space(p, end);
        if (p == end)
            return NULL;
        if (*p != (jskim_in_array(o) ? ']' : '}'))
            break;
        p++;
    }
    return p;
}

const char *jskim_value(const char *p, const char *end, unsigned room)
{
    struct open o = {.depth = 0};
    for (;;) {
        p = jskim_over_space(p, end);
        if (p == end)
            return NULL;
        bool opens = *p == '{' || *p == '[';
        unsigned inside = o.depth + 1;
        if (opens) {
            if (o.depth++ == room)
                return NULL;
            o.arrays = o.arrays << 1 | (*p++ == '[' ? 1 : 0);
        } else {
            p = jskim_over_scalar(p, end);
        }
        if (p != NULL)
            p = jskim_over_closing(p, end, &o);
        if (p == NULL || o.depth == 0)
            return p;
        /* The first element after an opening bracket has no comma before it. */
        if (!(opens && o.depth == inside) && *p++ != ',')
            return NULL;
        if (!jskim_in_array(&o))
            p = jskim_over_name(p, end);
        if (p == NULL)
            return NULL;
    }
}
