/*
 * Two maps of objects that are allocated one by one, with their strings behind them, and freed when
 * nothing speaks of them any more. Every failure of an allocation comes before the first change, so
 * an event happens whole or not at all.
 *
 * Lists mark and sweep by epoch. Rejected: a set of names that a list collects, which would double
 * the memory of a relist; and a time-out for reservations, which would free a card that a Binding
 * in flight may still take.
 */
#include "cache.h"

#include "mem.h"
#include "policy.h"

void cache_init(struct cache *c, struct map_seed seed)
{
    *c = (struct cache){.lists = {{0}}};
    map_init(&c->nodes, offsetof(struct node, name), seed);
    map_init(&c->pods, offsetof(struct pod, uid), seed);
}

void cache_done(struct cache *c)
{
    size_t cursor = 0;
    for (struct pod *p = map_next(&c->pods, &cursor); p != NULL; p = map_next(&c->pods, &cursor))
        mem_free(p);
    cursor = 0;
    for (struct node *n = map_next(&c->nodes, &cursor); n != NULL;
         n = map_next(&c->nodes, &cursor)) {
        node_done(n);
        mem_free(n);
    }
    map_done(&c->pods);
    map_done(&c->nodes);
}

const struct node *cache_node(const struct cache *c, struct str name)
{
    return map_get(&c->nodes, name);
}

const struct pod *cache_pod(const struct cache *c, struct str uid)
{
    return map_get(&c->pods, uid);
}

const struct node *cache_next_node(const struct cache *c, size_t *cursor)
{
    return map_next(&c->nodes, cursor);
}

const struct pod *cache_next_pod(const struct cache *c, size_t *cursor)
{
    return map_next(&c->pods, cursor);
}

static struct node *node_get_or_add(struct cache *c, struct str name)
{
    struct node *n = map_get(&c->nodes, name);
    if (n != NULL)
        return n;
    n = mem_alloc(sizeof(*n) + name.n);
    if (n == NULL)
        return NULL;
    char *at = (char *)(n + 1);
    n->name = str_store(&at, name);
    n->fault = NODE_ABSENT;
    if (map_put(&c->nodes, n) != OK) {
        mem_free(n);
        return NULL;
    }
    return n;
}

/* A node that nothing speaks of any more is forgotten. */
static void node_release(struct cache *c, struct node *n)
{
    if (n->fault != NODE_ABSENT || n->pods != NULL || n->unhealthy != NULL)
        return;
    (void)map_del(&c->nodes, n->name);
    node_done(n);
    mem_free(n);
}

static struct pod *pod_add(struct cache *c, struct str uid, struct str namespace, struct str name)
{
    struct pod *p = pod_new(uid, namespace, name);
    if (p == NULL)
        return NULL;
    p->epoch = c->lists[CACHE_PODS].epoch;
    if (map_put(&c->pods, p) != OK) {
        mem_free(p);
        return NULL;
    }
    return p;
}

static void pod_detach(struct cache *c, struct pod *p)
{
    struct node *n = p->node;
    if (n == NULL)
        return;
    node_detach(p);
    node_release(c, n);
}

static void pod_remove(struct cache *c, struct pod *p)
{
    pod_detach(c, p);
    (void)map_del(&c->pods, p->uid);
    mem_free(p);
}

static enum errc apply_node_set(struct cache *c, const struct node_view *view, struct effect *ret)
{
    struct node *n = node_get_or_add(c, view->name);
    if (n == NULL)
        return ERR_NOMEM;
    if (node_resize(n, view, &ret->changed) != OK) {
        node_release(c, n);
        return ERR_NOMEM;
    }
    n->epoch = c->lists[CACHE_NODES].epoch;
    return OK;
}

static void node_gone(struct cache *c, struct node *n, struct effect *ret)
{
    if (n->fault == NODE_ABSENT)
        return;
    node_vanish(n);
    node_release(c, n);
    ret->changed = true;
}

