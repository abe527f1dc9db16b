/*
 * Applies the events to two maps, of nodes and of pods. Each object is one allocation with its
 * strings behind it, and is freed when no event, pod or ConfigMap refers to it any more. Every
 * allocation comes before the first change, so an event is applied completely or not at all.
 *
 * Lists mark and sweep by epoch. Rejected: a set of the names in a list, which would double the
 * memory of a relist; and a time-out for reservations, which would release a card that a Binding in
 * flight may still take.
 */
#include "core/cache/cache.h"

#include "base/mem.h"
#include "cache_cardless.h"
#include "cache_charge.h"
#include "cache_dra.h"
#include "cache_lock.h"
#include "cache_quota.h"
#include "cache_store.h"
#include "core/place/fit.h"
#include "core/state/vgpu.h"

void cache_init(struct cache *c, struct map_seed seed)
{
    *c = (struct cache){.lists = {{0}}};
    map_init(&c->nodes, offsetof(struct node, name), seed);
    map_init(&c->pods, offsetof(struct pod, uid), seed);
    map_save_memory(&c->pods); /* one look-up for each object or bind, none for each node */
    map_init(&c->groups, offsetof(struct group, key), seed);
    cardless_pods_init(&c->cardless, seed);
    intern_init(&c->sizes, seed);
    intern_init(&c->requests, seed);
    intern_init(&c->labels, seed);
    quota_init(&c->quota, seed);
    dra_init(&c->dra, seed);
    list_init(&c->pending);
    changes_init(&c->changes);
}

void cache_done(struct cache *c)
{
    size_t cursor = 0;
    for (struct pod *p = map_next(&c->pods, &cursor); p != NULL; p = map_next(&c->pods, &cursor)) {
        if (p->node != NULL)
            node_detach(p);
        if (p->keeper != NULL)
            node_unkeep_room(p);
        cache_group_leave(c, p);
        cache_pod_free(c, p);
    }
    assert(c->groups.n == 0);
    cursor = 0;
    for (struct node *n = map_next(&c->nodes, &cursor); n != NULL; n = map_next(&c->nodes, &cursor))
        node_drop(n, &c->sizes);
    cardless_pods_done(&c->cardless);
    dra_done(&c->dra);
    map_done(&c->groups);
    map_done(&c->pods);
    map_done(&c->nodes);
    mem_free(c->slots);
    intern_done(&c->sizes);
    intern_done(&c->requests);
    intern_done(&c->labels);
    quota_done(&c->quota);
    learned_costs_done(&c->learned);
}

const struct node *cache_node(const struct cache *c, struct str name)
{
    const struct node *n = map_get(&c->nodes, name);
    return n == NULL || node_is_hidden(n) ? NULL : n;
}

void cache_nodes_each(const struct cache *c, const struct str *names, size_t n,
                      const struct node **ret)
{
    void *found[MAP_BATCH];
    assert(n <= MAP_BATCH);
    map_get_each(&c->nodes, names, n, found);
    for (size_t i = 0; i < n; i++)
        ret[i] = found[i];
}

const struct pod *cache_pod(const struct cache *c, struct str uid)
{
    return map_get(&c->pods, uid);
}

const struct node *cache_next_node(const struct cache *c, size_t *cursor)
{
    const struct node *n = map_next(&c->nodes, cursor);
    while (n != NULL && node_is_hidden(n))
        n = map_next(&c->nodes, cursor);
    return n;
}

const struct pod *cache_next_pod(const struct cache *c, size_t *cursor)
{
    return map_next(&c->pods, cursor);
}

static enum errc cache_apply_node_set(struct cache *c, const struct node_view *view,
                                      uint64_t now_ns, struct effect *ret)
{
    struct node *n = cache_node_get_or_add(c, view->name);
    if (n == NULL)
        return ERR_NOMEM;
    if (node_resize(n, &c->sizes, view, &ret->changed) != OK) {
        cache_node_release(c, n);
        return ERR_NOMEM;
    }
    if (ret->changed)
        cache_dra_look(c, n);
    /* The shapes that it learns are in the unit of gpushare's nodes. */
    if (ret->changed && n->sizes->dialect == DIALECT_OWN)
        market_know(&c->learned.market, n);
    n->epoch = c->lists[CACHE_NODES].epoch;
    return cache_lock_set(c, n, &view->of[n->sizes->dialect].lock, now_ns, ret);
}

static void cache_node_gone(struct cache *c, struct node *n, struct effect *ret)
{
    if (n->fault == NODE_ABSENT)
        return;
    node_vanish(n, &c->sizes);
    cache_lock_drop(c, n);
    cache_dra_look(c, n);
    cache_node_release(c, n);
    ret->changed = true;
}

