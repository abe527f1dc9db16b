/* Objects of a double of the API server, and their history; see store.h. */
#include "api/store.h"

#include <stdlib.h>

struct store store;

static struct {
    struct change *at;
    size_t n;
    size_t cap;
} history;

void store_reset(void)
{
    store = (struct store){.rv = 1000, .oldest_rv = 1000};
    history.n = 0;
}

size_t history_size(void)
{
    return history.n;
}

const struct change *history_at(size_t i)
{
    return &history.at[i];
}

size_t history_after(uint64_t version)
{
    size_t i = history.n;
    while (i > 0 && history.at[i - 1].rv > version)
        i--;
    return i;
}

static struct change *history_add(void)
{
    if (history.n == history.cap) {
        size_t cap = history.cap == 0 ? 512 : history.cap * 2;
        struct change *more = malloc(cap * sizeof(*more));
        api_check(more != NULL);
        if (history.n > 0)
            memcpy(more, history.at, history.n * sizeof(*more));
        free(history.at);
        history.at = more;
        history.cap = cap;
    }
    return &history.at[history.n++];
}

static uint64_t now_ms(void)
{
    return store.now_ms == NULL ? 0 : store.now_ms();
}

/* The object's present state. */
static void object_at(unsigned kind, unsigned slot, union object *ret)
{
    if (kind == CACHE_PODS)
        ret->pod = store.pods[slot];
    else if (kind == CACHE_NODES)
        ret->node = store.nodes[slot];
    else if (kind == CACHE_HEALTH)
        ret->health = store.healths[slot];
    else if (kind == CACHE_SLICES)
        ret->slice = store.slices[slot];
    else if (kind == CACHE_CLAIMS)
        ret->claim = store.claims[slot];
    else if (kind == CACHE_CLASSES)
        ret->class = store.classes[slot];
    else
        ret->budget = store.budgets[slot];
}

bool history_object(unsigned kind, unsigned slot, uint64_t lag_ms, union object *ret)
{
    if (lag_ms == 0) {
        object_at(kind, slot, ret);
        return ret->any.exists;
    }
    for (size_t i = history.n; i > 0; i--) {
        const struct change *c = &history.at[i - 1];
        if (c->kind != kind || c->slot != slot || c->at_ms + lag_ms > now_ms())
            continue;
        *ret = c->new;
        return c->new.any.exists;
    }
    return false;
}

uint64_t history_version(uint64_t lag_ms)
{
    for (size_t i = history.n; i > 0 && lag_ms > 0; i--) {
        if (history.at[i - 1].at_ms + lag_ms <= now_ms())
            return history.at[i - 1].rv;
    }
    return lag_ms == 0 ? store.rv : store.oldest_rv;
}

void store_put(unsigned kind, unsigned slot, const union object *o)
{
    struct change *c = history_add();
    *c =
        (struct change){.rv = ++store.rv, .at_ms = now_ms(), .kind = kind, .slot = slot, .new = *o};
    c->new.any.rv = c->rv;
    object_at(kind, slot, &c->old);
    if (kind == CACHE_PODS)
        store.pods[slot] = c->new.pod;
    else if (kind == CACHE_NODES)
        store.nodes[slot] = c->new.node;
    else if (kind == CACHE_HEALTH)
        store.healths[slot] = c->new.health;
    else if (kind == CACHE_SLICES)
        store.slices[slot] = c->new.slice;
    else if (kind == CACHE_CLAIMS)
        store.claims[slot] = c->new.claim;
    else if (kind == CACHE_CLASSES)
        store.classes[slot] = c->new.class;
    else
        store.budgets[slot] = c->new.budget;
    if (store.changed != NULL)
        store.changed(c);
}

unsigned store_find_pod(struct str ns, struct str name)
{
    for (unsigned i = store.n_pods; i > 0; i--) {
        const struct pod_object *p = &store.pods[i - 1];
        if (p->exists && str_eq(name_str(&p->name), name) && str_eq(name_str(&p->ns), ns))
            return i - 1;
    }
    return MAX_PODS;
}

unsigned store_find_uid(struct str uid)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (str_eq(name_str(&store.pods[i].uid), uid))
            return i;
    }
    return MAX_PODS;
}

unsigned store_find_node(struct str name)
{
    for (unsigned i = 0; i < store.n_nodes; i++) {
        if (str_eq(name_str(&store.nodes[i].name), name))
            return i;
    }
    return MAX_NODES;
}
