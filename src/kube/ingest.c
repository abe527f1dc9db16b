/*
 * Decodes nodes, pods and ConfigMaps (unhealthy cards, quotas, what pods use) into the cache and
 * its companion `measured`, and logs the changes and faults that an operator should know.
 */
#include "kube/ingest.h"

#include "base/log.h"
#include "core/dialect/gpushare.h"
#include "core/limit.h"
#include "objects/kube.h"
#include "objects/kube_dra.h"
#include "objects/quota_config.h"
#include "objects/stamp.h"
#include "objects/usage.h"

/* Figures that are older by their node's clock when they come are those of a cardpack-node that has
 * ended. Clocks of nodes differ by less. */
#define USAGE_OLD_S 3600U

/* A node's lock may begin to count, or end, without an event. */
#define LOCK_TICK_MS 1000

/* When all is listed again because the cache lacks an object: memory was short for it, or it can't
 * be read. An author takes longer to correct it than memory is short. */
#define RELIST_AFTER_MS 5000
#define RELIST_TORN_MS  30000

static void ingest_lock_tick(struct timer *t);
static void ingest_usage_tick(struct timer *t);

void ingest_init(struct ingest *in, struct loop *l, struct cache *cache)
{
    *in = (struct ingest){.loop = l,
                          .cache = cache,
                          .lock_tick = {.fire = ingest_lock_tick},
                          .usage_tick = {.fire = ingest_usage_tick}};
    arena_init(&in->arena, LIMIT_OBJECT_ARENA);
}

void ingest_done(struct ingest *in)
{
    timer_cancel(&in->lock_tick);
    timer_cancel(&in->usage_tick);
    arena_done(&in->arena);
}

static void ingest_apply(struct ingest *in, const struct cache_event *e, struct effect *ret)
{
    if (cache_apply(in->cache, e, loop_wall_ns(in->loop), ret) != OK) {
        in->lost = true;
        log_error("out of memory: an object was left out, the lists will be read again");
    }
}

static const char *const kind_names[CACHE_ALL_KINDS] = {
    [CACHE_NODES] = "Node",           [CACHE_PODS] = "Pod",
    [CACHE_HEALTH] = "ConfigMap",     [CACHE_SLICES] = "ResourceSlice",
    [CACHE_CLAIMS] = "ResourceClaim", [CACHE_CLASSES] = "DeviceClass",
};

static void ingest_leave_out(struct ingest *in, enum cache_kind kind, struct str name,
                             const struct err *e)
{
    in->n_unreadable++;
    in->torn[kind] = true;
    in->lost = in->lost || e->code == ERR_NOMEM;
    log_error("an object can't be read and is left out", kv_cstr("kind", kind_names[kind]),
              kv_str("name", name), kv_cstr("error", e->text));
}

/* Ends the reader. OK: the object is complete, and has a name. */
static enum errc ingest_finish(struct jread *r, struct str name, struct err *e)
{
    if (jread_finish(r, e) == OK && name.n == 0)
        return err_set(e, ERR_SYNTAX, "it has no metadata.name");
    return e->code;
}

/* Ends the reader. False: the object is left out. */
static bool ingest_readable(struct ingest *in, struct jread *r, enum cache_kind kind,
                            struct str name)
{
    struct err e = ERR_INIT;
    if (ingest_finish(r, name, &e) == OK)
        return true;
    ingest_leave_out(in, kind, name, &e);
    return false;
}

struct node_figures {
    enum node_fault fault;
    int64_t total;
    int64_t limit;
    uint32_t n_cards;
    unsigned bad_tokens;
};

static struct node_figures ingest_figures_of(const struct node *n)
{
    if (n == NULL)
        return (struct node_figures){.fault = NODE_ABSENT};
    return (struct node_figures){.fault = n->fault,
                                 .total = n->total,
                                 .limit = n->limit,
                                 .n_cards = n->n_cards,
                                 .bad_tokens = n->sizes == NULL ? 0 : n->sizes->bad_tokens};
}

/* The first 256 bytes, for a log line: a list may be as long as a whole object. */
static struct str ingest_head_of(struct str list)
{
    return (struct str){list.p, MIN_OF(list.n, (size_t)256)};
}