/* The object says where the pod is: it is charged there, wherever it was before. */
static enum errc pod_place(struct cache *c, struct pod *p, const struct pod_view *view, int64_t mem,
                           uint64_t now_ns, struct effect *ret)
{
    struct node *n = node_get_or_add(c, view->node);
    if (n == NULL)
        return ERR_NOMEM;
    int32_t card = pod_view_card(view);
    if (p->node != n || p->card != card || p->mem != mem) {
        struct node *old = p->node;
        if (old != NULL)
            node_detach(p);
        p->mem = mem;
        node_attach(n, p, card);
        if (old != NULL)
            node_release(c, old);
        ret->changed = true;
    }
    pod_take_annotations(p, view, now_ns);
    n->assume_ns = MAX_OF(n->assume_ns, p->assume_ns);
    pod_believe(p);
    return OK;
}

static void pod_seen(const struct cache *c, struct pod *p)
{
    p->seen = true;
    p->epoch = c->lists[CACHE_PODS].epoch;
}

/* An object without nodeName, of a pod that holds: older than that, and it gives nothing back. */
static void pod_seen_unbound(const struct cache *c, struct pod *p, const struct pod_view *view)
{
    pod_seen(c, p);
    pod_believe(p);
    if (p->state == POD_RESERVED && pod_view_terminal(view))
        pod_doubt(p);
}

static enum errc apply_pod_set(struct cache *c, const struct pod_view *view, uint64_t now_ns,
                               struct effect *ret)
{
    struct pod *p = map_get(&c->pods, view->uid);
    struct request request;
    enum errc readable = request_read(view, &request, &ret->err);
    bool known = p != NULL;
    bool holds = known && pod_holds(p);
    bool bound = pod_view_bound(view);
    if (holds && !bound) {
        pod_seen_unbound(c, p, view);
        return OK;
    }
    if (pod_view_terminal(view) || (readable == OK && request.mem == 0)) {
        ret->changed = holds;
        if (known)
            pod_remove(c, p);
        return OK;
    }
    if (!known)
        p = pod_add(c, view->uid, view->namespace, view->name);
    if (p == NULL)
        return ERR_NOMEM;
    if (bound && pod_place(c, p, view, request.mem, now_ns, ret) != OK) {
        if (!known)
            pod_remove(c, p);
        return ERR_NOMEM;
    }
    if (bound)
        p->state = POD_BOUND;
    else
        p->mem = readable == OK ? request.mem : 0;
    pod_seen(c, p);
    return OK;
}

static void apply_pod_gone(struct cache *c, struct str uid, struct effect *ret)
{
    struct pod *p = map_get(&c->pods, uid);
    if (p == NULL)
        return;
    if (p->state == POD_RESERVED) {
        pod_doubt(p);
        return;
    }
    ret->changed = pod_holds(p);
    pod_remove(c, p);
}

static enum errc apply_pod_read(struct cache *c, const struct pod_view *view, uint64_t now_ns,
                                struct effect *ret)
{
    struct pod *p = map_get(&c->pods, view->uid);
    struct request request;
    if (p == NULL || !pod_holds(p))
        return ERR_NOTFOUND;
    if (p->state == POD_BOUND || !pod_view_bound(view))
        return OK;
    if (pod_is_doubted(p, true))
        return ERR_CONFLICT;
    if (pod_view_terminal(view)) {
        ret->changed = true;
        pod_remove(c, p);
        return OK;
    }
    enum errc readable = request_read(view, &request, &ret->err);
    (void)readable; /* it is bound: it is charged what can be read */
    if (pod_place(c, p, view, request.mem, now_ns, ret) != OK)
        return ERR_NOMEM;
    p->state = POD_CONFIRMED;
    return OK;
}

static enum errc apply_health(struct cache *c, const struct event *e, struct effect *ret)
{
    bool set = e->type == EVENT_HEALTH_SET;
    struct node *n = set ? node_get_or_add(c, e->health.node) : map_get(&c->nodes, e->health.node);
    if (n == NULL)
        return set ? ERR_NOMEM : OK;
    enum errc code =
        node_set_unhealthy(n, set ? e->health.gpus : STR_NULL, &ret->bad_tokens, &ret->changed);
    if (code == OK)
        n->health_epoch = c->lists[CACHE_HEALTH].epoch;
    node_release(c, n);
    return code;
}

