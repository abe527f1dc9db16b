/* A hash table with chains, unlike map.c with open addressing: it costs one pointer per thing,
 * which matters because most things have no equal. Like a map it never shrinks. */
#include "base/intern.h"

#include "base/mem.h"

#define CAP_MIN ((size_t)16)

void intern_init(struct intern_table *t, struct map_seed seed)
{
    *t = (struct intern_table){.seed = seed};
}

void intern_done(struct intern_table *t)
{
    assert(t->n == 0);
    mem_free(t->heads);
    intern_init(t, t->seed);
}

static struct interned **intern_head_of(const struct intern_table *t, uint32_t hash)
{
    return &t->heads[hash & (t->cap - 1)];
}

struct interned *intern_find(const struct intern_table *t, uint64_t hash, intern_same_fn *same,
                             const void *like)
{
    if (t->n == 0)
        return NULL;
    struct interned *thing = *intern_head_of(t, (uint32_t)hash);
    while (thing != NULL && (thing->hash != (uint32_t)hash || !same(thing, like)))
        thing = thing->next;
    return thing;
}

static void intern_link_to(struct intern_table *t, struct interned *thing)
{
    struct interned **head = intern_head_of(t, thing->hash);
    thing->next = *head;
    *head = thing;
}

static enum errc intern_grow(struct intern_table *t)
{
    struct intern_table old = *t;
    size_t cap = MAX_OF(CAP_MIN, old.cap * 2);
    struct interned **heads = mem_alloc(cap * sizeof(struct interned *));
    if (heads == NULL)
        return ERR_NOMEM;
    t->heads = heads;
    t->cap = cap;
    for (size_t i = 0; i < old.cap; i++) {
        struct interned *next = NULL;
        for (struct interned *thing = old.heads[i]; thing != NULL; thing = next) {
            next = thing->next;
            intern_link_to(t, thing);
        }
    }
    mem_free(old.heads);
    return OK;
}

enum errc intern_put(struct intern_table *t, struct interned *thing, uint64_t hash)
{
    if (t->n == t->cap && intern_grow(t) != OK)
        return ERR_NOMEM;
    thing->hash = (uint32_t)hash;
    thing->uses = 1;
    intern_link_to(t, thing);
    t->n++;
    return OK;
}

struct interned *intern_keep(struct intern_table *t, struct interned *thing, uint64_t hash,
                             intern_same_fn *same)
{
    struct interned *found = intern_find(t, hash, same, thing);
    if (found != NULL)
        intern_take(found);
    else if (intern_put(t, thing, hash) == OK)
        return thing;
    mem_free(thing);
    return found;
}

void intern_give(struct intern_table *t, struct interned *thing)
{
    assert(thing->uses > 0);
    if (--thing->uses > 0)
        return;
    struct interned **at = intern_head_of(t, thing->hash);
    while (*at != thing)
        at = &(*at)->next;
    *at = thing->next;
    t->n--;
    mem_free(thing);
}

void intern_check(const struct intern_table *t, size_t uses)
{
    size_t n = 0;
    for (size_t i = 0; i < t->cap; i++) {
        for (const struct interned *thing = t->heads[i]; thing != NULL; thing = thing->next) {
            assert((thing->hash & (t->cap - 1)) == i);
            assert(thing->uses > 0 && thing->uses <= uses);
            uses -= thing->uses;
            n++;
        }
    }
    assert(uses == 0 && n == t->n && n <= t->cap);
}
