/* Moves what a pod holds to another node, other cards or another request. All allocations come
 * before the first change. */
#include "cache_charge.h"

#include "base/mem.h"
#include "cache_store.h"
#include "core/limit.h"
#include "core/state/vgpu.h"

/* The caller has detached p: it is charged nowhere. */
static void cache_charge_set_request(struct cache *c, struct pod *p, const struct request *taken)
{
    assert(p->node == NULL && taken != NULL);
    if (p->keeper != NULL && p->request != taken) /* equal requests are one */
        node_stamp(p->keeper);
    request_give(&c->requests, p->request);
    p->request = taken;
}

enum errc cache_pod_move(struct cache *c, struct pod *p, struct node *n, const struct request *r,
                         const struct placement *there, struct str list, bool initialized)
{
    struct node *old = p->node != NULL ? p->node : p->keeper;
    assert(p->tenant != NULL && (p->node == NULL || p->keeper == NULL));
    struct group *group = NULL;
    /* A pod without a card is on no card that other pods of its affinity group could share. */
    struct str name = there->n > 0 ? r->affinity : STR_NULL;
    struct pod_allocation *allocation = pod_allocation_new(r, there, initialized);
    const struct request *request = request_take(&c->requests, r);
    char *copy = list.n == 0 ? NULL : mem_alloc(list.n);
    if (allocation == NULL || request == NULL || (list.n > 0 && copy == NULL) ||
        cache_group_get_or_add(c, p, name, &group) != OK) {
        mem_free(copy);
        mem_free(allocation);
        request_give(&c->requests, request);
        return ERR_NOMEM;
    }
    if (p->node != NULL)
        node_detach(p);
    if (p->keeper != NULL)
        node_unkeep_room(p);
    mem_free(p->allocation);
    p->allocation = allocation;
    if (copy != NULL)
        memcpy(copy, list.p, list.n);
    pod_set_list(p, copy, list.n);
    cache_charge_set_request(c, p, request);
    p->initialized = initialized;
    p->kept = false;
    node_attach(n, p);
    cache_group_join(c, p, group);
    if (old != NULL && old != n)
        cache_node_release(c, old);
    return OK;
}

/* Its init containers are done, or run again because its sandbox was created again. */
static void cache_charge_recompute(struct pod *p, bool initialized)
{
    assert(pod_holds(p) && p->allocation != NULL && p->initialized != initialized);
    struct node *n = p->node;
    node_detach(p);
    pod_allocation_recompute(p->allocation, p->request, initialized);
    p->initialized = initialized;
    node_attach(n, p);
}

/* *ret is p->labels if they have not changed, otherwise a new reference. */
static enum errc cache_charge_take_labels(struct cache *c, const struct pod *p,
                                          const struct pod_view *view, struct labels **ret)
{
    *ret = p->labels;
    if (labels_same(p->labels, view->labels, view->n_labels))
        return OK;
    return labels_take(&c->labels, view->labels, view->n_labels, ret);
}

/* In a dialect with UUIDs: sets the cards of the grants in *there, and returns the pod's list of
 * devices. If the list is too long to keep, returns "", and the grants stay on a card that no node
 * has. */
static struct str cache_charge_find_cards(const struct pod_view *view, const struct request *r,
                                          const struct node *n, struct placement *there)
{
    if (!dialect_has_uuids(r->dialect) || there->n == 0)
        return STR("");
    struct str list = vgpu_trim(view->said[r->dialect].idx);
    if (list.n > LIMIT_DEVICES_BYTES)
        return STR("");
    vgpu_locate(list, r, n, there->grants, there->n);
    return list;
}

/* What the pod's object says of its cards can't be read. What it held there stays charged. */
static enum errc cache_charge_unreadable(struct cache *c, struct pod *p, struct node *n,
                                         const struct request *r, struct effect *ret)
{
    const struct placement none = {.n = 0};
    if (p->node != n && cache_pod_move(c, p, n, r, &none, STR(""), false) != OK) {
        cache_node_release(c, n);
        return ERR_NOMEM;
    }
    ret->changed = ret->changed || !p->unreadable;
    cache_pod_set_nominated(c, p, NULL);
    node_note_unreadable(p, true);
    n->assume_ns = MAX_OF(n->assume_ns, p->assume_ns);
    pod_note_shown(p);
    return OK;
}