static void cache_pod_seen(const struct cache *c, struct pod *p)
{
    p->seen = true;
    p->epoch = c->lists[CACHE_PODS].epoch;
}

/* The object has no nodeName but the pod holds a card: the object is older, and releases
 * nothing. */
static enum errc cache_pod_seen_unbound(struct cache *c, struct pod *p, const struct pod_view *view,
                                        const struct request *r, bool wants)
{
    assert(pod_holds(p) && p->node != NULL);
    bool reserved = p->state == POD_RESERVED;
    if (reserved && cache_pod_edit(c, p, view, r) != OK)
        return ERR_NOMEM;
    cache_pod_seen(c, p);
    pod_note_shown(p);
    p->unwanting = reserved && !wants;
    if (reserved && pod_view_terminal(view))
        pod_note_missing(p);
    return OK;
}

/* Forgets the pod, and releases what it holds and what is kept for it. */
static void cache_pod_ends(struct cache *c, struct pod *p, struct effect *ret)
{
    ret->changed = ret->changed || pod_holds(p) || p->keeper != NULL;
    cache_pod_remove(c, p);
}

/* The object says that the pod asks for no card, or that it is terminal. */
static enum errc cache_pod_unwanting(struct cache *c, struct pod *p, const struct pod_view *view,
                                     struct host host, struct effect *ret)
{
    bool bound = pod_view_bound(view);
    if (pod_view_terminal(view))
        cache_cardless_drop(c, view->uid);
    else if (bound && cache_cardless_set(c, view->uid, view->node, host) != OK)
        return ERR_NOMEM;
    if (p != NULL)
        cache_pod_ends(c, p, ret);
    return OK;
}

static enum errc cache_apply_pod_set(struct cache *c, const struct pod_view *view, uint64_t now_ns,
                                     struct effect *ret)
{
    struct pod *p = map_get(&c->pods, view->uid);
    struct request request;
    enum errc readable = request_read(view, &request, &ret->err);
    bool known = p != NULL;
    bool holds = known && pod_holds(p);
    bool bound = pod_view_bound(view);
    if (!bound && readable != OK)
        request = (struct request){.mem = 0};
    bool wants = readable != OK || request_wants(&request);
    bool older = !bound && cache_cardless_seen(c, view->uid);
    if (holds && !bound)
        return cache_pod_seen_unbound(c, p, view, &request, wants);
    if (pod_view_terminal(view) || !wants)
        return cache_pod_unwanting(c, p, view, request.host, ret);
    if (older && !known)
        return OK;
    if (!known)
        p = cache_pod_add(c, view->uid, view->namespace, view->name, &request);
    if (p == NULL)
        return ERR_NOMEM;
    enum errc code = bound ? cache_pod_place(c, p, view, &request, now_ns, ret)
                           : cache_pod_ask(c, p, view, &request, ret);
    if (code != OK) {
        if (!known)
            cache_pod_remove(c, p);
        return code;
    }
    assert(bound ? p->node != NULL : !pod_holds(p));
    if (bound) {
        cache_cardless_drop(c, view->uid);
        cache_pod_set_state(c, p, POD_BOUND);
    }
    node_note_deletion(p, view->deleting);
    if (p->created_s == 0)
        p->created_s = view->created_s > 0 ? view->created_s : (uint32_t)(now_ns / 1000000000);
    cache_pod_seen(c, p);
    return OK;
}

static void cache_apply_pod_gone(struct cache *c, struct str uid, struct effect *ret)
{
    struct pod *p = map_get(&c->pods, uid);
    cache_cardless_drop(c, uid);
    if (p == NULL)
        return;
    if (p->state == POD_RESERVED) {
        pod_note_missing(p);
        return;
    }
    cache_pod_ends(c, p, ret);
}

static enum errc cache_apply_pod_read(struct cache *c, const struct pod_view *view, uint64_t now_ns,
                                      struct effect *ret)
{
    struct pod *p = map_get(&c->pods, view->uid);
    struct request request;
    if (p == NULL || !pod_holds(p))
        return ERR_NOTFOUND;
    if (p->state == POD_BOUND || !pod_view_bound(view))
        return OK;
    if (pod_needs_read(p, true))
        return ERR_CONFLICT;
    assert(p->state == POD_RESERVED || p->state == POD_CONFIRMED);
    enum errc readable = request_read(view, &request, &ret->err);
    (void)readable; /* it is bound: charge the part that can be read */
    if (pod_view_terminal(view)) {
        ret->changed = true;
        cache_cardless_drop(c, view->uid);
        cache_pod_remove(c, p);
        return OK;
    }
    if (cache_pod_place(c, p, view, &request, now_ns, ret) != OK)
        return ERR_NOMEM;
    cache_cardless_drop(c, view->uid);
    node_note_deletion(p, view->deleting);
    cache_pod_set_state(c, p, POD_CONFIRMED);
    return OK;
}