static void ingest_report_long_list(const struct node *n, struct str annotation, struct str list)
{
    if (list.n > LIMIT_CARD_LIST_BYTES)
        log_warn("a node's list of cards is too long: it counts as naming all of them",
                 kv_str("node", n->name), kv_str("annotation", annotation),
                 kv_uint("bytes", list.n), kv_uint("limit", LIMIT_CARD_LIST_BYTES));
}

/* Not while two pods exchange their cards: the API server changes one after the other. Rate limit:
 * each pod on such a card and each change of its node would log the line again. */
static bool ingest_may_tell_over(struct ingest *in, const struct node *n)
{
    return n->n_exchanging == 0 &&
           log_limit_allows(&in->over, loop_now_ms(in->loop), "a card holds more than its size");
}

static void ingest_report_node(struct ingest *in, const struct node *n,
                               const struct node_view *view, struct node_figures old)
{
    struct node_figures now = ingest_figures_of(n);
    if (old.fault == now.fault && old.total == now.total && old.limit == now.limit &&
        old.n_cards == now.n_cards && old.bad_tokens == now.bad_tokens)
        return;
    if (now.bad_tokens > 0)
        log_warn("a node's labels or annotations name something that is no card, policy or number",
                 kv_str("node", n->name), kv_uint("tokens", now.bad_tokens));
    ingest_report_long_list(n, CARDPACK_ANNOTATION_CORDONED, view->cordoned);
    ingest_report_long_list(n, CARDPACK_ANNOTATION_EXCLUSIVE, view->exclusive_cards);
    ingest_report_long_list(n, CARDPACK_ANNOTATION_DRA, view->dra_cards);
    if (now.fault == NODE_BAD_QUANTITY)
        log_warn("a node's gpu-mem or gpu-count is not usable", kv_str("node", n->name));
    else if (now.fault == NODE_BAD_CARDS)
        log_warn("a node's table of cards can't be read", kv_str("node", n->name),
                 kv_str("error", n->sizes->cards_fault));
    else if (now.fault == NODE_NO_CARDS)
        log_info("a node has gpu-mem but no gpu-count yet", kv_str("node", n->name));
    else if (now.fault == NODE_OK)
        log_info("node", kv_str("node", n->name), kv_uint("cards", n->n_cards),
                 kv_int("total", n->total), kv_int("usable", n->limit),
                 kv_int("remainder", n->remainder));
    for (uint32_t i = 0; i < now.n_cards; i++) {
        if (n->cards[i].used > n->cards[i].total && ingest_may_tell_over(in, n))
            log_warn("a card holds more than its size", kv_str("node", n->name), kv_uint("card", i),
                     kv_int("used", n->cards[i].used), kv_int("total", n->cards[i].total));
    }
}

static void ingest_lock_tick(struct timer *t)
{
    struct ingest *in = CONTAINER_OF(t, struct ingest, lock_tick);
    struct effect effect;
    ingest_apply(in, &(struct cache_event){.type = CACHE_LOCKS}, &effect);
    if (in->cache->n_locks > 0)
        timer_arm(in->loop, t, LOCK_TICK_MS);
}

/* Ends the reader. A node that can't be read has a name at most. False: it is left out. */
static bool ingest_node_readable(struct ingest *in, struct jread *r, struct str json,
                                 struct node_view *view)
{
    struct err e = ERR_INIT;
    if (ingest_finish(r, view->name, &e) == OK)
        return true;
    arena_reset(&in->arena);
    jread_init(r, json, &in->arena);
    *view = (struct node_view){.name = kube_read_of(r, STR("metadata"), STR("name")),
                               .unreadable = true};
    if (view->name.n == 0 || e.code == ERR_NOMEM) {
        ingest_leave_out(in, CACHE_NODES, view->name, &e);
        return false;
    }
    in->n_unreadable++;
    log_error("a node can't be read: it gets no new pods", kv_str("node", view->name),
              kv_cstr("error", e.text));
    return true;
}

