/*
 * Stores equal things once and counts references (interning). A caller takes a reference and gives
 * it back; the table frees a thing with its last reference. A thing is one block that begins with
 * a struct interned. The caller defines equality. Equal things must have the same hash: use
 * siphash13 with the table's seed, so that no client can choose things that collide.
 */
#pragma once

#include "base/map.h"

struct interned {
    struct interned *next; /* next thing in the same chain */
    uint32_t hash;
    uint32_t uses;
};

struct intern_table {
    struct interned **heads; /* owned; cap of them, a power of two, or NULL */
    size_t cap;
    size_t n; /* different things */
    struct map_seed seed;
};

void intern_init(struct intern_table *t, struct map_seed seed);

/* Call it after every reference has been given back. */
void intern_done(struct intern_table *t);

typedef bool intern_same_fn(const struct interned *thing, const void *like);

/* Returns the thing that equals `like`, or NULL. Takes no reference. */
struct interned *intern_find(const struct intern_table *t, uint64_t hash, intern_same_fn *same,
                             const void *like);

/* Adds a thing for which intern_find returns NULL. The table owns it now, with one reference
 * for the caller. ERR_NOMEM: the caller still owns it. */
enum errc intern_put(struct intern_table *t, struct interned *thing, uint64_t hash) _must_use_;

/* Returns the equal thing that the table has, or adds the new one. The caller gets a reference and
 * must use the returned thing: a new thing that is not needed is freed. NULL: no memory, and the
 * new thing is freed. */
struct interned *intern_keep(struct intern_table *t, struct interned *thing, uint64_t hash,
                             intern_same_fn *same) _must_use_;

/* Takes another reference. */
static inline void intern_take(struct interned *thing)
{
    thing->uses++;
}

void intern_give(struct intern_table *t, struct interned *thing);

/* For tests: asserts the table's invariants and that all references together are `uses`. */
void intern_check(const struct intern_table *t, size_t uses);