static enum errc cache_apply_health(struct cache *c, const struct cache_event *e,
                                    struct effect *ret)
{
    bool set = e->type == CACHE_HEALTH_SET;
    struct node *n =
        set ? cache_node_get_or_add(c, e->health.node) : map_get(&c->nodes, e->health.node);
    if (n == NULL)
        return set ? ERR_NOMEM : OK;
    enum errc code =
        node_set_unhealthy(n, set ? e->health.gpus : STR_NULL, &ret->bad_tokens, &ret->changed);
    if (code == OK)
        n->health_epoch = c->lists[CACHE_HEALTH].epoch;
    cache_node_release(c, n);
    return code;
}

static void cache_assume(struct node *n, struct pod *p, uint64_t now_ns)
{
    bool seconds = dialect_facts(p->request->dialect)->lingers; /* which its plugin compares */
    bool again = p->assume_ns == n->assume_ns;
    p->assume_ns = MAX_OF(now_ns, n->assume_ns + (seconds && !again ? 1000000000 : 1));
    assert(p->node == n && p->assume_ns > n->assume_ns);
    n->assume_ns = p->assume_ns;
}

static void cache_tell_reservation(const struct pod *p, struct effect *ret)
{
    assert(p->state == POD_RESERVED && p->card < (int64_t)p->node->n_cards);
    ret->pod = p;
    ret->card = (uint32_t)MAX_OF(p->card, 0);
    ret->card_total = p->card < 0 ? 0 : p->node->cards[p->card].total;
    ret->assume_ns = p->assume_ns;
    ret->version = p->version;
}

static enum errc cache_apply_renew(struct cache *c, struct str uid, uint64_t now_ns,
                                   struct effect *ret)
{
    struct pod *p = map_get(&c->pods, uid);
    if (p == NULL || p->state != POD_RESERVED)
        return ERR_NOTFOUND;
    if (p->unwanting || (p->edited != NULL && !request_alike(p->edited, p->request)))
        return ERR_CONFLICT;
    ret->verdict = fit_keep(p);
    if (ret->verdict != VERDICT_FITS)
        return ERR_UNAVAILABLE;
    cache_assume(p->node, p, now_ns);
    cache_tell_reservation(p, ret);
    return OK;
}

/* Ends a reservation: its cards are released. */
static void cache_cancel(struct cache *c, struct pod *p)
{
    assert(p->state == POD_RESERVED && p->node != NULL);
    if (!p->seen || p->missing || p->unwanting) {
        cache_pod_remove(c, p);
        return;
    }
    cache_pod_set_state(c, p, POD_PENDING);
    node_note_wait(p, false);
    p->initialized = false;
    cache_pod_keep_room(c, p);
}

static enum errc cache_reserve_on(struct cache *c, struct pod *p, struct node *n,
                                  const struct request *r, const struct placement *there)
{
    struct buf list;
    buf_init(&list, SIZE_MAX);
    if (dialect_has_uuids(r->dialect) && there->n > 0)
        vgpu_write(there->grants, there->n, n, &list);
    enum errc code =
        buf_failed(&list) ? ERR_NOMEM : cache_pod_move(c, p, n, r, there, buf_str(&list), false);
    buf_done(&list);
    return code;
}

/* Checks the chosen cards with fit_keep, which also checks before each send. An error in the
 * choice then refuses the pod, and never overfills a card. */