void ingest_node(struct ingest *in, struct str json, bool gone)
{
    struct jread r;
    struct effect effect;
    struct cache_event e = {.type = gone ? CACHE_NODE_GONE : CACHE_NODE_SET};
    arena_reset(&in->arena);
    jread_init(&r, json, &in->arena);
    kube_read_node(&r, &in->arena, &e.node);
    if (!ingest_node_readable(in, &r, json, &e.node))
        return;
    struct node_figures old = ingest_figures_of(cache_node(in->cache, e.node.name));
    ingest_apply(in, &e, &effect);
    if (gone && old.fault != NODE_ABSENT)
        log_info("node is gone", kv_str("node", e.node.name));
    if (gone && in->measured != NULL)
        (void)measured_drop(in->measured, e.node.name);
    const struct node *n = cache_node(in->cache, e.node.name);
    if (!gone && n != NULL)
        ingest_report_node(in, n, &e.node, old);
    if (effect.odd_lock && n != NULL && n->lock != NULL &&
        log_limit_allows(&in->locks, loop_now_ms(in->loop), "a node's lock is not obeyed"))
        log_warn("a node's lock is not obeyed: its time can't be read, or is in the future",
                 kv_str("node", n->name), kv_str("lock", ingest_head_of(n->lock->text)));
    if (in->cache->n_locks > 0 && !timer_armed(&in->lock_tick))
        timer_arm(in->loop, &in->lock_tick, LOCK_TICK_MS);
}

static void ingest_report_pod(struct ingest *in, const struct pod_view *view,
                              const struct effect *effect)
{
    const struct pod *p = cache_pod(in->cache, view->uid);
    if (effect->err.code != OK && view->fault.n == 0)
        log_warn("a pod's request is not valid", kv_str("namespace", view->namespace),
                 kv_str("pod", view->name), kv_cstr("error", effect->err.text));
    if (!effect->changed || p == NULL || p->node == NULL || p->node->fault != NODE_OK ||
        !request_shares(p->request))
        return;
    if (!node_has_card(p->node, p->card)) {
        log_warn("a pod is bound without a valid card and is charged to its node alone",
                 kv_str("namespace", p->namespace), kv_str("pod", p->name),
                 kv_str("node", p->node->name), kv_str("idx", view->idx),
                 kv_int("mem", p->request->mem));
        return;
    }
    const struct card *c = &p->node->cards[p->card];
    if (c->used > c->total && ingest_may_tell_over(in, p->node))
        log_warn("a card holds more than its size", kv_str("node", p->node->name),
                 kv_int("card", p->card), kv_int("used", c->used), kv_int("total", c->total),
                 kv_str("namespace", p->namespace), kv_str("pod", p->name));
}

/* Ends the reader. Of a pod that can't be read, takes as much as can be. `e` must last as long as
 * the view. False: it is left out. */
static bool ingest_pod_readable(struct ingest *in, struct jread *r, struct str json,
                                struct pod_view *view, struct err *e)
{
    if (ingest_finish(r, view->name, e) == OK && view->uid.n > 0)
        return true;
    if (e->code == OK)
        (void)err_set(e, ERR_SYNTAX, "it has no metadata.uid");
    arena_reset(&in->arena);
    kube_read_pod_anyway(json, &in->arena, str_of(e->text), view);
    if (view->uid.n == 0 || e->code == ERR_NOMEM) {
        ingest_leave_out(in, CACHE_PODS, view->name, e);
        return false;
    }
    in->n_unreadable++;
    log_error("a pod can't be read: if it is bound, its node gets no new pods",
              kv_str("namespace", view->namespace), kv_str("pod", view->name),
              kv_str("node", view->node), kv_cstr("error", e->text));
    return true;
}

void ingest_pod(struct ingest *in, struct str json, bool gone)
{
    struct jread r;
    struct effect effect;
    struct err fault = ERR_INIT;
    struct cache_event e = {.type = gone ? CACHE_POD_GONE : CACHE_POD_SET};
    arena_reset(&in->arena);
    jread_init(&r, json, &in->arena);
    kube_read_pod(&r, &in->arena, &e.pod);
    if (!ingest_pod_readable(in, &r, json, &e.pod, &fault))
        return;
    ingest_apply(in, &e, &effect);
    if (!gone)
        ingest_report_pod(in, &e.pod, &effect);
    if (!gone && in->show != NULL)
        in->show(in->ctx, &e.pod, &effect.err);
}

/* The old quotas stay: if an unreadable ConfigMap stopped all binds, the pods of every namespace
 * would wait until its author corrects it. */
