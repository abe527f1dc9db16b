/* A hash table with chains of numbers over records in chunks. Rejected: base/map with one object
 * per pod, which costs more than twice as much memory for keys, pointers and the allocator. */
#include "core/state/cardless_pods.h"

#include "base/mem.h"

#define CHUNK   512U
#define CAP_MIN ((size_t)64)

void cardless_pods_init(struct cardless_pods *o, struct map_seed seed)
{
    *o = (struct cardless_pods){.seed = seed};
}

void cardless_pods_done(struct cardless_pods *o)
{
    for (uint32_t i = 0; i < o->n_chunks; i++)
        mem_free(o->chunks[i]);
    mem_free(o->chunks);
    mem_free(o->heads);
    cardless_pods_init(o, o->seed);
}

struct cardless_pod *cardless_pods_at(const struct cardless_pods *o, uint32_t i)
{
    assert(i < o->n);
    return &o->chunks[i / CHUNK][i % CHUNK];
}

static void cardless_pods_key_of(const struct cardless_pods *o, struct str uid,
                                 uint64_t ret[static 2])
{
    ret[0] = siphash13(o->seed, uid);
    ret[1] = siphash13((struct map_seed){~o->seed.k0, o->seed.k1}, uid);
}

static uint32_t *cardless_pods_head_of(const struct cardless_pods *o, const uint64_t *key)
{
    return &o->heads[key[0] & (o->cap - 1)];
}

static struct cardless_pod *cardless_pods_find(const struct cardless_pods *o, const uint64_t *key)
{
    if (o->n == 0)
        return NULL;
    for (uint32_t at = *cardless_pods_head_of(o, key); at != 0;) {
        struct cardless_pod *x = cardless_pods_at(o, at - 1);
        if (x->key[0] == key[0] && x->key[1] == key[1])
            return x;
        at = x->next;
    }
    return NULL;
}

struct cardless_pod *cardless_pods_get(const struct cardless_pods *o, struct str uid)
{
    uint64_t key[2];
    if (o->n == 0)
        return NULL;
    cardless_pods_key_of(o, uid, key);
    return cardless_pods_find(o, key);
}

static enum errc cardless_pods_grow_heads(struct cardless_pods *o)
{
    size_t cap = MAX_OF(CAP_MIN, o->cap * 2);
    uint32_t *heads = mem_alloc(cap * sizeof(*heads));
    if (heads == NULL)
        return ERR_NOMEM;
    mem_free(o->heads);
    o->heads = heads;
    o->cap = cap;
    for (uint32_t i = 0; i < o->n; i++) {
        struct cardless_pod *x = cardless_pods_at(o, i);
        uint32_t *head = cardless_pods_head_of(o, x->key);
        x->next = *head;
        *head = i + 1;
    }
    return OK;
}

static enum errc cardless_pods_grow_chunks(struct cardless_pods *o)
{
    struct cardless_pod **chunks =
        mem_resize(o->chunks, (o->n_chunks + 1) * sizeof(struct cardless_pod *));
    if (chunks == NULL)
        return ERR_NOMEM;
    o->chunks = chunks;
    chunks[o->n_chunks] = mem_alloc(CHUNK * sizeof(struct cardless_pod));
    if (chunks[o->n_chunks] == NULL)
        return ERR_NOMEM;
    o->n_chunks++;
    return OK;
}

struct cardless_pod *cardless_pods_get_or_add(struct cardless_pods *o, struct str uid)
{
    uint64_t key[2];
    cardless_pods_key_of(o, uid, key);
    struct cardless_pod *x = cardless_pods_find(o, key);
    if (x != NULL)
        return x;
    assert(o->n < UINT32_MAX - 1);
    if (o->n == o->cap && cardless_pods_grow_heads(o) != OK)
        return NULL;
    if (o->n == o->n_chunks * CHUNK && cardless_pods_grow_chunks(o) != OK)
        return NULL;
    x = cardless_pods_at(o, o->n++);
    *x = (struct cardless_pod){.key = {key[0], key[1]}};
    uint32_t *head = cardless_pods_head_of(o, x->key);
    x->next = *head;
    *head = o->n;
    return x;
}

/* What refers to the record: the head of its chain, or `next` of another record. */
static uint32_t *cardless_pods_link_to(const struct cardless_pods *o, const struct cardless_pod *x)
{
    uint32_t *at = cardless_pods_head_of(o, x->key);
    while (cardless_pods_at(o, *at - 1) != x)
        at = &cardless_pods_at(o, *at - 1)->next;
    return at;
}

void cardless_pods_del(struct cardless_pods *o, struct cardless_pod *x)
{
    struct cardless_pod *last = cardless_pods_at(o, o->n - 1);
    uint32_t *link = cardless_pods_link_to(o, x);
    uint32_t number = *link;
    *link = x->next;
    if (x != last) {
        *cardless_pods_link_to(o, last) = number;
        *x = *last;
    }
    o->n--;
    /* One empty chunk stays, so that a pod that comes and goes does not allocate each time. */
    while (o->n_chunks > 1 && o->n <= (o->n_chunks - 2) * CHUNK)
        mem_free(o->chunks[--o->n_chunks]);
}

void cardless_pods_check(const struct cardless_pods *o)
{
    uint32_t seen = 0;
    assert(o->n <= o->cap && o->n <= o->n_chunks * CHUNK);
    for (size_t i = 0; i < o->cap; i++) {
        for (uint32_t at = o->heads[i]; at != 0; at = cardless_pods_at(o, at - 1)->next) {
            const struct cardless_pod *x = cardless_pods_at(o, at - 1);
            assert(cardless_pods_head_of(o, x->key) == &o->heads[i] && seen < o->n);
            seen++;
        }
    }
    assert(seen == o->n);
}