static enum errc cache_apply_reserve(struct cache *c, const struct cache_event *e, uint64_t now_ns,
                                     struct effect *ret)
{
    struct node *n = map_get(&c->nodes, e->reserve.node);
    struct pod *p = map_get(&c->pods, e->reserve.uid);
    struct placement there _uninitialized_;
    const struct request *r = e->reserve.request;
    struct evaluation evaluation;
    assert(request_wants(r));
    if (p != NULL && pod_holds(p))
        return ERR_CONFLICT;
    cache_evaluation(c, e->reserve.uid, r, &evaluation);
    evaluation.step_budget = e->reserve.step_budget;
    ret->verdict = fit_place(n, &evaluation, &there);
    if (ret->verdict != VERDICT_FITS)
        return ERR_UNAVAILABLE;
    assert(n != NULL && (there.n > 0) == request_shares(r));
    bool known = p != NULL;
    if (!known)
        p = cache_pod_add(c, e->reserve.uid, e->reserve.namespace, e->reserve.name, r);
    if (p == NULL)
        return ERR_NOMEM;
    if (cache_reserve_on(c, p, n, r, &there) != OK) {
        if (!known)
            cache_pod_remove(c, p);
        return ERR_NOMEM;
    }
    cache_pod_set_state(c, p, POD_RESERVED);
    p->version = e->reserve.version;
    ret->verdict = fit_keep(p);
    if (ret->verdict != VERDICT_FITS) {
        cache_cancel(c, p);
        return ERR_UNAVAILABLE;
    }
    node_note_wait(p, request_shares(r));
    cache_assume(n, p, now_ns);
    ret->changed = true;
    cache_tell_reservation(p, ret);
    return OK;
}

static enum errc cache_apply_confirm(struct cache *c, const struct cache_event *e)
{
    struct pod *p = map_get(&c->pods, e->holder.uid);
    if (p == NULL || !pod_holds(p))
        return ERR_NOTFOUND;
    if (p->state == POD_BOUND)
        return OK;
    if (pod_needs_read(p, e->holder.read_back))
        return ERR_CONFLICT;
    assert(p->node != NULL && p->keeper == NULL);
    pod_note_shown(p);
    cache_pod_set_state(c, p, POD_CONFIRMED);
    return OK;
}

static void cache_apply_cancel(struct cache *c, const struct cache_event *e, struct effect *ret)
{
    struct pod *p = map_get(&c->pods, e->holder.uid);
    if (p == NULL || p->state != POD_RESERVED)
        return;
    ret->changed = true;
    cache_cancel(c, p);
}

static bool cache_has_cards(const struct node *n, const struct placement *there)
{
    for (uint32_t i = 0; i < there->n; i++) {
        if (!node_has_card(n, there->grants[i].card))
            return false;
    }
    return there->n > 0;
}

static enum errc cache_apply_keep(struct cache *c, const struct cache_event *e, struct effect *ret)
{
    struct pod *p = map_get(&c->pods, e->keep.uid);
    struct node *n = map_get(&c->nodes, e->keep.node);
    if (p == NULL || n == NULL || !cache_has_cards(n, e->keep.there))
        return ERR_NOTFOUND;
    if (pod_holds(p) || p->deleting)
        return ERR_CONFLICT;
    enum errc code = cache_pod_keep(c, p, n, e->keep.there);
    ret->changed = code == OK;
    return code;
}

static void cache_apply_unkeep(struct cache *c, struct str uid, struct effect *ret)
{
    struct pod *p = map_get(&c->pods, uid);
    if (p == NULL || !p->kept)
        return;
    assert(!pod_holds(p) && p->keeper != NULL && p->allocation != NULL);
    cache_pod_keep_room(c, p);
    ret->changed = true;
}

/* Whether the list that ends now did not contain the pod, and the pod was known before the list
 * began. */
static bool cache_pod_is_stale(const struct cache *c, const struct pod *p)
{
    return p->epoch != c->lists[CACHE_PODS].epoch;
}

static void cache_sweep_pods(struct cache *c, struct effect *ret)
{
    size_t cursor = 0;
    for (struct pod *p = map_next(&c->pods, &cursor); p != NULL; p = map_next(&c->pods, &cursor)) {
        if (!cache_pod_is_stale(c, p) || p->state == POD_RESERVED)
            continue;
        assert(cursor > 0);
        cache_pod_ends(c, p, ret);
        ret->swept++;
        cursor--;
    }
    cache_cardless_sweep(c, ret);
    /* In a second walk: a walk that removes objects may visit an object twice. */
    cursor = 0;
    for (struct pod *p = map_next(&c->pods, &cursor); p != NULL; p = map_next(&c->pods, &cursor)) {
        if (p->seen && !cache_pod_is_stale(c, p))
            continue;
        pod_note_missing(p);
        ret->unproven += p->state == POD_CONFIRMED ? 1 : 0;
    }
}

/* Whether the list that ends now did not contain the node or its unhealthy ConfigMap. */
static bool cache_node_is_stale(const struct cache *c, const struct node *n, enum cache_kind kind)
{
    if (kind == CACHE_NODES)
        return n->fault != NODE_ABSENT && n->epoch != c->lists[CACHE_NODES].epoch;
    return n->unhealthy != NULL && n->health_epoch != c->lists[CACHE_HEALTH].epoch;
}

