/*
 * Cuts an unbounded body into objects while it arrives in arbitrary chunks. It needs memory for the
 * largest object only.
 *
 *   - A Kubernetes List: each element of the top-level "items", and the top-level "metadata" and
 *     "kind".
 *   - A watch stream: each line that is not blank.
 *
 * A piece that is completely inside a chunk is delivered without a copy. The cutter tracks only
 * strings and nesting; the decoder of a piece validates it. The cutter validates everything around
 * the pieces of a list (braces, commas, keys, values of unknown keys). jcut_finish refuses a
 * truncated list. The outcome does not depend on the chunk boundaries.
 *
 * A list must have "items" exactly once ("items": null is an empty list), and "metadata" and "kind"
 * at most once. So another body with status 200, for example a Status or half of a proxy's page,
 * does not count as an empty cluster. Keys are compared without unescaping: "\u0069tems" is an
 * unknown key.
 */
#pragma once

#include "base/buf.h"

enum jcut_piece {
    JCUT_ITEM,     /* an element of "items", or a line */
    JCUT_METADATA, /* the value of the list's "metadata" */
    JCUT_KIND,     /* the value of the list's "kind", with its quotes */
};

/*
 * A result other than OK stops the cutter with that error. The piece is valid only during the call.
 * The callback must not use the cutter.
 */
typedef enum errc jcut_fn(void *ctx, enum jcut_piece kind, struct str piece, struct err *reterr);

enum jcut_mode {
    JCUT_LIST,
    JCUT_LINES,
};

struct jcut {
    enum jcut_mode mode;
    jcut_fn *fn;
    void *ctx;
    struct buf hold; /* an unfinished piece */
    struct err err;  /* the first failure, sticky */
    unsigned state;  /* private to jcut.c from here on */
    unsigned part;   /* the kind of the current piece or of the next value */
    unsigned depth;  /* open brackets within the piece */
    bool in_string;
    bool escaped;
    bool seen_items;
    bool seen_metadata;
    bool seen_kind;
    uint64_t offset; /* bytes taken so far, for errors */
    uint64_t begin;  /* offset of the piece's first byte */
};

/* A piece (or an unknown value) of more than max_piece bytes fails with ERR_LIMIT. */
void jcut_init(struct jcut *c, enum jcut_mode mode, size_t max_piece, jcut_fn *fn, void *ctx);
void jcut_done(struct jcut *c);

/* Prepares for the next body; keeps a moderate part of its memory. */
void jcut_reset(struct jcut *c);

/* A failure is sticky: each further call returns it. */
enum errc jcut_push(struct jcut *c, struct str chunk, struct err *reterr) _must_use_;

/* End of the body. A list must be complete; the last line may lack its newline. */
enum errc jcut_finish(struct jcut *c, struct err *reterr) _must_use_;
