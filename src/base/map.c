/*
 * At most half of the slots are used, if the map is not dense: a second probe is rare, and the
 * processor mispredicts it.
 * Each slot stores its key's hash, so a probe reads an object only if the hashes are equal, and
 * growing computes no hash. Deletion closes the gap instead of leaving a mark, so a map that lives
 * for months stays fast. A map never shrinks: the next relist needs the size again.
 */
#include "base/map.h"

#include "base/mem.h"

#include <endian.h>

#define CAP_MIN ((size_t)16)

/* Bits of the golden ratio and of the square root of 2, so that a seed of zeros works too. */
#define HASH_A UINT64_C(0x9e3779b97f4a7c15)
#define HASH_B UINT64_C(0xb504f333f9de6485)

/* Roughly how far behind an object's struct str its key bytes begin. */
#define NEAR ((size_t)32)

#define ROTL(x, b) (uint64_t)(((x) << (b)) | ((x) >> (64 - (b))))

static inline void map_sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = ROTL(v[1], 13) ^ v[0];
    v[0] = ROTL(v[0], 32);
    v[2] += v[3];
    v[3] = ROTL(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = ROTL(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = ROTL(v[1], 17) ^ v[2];
    v[2] = ROTL(v[2], 32);
}

static inline uint64_t map_load64(const char *p)
{
    uint64_t x = 0;
    memcpy(&x, p, sizeof(x));
    return le64toh(x);
}

/* The bytes after the whole blocks, fewer than 8. */
static inline uint64_t map_load_tail(struct str s, size_t whole)
{
    uint64_t tail = 0;
    if (s.n == whole)
        return 0;
    if (s.n >= 8) /* load the last 8 bytes, shift out those of the previous block */
        return map_load64(s.p + s.n - 8) >> (8 * (8 - (s.n - whole)));
    for (size_t i = 0; i < s.n; i++)
        tail |= (uint64_t)(unsigned char)s.p[i] << (8 * i);
    return tail;
}

/* Aumasson and Bernstein's SipHash with one round a block and three to finish. */
uint64_t siphash13(struct map_seed seed, struct str s)
{
    uint64_t v[4] = {
        seed.k0 ^ 0x736f6d6570736575U,
        seed.k1 ^ 0x646f72616e646f6dU,
        seed.k0 ^ 0x6c7967656e657261U,
        seed.k1 ^ 0x7465646279746573U,
    };
    size_t whole = s.n & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t block = map_load64(s.p + i);
        v[3] ^= block;
        map_sip_round(v);
        v[0] ^= block;
    }
    uint64_t tail = (uint64_t)s.n << 56 | map_load_tail(s, whole);
    v[3] ^= tail;
    map_sip_round(v);
    v[0] ^= tail;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        map_sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static inline uint64_t map_load32(const char *p)
{
    uint32_t x = 0;
    memcpy(&x, p, sizeof(x));
    return le32toh(x);
}

/* XORs both halves of the product, so that every input bit affects every bit of the hash. */
static inline uint64_t map_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hashes 16 bytes with each multiplication; each factor is mixed with a secret. The last 16 bytes
 * may overlap earlier ones. A key of less than 16 bytes is read as two halves that overlap. */
uint64_t map_hash(struct map_seed seed, struct str s)
{
    uint64_t h = seed.k0 ^ HASH_A ^ s.n;
    uint64_t key = seed.k1 ^ HASH_B;
    uint64_t low = 0;
    uint64_t high = 0;
    for (size_t i = 0; i + 16 < s.n; i += 16)
        h = map_fold(h ^ map_load64(s.p + i), key ^ map_load64(s.p + i + 8));
    if (s.n >= 16) {
        low = map_load64(s.p + s.n - 16);
        high = map_load64(s.p + s.n - 8);
    } else if (s.n >= 8) {
        low = map_load64(s.p);
        high = map_load64(s.p + s.n - 8);
    } else if (s.n >= 4) {
        low = map_load32(s.p);
        high = map_load32(s.p + s.n - 4);
    } else if (s.n > 0) {
        low = (unsigned char)s.p[0] | (uint64_t)(unsigned char)s.p[s.n / 2] << 8;
        high = (unsigned char)s.p[s.n - 1];
    }
    return map_fold(map_fold(h ^ low, key ^ high), HASH_A);
}

void map_init(struct map *m, size_t key_offset, struct map_seed seed)
{
    *m = (struct map){.key_offset = key_offset, .seed = seed};
}

void map_done(struct map *m)
{
    bool dense = m->dense;
    mem_free(m->slots);
    map_init(m, m->key_offset, m->seed);
    m->dense = dense;
}

static struct str map_key_of(const struct map *m, const void *object)
{
    struct str key;
    memcpy(&key, (const char *)object + m->key_offset, sizeof(key));
    return key;
}

/* Whether two keys are the same, by whole words and without a call: names and UIDs are a few words
 * long. */
static inline bool map_same_key(struct str a, struct str b)
{
    uint64_t x;
    uint64_t y;
    if (a.n != b.n || a.n < sizeof(x))
        return str_eq(a, b);
    for (size_t i = 0; i + sizeof(x) < a.n; i += sizeof(x)) {
        memcpy(&x, a.p + i, sizeof(x));
        memcpy(&y, b.p + i, sizeof(y));
        if (x != y)
            return false;
    }
    memcpy(&x, a.p + a.n - sizeof(x), sizeof(x));
    memcpy(&y, b.p + b.n - sizeof(y), sizeof(y));
    return x == y;
}

/* The slot that holds the key, or the free slot where it would go. cap > 0. */
static size_t map_probe(const struct map *m, struct str key, uint64_t hash)
{
    size_t mask = m->cap - 1;
    size_t i = (size_t)hash & mask;
    while (m->slots[i].object != NULL) {
        if (m->slots[i].hash == hash && map_same_key(map_key_of(m, m->slots[i].object), key))
            break;
        i = (i + 1) & mask;
    }
    return i;
}

void *map_get(const struct map *m, struct str key)
{
    if (m->n == 0)
        return NULL;
    return m->slots[map_probe(m, key, map_hash(m->seed, key))].object;
}

/* Three passes; each prefetches the memory of the next: slots, objects, comparison. The key's bytes
 * are mostly near the object's struct str. A second cache line is prefetched only when needed,
 * because a processor can wait for about a dozen lines at once. */
void map_get_each(const struct map *m, const struct str *keys, size_t n, void **ret)
{
    uint64_t hashes[MAP_BATCH];
    size_t mask = m->cap - 1;
    assert(n <= MAP_BATCH);
    if (m->n == 0) {
        for (size_t i = 0; i < n; i++)
            ret[i] = NULL;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        hashes[i] = map_hash(m->seed, keys[i]);
        __builtin_prefetch(&m->slots[hashes[i] & mask]);
    }
    for (size_t i = 0; i < n; i++) {
        const char *object = m->slots[hashes[i] & mask].object;
        if (object == NULL)
            continue;
        object += m->key_offset;
        __builtin_prefetch(object);
        if ((uintptr_t)object % CACHE_LINE + NEAR + keys[i].n > CACHE_LINE)
            __builtin_prefetch(object + CACHE_LINE);
    }
    for (size_t i = 0; i < n; i++)
        ret[i] = m->slots[map_probe(m, keys[i], hashes[i])].object;
}

static enum errc map_grow(struct map *m)
{
    size_t cap = m->cap == 0 ? CAP_MIN : m->cap * 2;
    struct map_slot *slots = mem_alloc(cap * sizeof(*slots));
    if (slots == NULL)
        return ERR_NOMEM;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].object == NULL)
            continue;
        size_t to = (size_t)m->slots[i].hash & (cap - 1);
        while (slots[to].object != NULL)
            to = (to + 1) & (cap - 1);
        slots[to] = m->slots[i];
    }
    mem_free(m->slots);
    m->slots = slots;
    m->cap = cap;
    return OK;
}

