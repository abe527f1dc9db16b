/* A hash table with chains, unlike map.c with open addressing: it costs one pointer per thing,
 * which matters because most things have no equal. Like a map it never shrinks. */
#include "base/pool.h"

#include "base/mem.h"

#define CAP_MIN ((size_t)16)

void pool_init(struct pool *p, struct map_seed seed)
{
    *p = (struct pool){.seed = seed};
}

void pool_done(struct pool *p)
{
    assert(p->n == 0);
    mem_free(p->heads);
    pool_init(p, p->seed);
}

static struct pooled **pool_head_of(const struct pool *p, uint32_t hash)
{
    return &p->heads[hash & (p->cap - 1)];
}

struct pooled *pool_find(const struct pool *p, uint64_t hash, pool_same_fn *same, const void *like)
{
    if (p->n == 0)
        return NULL;
    struct pooled *thing = *pool_head_of(p, (uint32_t)hash);
    while (thing != NULL && (thing->hash != (uint32_t)hash || !same(thing, like)))
        thing = thing->next;
    return thing;
}

static void pool_link_to(struct pool *p, struct pooled *thing)
{
    struct pooled **head = pool_head_of(p, thing->hash);
    thing->next = *head;
    *head = thing;
}

static enum errc pool_grow(struct pool *p)
{
    struct pool old = *p;
    size_t cap = MAX_OF(CAP_MIN, old.cap * 2);
    struct pooled **heads = mem_alloc(cap * sizeof(struct pooled *));
    if (heads == NULL)
        return ERR_NOMEM;
    p->heads = heads;
    p->cap = cap;
    for (size_t i = 0; i < old.cap; i++) {
        struct pooled *next = NULL;
        for (struct pooled *thing = old.heads[i]; thing != NULL; thing = next) {
            next = thing->next;
            pool_link_to(p, thing);
        }
    }
    mem_free(old.heads);
    return OK;
}

enum errc pool_put(struct pool *p, struct pooled *thing, uint64_t hash)
{
    if (p->n == p->cap && pool_grow(p) != OK)
        return ERR_NOMEM;
    thing->hash = (uint32_t)hash;
    thing->uses = 1;
    pool_link_to(p, thing);
    p->n++;
    return OK;
}

struct pooled *pool_keep(struct pool *p, struct pooled *thing, uint64_t hash, pool_same_fn *same)
{
    struct pooled *found = pool_find(p, hash, same, thing);
    if (found != NULL)
        pool_take(found);
    else if (pool_put(p, thing, hash) == OK)
        return thing;
    mem_free(thing);
    return found;
}

void pool_give(struct pool *p, struct pooled *thing)
{
    assert(thing->uses > 0);
    if (--thing->uses > 0)
        return;
    struct pooled **at = pool_head_of(p, thing->hash);
    while (*at != thing)
        at = &(*at)->next;
    *at = thing->next;
    p->n--;
    mem_free(thing);
}

void pool_check(const struct pool *p, size_t uses)
{
    size_t n = 0;
    for (size_t i = 0; i < p->cap; i++) {
        for (const struct pooled *thing = p->heads[i]; thing != NULL; thing = thing->next) {
            assert((thing->hash & (p->cap - 1)) == i);
            assert(thing->uses > 0 && thing->uses <= uses);
            uses -= thing->uses;
            n++;
        }
    }
    assert(uses == 0 && n == p->n && n <= p->cap);
}
