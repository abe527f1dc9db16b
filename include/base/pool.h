/*
 * Equal things once, however many ask for them: who wants one takes it and gives it back, and what
 * nobody has any more is freed. A thing is one block that begins with a struct pooled; what makes
 * two of them equal the caller knows, and that they have one hash (siphash13 with the pool's seed,
 * so that no one outside can choose things that collide).
 */
#pragma once

#include "map.h"

struct pooled {
    struct pooled *next; /* of those with its hash, or near */
    uint32_t hash;
    uint32_t uses;
};

struct pool {
    struct pooled **heads; /* owned; cap of them, a power of two, or NULL */
    size_t cap;
    size_t n; /* of different things */
    struct map_seed seed;
};

void pool_init(struct pool *p, struct map_seed seed);

/* Everything has been given back. */
void pool_done(struct pool *p);

typedef bool pool_same_fn(const struct pooled *thing, const void *like);

/* The thing that is like that, or NULL. It is not taken by that. */
struct pooled *pool_find(const struct pool *p, uint64_t hash, pool_same_fn *same, const void *like);

/* A new thing, for which pool_find says NULL: now the pool's, taken once. ERR_NOMEM: it is still
 * the caller's. */
enum errc pool_put(struct pool *p, struct pooled *thing, uint64_t hash) _must_use_;

/*
 * The thing that is like a new one, or the new one where none is: taken either way, and the caller
 * goes on with what is returned, since a new thing that is not needed has been freed. NULL without
 * memory: freed, too.
 */
struct pooled *pool_keep(struct pool *p, struct pooled *thing, uint64_t hash, pool_same_fn *same)
    _must_use_;

/* Once more. */
static inline void pool_take(struct pooled *thing)
{
    thing->uses++;
}

void pool_give(struct pool *p, struct pooled *thing);

/* Asserts what must be true of it, with so many uses in all: for tests. */
void pool_check(const struct pool *p, size_t uses);
