/*
 * A hash map from a string to an object that holds its own key: no key is copied. Open addressing
 * with linear probing and backward-shift deletion, SipHash-1-3 with a key of the process, so that
 * no one outside can choose colliding names. The map borrows its objects.
 */
#pragma once

#include "err.h"

struct map_slot {
    void *object; /* NULL: free */
    uint64_t hash;
};

struct map_seed {
    uint64_t k0;
    uint64_t k1;
};

struct map {
    struct map_slot *slots; /* owned; cap of them, a power of two, or NULL */
    size_t cap;
    size_t n;
    size_t key_offset; /* of the struct str within an object */
    struct map_seed seed;
};

void map_init(struct map *m, size_t key_offset, struct map_seed seed);
void map_done(struct map *m);

void *map_get(const struct map *m, struct str key);

/* The key must not be there yet. ERR_NOMEM leaves the map as it was. */
enum errc map_put(struct map *m, void *object) _must_use_;

/* The object that was there, or NULL. */
void *map_del(struct map *m, struct str key);

/*
 * Walks every object in no order: start with *cursor 0, NULL at the end. To delete the object just
 * returned and go on, step *cursor back by one: a later one may have moved into its place.
 */
void *map_next(const struct map *m, size_t *cursor);

uint64_t siphash13(struct map_seed seed, struct str s);
