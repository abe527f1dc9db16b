/* Growable bytes. The ceiling is set at buf_init. A failure (over the ceiling, or no memory) is
 * sticky: a piece that does not fit is dropped whole, and buf_failed() returns true at the end. */
#pragma once

#include "base/err.h"
#include "base/mem_budget.h"

struct buf {
    char *p; /* owned, unless borrowed */
    size_t n;
    size_t cap;
    size_t max; /* ceiling of n, in bytes */
    bool failed;
    bool starved;                /* it failed for lack of memory, not at the ceiling */
    bool borrowed;               /* p is the caller's array: see buf_on */
    struct mem_account *account; /* cap is charged to it; set after buf_init; NULL: none */
};

void buf_init(struct buf *b, size_t max);

/* Frees the bytes. A buf on the caller's array keeps the array and is empty. */
void buf_done(struct buf *b);

/* A buf that writes to the caller's array of `size` bytes and never allocates: its ceiling is
 * size - 1 bytes. */
static inline struct buf buf_on(char *bytes, size_t size)
{
    assert(bytes != NULL && size > 0);
    return (struct buf){.p = bytes, .cap = size, .max = size - 1, .borrowed = true};
}

/* The same for an array; a pointer does not compile. */
#define BUF_ON(array)                                                                   \
    (buf_on((array),                                                                    \
            sizeof(array) +                                                             \
                0 * sizeof(char[1 - 2 * __builtin_types_compatible_p(__typeof__(array), \
                                                                     __typeof__(&(array)[0]))])))

/* Empties the buf and clears a failure. Keeps its memory if that is at most `keep` bytes. */
void buf_clear(struct buf *b, size_t keep);

/* The slow path of buf_reserve. */
bool buf_grow(struct buf *b, size_t n) _must_use_;

/* Makes room for n more bytes at b->p + b->n. The caller writes them and then adds n to b->n. One
 * byte more is reserved, so that buf_cstr never has to grow. */
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

/* For people to read: what could steer a terminal is escaped. If there is no room, whole characters
 * at the end are left out. */
void buf_put_printable(struct buf *b, struct str s);

/* Appends a NUL that does not count in n; NULL on failure. Borrowed until the next change. */
const char *buf_cstr(struct buf *b);

/* Borrowed until the next change. Without bytes: an empty string, never an absent one. */
static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p == NULL ? "" : b->p, b->n};
}

static inline bool buf_failed(const struct buf *b)
{
    return b->failed;
}

/* Why it failed: ERR_NOMEM (a later try may succeed) or ERR_LIMIT. OK if nothing failed. */
static inline enum errc buf_fault(const struct buf *b)
{
    return !b->failed ? OK : b->starved ? ERR_NOMEM : ERR_LIMIT;
}
