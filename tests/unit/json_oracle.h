/*
 * Compares the strict reader with jansson: both must accept or both refuse, and the values must be
 * equal. Four kinds of differences are by design and are not reported:
 *
 * - a number beyond int64 or double: the reader checks only its grammar, jansson refuses;
 * - nesting deeper than LIMIT_JSON_DEPTH: jansson goes to 2048;
 * - a raw NUL byte: jansson, set to accept any value, takes "null\0" for null;
 * - \u0000 in a key: jansson refuses it there even when set to allow it.
 */
#pragma once

#include "json/jread.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct oracle {
    struct jread r;
    bool overflow;
};

static inline json_t *oracle_number(struct oracle *o)
{
    struct str text = jread_text(&o->r);
    int64_t whole = 0;
    if (jread_failed(&o->r))
        return json_null();
    if (str_to_i64(text, &whole))
        return json_integer(whole);
    bool real = memchr(text.p, '.', text.n) != NULL || memchr(text.p, 'e', text.n) != NULL ||
                memchr(text.p, 'E', text.n) != NULL;
    char *copy = malloc(text.n + 1);
    assert(copy != NULL);
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    double value = strtod(copy, NULL);
    free(copy);
    if (real && isfinite(value))
        return json_real(value);
    o->overflow = true;
    return json_null();
}

static inline json_t *oracle_value(struct oracle *o);

/* Reads strings in runs as far as possible. The bound on a run is small, so that runs also end
 * there. */
static inline json_t *oracle_array(struct oracle *o)
{
    struct str run[3];
    json_t *value = json_array();
    if (!jread_array_begin(&o->r))
        return value;
    do {
        for (size_t n = 1; n > 0;) {
            n = jread_str_run(&o->r, run, COUNT_OF(run));
            for (size_t i = 0; i < n; i++)
                json_array_append_new(value, json_stringn(run[i].p, run[i].n));
        }
    } while (jread_array_next(&o->r) && json_array_append_new(value, oracle_value(o)) == 0);
    return value;
}

/* Reads the next value into jansson's form; after a failure, a part of it. The reader bounds the
 * recursion. */
static inline json_t *oracle_value(struct oracle *o)
{
    json_t *value = NULL;
    struct str s;
    switch (jread_type(&o->r)) {
    case JTYPE_NONE:
        break;
    case JTYPE_NULL:
        s = jread_str(&o->r);
        assert(s.p == NULL);
        break;
    case JTYPE_BOOL:
        return json_boolean(jread_bool(&o->r));
    case JTYPE_NUMBER:
        return oracle_number(o);
    case JTYPE_STRING:
        s = jread_str(&o->r);
        if (jread_failed(&o->r))
            break;
        value = json_stringn(s.p, s.n);
        assert(value != NULL);
        return value;
    case JTYPE_ARRAY:
        return oracle_array(o);
    case JTYPE_OBJECT:
        value = json_object();
        jread_object (&o->r, s)
            json_object_setn_new(value, s.p, s.n, oracle_value(o));
        return value;
    }
    return json_null();
}

static inline const char *oracle_judge(struct oracle *o, struct str doc, const json_t *ours)
{
    json_error_t error;
    bool accepted = jread_finish(&o->r, NULL) == OK;
    bool deep = o->r.err.code == ERR_LIMIT;
    const char *why = NULL;
    json_t *theirs = json_loadb(doc.p, doc.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (accepted && theirs == NULL) {
        enum json_error_code code = json_error_code(&error);
        if (!(o->overflow && code == json_error_numeric_overflow) &&
            code != json_error_null_byte_in_key)
            why = "the reader accepts what jansson refuses";
    } else if (!accepted && theirs != NULL) {
        if (!deep && memchr(doc.p, '\0', doc.n) == NULL)
            why = "the reader refuses what jansson accepts";
    } else if (accepted && !json_equal(ours, theirs)) {
        why = "reader and jansson read different values";
    }
    json_decref(theirs);
    return why;
}

/* NULL, or the difference. Also checks that skipping accepts every value that reading accepts, and
 * skips the same bytes. */
static inline const char *oracle_disagreement(struct str doc)
{
    struct arena arena;
    struct oracle o = {.overflow = false};
    struct jread skip;
    arena_init(&arena, 64 * MIB);
    jread_init(&o.r, doc, &arena);
    json_t *ours = oracle_value(&o);
    const char *why = oracle_judge(&o, doc, ours);

    jread_init(&skip, doc, NULL);
    jread_skip(&skip);
    if (jread_finish(&skip, NULL) != OK && o.r.err.code == OK)
        why = "skipping refuses what reading accepts";
    json_decref(ours);
    arena_done(&arena);
    return why;
}
