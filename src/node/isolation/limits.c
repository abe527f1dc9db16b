/* One `held` for each container, with a `track` for each of its cards: a step machine, a timer and
 * a question to the watch of the GPUs. The checks are in limits_check.c. */
#include "node/isolation/limits.h"

#include "base/log.h"
#include "base/mem.h"
#include "node/isolation/limits_state.h"

#include <stdio.h>

#define MESSAGE_BYTES 768

/* ---- news ---- */

static void limits_report_missing(struct track *t)
{
    struct limits *l = t->held->owner;
    char bytes[MESSAGE_BYTES];
    struct buf text = BUF_ON(bytes);
    const struct event_subject pod = {t->held->namespace, t->held->pod, t->held->uid};
    l->counts.lost++;
    (void)snprintf(t->fault, sizeof(t->fault),
                   "the memory limit of container %.*s of pod %.*s/%.*s does not read back: %s",
                   STR_ARG(t->held->name), STR_ARG(t->held->namespace), STR_ARG(t->held->pod),
                   t->why);
    log_warn("a container's memory limit does not read back",
             kv_str("namespace", t->held->namespace), kv_str("pod", t->held->pod),
             kv_str("container", t->held->name), kv_uint("card", t->card),
             kv_uint("mib", t->request.bytes / MIB), kv_cstr("error", t->why));
    buf_printf(&text, "container %.*s runs without its limit of %llu MiB on card %u: %s%s",
               STR_ARG(t->held->name), (unsigned long long)(t->request.bytes / MIB), t->card,
               t->why,
               t->state.absent && t->request.limit.bytes == NVML_LIMIT_NONE
                   ? ". NVIDIA's container toolkit sets it, from 1.20.1 on: install that on "
                     "the node"
                   : "");
    if (l->s.events != NULL)
        events_post(l->s.events, &pod, EVENT_WARNING, STR("GPUMemoryLimitMissing"), buf_str(&text));
    loop_defer(l->s.loop, &l->late);
}

static void limits_report_ours(struct track *t)
{
    struct limits *l = t->held->owner;
    l->counts.ours++;
    if (!l->said_ours)
        log_warn("the container runtime has not set a memory limit; cardpack-node has, but the "
                 "container ran without it for a moment",
                 kv_str("namespace", t->held->namespace), kv_str("pod", t->held->pod),
                 kv_str("container", t->held->name), kv_uint("card", t->card),
                 kv_uint("mib", t->request.bytes / MIB));
    else
        log_debug("a memory limit was set late", kv_str("pod", t->held->pod),
                  kv_str("container", t->held->name), kv_uint("card", t->card));
    l->said_ours = true;
}

static void limits_report(struct track *t, enum limit_news news)
{
    switch (news) {
    case LIMIT_NEWS_NONE:
        break;
    case LIMIT_NEWS_OURS:
        limits_report_ours(t);
        break;
    case LIMIT_NEWS_MISSING:
        limits_report_missing(t);
        break;
    case LIMIT_NEWS_BACK:
        log_info("a container's memory limit reads back again",
                 kv_str("namespace", t->held->namespace), kv_str("pod", t->held->pod),
                 kv_str("container", t->held->name), kv_uint("card", t->card));
        loop_defer(t->held->owner->s.loop, &t->held->owner->late);
        break;
    case LIMIT_NEWS_ENDED:
        log_info("a container whose cgroup was away has ended",
                 kv_str("namespace", t->held->namespace), kv_str("pod", t->held->pod),
                 kv_str("container", t->held->name), kv_uint("card", t->card));
        loop_defer(t->held->owner->s.loop, &t->held->owner->late);
        break;
    }
}

/* ---- steps ---- */

static void limits_perform(struct track *t, struct limit_action a)
{
    timer_cancel(&t->timer);
    limits_report(t, a.news);
    if (a.what == LIMIT_WAIT)
        timer_arm(t->held->owner->s.loop, &t->timer, a.delay_ms);
    else if (a.what == LIMIT_CHECK)
        limits_check(t);
}

void limits_react(struct track *t, enum limit_event event)
{
    const struct limit_input in = {.event = event, .now_ms = loop_now_ms(t->held->owner->s.loop)};
    limits_perform(t, limit_step(&t->state, &in));
}

static void limits_on_timer(struct timer *timer)
{
    limits_react(CONTAINER_OF(timer, struct track, timer), LIMIT_ON_TIMER);
}

/* ---- containers and tracks ---- */

static void limits_on_late(struct deferred *d)
{
    struct limits *l = CONTAINER_OF(d, struct limits, late);
    l->s.changed(l->s.ctx);
}