static void assume(struct node *n, struct pod *p, uint64_t now_ns)
{
    p->assume_ns = MAX_OF(now_ns, n->assume_ns + 1);
    n->assume_ns = p->assume_ns;
}

static enum errc apply_renew(struct cache *c, struct str uid, uint64_t now_ns, struct effect *ret)
{
    struct pod *p = map_get(&c->pods, uid);
    if (p == NULL || p->state != POD_RESERVED)
        return ERR_NOTFOUND;
    ret->verdict = policy_keep(p);
    if (ret->verdict != VERDICT_FITS)
        return ERR_UNAVAILABLE;
    assume(p->node, p, now_ns);
    ret->card_total = p->node->cards[p->card].total;
    ret->assume_ns = p->assume_ns;
    return OK;
}

static enum errc apply_reserve(struct cache *c, const struct event *e, uint64_t now_ns,
                               struct effect *ret)
{
    struct node *n = map_get(&c->nodes, e->reserve.node);
    struct pod *p = map_get(&c->pods, e->reserve.uid);
    assert(e->reserve.request.mem > 0);
    if (p != NULL && pod_holds(p))
        return ERR_CONFLICT;
    ret->verdict = policy_fit(n, &e->reserve.request);
    if (ret->verdict != VERDICT_FITS)
        return ERR_UNAVAILABLE;
    if (p == NULL)
        p = pod_add(c, e->reserve.uid, e->reserve.namespace, e->reserve.name);
    if (p == NULL)
        return ERR_NOMEM;
    uint32_t card = policy_pick(n, &e->reserve.request);
    p->mem = e->reserve.request.mem;
    p->state = POD_RESERVED;
    p->awaiting = true;
    assume(n, p, now_ns);
    node_attach(n, p, (int32_t)card);
    assert(n->cards[card].used <= n->cards[card].total && n->used <= n->limit);
    ret->changed = true;
    ret->card = card;
    ret->card_total = n->cards[card].total;
    ret->assume_ns = p->assume_ns;
    return OK;
}

static enum errc apply_confirm(struct cache *c, const struct event *e)
{
    struct pod *p = map_get(&c->pods, e->settle.uid);
    if (p == NULL || !pod_holds(p))
        return ERR_NOTFOUND;
    if (p->state == POD_BOUND)
        return OK;
    if (pod_is_doubted(p, e->settle.read_back))
        return ERR_CONFLICT;
    pod_believe(p);
    p->state = POD_CONFIRMED;
    return OK;
}

static void apply_cancel(struct cache *c, const struct event *e, struct effect *ret)
{
    struct pod *p = map_get(&c->pods, e->settle.uid);
    if (p == NULL || p->state != POD_RESERVED)
        return;
    ret->changed = true;
    if (!p->seen || p->missing) {
        pod_remove(c, p);
        return;
    }
    pod_detach(c, p);
    p->state = POD_PENDING;
    p->awaiting = false;
    p->card = -1;
}

/* Neither was it named by the list that ends now, nor first heard of while that came in. */
static bool pod_is_stale(const struct cache *c, const struct pod *p)
{
    return p->epoch != c->lists[CACHE_PODS].epoch;
}

static void sweep_pods(struct cache *c, struct effect *ret)
{
    size_t cursor = 0;
    for (struct pod *p = map_next(&c->pods, &cursor); p != NULL; p = map_next(&c->pods, &cursor)) {
        if (!pod_is_stale(c, p) || p->state == POD_RESERVED)
            continue;
        ret->changed = ret->changed || pod_holds(p);
        pod_remove(c, p);
        ret->swept++;
        cursor--;
    }
    /* In a walk of its own: one that removes may come by an object twice. */
    cursor = 0;
    for (struct pod *p = map_next(&c->pods, &cursor); p != NULL; p = map_next(&c->pods, &cursor)) {
        if (p->seen && !pod_is_stale(c, p))
            continue;
        pod_doubt(p);
        ret->unproven += p->state == POD_CONFIRMED ? 1 : 0;
    }
}

