/*
 * At most three quarters of the slots are taken. Each keeps its key's hash: a probe touches an
 * object only where the hashes agree, and growing hashes nothing anew. Deletion closes the gap
 * instead of leaving a mark, so a map that lives for months stays as fast as on its first day. It
 * never shrinks: what was once needed is needed again after the next relist.
 */
#include "map.h"

#include "mem.h"

#include <endian.h>

#define CAP_MIN ((size_t)16)

#define ROTL(x, b) (uint64_t)(((x) << (b)) | ((x) >> (64 - (b))))

static inline void sip_round(uint64_t v[4])
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

static inline uint64_t load64(const char *p)
{
    uint64_t x = 0;
    memcpy(&x, p, sizeof(x));
    return le64toh(x);
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
        uint64_t block = load64(s.p + i);
        v[3] ^= block;
        sip_round(v);
        v[0] ^= block;
    }
    uint64_t tail = (uint64_t)s.n << 56;
    for (size_t i = whole; i < s.n; i++)
        tail |= (uint64_t)(unsigned char)s.p[i] << (8 * (i - whole));
    v[3] ^= tail;
    sip_round(v);
    v[0] ^= tail;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_init(struct map *m, size_t key_offset, struct map_seed seed)
{
    *m = (struct map){.key_offset = key_offset, .seed = seed};
}

void map_done(struct map *m)
{
    mem_free(m->slots);
    map_init(m, m->key_offset, m->seed);
}

static struct str key_of(const struct map *m, const void *object)
{
    struct str key;
    memcpy(&key, (const char *)object + m->key_offset, sizeof(key));
    return key;
}

/* The slot that holds the key, or the free slot where it would go. cap > 0. */
static size_t probe(const struct map *m, struct str key, uint64_t hash)
{
    size_t mask = m->cap - 1;
    size_t i = (size_t)hash & mask;
    while (m->slots[i].object != NULL) {
        if (m->slots[i].hash == hash && str_eq(key_of(m, m->slots[i].object), key))
            break;
        i = (i + 1) & mask;
    }
    return i;
}

void *map_get(const struct map *m, struct str key)
{
    if (m->n == 0)
        return NULL;
    return m->slots[probe(m, key, siphash13(m->seed, key))].object;
}

static enum errc grow(struct map *m)
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
    if (m->n + 1 > m->cap - m->cap / 4 && grow(m) != OK)
        return ERR_NOMEM;
    struct str key = key_of(m, object);
    uint64_t hash = siphash13(m->seed, key);
    size_t i = probe(m, key, hash);
    assert(m->slots[i].object == NULL);
    m->slots[i] = (struct map_slot){.object = object, .hash = hash};
    m->n++;
    return OK;
}

/* Moves back every later entry of the run that may stand nearer to its home. */
static void close_gap(struct map *m, size_t gap)
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
    size_t i = probe(m, key, siphash13(m->seed, key));
    void *object = m->slots[i].object;
    if (object == NULL)
        return NULL;
    close_gap(m, i);
    m->n--;
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