static void limits_drop(struct track *t)
{
    struct limits *l = t->held->owner;
    if (t->state.missing)
        loop_defer(l->s.loop, &l->late);
    timer_cancel(&t->timer);
    limits_check_cancel(t);
    list_remove(&t->link);
    l->n--;
    mem_free(t);
}

static void limits_let_go(struct held *h)
{
    LIST_FOR_EACH (struct track, t, &h->tracks, link)
        limits_drop(t);
    list_remove(&h->link);
    mem_free(h);
}

static struct held *limits_find(struct limits *l, const struct container *c)
{
    LIST_FOR_EACH (struct held, h, &l->held, link) {
        if (str_eq(h->uid, c->pod->uid) && str_eq(h->name, c->name))
            return h;
    }
    return NULL;
}

static void limits_leave_out(struct limits *l, const struct container *c)
{
    l->counts.left_out++;
    log_error("a container's memory limit can't be watched", kv_str("pod", c->pod->name),
              kv_str("container", c->name));
}

static struct held *limits_hold(struct limits *l, const struct container *c)
{
    const struct container_pod *p = c->pod;
    struct held *h = mem_alloc(sizeof(*h) + p->uid.n + p->namespace.n + p->name.n + c->name.n);
    if (h == NULL) {
        limits_leave_out(l, c);
        return NULL;
    }
    char *at = (char *)(h + 1);
    h->owner = l;
    h->uid = str_store(&at, p->uid);
    h->namespace = str_store(&at, p->namespace);
    h->pod = str_store(&at, p->name);
    h->name = str_store(&at, c->name);
    list_init(&h->tracks);
    list_push_back(&l->held, &h->link);
    return h;
}

static struct track *limits_track(const struct held *h, uint32_t card)
{
    LIST_FOR_EACH (struct track, t, &h->tracks, link) {
        if (t->card == card)
            return t;
    }
    return NULL;
}

static struct track *limits_add(struct held *h, const struct container *c, uint32_t card)
{
    struct limits *l = h->owner;
    struct track *t = l->n >= LIMITS_MAX ? NULL : mem_alloc(sizeof(*t));
    if (t == NULL) {
        limits_leave_out(l, c);
        return NULL;
    }
    *t = (struct track){.held = h, .card = card, .timer = {.fire = limits_on_timer}};
    list_push_back(&h->tracks, &t->link);
    l->n++;
    return t;
}

static void limits_set_id(struct held *h, struct str id)
{
    (void)snprintf(h->id, sizeof(h->id), "%.*s", STR_ARG(id));
    h->folder[0] = '\0';
}

static void limits_stop(struct held *h)
{
    if (h->id[0] == '\0')
        return;
    limits_set_id(h, STR(""));
    LIST_FOR_EACH (struct track, t, &h->tracks, link) {
        limits_check_cancel(t);
        limits_react(t, LIMIT_ON_END);
    }
}

/* As the container runtime gets it. */
static uint64_t limits_bytes(const struct limits *l, const struct card_share *s)
{
    uint64_t bytes = 0;
    if (__builtin_mul_overflow((uint64_t)s->units, l->s.unit_bytes, &bytes))
        bytes = INT64_MAX;
    return bytes / MIB * MIB;
}

/* A slice needs no watch: it is the limit. */
static bool limits_is_watched(const struct limits *l, uint32_t card)
{
    const struct gpu_card *c = gpu_watch_find(l->s.gpu, card);
    return c == NULL || !c->mig;
}

/* Begins anew with another container, another amount or another card. */
static void limits_start(struct held *h, const struct container *c, const struct card_share *s)
{
    uint64_t bytes = limits_bytes(h->owner, s);
    bool begins = !str_eq(str_of(h->id), c->id);
    if (begins)
        limits_set_id(h, c->id);
    for (uint32_t i = 0; i < s->cards.n; i++) {
        uint32_t card = s->cards.cards[i];
        if (!limits_is_watched(h->owner, card))
            continue;
        struct track *t = limits_track(h, card);
        bool same = t != NULL && !begins && t->request.bytes == bytes;
        t = t == NULL ? limits_add(h, c, card) : t;
        if (t == NULL || same)
            continue;
        limits_check_cancel(t);
        t->request.bytes = bytes;
        limits_react(t, LIMIT_ON_START);
    }
}

