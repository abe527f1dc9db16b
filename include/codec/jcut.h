/*
 * Cuts an unbounded body into objects while it arrives in arbitrary chunks, in memory of the size
 * of the largest object:
 *
 *   - a Kubernetes List: every element of the top-level "items", and the top-level "metadata";
 *   - a watch stream: every line that is not blank.
 *
 * A piece that lies whole within a chunk is handed on without a copy. The cutter tracks strings and
 * nesting only; whoever decodes a piece validates it. What surrounds the pieces of a list (braces,
 * commas, keys, values of unknown keys) is validated, and a list that is cut short fails in
 * jcut_finish. The outcome does not depend on where the chunks are cut.
 *
 * A list must have "items" exactly once ("items": null is an empty list) and "metadata" at most
 * once: whatever else may have come with status 200, a Status or half of a proxy's page, is not
 * taken for an empty cluster. Keys are compared as they stand: "\u0069tems" is an unknown key.
 */
#pragma once

#include "buf.h"

enum jcut_piece {
    JCUT_ITEM,     /* an element of "items", or a line */
    JCUT_METADATA, /* the value of the list's "metadata" */
};

/*
 * Returning other than OK stops the cutter with that error. The piece is valid during the call
 * only, and the call must leave the cutter alone.
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
    unsigned part;   /* what the current piece is, or the next value will be */
    unsigned depth;  /* of brackets within the piece */
    bool in_string;
    bool escaped;
    bool seen_items;
    bool seen_metadata;
    uint64_t offset; /* bytes taken so far, for errors */
    uint64_t begin;  /* offset of the piece's first byte */
};

/* A piece (and an unknown value) of more than max_piece bytes fails with ERR_LIMIT. */
void jcut_init(struct jcut *c, enum jcut_mode mode, size_t max_piece, jcut_fn *fn, void *ctx);
void jcut_done(struct jcut *c);

/* For the next body; keeps a moderate part of its memory. */
void jcut_reset(struct jcut *c);

/* A failure is sticky, and every further call returns it. */
enum errc jcut_push(struct jcut *c, struct str chunk, struct err *reterr) _must_use_;

/* End of the body: a list must be complete; of lines, the last may lack its newline. */
enum errc jcut_finish(struct jcut *c, struct err *reterr) _must_use_;
