/* Adds and removes the nodes, pods and affinity groups of the cache's maps, and links pending
 * pods. */
#include "cache_store.h"

#include "base/mem.h"

#define SLOTS_MIN 16

/* Finds a free slot, or doubles their number. ERR_NOMEM: nothing has changed. */
static enum errc cache_store_find_slot(struct cache *c)
{
    while (c->first_slot < c->n_slots && c->slots[c->first_slot] != NULL)
        c->first_slot++;
    if (c->first_slot < c->n_slots)
        return OK;
    uint32_t n = MAX_OF(2 * c->n_slots, (uint32_t)SLOTS_MIN);
    struct node **slots = mem_resize(c->slots, n * sizeof(struct node *));
    if (slots == NULL)
        return ERR_NOMEM;
    memset(slots + c->n_slots, 0, (n - c->n_slots) * sizeof(struct node *));
    c->slots = slots;
    c->n_slots = n;
    return OK;
}

static void cache_store_leave_slot(struct cache *c, const struct node *n)
{
    assert(n->slot < c->n_slots && c->slots[n->slot] == n);
    c->slots[n->slot] = NULL;
    c->first_slot = MIN_OF(c->first_slot, n->slot);
    while (c->end_slot > 0 && c->slots[c->end_slot - 1] == NULL)
        c->end_slot--;
}

struct node *cache_node_get_or_add(struct cache *c, struct str name)
{
    struct node *n = map_get(&c->nodes, name);
    if (n != NULL)
        return n;
    n = node_new(name, c->settings.swap_guard == SWAP_GUARD_REQUIRE);
    if (n != NULL && (cache_store_find_slot(c) != OK || map_put(&c->nodes, n) != OK)) {
        node_drop(n, &c->sizes);
        return NULL;
    }
    if (n == NULL)
        return NULL;
    n->slot = c->first_slot;
    c->slots[n->slot] = n;
    c->end_slot = MAX_OF(c->end_slot, n->slot + 1);
    n->change.list = &c->changes;
    node_stamp(n);
    return n;
}

void cache_node_release(struct cache *c, struct node *n)
{
    if (!node_is_hidden(n) || n->n_cardless > 0)
        return;
    assert(n->n_pods == 0 && n->n_starting == 0 && n->used == 0 && n->sizes == NULL);
    const struct node *known = map_del(&c->nodes, n->name);
    assert(known == n);
    cache_store_leave_slot(c, n);
    change_end(&n->change, n->name);
    node_drop(n, &c->sizes);
}

static void cache_store_pending_add(struct cache *c, struct pod *p)
{
    assert(p->state == POD_PENDING);
    list_push_front(&c->pending, &p->pending);
    c->n_pending++;
    c->pending_version++;
}

static void cache_store_pending_remove(struct cache *c, struct pod *p)
{
    assert(c->n_pending > 0);
    list_remove(&p->pending);
    c->n_pending--;
    c->pending_version++;
}

/* A pod that holds cards is pending again only after a reservation, and only a pending pod can be
 * reserved. */
static bool cache_store_may_become(enum pod_state from, enum pod_state to)
{
    switch (to) {
    case POD_PENDING:
    case POD_CONFIRMED:
        return from == POD_RESERVED || (from == POD_CONFIRMED && to == POD_CONFIRMED);
    case POD_RESERVED:
        return from == POD_PENDING;
    case POD_BOUND:
        return true;
    }
    return false;
}

void cache_pod_set_state(struct cache *c, struct pod *p, enum pod_state state)
{
    enum pod_state was = p->state;
    bool was_pending = was == POD_PENDING;
    bool reserved = was == POD_RESERVED;
    assert(cache_store_may_become(p->state, state) && p->node != NULL);
    assert(list_is_linked(&p->pending) == was_pending);
    if (state == POD_BOUND && p->state != POD_BOUND)
        market_note_placed(&c->learned.market);
    p->state = state;
    if (state != POD_PENDING) {
        request_give(&c->requests, p->edited);
        p->edited = NULL;
        p->unwanting = false;
    }
    if (was_pending && state != POD_PENDING)
        cache_store_pending_remove(c, p);
    else if (!was_pending && state == POD_PENDING)
        cache_store_pending_add(c, p);
    if (p->node != NULL && reserved != (state == POD_RESERVED))
        change_touch(&p->node->change);
    if (p->node != NULL && was != state)
        node_stamp(p->node);
}

void cache_pod_free(struct cache *c, struct pod *p)
{
    assert(p->node == NULL && p->keeper == NULL);
    assert(p->group == NULL);
    if (p->tenant != NULL)
        quota_leave(&c->quota, p->tenant);
    request_give(&c->requests, p->request);
    request_give(&c->requests, p->edited);
    mem_free(p->allocation);
    pod_set_list(p, NULL, 0);
    labels_give(&c->labels, p->labels);
    mem_free(p);
}

