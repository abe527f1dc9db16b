/*
 * A strict pull reader of JSON (RFC 8259) over one contiguous document: iterative, without a tree,
 * without a copy. Strings are views into the document, or into the arena if they contained an
 * escape. The first failure is sticky: after it each call returns nothing and each loop ends. So a
 * decoder looks like the schema that it decodes, and checks once, with jread_finish:
 *
 *     struct str key;
 *     jread_object(r, key) {
 *         if (str_eq(key, STR("name")))
 *             pod->name = jread_str(r);
 *         else
 *             jread_skip(r);
 *     }
 *
 * As in Go's decoder, null means the zero value of any type (an empty object, an empty list, an
 * absent string, 0, false). Of repeated keys the last wins, because a decoder just assigns. Unlike
 * Go's decoder, the reader refuses invalid UTF-8, lone surrogates and raw control characters in
 * what it reads. It accepts \u0000, because any author may put it into an annotation; so a string
 * may contain NUL. Nesting of what it reads is limited to LIMIT_JSON_DEPTH. A value that is not
 * needed is skipped by its quotes and brackets alone, see jskim.h.
 *
 * An error names the place: "Pod.spec.containers[0].name: expected a string, got a number at offset
 * 93".
 */
#pragma once

#include "base/arena.h"
#include "json/limit.h"

enum jtype {
    JTYPE_NONE, /* at the end, or after a failure */
    JTYPE_NULL,
    JTYPE_BOOL,
    JTYPE_NUMBER,
    JTYPE_STRING,
    JTYPE_ARRAY,
    JTYPE_OBJECT,
};

/* The position in one open object or array; private to jread.c and jread_path.c. */
struct jread_level {
    struct str key; /* name of the current member; absent in an array */
    int64_t index;  /* index of the current element; -1 before the first */
    bool array;
};

struct jread {
    const char *start;
    const char *at;
    const char *end;
    struct arena *arena; /* for unescaped strings; NULL: an escape fails with ERR_LIMIT */
    unsigned depth;
    bool due; /* a value must be read next: detects a decoder that reads none, or two */
    struct jread_level levels[LIMIT_JSON_DEPTH];
    struct err err; /* the first failure */
};

void jread_init(struct jread *r, struct str document, struct arena *arena);

static inline bool jread_failed(const struct jread *r)
{
    return r->err.code != OK;
}

/* The type of the next value, without reading it. */
enum jtype jread_type(struct jread *r);

/*
 * Loops over the members or elements of the next value. The body must read exactly one value each
 * round and must not break or return. The value must be an object (array) or null; any other type
 * fails.
 */
#define jread_object(r, key)                                \
    for (bool JREAD_MORE(__LINE__) = jread_object_begin(r); \
         JREAD_MORE(__LINE__) && jread_object_next((r), &(key));)
#define jread_array(r)                                     \
    for (bool JREAD_MORE(__LINE__) = jread_array_begin(r); \
         JREAD_MORE(__LINE__) && jread_array_next(r);)

/* The name contains the line, so that nested loops do not shadow each other. */
#define JREAD_MORE(line)  JREAD_MORE_(line)
#define JREAD_MORE_(line) jread_more_##line##_

bool jread_object_begin(struct jread *r);
bool jread_object_next(struct jread *r, struct str *ret_key);
bool jread_array_begin(struct jread *r);
bool jread_array_next(struct jread *r);

/*
 * For an open array, where jread_array_next may be called. Reads up to `max` elements, while they
 * are strings of plain ASCII without escapes and without white space around them. Same result as
 * jread_array_next and jread_str in turn, but faster. Returns the count; read the other elements
 * with those two.
 */
size_t jread_str_run(struct jread *r, struct str *ret, size_t max);

/* A string, unescaped; absent for null. */
struct str jread_str(struct jread *r);

/*
 * A string, unescaped, or the text of a number: Kubernetes quantities have both forms. Absent for
 * null.
 */
struct str jread_text(struct jread *r);

/* The string, unescaped, of one member of an object; the other members are skipped. Absent if there
 * is no such member, or for null. */
struct str jread_member(struct jread *r, struct str name);

/* An integer within int64; 1.0, 1e3 and overflow fail with ERR_RANGE. */
int64_t jread_i64(struct jread *r);
bool jread_bool(struct jread *r);

/* The bytes of the next value, unchanged, and skipped as by jread_skip. */
struct str jread_raw(struct jread *r);
void jread_skip(struct jread *r);

/* Reports an invalid value just read; adds its path in front. An earlier failure stays. */
void jread_fail(struct jread *r, enum errc code, const char *fmt, ...) _printf_(3, 4);

/* OK if nothing failed and only white space is left; a failure goes to reterr. */
enum errc jread_finish(struct jread *r, struct err *reterr) _must_use_;