static void limits_update_one(struct limits *l, const struct container *c)
{
    struct card_share share;
    struct held *h = limits_find(l, c);
    bool known = l->s.share(l->s.ctx, c, &share) && share.cards.n > 0;
    if (h == NULL && c->running && known)
        h = limits_hold(l, c);
    if (h == NULL)
        return;
    h->isolated = c->pod->isolated;
    LIST_FOR_EACH (struct track, t, &h->tracks, link) {
        if (known && (!card_list_has(&share.cards, t->card) || !limits_is_watched(l, t->card)))
            limits_drop(t);
    }
    if (c->running && known)
        limits_start(h, c, &share);
    if (list_is_empty(&h->tracks))
        limits_let_go(h);
}

static bool limits_runs(const struct container_pod *p, struct str name)
{
    for (size_t i = 0; p != NULL && i < p->n; i++) {
        if (p->items[i].running && str_eq(p->items[i].name, name))
            return true;
    }
    return false;
}

void limits_update(struct limits *l, struct str uid)
{
    const struct container_pod *p = containers_pod(l->s.containers, uid);
    if (!l->on)
        return;
    for (size_t i = 0; p != NULL && i < p->n; i++)
        limits_update_one(l, &p->items[i]);
    LIST_FOR_EACH (struct held, h, &l->held, link) {
        if (!str_eq(h->uid, uid) || limits_runs(p, h->name))
            continue;
        if (p == NULL || p->deleting) /* a kubelet of 1.20 deletes it up to a minute later */
            limits_let_go(h);
        else
            limits_stop(h);
    }
}

void limits_update_all(struct limits *l)
{
    size_t cursor = 0;
    if (!l->on)
        return;
    LIST_FOR_EACH (struct held, h, &l->held, link) {
        if (containers_pod(l->s.containers, h->uid) == NULL)
            limits_let_go(h);
    }
    for (const struct container_pod *p = map_next(&l->s.containers->pods, &cursor); p != NULL;
         p = map_next(&l->s.containers->pods, &cursor))
        limits_update(l, p->uid);
}

void limits_enable(struct limits *l, bool on)
{
    if (l->on == on)
        return;
    l->on = on;
    LIST_FOR_EACH (struct held, h, &l->held, link)
        limits_let_go(h);
    limits_update_all(l);
}

/* ---- questions ---- */

struct str limits_fault(const struct limits *l, uint32_t card)
{
    LIST_FOR_EACH (const struct held, h, &l->held, link) {
        LIST_FOR_EACH (const struct track, t, &h->tracks, link) {
            if (t->card == card && t->state.missing)
                return str_of(t->fault);
        }
    }
    return STR("");
}

bool limits_are_required(const struct limits *l, uint32_t card)
{
    LIST_FOR_EACH (const struct held, h, &l->held, link) {
        if (h->isolated && limits_track(h, card) != NULL)
            return true;
    }
    return false;
}

static bool limits_overrides(const struct limits *l, const struct held *h)
{
    return l->s.overrides != NULL && l->s.overrides(l->s.ctx, h->uid);
}

bool limits_are_overridden(const struct limits *l, uint32_t card)
{
    LIST_FOR_EACH (const struct held, h, &l->held, link) {
        const struct track *t = limits_track(h, card);
        if (t != NULL && t->state.absent && limits_overrides(l, h))
            return true;
    }
    return false;
}

struct limits_counts limits_counts(const struct limits *l)
{
    struct limits_counts counts = l->counts;
    LIST_FOR_EACH (const struct held, h, &l->held, link) {
        bool own = limits_overrides(l, h);
        LIST_FOR_EACH (const struct track, t, &h->tracks, link) {
            counts.enforced += t->state.enforced ? 1 : 0;
            counts.missing += t->state.missing ? 1 : 0;
            bool checks = t->state.running && !t->state.enforced && !t->state.missing;
            counts.checking += checks && !limits_check_is_lost(t) ? 1 : 0;
            counts.absent += t->state.absent && !own ? 1 : 0;
        }
    }
    return counts;
}

/* ---- life ---- */

enum errc limits_new(const struct limits_settings *s, struct limits **ret, struct err *reterr)
{
    struct limits *l = mem_alloc(sizeof(*l));
    if (l == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the limits");
    *l = (struct limits){.s = *s, .late = {.run = limits_on_late}};
    list_init(&l->held);
    limits_check_init(l);
    *ret = l;
    return OK;
}

struct limits *limits_free(struct limits *l)
{
    if (l == NULL)
        return NULL;
    LIST_FOR_EACH (struct held, h, &l->held, link)
        limits_let_go(h);
    limits_check_done(l);
    deferred_cancel(&l->late);
    mem_free(l);
    return NULL;
}
