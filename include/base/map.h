/*
 * A hash map from a string to an object that holds its own key: no key is copied. Open addressing
 * with linear probing and backward-shift deletion. Hashes are keyed with random numbers of the
 * process, so that no one outside can choose colliding names. The map borrows its objects.
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

/*
 * The same for n keys, at most MAP_BATCH; ret has room for n. Many look-ups in a large map wait for
 * memory, and these wait together.
 */
#define MAP_BATCH ((size_t)32)
void map_get_each(const struct map *m, const struct str *keys, size_t n, void **ret);

/* The key must not be there yet. ERR_NOMEM leaves the map as it was. */
enum errc map_put(struct map *m, void *object) _must_use_;

/* The object that was there, or NULL. */
void *map_del(struct map *m, struct str key);

/*
 * Walks every object in no order: start with *cursor 0, NULL at the end. To delete the object just
 * returned and go on, step *cursor back by one: a later one may have moved into its place.
 */
void *map_next(const struct map *m, size_t *cursor);

/*
 * What the map hashes with: multiplications, folded. Four times as fast as SipHash, which was most
 * of a look-up, and no pseudo-random function: whoever could watch the hashes might find the key,
 * and nobody can. What leaves the process is hashed with siphash13.
 */
uint64_t map_hash(struct map_seed seed, struct str s);

uint64_t siphash13(struct map_seed seed, struct str s);
