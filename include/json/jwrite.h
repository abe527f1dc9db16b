/*
 * Writes compact JSON into a buf; the same calls give the same bytes. Strings are escaped by RFC
 * 8259. Invalid UTF-8 becomes U+FFFD, so the output is always valid. A failure is stored in the buf
 * and sticky.
 */
#pragma once

#include "base/buf.h"

struct jwrite {
    struct buf *out; /* borrowed */
    bool comma;      /* write a comma before the next key or element */
};

void jwrite_init(struct jwrite *w, struct buf *out);

void jwrite_object_begin(struct jwrite *w);
void jwrite_object_end(struct jwrite *w);
void jwrite_array_begin(struct jwrite *w);
void jwrite_array_end(struct jwrite *w);

void jwrite_key(struct jwrite *w, struct str key);

/* The same for a key that is already JSON, with its quotes. */
void jwrite_raw_key(struct jwrite *w, struct str json);

void jwrite_str(struct jwrite *w, struct str s); /* absent: null */

/* The same with `by` in place of each c, which is ASCII; s is not absent. */
void jwrite_str_replacing(struct jwrite *w, struct str s, char c, struct str by);

void jwrite_i64(struct jwrite *w, int64_t v);
void jwrite_u64(struct jwrite *w, uint64_t v);
void jwrite_bool(struct jwrite *w, bool v);
void jwrite_null(struct jwrite *w);

/* A value that is valid JSON already, for example from jread_raw. */
void jwrite_raw(struct jwrite *w, struct str json);

/* The same, faster for a few bytes. */
static inline void jwrite_raw_short(struct jwrite *w, struct str json)
{
    struct buf *out = w->out;
    if (!buf_reserve(out, json.n + 1))
        return;
    out->p[out->n] = ',';
    size_t at = out->n + (w->comma ? 1 : 0);
    (void)str_copy(out->p + at, json);
    out->n = at + json.n;
    w->comma = true;
}

/* A member of an object: its key and its value. An object or array only begins. */
void jwrite_str_at(struct jwrite *w, struct str key, struct str s);
void jwrite_i64_at(struct jwrite *w, struct str key, int64_t v);
void jwrite_u64_at(struct jwrite *w, struct str key, uint64_t v);
void jwrite_bool_at(struct jwrite *w, struct str key, bool v);
void jwrite_raw_at(struct jwrite *w, struct str key, struct str json);
void jwrite_object_at(struct jwrite *w, struct str key);
void jwrite_array_at(struct jwrite *w, struct str key);
