/*
 * A hash map from a string to an object that contains its own key: no key is copied. Open
 * addressing with linear probing and backward-shift deletion. The hash is keyed with random numbers
 * of the process, so that no client can choose names that collide. The map does not own its
 * objects.
 */
#pragma once

#include "base/err.h"

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
    uint64_t moves;    /* changes when an object comes or goes, which may move others */
    size_t key_offset; /* of the struct str within an object */
    bool dense;        /* less memory, and more probes: see map_save_memory */
    struct map_seed seed;
};

void map_init(struct map *m, size_t key_offset, struct map_seed seed);
void map_done(struct map *m);

/* For a map without look-ups that matter: up to three quarters of its slots are used instead of a
 * half. Call it before the first map_put. */
static inline void map_save_memory(struct map *m)
{
    m->dense = true;
}

void *map_get(const struct map *m, struct str key);

/* The same for n keys, at most MAP_BATCH; ret has room for n. A look-up in a large map waits for
 * memory; here the waits overlap. */
#define MAP_BATCH ((size_t)32)
void map_get_each(const struct map *m, const struct str *keys, size_t n, void **ret);

/* The key must not be in the map yet. ERR_NOMEM: the map has not changed. */
enum errc map_put(struct map *m, void *object) _must_use_;

/* Returns the object that was removed, or NULL. */
void *map_del(struct map *m, struct str key);

/* Walks all objects in no order. Start with *cursor 0; NULL is the end. After deleting the object
 * that was just returned, decrement *cursor: a later object may have moved into its slot. */
void *map_next(const struct map *m, size_t *cursor);

/*
 * The map's own hash: multiplications, folded. It is four times as fast as SipHash, which took most
 * of the time of a look-up. It is not a pseudo-random function: a client that sees hashes could
 * compute the key, so these hashes must not leave the process. Use siphash13 for a hash that leaves
 * it.
 */
uint64_t map_hash(struct map_seed seed, struct str s);

uint64_t siphash13(struct map_seed seed, struct str s);