enum errc cache_pod_place(struct cache *c, struct pod *p, const struct pod_view *view,
                          const struct request *r, uint64_t now_ns, struct effect *ret)
{
    struct placement there _uninitialized_;
    struct labels *labels;
    bool was_initialized = p->initialized;
    bool initialized = view->initialized && c->settings.shrink;
    struct node *n = cache_node_get_or_add(c, view->node);
    if (n == NULL)
        return ERR_NOMEM;
    if (view->fault.n > 0)
        return cache_charge_unreadable(c, p, n, r, ret);
    if (cache_charge_take_labels(c, p, view, &labels) != OK) {
        cache_node_release(c, n);
        return ERR_NOMEM;
    }
    placement_read(view, r, &there);
    struct str list = cache_charge_find_cards(view, r, n, &there);
    bool stays = p->node == n && pod_allocation_has(p->allocation, &there) &&
                 str_eq(pod_list(p), list) && request_alike(p->request, r);
    if (!stays || !request_equal(p->request, r)) {
        if (cache_pod_move(c, p, n, r, &there, list, initialized) != OK) {
            if (labels != p->labels)
                labels_give(&c->labels, labels);
            cache_node_release(c, n);
            return ERR_NOMEM;
        }
        ret->changed = ret->changed || !stays || was_initialized != initialized;
    } else if (p->initialized != initialized) {
        cache_charge_recompute(p, initialized);
        ret->changed = true;
    }
    assert(p->node == n && p->keeper == NULL);
    cache_pod_set_nominated(c, p, NULL);
    if (labels != p->labels)
        labels_give(&c->labels, p->labels);
    p->labels = labels;
    enum pod_ack had_ack = p->ack;
    bool was_starting = pod_starts(p);
    bool was_exchanging = p->exchanging;
    ret->changed = ret->changed || p->unreadable;
    node_note_unreadable(p, false);
    pod_take_annotations(p, view, now_ns);
    node_note_start(p, pod_view_starts(view, r->dialect));
    /* All containers of a pod that runs have started: no exchange changes its cards any more. */
    bool exchanges = view->vacated.n > 0 && !str_eq(view->phase, STR("Running"));
    node_note_exchange(p, exchanges && request_shares(r) && r->dialect == DIALECT_OWN);
    if (was_exchanging != p->exchanging)
        ret->changed = true;
    bool guarded = node_is_guarded(n) || dialect_facts(r->dialect)->match == DIALECT_MATCH_LOCK;
    bool was_served = had_ack == POD_ACK_SERVED;
    if (guarded && (was_served != (p->ack == POD_ACK_SERVED) || was_starting != pod_starts(p)))
        ret->changed = true;
    n->assume_ns = MAX_OF(n->assume_ns, p->assume_ns);
    if (had_ack != p->ack)
        node_stamp(n);
    pod_note_shown(p);
    return OK;
}

void cache_pod_keep_room(struct cache *c, struct pod *p)
{
    assert(p->state == POD_PENDING);
    cache_pod_detach(c, p);
    if (p->edited != NULL)
        cache_charge_set_request(c, p, p->edited);
    p->edited = NULL;
    if (p->nominated != NULL)
        node_keep_room(p->nominated, p);
}

/* Where the pod's object wants room kept. A pod that is being deleted gets no node any more,
 * however long its finalizers keep the object. */
static struct str cache_charge_nominated(const struct pod_view *view)
{
    return view->deleting ? STR_NULL : view->nominated;
}

/* Records the nomination by a scheduler: room is kept there if the Binding fails. */
static enum errc cache_charge_nominate(struct cache *c, struct pod *p, struct str node)
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
    assert(p->state == POD_RESERVED);
    bool same = request_equal(p->request, r);
    const struct request *edited = same ? NULL : request_take(&c->requests, r);
    if ((!same && edited == NULL) ||
        cache_charge_nominate(c, p, cache_charge_nominated(view)) != OK) {
        request_give(&c->requests, edited);
        return ERR_NOMEM;
    }
    request_give(&c->requests, p->edited);
    p->edited = edited;
    p->version = view->version;
    node_note_deletion(p, view->deleting);
    p->former = view->former;
    return OK;
}

enum errc cache_pod_keep(struct cache *c, struct pod *p, struct node *n,
                         const struct placement *there)
{
    assert(!pod_holds(p) && there->n > 0);
    struct pod_allocation *allocation = pod_allocation_new(p->request, there, false);
    if (allocation == NULL)
        return ERR_NOMEM;
    /* Claim the new node before the old one is released: they may be the same node. */
    struct node *old = p->keeper;
    if (old != NULL)
        node_unkeep_room(p);
    node_keep_room(n, p);
    mem_free(p->allocation);
    p->allocation = allocation;
    p->kept = true;
    if (old != NULL)
        cache_node_release(c, old);
    return OK;
}

enum errc cache_pod_ask(struct cache *c, struct pod *p, const struct pod_view *view,
                        const struct request *r, struct effect *ret)
{
    assert(!pod_holds(p) && p->edited == NULL);
    bool same = request_alike(p->request, r);
    struct str node = cache_charge_nominated(view);
    struct node *n = node.n == 0 ? NULL : cache_node_get_or_add(c, node);
    if (node.n > 0 && n == NULL)
        return ERR_NOMEM;
    const struct request *request = request_take(&c->requests, r);
    if (request == NULL) {
        if (n != NULL)
            cache_node_release(c, n);
        return ERR_NOMEM;
    }
    cache_charge_set_request(c, p, request);
    p->version = view->version;
    p->former = view->former;
    c->pending_version += same ? 0 : 1;
    bool stays = p->kept ? same && !view->deleting : p->keeper == n;
    ret->changed = !stays || (!same && p->keeper != NULL);
    cache_pod_set_nominated(c, p, n);
    if (!stays)
        cache_pod_keep_room(c, p);
    assert(p->kept || p->keeper == p->nominated);
    return OK;
}