static void cache_sweep_nodes(struct cache *c, enum cache_kind kind, struct effect *ret)
{
    size_t cursor = 0;
    for (struct node *n = map_next(&c->nodes, &cursor); n != NULL;
         n = map_next(&c->nodes, &cursor)) {
        if (!cache_node_is_stale(c, n, kind))
            continue;
        size_t before = c->nodes.n;
        if (kind == CACHE_NODES) {
            cache_node_gone(c, n, ret);
        } else {
            node_clear_unhealthy(n);
            cache_node_release(c, n);
            ret->changed = true;
        }
        assert(before - c->nodes.n <= 1);
        ret->swept++;
        cursor -= before - c->nodes.n;
    }
}

static void cache_list_begin(struct cache *c, enum cache_kind kind)
{
    assert((unsigned)kind < CACHE_ALL_KINDS);
    c->lists[kind].epoch++;
    c->lists[kind].torn = false;
}

static enum errc cache_apply_list_end(struct cache *c, enum cache_kind kind, struct effect *ret)
{
    assert((unsigned)kind < CACHE_ALL_KINDS);
    if (c->lists[kind].torn)
        return ERR_NOMEM;
    if (kind == CACHE_PODS)
        cache_sweep_pods(c, ret);
    else if (kind >= CACHE_KINDS)
        cache_dra_sweep(c, kind, ret);
    else
        cache_sweep_nodes(c, kind, ret);
    if (kind == CACHE_HEALTH)
        cache_quota_sweep(c, ret);
    return OK;
}

/* For lack of memory an object of the list was lost: LIST_END must not take it for removed. */
static enum errc cache_note_loss(struct cache *c, enum cache_kind kind, enum errc code)
{
    if (code == ERR_NOMEM)
        c->lists[kind].torn = true;
    return code;
}

enum errc cache_apply(struct cache *c, const struct cache_event *e, uint64_t now_ns,
                      struct effect *ret)
{
    *ret = (struct effect){.verdict = VERDICT_FITS};
    struct node *n = NULL;
    switch (e->type) {
    case CACHE_NODE_SET:
        return cache_note_loss(c, CACHE_NODES, cache_apply_node_set(c, &e->node, now_ns, ret));
    case CACHE_LOCKS:
        cache_locks_look(c, now_ns);
        return OK;
    case CACHE_NODE_GONE:
    case CACHE_NODE_NOTED:
        n = map_get(&c->nodes, e->node.name);
        if (n != NULL && e->type == CACHE_NODE_GONE)
            cache_node_gone(c, n, ret);
        else if (n != NULL)
            change_touch(&n->change);
        return OK;
    case CACHE_POD_SET:
        return cache_note_loss(c, CACHE_PODS, cache_apply_pod_set(c, &e->pod, now_ns, ret));
    case CACHE_POD_GONE:
        cache_apply_pod_gone(c, e->pod.uid, ret);
        return OK;
    case CACHE_POD_READ:
        return cache_apply_pod_read(c, &e->pod, now_ns, ret);
    case CACHE_HEALTH_SET:
    case CACHE_HEALTH_GONE:
        return cache_note_loss(c, CACHE_HEALTH, cache_apply_health(c, e, ret));
    case CACHE_QUOTA_SET:
    case CACHE_QUOTA_BAD:
    case CACHE_QUOTA_GONE:
        return cache_note_loss(c, CACHE_HEALTH, cache_quota_apply(c, e, ret));
    case CACHE_SLICE_SET:
    case CACHE_SLICE_GONE:
    case CACHE_CLAIM_SET:
    case CACHE_CLAIM_GONE:
    case CACHE_CLASS_SET:
    case CACHE_CLASS_GONE:
        return cache_note_loss(c, cache_dra_kind(e->type), cache_dra_apply(c, e, ret));
    case CACHE_RESERVE:
        return cache_apply_reserve(c, e, now_ns, ret);
    case CACHE_RENEW:
        return cache_apply_renew(c, e->holder.uid, now_ns, ret);
    case CACHE_CONFIRM:
        return cache_apply_confirm(c, e);
    case CACHE_CANCEL:
        cache_apply_cancel(c, e, ret);
        return OK;
    case CACHE_KEEP:
        return cache_apply_keep(c, e, ret);
    case CACHE_UNKEEP:
        cache_apply_unkeep(c, e->holder.uid, ret);
        return OK;
    case CACHE_LIST_BEGIN:
        cache_list_begin(c, e->list);
        return OK;
    case CACHE_LIST_END:
        return cache_apply_list_end(c, e->list, ret);
    }
    return ERR_INTERNAL;
}
