/* Moves what a pod holds to another node, other cards or another request. All allocations come
 * before the first change. */
#include "cache_charge.h"

#include "base/mem.h"
#include "cache_store.h"

/* The caller has detached p: it is charged nowhere. */
static void set_request(struct cache *c, struct pod *p, struct request *taken)
{
    request_give(&c->requests, p->request);
    p->request = taken;
    p->mem = taken->mem;
}

enum errc cache_pod_move(struct cache *c, struct pod *p, struct node *n, const struct request *r,
                         const struct placement *there, bool initialized)
{
    struct node *old = p->node != NULL ? p->node : p->claim;
    struct group *group = NULL;
    /* A pod without a card is on no card that other pods of its affinity group could share. */
    struct str name = there->n > 0 ? r->affinity : STR_NULL;
    struct holding *holding = holding_new(r, there, initialized);
    struct request *request = request_take(&c->requests, r);
    if (holding == NULL || request == NULL || cache_group_get_or_add(c, p, name, &group) != OK) {
        mem_free(holding);
        request_give(&c->requests, request);
        return ERR_NOMEM;
    }
    if (p->node != NULL)
        node_detach(p);
    if (p->claim != NULL)
        node_unclaim(p);
    mem_free(p->holding);
    p->holding = holding;
    set_request(c, p, request);
    p->initialized = initialized;
    p->said_initialized = false;
    p->kept = false;
    node_attach(n, p);
    cache_group_join(c, p, group);
    if (old != NULL && old != n)
        cache_node_release(c, old);
    return OK;
}

/* Its init containers are done, or run again because its sandbox was created again. */
static void cache_pod_settle(struct pod *p, bool initialized)
{
    struct node *n = p->node;
    node_detach(p);
    holding_settle(p->holding, p->request, initialized);
    p->initialized = initialized;
    node_attach(n, p);
}

/* *ret is p->labels if they have not changed, otherwise a new reference. */
static enum errc take_labels(struct cache *c, const struct pod *p, const struct pod_view *view,
                             struct labels **ret)
{
    *ret = p->labels;
    if (labels_same(p->labels, view->labels, view->n_labels))
        return OK;
    return labels_take(&c->labels, view->labels, view->n_labels, ret);
}

enum errc cache_pod_place(struct cache *c, struct pod *p, const struct pod_view *view,
                          const struct request *r, uint64_t now_ns, struct effect *ret)
{
    struct placement there _uninitialized_;
    struct labels *labels;
    bool initialized = view->initialized && c->settings.shrink;
    struct node *n = cache_node_get_or_add(c, view->node);
    if (n == NULL)
        return ERR_NOMEM;
    if (take_labels(c, p, view, &labels) != OK) {
        cache_node_release(c, n);
        return ERR_NOMEM;
    }
    placement_read(view, r, &there);
    if (p->node != n || !holding_has(p->holding, &there) || !request_equal(p->request, r)) {
        if (cache_pod_move(c, p, n, r, &there, initialized) != OK) {
            if (labels != p->labels)
                labels_give(&c->labels, labels);
            cache_node_release(c, n);
            return ERR_NOMEM;
        }
        ret->changed = true;
    } else if (p->initialized != initialized) {
        cache_pod_settle(p, initialized);
        ret->changed = true;
    }
    p->said_initialized = view->initialized;
    cache_pod_set_nominated(c, p, NULL);
    if (labels != p->labels)
        labels_give(&c->labels, p->labels);
    p->labels = labels;
    bool was_assigned = p->assigned;
    bool was_starting = p->starting;
    pod_take_annotations(p, view, now_ns);
    node_note_start(p, str_eq(view->phase, STR("Pending")));
    if (n->guarded && (was_assigned != p->assigned || was_starting != p->starting))
        ret->changed = true;
    n->assume_ns = MAX_OF(n->assume_ns, p->assume_ns);
    pod_believe(p);
    return OK;
}

void cache_pod_claim(struct cache *c, struct pod *p)
{
    cache_pod_detach(c, p);
    if (p->edited != NULL)
        set_request(c, p, p->edited);
    p->edited = NULL;
    if (p->nominated != NULL)
        node_claim(p->nominated, p);
}

/* Records the nomination by a scheduler: room is kept there if the Binding fails. */
static enum errc nominate(struct cache *c, struct pod *p, struct str node)
{
    struct node *n = node.n == 0 ? NULL : cache_node_get_or_add(c, node);
    if (node.n > 0 && n == NULL)
        return ERR_NOMEM;
    cache_pod_set_nominated(c, p, n);
    return OK;
}

enum errc cache_pod_edit(struct cache *c, struct pod *p, const struct pod_view *view,
                         const struct request *r)
{
    bool same = request_equal(p->request, r);
    struct request *edited = same ? NULL : request_take(&c->requests, r);
    if ((!same && edited == NULL) || nominate(c, p, view->nominated) != OK) {
        request_give(&c->requests, edited);
        return ERR_NOMEM;
    }
    request_give(&c->requests, p->edited);
    p->edited = edited;
    p->deleting = view->deleting;
    p->said_allocation = view->said_allocation;
    p->said_cores = view->said_cores;
    return OK;
}

enum errc cache_pod_keep(struct cache *c, struct pod *p, struct node *n,
                         const struct placement *there)
{
    struct holding *holding = holding_new(p->request, there, false);
    if (holding == NULL)
        return ERR_NOMEM;
    /* Claim the new node before the old one is released: they may be the same node. */
    struct node *old = p->claim;
    if (old != NULL)
        node_unclaim(p);
    node_claim(n, p);
    mem_free(p->holding);
    p->holding = holding;
    p->kept = true;
    if (old != NULL)
        cache_node_release(c, old);
    return OK;
}

enum errc cache_pod_ask(struct cache *c, struct pod *p, const struct pod_view *view,
                        const struct request *r, struct effect *ret)
{
    bool same = request_equal(p->request, r);
    struct str node = view->nominated;
    struct node *n = node.n == 0 ? NULL : cache_node_get_or_add(c, node);
    if (node.n > 0 && n == NULL)
        return ERR_NOMEM;
    struct request *request = request_take(&c->requests, r);
    if (request == NULL) {
        if (n != NULL)
            cache_node_release(c, n);
        return ERR_NOMEM;
    }
    set_request(c, p, request);
    p->said_allocation = view->said_allocation;
    p->said_cores = view->said_cores;
    c->pending_version += same ? 0 : 1;
    bool stays = p->kept ? same : p->claim == n;
    ret->changed = !stays || (!same && p->claim != NULL);
    cache_pod_set_nominated(c, p, n);
    if (!stays)
        cache_pod_claim(c, p);
    return OK;
}

void cache_set_swap_guard(struct cache *c, enum swap_guard guard)
{
    size_t cursor = 0;
    c->settings.swap_guard = guard;
    for (struct node *n = map_next(&c->nodes, &cursor); n != NULL; n = map_next(&c->nodes, &cursor))
        node_set_guarded(n, guard == SWAP_GUARD_REQUIRE);
}

void cache_set_shrink(struct cache *c, bool shrink)
{
    size_t cursor = 0;
    c->settings.shrink = shrink;
    for (struct pod *p = map_next(&c->pods, &cursor); p != NULL; p = map_next(&c->pods, &cursor)) {
        bool initialized = shrink && p->said_initialized;
        if (pod_holds(p) && p->initialized != initialized)
            cache_pod_settle(p, initialized);
    }
}
