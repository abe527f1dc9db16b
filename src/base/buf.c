/* One block whose capacity doubles. A ceiling is at most half the address space, so that no sum of
 * sizes below overflows; no allocator returns more. */
#include "base/buf.h"

#include "base/mem.h"

#include <stdio.h>

#define CAP_MIN ((size_t)256)

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = MIN_OF(max, SIZE_MAX / 2)};
}

void buf_done(struct buf *b)
{
    if (b->borrowed) {
        *b = buf_on(b->p, b->cap);
        return;
    }
    mem_free(b->p);
    mem_account_give(b->account, b->cap);
    *b = (struct buf){.max = b->max, .account = b->account};
}

void buf_clear(struct buf *b, size_t keep)
{
    if (b->cap > keep)
        buf_done(b);
    b->n = 0;
    b->failed = b->starved = false;
}

/* Resizes p to `cap`. */
static bool buf_resize(struct buf *b, size_t cap)
{
    assert(!b->borrowed && cap > b->cap);
    if (!mem_account_take(b->account, cap - b->cap))
        return false;
    char *p = mem_resize(b->p, cap);
    if (p == NULL) {
        mem_account_give(b->account, cap - b->cap);
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

bool buf_grow(struct buf *b, size_t n)
{
    if (b->failed || n > b->max || b->n > b->max - n) {
        b->failed = true;
        return false;
    }
    size_t need = b->n + n + 1;
    size_t cap = MAX_OF(b->cap * 2, CAP_MIN);
    cap = MAX_OF(MIN_OF(cap, b->max + 1), need);
    /* If memory-budget has no room for twice the capacity, take only what is needed. */
    if (!mem_account_fits(b->account, cap - b->cap))
        cap = need;
    if (!buf_resize(b, cap))
        b->failed = b->starved = true;
    return !b->failed;
}

static void buf_put_decimal(struct buf *b, bool negative, uint64_t magnitude)
{
    char digits[21];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + (char)(magnitude % 10));
        magnitude /= 10;
    } while (magnitude > 0);
    if (negative)
        digits[--at] = '-';
    buf_put(b, (struct str){digits + at, sizeof(digits) - at});
}

void buf_put_u64(struct buf *b, uint64_t v)
{
    if (v < 10)
        buf_putc(b, (char)('0' + (char)v));
    else
        buf_put_decimal(b, false, v);
}

void buf_put_i64(struct buf *b, int64_t v)
{
    buf_put_decimal(b, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0)
        b->failed = true;
    else if (buf_reserve(b, (size_t)n)) {
        (void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void buf_put_printable(struct buf *b, struct str s)
{
    while (s.n > 0) {
        uint32_t rune = 0;
        size_t n = str_utf8(s, &rune);
        if (n == 0)
            buf_put(b, STR("\xef\xbf\xbd"));
        else if (str_is_unprintable(rune))
            buf_printf(b, rune > 0xff ? "\\u%04x" : "\\x%02x", rune);
        else
            buf_put(b, (struct str){s.p, n});
        s = str_skip(s, n == 0 ? 1 : n);
    }
}

const char *buf_cstr(struct buf *b)
{
    if (!buf_reserve(b, 0))
        return NULL;
    b->p[b->n] = '\0';
    return b->p;
}
