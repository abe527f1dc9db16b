/* Objects of the simulated API server; see store.h. Figures are counted from the objects on each
 * call: slow, but never stale. */
#include "store.h"

#include "server.h"
#include "slices.h"

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

static struct change *history_add(enum cache_kind kind, unsigned slot)
{
    if (history.n == history.cap) {
        history.cap = history.cap == 0 ? 512 : history.cap * 2;
        history.at = sim_resize(history.at, history.cap * sizeof(*history.at));
    }
    struct change *c = &history.at[history.n++];
    c->rv = ++store.rv;
    c->at_ms = world.now_ms;
    c->kind = kind;
    c->slot = slot;
    return c;
}

/* The object's present state. */
static bool object_at(enum cache_kind kind, unsigned slot, union object *ret)
{
    if (kind == CACHE_PODS)
        ret->pod = store.pods[slot];
    else if (kind == CACHE_NODES)
        ret->node = store.nodes[slot];
    else
        ret->health = store.healths[slot];
    return kind == CACHE_PODS    ? ret->pod.exists
           : kind == CACHE_NODES ? ret->node.exists
                                 : ret->health.exists;
}

bool history_object(enum cache_kind kind, unsigned slot, uint64_t lag_ms, union object *ret)
{
    if (lag_ms == 0)
        return object_at(kind, slot, ret);
    for (size_t i = history.n; i > 0; i--) {
        const struct change *c = &history.at[i - 1];
        if (c->kind != kind || c->slot != slot || c->at_ms + lag_ms > world.now_ms)
            continue;
        *ret = c->new;
        return c->exists;
    }
    return false;
}

uint64_t history_version(uint64_t lag_ms)
{
    for (size_t i = history.n; i > 0 && lag_ms > 0; i--) {
        if (history.at[i - 1].at_ms + lag_ms <= world.now_ms)
            return history.at[i - 1].rv;
    }
    return lag_ms == 0 ? store.rv : store.oldest_rv;
}

static bool grants_equal(const struct grants_object *a, const struct grants_object *b)
{
    if (a->there != b->there || a->garbled != b->garbled || a->n != b->n)
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        if (a->at[i].container != b->at[i].container || a->at[i].card != b->at[i].card ||
            a->at[i].amount != b->at[i].amount)
            return false;
    }
    return true;
}

void store_put_pod(unsigned slot, const struct pod_object *p)
{
    struct pod_object *mine = &store.pods[slot];
    struct change *c = history_add(CACHE_PODS, slot);
    c->existed = mine->exists;
    c->exists = p->exists;
    c->old.pod = *mine;
    c->new.pod = *p;
    c->new.pod.rv = c->rv;
    if (pod_object_holds(mine) != pod_object_holds(p) ||
        !str_eq(name_str(&mine->node), name_str(&p->node)) ||
        !str_eq(name_str(&mine->idx), name_str(&p->idx)) ||
        !grants_equal(&mine->allocation, &p->allocation))
        store.placed_rv[slot] = c->rv;
    if (mine->initialized && !p->initialized)
        store.begun_rv[slot] = c->rv;
    *mine = c->new.pod;
    trace("pod", name_str(&p->uid), p->exists ? (int64_t)p->phase : -1, pod_object_card(p));
    server_tell(CACHE_PODS);
}

void store_put_node(unsigned slot, const struct node_object *n)
{
    struct node_object *mine = &store.nodes[slot];
    struct change *c = history_add(CACHE_NODES, slot);
    c->existed = mine->exists;
    c->exists = n->exists;
    c->old.node = *mine;
    c->new.node = *n;
    c->new.node.rv = c->rv;
    *mine = c->new.node;
    trace("node", name_str(&n->name), n->exists ? n->mem : -2, n->count);
    server_tell(CACHE_NODES);
}

void store_put_health(unsigned slot, const struct health_object *h)
{
    struct health_object *mine = &store.healths[slot];
    struct change *c = history_add(CACHE_HEALTH, slot);
    c->existed = mine->exists;
    c->exists = h->exists;
    c->old.health = *mine;
    c->new.health = *h;
    c->new.health.rv = c->rv;
    *mine = c->new.health;
    trace("configmap", name_str(&h->name), h->exists, 0);
    server_tell(CACHE_HEALTH);
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

bool health_object_ill(const struct health_object *h, int64_t card)
{
    return h->exists && name_lists(&h->gpus, card);
}
