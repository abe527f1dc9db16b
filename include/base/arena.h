/*
 * Memory that lives as long as one request: allocate freely, free all of it at once. Failure is
 * sticky: after the first one every allocation returns NULL and arena_failed() says so, so a
 * decoder asks once, at its end. Reset keeps up to LIMIT_KEEP_BYTES, as one chunk of the size that
 * was needed so far, so that a recycled arena soon allocates nothing.
 */
#pragma once

#include "buf.h"
#include "err.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *first; /* owned */
    struct arena_chunk *last;
    size_t max;  /* ceiling of used */
    size_t used; /* bytes handed out since the last reset, each allocation rounded up to 16 */
    size_t held; /* bytes of all chunks */
    size_t want; /* bytes of the next first chunk, from what was used before */
    bool failed;
    bool starved; /* and the ceiling was not why */
};

void arena_init(struct arena *a, size_t max);
void arena_reset(struct arena *a);
void arena_done(struct arena *a);

/* Zeroed, aligned to 16 bytes; NULL over the ceiling or without memory. size 0 takes 16 bytes. */
void *arena_alloc(struct arena *a, size_t size) _must_use_;

/* n * size with the product checked. */
void *arena_array(struct arena *a, size_t n, size_t size) _must_use_;

/*
 * Room for one element more in an array of n elements of `size` bytes, of which *cap fit: the same
 * array, made longer where it stands if nothing was handed out since, or a copy; of twice the
 * capacity. What is new is not zeroed. NULL on failure.
 */
void *arena_grow(struct arena *a, void *array, size_t n, size_t *cap, size_t size) _must_use_;

/* A copy of s; absent on failure. */
struct str arena_dup(struct arena *a, struct str s);

/* What stands in b, which is done then. That b has failed is the arena's failure, too: who asks
 * once, at the end, would not hear of it. */
struct str arena_keep(struct arena *a, struct buf *b);

static inline bool arena_failed(const struct arena *a)
{
    return a->failed;
}

/* Why: ERR_NOMEM, which a later try may not meet, or ERR_LIMIT; OK where nothing failed. */
static inline enum errc arena_fault(const struct arena *a)
{
    return !a->failed ? OK : a->starved ? ERR_NOMEM : ERR_LIMIT;
}
