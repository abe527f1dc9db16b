/* Growable text and short names of the doubles of the API server. */
#pragma once

#include "base/macro.h"
#include "base/str.h"

/* Its memory comes from malloc: a test may count or fail the product's calls of calloc and
 * realloc. */
struct text {
    char *p;
    size_t n;
    size_t cap;
};

void text_put(struct text *t, struct str s);
void text_f(struct text *t, const char *format, ...) _printf_(2, 3);
void text_quoted(struct text *t, struct str s); /* as a JSON string */
void text_done(struct text *t);

static inline void text_z(struct text *t, const char *z)
{
    text_put(t, str_of(z));
}

static inline struct str text_str(const struct text *t)
{
    return (struct str){t->p == NULL ? "" : t->p, t->n};
}

/* A short name that is stored by value. */
struct name {
    char z[24];
};

static inline struct str name_str(const struct name *n)
{
    return (struct str){n->z, strlen(n->z)};
}

struct name name_of(const char *prefix, uint64_t number);
struct name name_from(struct str s);

/* The program that links the double defines it: prints why, and ends the test as failed. */
void api_fail(const char *file, int line, const char *why) __attribute__((noreturn));

#define api_check(condition)                                \
    do {                                                    \
        if (!(condition))                                   \
            api_fail(__FILE__, __LINE__, "" #condition ""); \
    } while (0)
