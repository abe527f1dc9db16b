/*
 * Writes compact JSON into a buf, the same bytes for the same calls. Strings are escaped as RFC
 * 8259 asks; invalid UTF-8 becomes U+FFFD, so the output is always valid. Failure is the buf's and
 * sticky.
 */
#pragma once

#include "buf.h"

struct jwrite {
    struct buf *out; /* borrowed */
    bool comma;      /* a separator is due before the next key or element */
};

void jwrite_init(struct jwrite *w, struct buf *out);

void jwrite_object_begin(struct jwrite *w);
void jwrite_object_end(struct jwrite *w);
void jwrite_array_begin(struct jwrite *w);
void jwrite_array_end(struct jwrite *w);

void jwrite_key(struct jwrite *w, struct str key);

/* The same of one that is written already, with its quotes. */
void jwrite_raw_key(struct jwrite *w, struct str json);

void jwrite_str(struct jwrite *w, struct str s); /* absent: null */
void jwrite_i64(struct jwrite *w, int64_t v);
void jwrite_u64(struct jwrite *w, uint64_t v);
void jwrite_bool(struct jwrite *w, bool v);
void jwrite_null(struct jwrite *w);

/* A value that is valid JSON already, as jread_raw gave it. */
void jwrite_raw(struct jwrite *w, struct str json);