static void ingest_quota_is_bad(struct ingest *in, const struct err *why)
{
    struct effect effect;
    ingest_apply(in, &(struct cache_event){.type = CACHE_QUOTA_BAD}, &effect);
    log_error("the quotas can't be read, and stay as they were",
              kv_str("configmap", CARDPACK_QUOTA_NAME), kv_bool("in_force", in->cache->limited),
              kv_cstr("error", why->text));
}

static void ingest_quota_is_gone(struct ingest *in)
{
    struct effect effect;
    ingest_apply(in, &(struct cache_event){.type = CACHE_QUOTA_GONE}, &effect);
    if (effect.changed)
        log_info("the quotas are gone: no namespace has limits");
}

static void ingest_quota(struct ingest *in, struct str text, bool gone)
{
    struct effect effect;
    struct err why = ERR_INIT;
    struct cache_event e = {.type = CACHE_QUOTA_SET};
    if (gone) {
        ingest_quota_is_gone(in);
        return;
    }
    enum errc code = text.p == NULL
                         ? err_set(&why, ERR_SYNTAX, "it has no %.*s", STR_ARG(CARDPACK_QUOTA_KEY))
                         : quota_config_read(text, &in->arena, &e.quota, &why);
    if (code == ERR_NOMEM) {
        ingest_leave_out(in, CACHE_HEALTH, CARDPACK_QUOTA_NAME, &why);
    } else if (code != OK) {
        ingest_quota_is_bad(in, &why);
    } else {
        ingest_apply(in, &e, &effect);
        log_info("quotas", kv_uint("namespaces", e.quota.n));
    }
}

static void ingest_health(struct ingest *in, const struct configmap_view *view, bool gone)
{
    struct effect effect;
    struct cache_event e = {.type = gone ? CACHE_HEALTH_GONE : CACHE_HEALTH_SET};
    e.health.node = str_skip(view->name, GPUSHARE_UNHEALTHY_PREFIX.n);
    e.health.gpus = view->gpus;
    if (e.health.node.n == 0)
        return;
    ingest_apply(in, &e, &effect);
    log_info("unhealthy cards", kv_str("node", e.health.node),
             kv_str("cards", gone ? STR("") : ingest_head_of(view->gpus)));
    if (!gone && view->gpus.n > LIMIT_CARD_LIST_BYTES)
        log_warn("an unhealthy ConfigMap is too long: all cards of its node count as unhealthy",
                 kv_str("configmap", view->name), kv_uint("bytes", view->gpus.n),
                 kv_uint("limit", LIMIT_CARD_LIST_BYTES));
    else if (effect.bad_tokens > 0)
        log_warn("an unhealthy ConfigMap names something that is no card index",
                 kv_str("configmap", view->name), kv_str("gpus", ingest_head_of(view->gpus)));
}

/* ---- what cards and pods use ---- */

/* The page shows the node again. */
static void ingest_usage_note(struct ingest *in, struct str node)
{
    struct effect effect;
    ingest_apply(in, &(struct cache_event){.type = CACHE_NODE_NOTED, .node = {.name = node}},
                 &effect);
}

/* Figures that have become too old are unknown from now on. */
static void ingest_usage_expire(struct ingest *in)
{
    uint64_t wait_ms = 0;
    struct str node;
    while ((node = measured_expire(in->measured, loop_now_ms(in->loop), &wait_ms)).p != NULL) {
        log_info("a node's figures of what its cards and pods use are too old",
                 kv_str("node", node));
        ingest_usage_note(in, node);
    }
    timer_cancel(&in->usage_tick);
    if (wait_ms != UINT64_MAX)
        timer_arm(in->loop, &in->usage_tick, wait_ms);
}

static void ingest_usage_tick(struct timer *t)
{
    ingest_usage_expire(CONTAINER_OF(t, struct ingest, usage_tick));
}

static void ingest_usage_is_bad(struct ingest *in, struct str node, const struct err *why)
{
    if (measured_set_faulty(in->measured, node))
        log_warn("what a node's cards and pods use can't be read", kv_str("node", node),
                 kv_cstr("error", why->text));
}

