/* See store.h. The figures here are recomputed from the objects each time: slow, and never stale.
 */
#include "store.h"

#include "server.h"

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
    c->kind = kind;
    c->slot = slot;
    return c;
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
        pod_object_card(mine) != pod_object_card(p))
        store.placed_rv[slot] = c->rv;
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

int64_t pod_object_mem(const struct pod_object *p)
{
    int64_t sum = p->sidecar;
    for (unsigned i = 0; i < p->n_mains; i++)
        sum += p->mains[i];
    int64_t start = p->init + (p->sidecar_first ? p->sidecar : 0);
    return p->bare ? 0 : MAX_OF(sum, start);
}

int64_t pod_object_card(const struct pod_object *p)
{
    int64_t card = 0;
    if (p->idx.z[0] == '\0')
        return -1;
    for (const char *c = p->idx.z; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || card > 100000)
            return -1;
        card = card * 10 + (*c - '0');
    }
    return card;
}

int64_t node_object_cards(const struct node_object *n)
{
    return n->exists && n->mem > 0 && n->count > 0 ? n->count : 0;
}

int64_t node_object_card_size(const struct node_object *n)
{
    return node_object_cards(n) == 0 ? 0 : n->mem / n->count;
}

int64_t node_object_limit(const struct node_object *n)
{
    if (node_object_cards(n) == 0)
        return 0;
    return n->allocatable < 0 ? n->mem : MIN_OF(n->mem, n->allocatable);
}

bool health_object_ill(const struct health_object *h, int64_t card)
{
    if (!h->exists)
        return false;
    for (const char *c = h->gpus.z; *c != '\0'; c++) {
        if (*c - '0' == card)
            return true;
    }
    return false;
}
