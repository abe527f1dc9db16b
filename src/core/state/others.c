/* A hash table with chains of numbers over records in chunks. Rejected: base/map with one object
 * per pod, which costs more than twice as much memory for keys, pointers and the allocator. */
#include "core/state/others.h"

#include "base/mem.h"

#define CHUNK   512U
#define CAP_MIN ((size_t)64)

void others_init(struct others *o, struct map_seed seed)
{
    *o = (struct others){.seed = seed};
}

void others_done(struct others *o)
{
    for (uint32_t i = 0; i < o->n_chunks; i++)
        mem_free(o->chunks[i]);
    mem_free(o->chunks);
    mem_free(o->heads);
    others_init(o, o->seed);
}

struct other *others_at(const struct others *o, uint32_t i)
{
    assert(i < o->n);
    return &o->chunks[i / CHUNK][i % CHUNK];
}

static void others_key_of(const struct others *o, struct str uid, uint64_t ret[static 2])
{
    ret[0] = siphash13(o->seed, uid);
    ret[1] = siphash13((struct map_seed){~o->seed.k0, o->seed.k1}, uid);
}

static uint32_t *others_head_of(const struct others *o, const uint64_t *key)
{
    return &o->heads[key[0] & (o->cap - 1)];
}

static struct other *others_find(const struct others *o, const uint64_t *key)
{
    if (o->n == 0)
        return NULL;
    for (uint32_t at = *others_head_of(o, key); at != 0;) {
        struct other *x = others_at(o, at - 1);
        if (x->key[0] == key[0] && x->key[1] == key[1])
            return x;
        at = x->next;
    }
    return NULL;
}

struct other *others_get(const struct others *o, struct str uid)
{
    uint64_t key[2];
    if (o->n == 0)
        return NULL;
    others_key_of(o, uid, key);
    return others_find(o, key);
}

static enum errc others_grow_heads(struct others *o)
{
    size_t cap = MAX_OF(CAP_MIN, o->cap * 2);
    uint32_t *heads = mem_alloc(cap * sizeof(*heads));
    if (heads == NULL)
        return ERR_NOMEM;
    mem_free(o->heads);
    o->heads = heads;
    o->cap = cap;
    for (uint32_t i = 0; i < o->n; i++) {
        struct other *x = others_at(o, i);
        uint32_t *head = others_head_of(o, x->key);
        x->next = *head;
        *head = i + 1;
    }
    return OK;
}

static enum errc others_grow_chunks(struct others *o)
{
    struct other **chunks = mem_resize(o->chunks, (o->n_chunks + 1) * sizeof(struct other *));
    if (chunks == NULL)
        return ERR_NOMEM;
    o->chunks = chunks;
    chunks[o->n_chunks] = mem_alloc(CHUNK * sizeof(struct other));
    if (chunks[o->n_chunks] == NULL)
        return ERR_NOMEM;
    o->n_chunks++;
    return OK;
}

struct other *others_get_or_add(struct others *o, struct str uid)
{
    uint64_t key[2];
    others_key_of(o, uid, key);
    struct other *x = others_find(o, key);
    if (x != NULL)
        return x;
    assert(o->n < UINT32_MAX - 1);
    if (o->n == o->cap && others_grow_heads(o) != OK)
        return NULL;
    if (o->n == o->n_chunks * CHUNK && others_grow_chunks(o) != OK)
        return NULL;
    x = others_at(o, o->n++);
    *x = (struct other){.key = {key[0], key[1]}};
    uint32_t *head = others_head_of(o, x->key);
    x->next = *head;
    *head = o->n;
    return x;
}

/* What refers to the record: the head of its chain, or `next` of another record. */
static uint32_t *others_link_to(const struct others *o, const struct other *x)
{
    uint32_t *at = others_head_of(o, x->key);
    while (others_at(o, *at - 1) != x)
        at = &others_at(o, *at - 1)->next;
    return at;
}

void others_del(struct others *o, struct other *x)
{
    struct other *last = others_at(o, o->n - 1);
    uint32_t *link = others_link_to(o, x);
    uint32_t number = *link;
    *link = x->next;
    if (x != last) {
        *others_link_to(o, last) = number;
        *x = *last;
    }
    o->n--;
    /* One empty chunk stays, so that a pod that comes and goes does not allocate each time. */
    while (o->n_chunks > 1 && o->n <= (o->n_chunks - 2) * CHUNK)
        mem_free(o->chunks[--o->n_chunks]);
}

void others_check(const struct others *o)
{
    uint32_t seen = 0;
    assert(o->n <= o->cap && o->n <= o->n_chunks * CHUNK);
    for (size_t i = 0; i < o->cap; i++) {
        for (uint32_t at = o->heads[i]; at != 0; at = others_at(o, at - 1)->next) {
            const struct other *x = others_at(o, at - 1);
            assert(others_head_of(o, x->key) == &o->heads[i] && seen < o->n);
            seen++;
        }
    }
    assert(seen == o->n);
}