enum errc map_put(struct map *m, void *object)
{
    if (m->n + 1 > m->cap / 4 * (m->dense ? 3 : 2) && map_grow(m) != OK)
        return ERR_NOMEM;
    struct str key = map_key_of(m, object);
    uint64_t hash = map_hash(m->seed, key);
    size_t i = map_probe(m, key, hash);
    assert(m->slots[i].object == NULL);
    m->slots[i] = (struct map_slot){.object = object, .hash = hash};
    m->n++;
    m->moves++;
    return OK;
}

/* Moves back later entries of the run into the gap, if that brings them closer to their home
 * slot. */
static void map_close_gap(struct map *m, size_t gap)
{
    size_t mask = m->cap - 1;
    for (size_t i = (gap + 1) & mask; m->slots[i].object != NULL; i = (i + 1) & mask) {
        size_t home = (size_t)m->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - gap) & mask))
            continue;
        m->slots[gap] = m->slots[i];
        gap = i;
    }
    m->slots[gap] = (struct map_slot){.object = NULL};
}

void *map_del(struct map *m, struct str key)
{
    if (m->n == 0)
        return NULL;
    size_t i = map_probe(m, key, map_hash(m->seed, key));
    void *object = m->slots[i].object;
    if (object == NULL)
        return NULL;
    map_close_gap(m, i);
    m->n--;
    m->moves++;
    return object;
}

void *map_next(const struct map *m, size_t *cursor)
{
    while (*cursor < m->cap) {
        void *object = m->slots[(*cursor)++].object;
        if (object != NULL)
            return object;
    }
    return NULL;
}