/* Whether the list that ends now has left out what it would have to say of this node. */
static bool node_is_stale(const struct cache *c, const struct node *n, enum cache_kind kind)
{
    if (kind == CACHE_NODES)
        return n->fault != NODE_ABSENT && n->epoch != c->lists[CACHE_NODES].epoch;
    return n->unhealthy != NULL && n->health_epoch != c->lists[CACHE_HEALTH].epoch;
}

static void sweep_nodes(struct cache *c, enum cache_kind kind, struct effect *ret)
{
    size_t cursor = 0;
    for (struct node *n = map_next(&c->nodes, &cursor); n != NULL;
         n = map_next(&c->nodes, &cursor)) {
        if (!node_is_stale(c, n, kind))
            continue;
        size_t before = c->nodes.n;
        if (kind == CACHE_NODES) {
            node_gone(c, n, ret);
        } else {
            node_clear_unhealthy(n);
            node_release(c, n);
            ret->changed = true;
        }
        ret->swept++;
        cursor -= before - c->nodes.n;
    }
}

static enum errc apply_list_end(struct cache *c, enum cache_kind kind, struct effect *ret)
{
    if (c->lists[kind].torn)
        return ERR_NOMEM;
    if (kind == CACHE_PODS)
        sweep_pods(c, ret);
    else
        sweep_nodes(c, kind, ret);
    return OK;
}

/* An object that found no memory is missing in its list by our fault: see LIST_END. */
static enum errc note_loss(struct cache *c, enum cache_kind kind, enum errc code)
{
    if (code == ERR_NOMEM)
        c->lists[kind].torn = true;
    return code;
}

enum errc cache_apply(struct cache *c, const struct event *e, uint64_t now_ns, struct effect *ret)
{
    *ret = (struct effect){.verdict = VERDICT_FITS};
    struct node *n = NULL;
    switch (e->type) {
    case EVENT_NODE_SET:
        return note_loss(c, CACHE_NODES, apply_node_set(c, &e->node, ret));
    case EVENT_NODE_GONE:
        n = map_get(&c->nodes, e->node.name);
        if (n != NULL)
            node_gone(c, n, ret);
        return OK;
    case EVENT_POD_SET:
        return note_loss(c, CACHE_PODS, apply_pod_set(c, &e->pod, now_ns, ret));
    case EVENT_POD_GONE:
        apply_pod_gone(c, e->pod.uid, ret);
        return OK;
    case EVENT_POD_READ:
        return apply_pod_read(c, &e->pod, now_ns, ret);
    case EVENT_HEALTH_SET:
    case EVENT_HEALTH_GONE:
        return note_loss(c, CACHE_HEALTH, apply_health(c, e, ret));
    case EVENT_RESERVE:
        return apply_reserve(c, e, now_ns, ret);
    case EVENT_RENEW:
        return apply_renew(c, e->settle.uid, now_ns, ret);
    case EVENT_CONFIRM:
        return apply_confirm(c, e);
    case EVENT_CANCEL:
        apply_cancel(c, e, ret);
        return OK;
    case EVENT_LIST_BEGIN:
        c->lists[e->list].epoch++;
        c->lists[e->list].torn = false;
        return OK;
    case EVENT_LIST_END:
        return apply_list_end(c, e->list, ret);
    }
    return ERR_INTERNAL;
}

void cache_check(const struct cache *c)
{
    size_t cursor = 0;
    size_t holding = 0;
    for (const struct pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor)) {
        pod_check(p);
        assert(map_get(&c->pods, p->uid) == p);
        assert(p->node == NULL || map_get(&c->nodes, p->node->name) == p->node);
        assert(p->node == NULL || p->node->assume_ns >= p->assume_ns);
        holding += pod_holds(p) ? 1 : 0;
    }
    cursor = 0;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        node_check(n);
        assert(map_get(&c->nodes, n->name) == n);
        assert(n->fault != NODE_ABSENT || n->pods != NULL || n->unhealthy != NULL);
        assert(n->n_pods <= holding);
        holding -= n->n_pods;
    }
    assert(holding == 0);
}
