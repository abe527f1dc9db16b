/*
 * Stores equal things once and counts references. A caller takes a reference and gives it back; the
 * pool frees a thing with its last reference. A thing is one block that begins with a struct
 * pooled. The caller defines equality. Equal things must have the same hash: use siphash13 with the
 * pool's seed, so that no client can choose things that collide.
 */
#pragma once

#include "base/map.h"

struct pooled {
    struct pooled *next; /* next thing in the same chain */
    uint32_t hash;
    uint32_t uses;
};

struct pool {
    struct pooled **heads; /* owned; cap of them, a power of two, or NULL */
    size_t cap;
    size_t n; /* different things */
    struct map_seed seed;
};

void pool_init(struct pool *p, struct map_seed seed);

/* Call it after every reference has been given back. */
void pool_done(struct pool *p);

typedef bool pool_same_fn(const struct pooled *thing, const void *like);

/* Returns the thing that equals `like`, or NULL. Takes no reference. */
struct pooled *pool_find(const struct pool *p, uint64_t hash, pool_same_fn *same, const void *like);

/* Adds a thing for which pool_find returns NULL. The pool owns it now, with one reference for the
 * caller. ERR_NOMEM: the caller still owns it. */
enum errc pool_put(struct pool *p, struct pooled *thing, uint64_t hash) _must_use_;

/* Returns the equal thing that the pool has, or adds the new one. The caller gets a reference and
 * must use the returned thing: a new thing that is not needed is freed. NULL: no memory, and the
 * new thing is freed. */
struct pooled *pool_keep(struct pool *p, struct pooled *thing, uint64_t hash, pool_same_fn *same)
    _must_use_;

/* Takes another reference. */
static inline void pool_take(struct pooled *thing)
{
    thing->uses++;
}

void pool_give(struct pool *p, struct pooled *thing);

/* For tests: asserts the pool's invariants and that all references together are `uses`. */
void pool_check(const struct pool *p, size_t uses);