/* `before`: how many differed. Rate limit: a program on a node can write others all the time. */
static void ingest_usage_tell(struct ingest *in, struct str node, const struct usage_view *view,
                              size_t before)
{
    static const char *const limited = "containers have other cards than their annotations name";
    const struct measured_node *now = measured_of(in->measured, node);
    const struct usage_difference *d = view->differences;
    /* A text with the time of the one before is not taken. */
    if (now == NULL || now->n_differences <= before || now->n_differences != view->n_differences ||
        !log_limit_allows(&in->differing, loop_now_ms(in->loop), limited))
        return;
    log_warn("containers have other cards by the kubelet's list than by their annotations: "
             "kubectl cardpack doctor names them",
             kv_str("node", node), kv_uint("containers", view->n_differences),
             kv_str("namespace", d->namespace), kv_str("pod", d->name),
             kv_str("container", d->container), kv_str("annotated", d->annotated),
             kv_str("given", d->given));
}

/* Lack of memory makes these figures unknown, and nothing else: placement does not use them. */
static void ingest_usage_take(struct ingest *in, struct str node, struct str text)
{
    struct usage_view view = {.seen = STR_NULL};
    struct err why = ERR_INIT;
    uint32_t seen_s = 0;
    enum errc code = text.p != NULL ? usage_read(text, &in->arena, &view, &why)
                                    : err_set(&why, ERR_SYNTAX, "it has no " USAGE_KEY);
    if (code != OK) {
        ingest_usage_is_bad(in, node, &why);
        return;
    }
    if (!stamp_read(view.seen, &seen_s) ||
        (in->measured->lasts_ms > 0 &&
         loop_wall_ns(in->loop) / 1000000000 > (uint64_t)seen_s + USAGE_OLD_S)) {
        (void)measured_drop(in->measured, node);
        return;
    }
    const struct measured_node *old = measured_of(in->measured, node);
    size_t differed = old == NULL ? 0 : old->n_differences;
    code = measured_set(in->measured, node, &view, seen_s, loop_now_ms(in->loop));
    if (code == OK)
        ingest_usage_tell(in, node, &view, differed);
    if (code != OK && log_limit_allows(&in->unkept, loop_now_ms(in->loop),
                                       "there is no room for what a node's cards and pods use"))
        log_warn("there is no room for what a node's cards and pods use", kv_str("node", node),
                 kv_uint("limit", LIMIT_MEASURED_BYTES));
}

static void ingest_usage(struct ingest *in, const struct configmap_view *view, bool gone)
{
    struct str node = str_skip(view->name, STR(USAGE_CONFIGMAP_PREFIX).n);
    if (in->measured == NULL || node.n == 0)
        return;
    if (gone || (in->knows_nodes && cache_node(in->cache, node) == NULL))
        (void)measured_drop(in->measured, node);
    else
        ingest_usage_take(in, node, view->usage);
    ingest_usage_note(in, node);
    ingest_usage_expire(in);
}

/* After a list: the figures of nodes that do not exist, or whose ConfigMap does not, go. */
static void ingest_usage_sweep(struct ingest *in, enum cache_kind kind)
{
    size_t cursor = 0;
    if (in->measured == NULL || (kind != CACHE_NODES && kind != CACHE_HEALTH))
        return;
    in->knows_nodes = in->knows_nodes || kind == CACHE_NODES;
    for (const struct measured_node *n = measured_next(in->measured, &cursor); n != NULL;
         n = measured_next(in->measured, &cursor)) {
        bool gone = kind == CACHE_NODES ? cache_node(in->cache, n->name) == NULL
                                        : measured_is_missing(in->measured, n);
        if (!gone)
            continue;
        ingest_usage_note(in, n->name);
        (void)measured_drop(in->measured, n->name);
        cursor--;
    }
}

void ingest_configmap(struct ingest *in, struct str json, bool gone)
{
    struct jread r;
    struct configmap_view view;
    arena_reset(&in->arena);
    jread_init(&r, json, &in->arena);
    kube_read_configmap(&r, &view);
    if (!ingest_readable(in, &r, CACHE_HEALTH, view.name) ||
        !str_eq(view.namespace, GPUSHARE_UNHEALTHY_NAMESPACE))
        return;
    if (str_eq(view.name, CARDPACK_QUOTA_NAME))
        ingest_quota(in, view.quota, gone);
    else if (str_starts(view.name, GPUSHARE_UNHEALTHY_PREFIX))
        ingest_health(in, &view, gone);
    else if (str_starts(view.name, STR(USAGE_CONFIGMAP_PREFIX)))
        ingest_usage(in, &view, gone);
}

