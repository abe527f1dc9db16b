/*
 * A strict pull reader of JSON (RFC 8259) over one contiguous document: iterative, no tree, no
 * copy. Strings are views into the document, or into the arena where they held an escape. The first
 * failure is sticky: from then on every call returns nothing and every loop ends, so a decoder
 * reads like the schema that it decodes and asks once, with jread_finish:
 *
 *     struct str key;
 *     jread_object(r, key) {
 *         if (str_eq(key, STR("name")))
 *             pod->name = jread_str(r);
 *         else
 *             jread_skip(r);
 *     }
 *
 * As Go's decoder: null stands for the zero value of any type (an empty object, an empty list, an
 * absent string, 0, false); of doubled keys the last wins, since a decoder just assigns. Unlike it,
 * invalid UTF-8, lone surrogates and raw control characters are refused; \u0000 is not, since
 * anyone may put it into an annotation, so a string may hold NUL. Nesting is limited to
 * LIMIT_JSON_DEPTH. Unknown values are skipped but still validated.
 *
 * An error names where: "Pod.spec.containers[0].name: expected a string, got a number at offset
 * 93".
 */
#pragma once

#include "arena.h"
#include "limit.h"

enum jtype {
    JTYPE_NONE, /* nothing more, or failed */
    JTYPE_NULL,
    JTYPE_BOOL,
    JTYPE_NUMBER,
    JTYPE_STRING,
    JTYPE_ARRAY,
    JTYPE_OBJECT,
};

/* Where the reader is inside one open object or array; private to jread.c. */
struct jread_level {
    struct str key; /* current member's name; absent in an array */
    int64_t index;  /* current element's; -1 before the first */
    bool array;
};

struct jread {
    const char *start;
    const char *at;
    const char *end;
    struct arena
        *arena; /* for unescaped strings; may be NULL: then an escape is refused with ERR_LIMIT */
    unsigned depth;
    bool due; /* a value has to be read now: catches a decoder that forgets one, or reads two */
    struct jread_level levels[LIMIT_JSON_DEPTH];
    struct err err; /* the first failure */
};

void jread_init(struct jread *r, struct str document, struct arena *arena);

static inline bool jread_failed(const struct jread *r)
{
    return r->err.code != OK;
}

/* The type of the next value, which stays unread. */
enum jtype jread_type(struct jread *r);

/*
 * Loops over members or elements of the next value; the body must consume exactly one value each
 * round and must not break or return. Any other type than object (array) or null fails.
 */
#define jread_object(r, key)                                \
    for (bool JREAD_MORE(__LINE__) = jread_object_begin(r); \
         JREAD_MORE(__LINE__) && jread_object_next((r), &(key));)
#define jread_array(r)                                     \
    for (bool JREAD_MORE(__LINE__) = jread_array_begin(r); \
         JREAD_MORE(__LINE__) && jread_array_next(r);)

/* Named after the line, so that a loop within a loop shadows nothing. */
#define JREAD_MORE(line)  JREAD_MORE_(line)
#define JREAD_MORE_(line) jread_more_##line##_

bool jread_object_begin(struct jread *r);
bool jread_object_next(struct jread *r, struct str *ret_key);
bool jread_array_begin(struct jread *r);
bool jread_array_next(struct jread *r);

/*
 * Of an array that is open, where jread_array_next may be called: reads on for as long as elements
 * are strings of plain ASCII without escapes and without white space around them, `max` at most, as
 * jread_array_next and jread_str by turns would, and faster. Returns how many; the rest is for
 * those two.
 */
size_t jread_str_run(struct jread *r, struct str *ret, size_t max);

/* A string, unescaped; absent for null. */
struct str jread_str(struct jread *r);

/* A string, unescaped, or the text of a number: how Kubernetes quantities come. Absent for null. */
struct str jread_text(struct jread *r);

/* An integer within int64; 1.0, 1e3 and overflow fail with ERR_RANGE. */
int64_t jread_i64(struct jread *r);
bool jread_bool(struct jread *r);

/* The next value's bytes as they stand, validated. */
struct str jread_raw(struct jread *r);
void jread_skip(struct jread *r);

/* A failure of meaning, at the value just read: its path is put in front. Keeps an earlier failure.
 */
void jread_fail(struct jread *r, enum errc code, const char *fmt, ...) _printf_(3, 4);

/* Whether all went well and only white space is left; the failure goes to reterr. */
enum errc jread_finish(struct jread *r, struct err *reterr) _must_use_;
