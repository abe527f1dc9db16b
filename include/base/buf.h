/*
 * Growable bytes with a ceiling that is given when it is made. Failure (over the ceiling, or no
 * memory) is sticky: what does not fit is dropped whole and buf_failed() says so at the end.
 */
#pragma once

#include "err.h"

struct buf {
    char *p; /* owned */
    size_t n;
    size_t cap;
    size_t max; /* ceiling of n, in bytes */
    bool failed;
    bool starved; /* and the ceiling was not why */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

/* Empty, usable after a failure again; keeps its memory up to `keep` bytes. */
void buf_clear(struct buf *b, size_t keep);

/* For buf_reserve, which has found no room. */
bool buf_grow(struct buf *b, size_t n) _must_use_;

/* Room for n bytes more at b->p + b->n, which the caller fills and then adds to b->n; and one byte
 * beyond, so that buf_cstr never has to grow. */
static inline bool _must_use_ buf_reserve(struct buf *b, size_t n)
{
    bool there = !b->failed && n < b->cap - b->n && n <= b->max - b->n;
    return there || buf_grow(b, n);
}

/* s must not point into b. */
static inline void buf_put(struct buf *b, struct str s)
{
    if (s.n == 0 || !buf_reserve(b, s.n))
        return;
    memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
}

static inline void buf_putc(struct buf *b, char c)
{
    if (!buf_reserve(b, 1))
        return;
    b->p[b->n++] = c;
}

void buf_put_u64(struct buf *b, uint64_t v);
void buf_put_i64(struct buf *b, int64_t v);
void buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);

/* Appends a NUL that does not count in n; NULL on failure. Borrowed until the next change. */
const char *buf_cstr(struct buf *b);

/*
 * Hands the bytes over to the caller, who frees them with mem_free; the buf is empty then. NULL
 * after a failure, which stays, and NULL where there never was a byte.
 */
char *buf_take(struct buf *b, size_t *ret_n) _must_use_;

/* Borrowed until the next change; empty where there is nothing, never absent. */
static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p == NULL ? "" : b->p, b->n};
}

static inline bool buf_failed(const struct buf *b)
{
    return b->failed;
}

/* Why: ERR_NOMEM, which a later try may not meet, or ERR_LIMIT; OK where nothing failed. */
static inline enum errc buf_fault(const struct buf *b)
{
    return !b->failed ? OK : b->starved ? ERR_NOMEM : ERR_LIMIT;
}