/* ---- DRA ---- */

void ingest_slice(struct ingest *in, struct str json, bool gone)
{
    struct jread r;
    struct effect effect;
    struct cache_event e = {.type = gone ? CACHE_SLICE_GONE : CACHE_SLICE_SET};
    arena_reset(&in->arena);
    jread_init(&r, json, &in->arena);
    kube_read_slice(&r, &in->arena, &e.slice);
    if (ingest_readable(in, &r, CACHE_SLICES, e.slice.name))
        ingest_apply(in, &e, &effect);
}

/* Cards of the claim that pods share: DRA gave them out without asking. */
static void ingest_report_claim(struct ingest *in, const struct dra_claim_view *view)
{
    const struct dra_claim *c = map_get(&in->cache->dra.claims, view->uid);
    for (uint32_t i = 0; c != NULL && i < c->n_uses; i++) {
        const struct dra_use *u = &c->uses[i];
        if (u->joined != DRA_CARD)
            continue;
        const struct node *n = cache_node(in->cache, u->node->name);
        const struct card *card = n == NULL ? NULL : &n->cards[u->card];
        if (card != NULL && card->claimed && card->pods > 0 &&
            log_limit_allows(&in->over, loop_now_ms(in->loop),
                             "a ResourceClaim holds a card that pods share"))
            log_warn("a ResourceClaim holds a card that pods share", kv_str("node", n->name),
                     kv_uint("card", u->card), kv_uint("pods", card->pods),
                     kv_str("namespace", view->namespace), kv_str("claim", view->name));
    }
}

void ingest_claim(struct ingest *in, struct str json, bool gone)
{
    struct jread r;
    struct effect effect;
    struct cache_event e = {.type = gone ? CACHE_CLAIM_GONE : CACHE_CLAIM_SET};
    arena_reset(&in->arena);
    jread_init(&r, json, &in->arena);
    kube_read_claim(&r, &in->arena, &e.claim);
    if (!ingest_readable(in, &r, CACHE_CLAIMS, e.claim.uid))
        return;
    ingest_apply(in, &e, &effect);
    if (!gone && effect.changed)
        ingest_report_claim(in, &e.claim);
}

void ingest_class(struct ingest *in, struct str json, bool gone)
{
    struct jread r;
    struct effect effect;
    struct cache_event e = {.type = gone ? CACHE_CLASS_GONE : CACHE_CLASS_SET};
    arena_reset(&in->arena);
    jread_init(&r, json, &in->arena);
    kube_read_class(&r, &e.class);
    if (ingest_readable(in, &r, CACHE_CLASSES, e.class.name))
        ingest_apply(in, &e, &effect);
}

void ingest_list_begin(struct ingest *in, enum cache_kind kind)
{
    struct effect effect;
    in->torn[kind] = false;
    if (kind == CACHE_HEALTH && in->measured != NULL)
        measured_list_begin(in->measured);
    ingest_apply(in, &(struct cache_event){.type = CACHE_LIST_BEGIN, .list = kind}, &effect);
}

unsigned ingest_list_end(struct ingest *in, enum cache_kind kind)
{
    struct effect effect;
    if (in->torn[kind]) {
        log_error("an object of the list was left out: objects missing in this list are kept",
                  kv_cstr("kind", kind_names[kind]));
        return 0;
    }
    ingest_apply(in, &(struct cache_event){.type = CACHE_LIST_END, .list = kind}, &effect);
    ingest_usage_sweep(in, kind);
    if (effect.unlimited)
        log_info("the quotas are gone: no namespace has limits");
    log_info("list is in", kv_cstr("kind", kind_names[kind]), kv_uint("gone", effect.swept));
    return effect.unproven;
}

uint64_t ingest_note_loss(struct ingest *in, enum cache_kind kind, struct ingest_loss *l)
{
    if (!in->lost && (!in->torn[kind] || l->in_list))
        return 0;
    l->torn = !in->lost;
    in->lost = false;
    l->in_list = l->lacks = true;
    return l->torn ? RELIST_TORN_MS : RELIST_AFTER_MS;
}