void cache_learn(struct cache *c, const struct request *request)
{
    struct shape x = shape_of(request);
    if (request->dialect != DIALECT_OWN)
        return; /* another unit */
    shapes_add(&c->learned.market.shapes, &x);
}

struct pod *cache_pod_add(struct cache *c, struct str uid, struct str namespace, struct str name,
                          const struct request *request)
{
    struct pod *p = pod_new(uid, name);
    if (p == NULL)
        return NULL;
    p->epoch = c->lists[CACHE_PODS].epoch;
    p->tenant = quota_join(&c->quota, namespace);
    p->request = request_take(&c->requests, request);
    if (p->tenant == NULL || p->request == NULL || map_put(&c->pods, p) != OK) {
        cache_pod_free(c, p);
        return NULL;
    }
    p->namespace = p->tenant->namespace;
    cache_store_pending_add(c, p);
    cache_learn(c, request);
    return p;
}

/* A namespace's name is shorter than REQUEST_GROUP_MAX. */
struct group_key {
    char bytes[2 * REQUEST_GROUP_MAX + 1];
};

/* Absent without a group. The NUL between the two is unambiguous: a namespace never contains
 * one. */
static struct str cache_store_group_key(struct group_key *key, struct str namespace,
                                        struct str name)
{
    if (name.n == 0 || name.n > REQUEST_GROUP_MAX || namespace.n > REQUEST_GROUP_MAX)
        return STR_NULL;
    char *at = key->bytes;
    (void)str_store(&at, namespace);
    *at++ = '\0';
    (void)str_store(&at, name);
    return (struct str){key->bytes, (size_t)(at - key->bytes)};
}

bool cache_group_holds(const struct cache *c, struct str namespace, struct str name)
{
    struct group_key bytes;
    struct str key = cache_store_group_key(&bytes, namespace, name);
    return key.p != NULL && map_get(&c->groups, key) != NULL;
}

enum errc cache_group_get_or_add(struct cache *c, const struct pod *p, struct str name,
                                 struct group **ret)
{
    struct group_key bytes;
    struct str key = cache_store_group_key(&bytes, p->namespace, name);
    *ret = key.p == NULL ? NULL : map_get(&c->groups, key);
    if (key.p == NULL || *ret != NULL)
        return OK;
    struct group *g = mem_alloc(sizeof(*g) + key.n);
    if (g == NULL)
        return ERR_NOMEM;
    char *at = (char *)(g + 1);
    g->key = str_store(&at, key);
    if (map_put(&c->groups, g) != OK) {
        mem_free(g);
        return ERR_NOMEM;
    }
    *ret = g;
    return OK;
}

void cache_group_join(struct cache *c, struct pod *p, struct group *g)
{
    assert(p->node != NULL);
    if (g != NULL)
        g->holders++;
    cache_group_leave(c, p);
    p->group = g;
}

void cache_group_leave(struct cache *c, struct pod *p)
{
    struct group *g = p->group;
    if (g == NULL)
        return;
    assert(g->holders > 0);
    g->holders--;
    p->group = NULL;
    if (g->holders > 0)
        return;
    const struct group *known = map_del(&c->groups, g->key);
    assert(known == g);
    mem_free(g);
}

void cache_pod_detach(struct cache *c, struct pod *p)
{
    struct node *n = p->node != NULL ? p->node : p->keeper;
    assert(p->node == NULL || p->keeper == NULL);
    if (p->node != NULL)
        node_detach(p);
    if (p->keeper != NULL)
        node_unkeep_room(p);
    cache_group_leave(c, p);
    mem_free(p->allocation);
    p->allocation = NULL;
    pod_set_list(p, NULL, 0);
    p->kept = false;
    p->card = -1;
    if (n != NULL)
        cache_node_release(c, n);
}

void cache_pod_set_nominated(struct cache *c, struct pod *p, struct node *n)
{
    struct node *old = p->nominated;
    p->nominated = n;
    if (n != NULL)
        n->n_nominees++;
    if (old == NULL)
        return;
    assert(old->n_nominees > 0);
    old->n_nominees--;
    cache_node_release(c, old);
}

void cache_pod_remove(struct cache *c, struct pod *p)
{
    assert(list_is_linked(&p->pending) == (p->state == POD_PENDING));
    if (p->state == POD_BOUND)
        market_note_departed(&c->learned.market);
    cache_pod_detach(c, p);
    cache_pod_set_nominated(c, p, NULL);
    if (p->state == POD_PENDING)
        cache_store_pending_remove(c, p);
    const struct pod *known = map_del(&c->pods, p->uid);
    assert(known == p);
    cache_pod_free(c, p);
}
