/*
 * A list of chunks, each twice as large as the one before; only the last one is filled. A reset
 * keeps the first chunk if it was enough and is at most LIMIT_KEEP_BYTES: a rare large request must
 * not leave its memory pinned to every connection. Otherwise a reset frees all chunks and remembers
 * the size, so that the third of three similar requests finds one chunk that is large enough.
 * Rejected: keeping the whole list, because an allocation would then search earlier chunks for
 * room.
 */
#include "base/arena.h"

#include "base/limit.h"
#include "base/mem.h"

#define CHUNK_MIN ((size_t)16 << 10)
#define CHUNK_MAX ((size_t)4 << 20)
#define ALIGN     ((size_t)16)

#if defined(__SANITIZE_ADDRESS__)
#    define POISONS 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) /* clang's spelling */
#        define POISONS 1
#    endif
#endif

#ifdef POISONS
#    include <sanitizer/asan_interface.h>
#    define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#    define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#    define POISON(p, n)   ((void)(p), (void)(n))
#    define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of bytes[] */
    size_t used;
    _Alignas(16) char bytes[];
};

void arena_init(struct arena *a, size_t max)
{
    /* At most half the address space: then no sum of sizes below overflows. */
    *a = (struct arena){.max = MIN_OF(max, SIZE_MAX / 2)};
}

static void arena_free_all(struct arena *a)
{
    for (struct arena_chunk *c = a->first; c != NULL;) {
        struct arena_chunk *next = c->next;
        UNPOISON(c->bytes, c->size);
        mem_free(c);
        c = next;
    }
    mem_account_give(a->account, a->held);
    a->first = NULL;
    a->last = NULL;
    a->held = 0;
}

void arena_reset(struct arena *a)
{
    a->want = MAX_OF(a->want, MIN_OF(a->used, LIMIT_KEEP_BYTES - sizeof(struct arena_chunk)));
    if (a->first != a->last || a->held > LIMIT_KEEP_BYTES)
        arena_free_all(a);
    if (a->first != NULL) {
        a->first->used = 0;
        POISON(a->first->bytes, a->first->size);
    }
    a->used = 0;
    a->failed = a->starved = false;
}

void arena_done(struct arena *a)
{
    arena_free_all(a);
    *a = (struct arena){.max = a->max, .account = a->account};
}

static struct arena_chunk *arena_chunk_add(struct arena *a, size_t need)
{
    size_t size = a->last == NULL ? MAX_OF(a->want, CHUNK_MIN) : a->last->size * 2;
    size = MAX_OF(MIN_OF(size, CHUNK_MAX), need);
    /* Not zeroed here: arena_alloc zeroes what it returns. */
    struct arena_chunk *c = NULL;
    if (!mem_account_take(a->account, sizeof(*c) + size))
        return NULL;
    c = mem_resize(NULL, sizeof(*c) + size);
    if (c == NULL) {
        mem_account_give(a->account, sizeof(*c) + size);
        return NULL;
    }
    *c = (struct arena_chunk){.size = size};
    POISON(c->bytes, c->size);
    if (a->last == NULL)
        a->first = c;
    else
        a->last->next = c;
    a->last = c;
    a->held += sizeof(*c) + size;
    return c;
}

/* The size rounded up to ALIGN; SIZE_MAX if it is over the ceiling. */
static size_t arena_rounded_size(const struct arena *a, size_t size)
{
    size_t room = a->failed ? 0 : a->max - a->used;
    return size > room ? SIZE_MAX : (MAX_OF(size, (size_t)1) + ALIGN - 1) & ~(ALIGN - 1);
}

static void *arena_alloc_block(struct arena *a, size_t size)
{
    size_t room = a->failed ? 0 : a->max - a->used;
    size_t rounded = arena_rounded_size(a, size);
    struct arena_chunk *c = a->last;
    if (rounded <= room && (c == NULL || c->size - c->used < rounded))
        c = arena_chunk_add(a, rounded);
    if (rounded > room || c == NULL) {
        a->starved = a->starved || (!a->failed && rounded <= room);
        a->failed = true;
        return NULL;
    }
    void *p = c->bytes + c->used;
    c->used += rounded;
    a->used += rounded;
    UNPOISON(p, size);
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    void *p = arena_alloc_block(a, size);
    return p == NULL ? NULL : memset(p, 0, size);
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t total = 0;
    if (__builtin_mul_overflow(n, size, &total)) {
        a->failed = true;
        return NULL;
    }
    return arena_alloc(a, total);
}

/* Grows a block in place. Works only for the last allocation, with room behind it. If
 * arena_rounded_size accepts the new size, the growth does not exceed the limit either. */
static bool arena_extend(struct arena *a, void *block, size_t size, size_t to)
{
    struct arena_chunk *c = a->last;
    size_t old = arena_rounded_size(a, size);
    size_t new = arena_rounded_size(a, to);
    if (c == NULL || old == SIZE_MAX || new == SIZE_MAX || c->used < old ||
        c->bytes + c->used - old != (char *)block || new - old > c->size - c->used)
        return false;
    c->used += new - old;
    a->used += new - old;
    UNPOISON(block, to);
    return true;
}

void *arena_grow(struct arena *a, void *array, size_t n, size_t *cap, size_t size)
{
    assert(n <= *cap || a->failed);
    if (n < *cap)
        return array;
    size_t more = *cap == 0 ? 16 : *cap * 2;
    size_t total = 0;
    if (__builtin_mul_overflow(more, size, &total)) {
        a->failed = true;
        return NULL;
    }
    if (*cap > 0 && arena_extend(a, array, *cap * size, total)) {
        *cap = more;
        return array;
    }
    void *copy = arena_alloc_block(a, total);
    if (copy == NULL)
        return NULL;
    if (n > 0)
        memcpy(copy, array, n * size);
    *cap = more;
    return copy;
}

struct str arena_dup(struct arena *a, struct str s)
{
    if (s.p == NULL)
        return s;
    char *p = arena_alloc(a, s.n);
    if (p == NULL)
        return STR_NULL;
    if (s.n > 0)
        memcpy(p, s.p, s.n);
    return (struct str){p, s.n};
}

struct str arena_keep(struct arena *a, struct buf *b)
{
    if (buf_failed(b) && !a->failed) {
        a->failed = true;
        a->starved = b->starved;
    }
    struct str copy = a->failed ? STR_NULL : arena_dup(a, b->n == 0 ? STR("") : buf_str(b));
    buf_done(b);
    return copy;
}
