/*
 * Memory that lives as long as one request. A caller allocates pieces and frees all of them at
 * once. A failure is sticky: after the first one every allocation returns NULL and arena_failed()
 * returns true, so a decoder checks once, at its end. arena_reset keeps one chunk of at most
 * LIMIT_KEEP_BYTES, of the size that was needed so far, so that a recycled arena soon calls malloc
 * no more.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *first; /* owned */
    struct arena_chunk *last;
    size_t max;  /* ceiling of used */
    size_t used; /* bytes handed out since the last reset, each allocation rounded up to 16 */
    size_t held; /* bytes of all chunks */
    size_t want; /* size in bytes of the next first chunk, from earlier use */
    bool failed;
    bool starved;                /* it failed for lack of memory, not at the ceiling */
    struct mem_account *account; /* held is charged to it; set after arena_init; NULL: none */
};

void arena_init(struct arena *a, size_t max);
void arena_reset(struct arena *a);
void arena_done(struct arena *a);

/* Zeroed, aligned to 16 bytes. NULL: over the ceiling, or allocation failed. A size of 0
 * takes 16 bytes. */
void *arena_alloc(struct arena *a, size_t size) _must_use_;

/* n * size with the product checked. */
void *arena_array(struct arena *a, size_t n, size_t size) _must_use_;

/* Makes room for one more element in an array of n elements of `size` bytes; *cap: the
 * present capacity, and on return the new one. If the array is full, the capacity doubles: in place
 * if nothing was allocated after the array, otherwise in a copy. The new part is not zeroed. NULL
 * on failure. */
void *arena_grow(struct arena *a, void *array, size_t n, size_t *cap, size_t size) _must_use_;

/* A copy of s; absent on failure. */
struct str arena_dup(struct arena *a, struct str s);

/* Copies the bytes of b into the arena and calls buf_done on b. If b has failed, the arena fails
 * too, because the caller only checks the arena. */
struct str arena_keep(struct arena *a, struct buf *b);

static inline bool arena_failed(const struct arena *a)
{
    return a->failed;
}

/* Why it failed: ERR_NOMEM (a later try may succeed) or ERR_LIMIT. OK if nothing failed. */
static inline enum errc arena_fault(const struct arena *a)
{
    return !a->failed ? OK : a->starved ? ERR_NOMEM : ERR_LIMIT;
}
