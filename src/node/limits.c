/* One `track` for each container and card, with a step machine, a timer and a question to the
 * watch of the GPUs. The timer is the pause before a check. */
#include "node/limits.h"

#include "base/log.h"
#include "base/mem.h"
#include "node/cgroup.h"
#include "node/limit_step.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define MESSAGE_BYTES 768

struct track {
    struct list_link link;
    struct limits *owner;
    struct limit_state state;
    struct gpu_limit_request request;
    struct timer timer;
    struct str uid; /* this and the next three: behind the struct, in the same block */
    struct str namespace;
    struct str pod;
    struct str container;
    char id[CGROUP_ID_BYTES]; /* of the container that runs; empty: none does */
    uint32_t card;
    char folder[PATH_MAX]; /* of its cgroup; empty: not found yet */
    char why[GPU_REASON_BYTES];
    char fault[GPU_REASON_BYTES * 2]; /* what limits_fault answers */
};

struct limits {
    struct limits_settings s;
    struct list tracks;
    size_t n;
    bool on;
    bool said_ours;       /* the log has that the container runtime sets no limits */
    struct deferred late; /* a fault has changed: told when no track is in use */
    struct limits_counts counts;
};

static void limits_perform(struct track *t, struct limit_action a);

/* ---- news ---- */

static void limits_tell_missing(struct track *t)
{
    struct limits *l = t->owner;
    char bytes[MESSAGE_BYTES];
    struct buf text = BUF_ON(bytes);
    const struct event_subject pod = {t->namespace, t->pod, t->uid};
    l->counts.lost++;
    (void)snprintf(t->fault, sizeof(t->fault),
                   "the memory limit of container %.*s of pod %.*s/%.*s does not read back: %s",
                   STR_ARG(t->container), STR_ARG(t->namespace), STR_ARG(t->pod), t->why);
    log_warn("a container's memory limit does not read back", kv_str("namespace", t->namespace),
             kv_str("pod", t->pod), kv_str("container", t->container), kv_uint("card", t->card),
             kv_uint("mib", t->request.bytes / MIB), kv_cstr("error", t->why));
    buf_printf(&text,
               "container %.*s runs without its limit of %llu MiB on card %u: %s. The card gets no "
               "more pods until the limit reads back or the pod has ended",
               STR_ARG(t->container), (unsigned long long)(t->request.bytes / MIB), t->card,
               t->why);
    if (l->s.events != NULL)
        events_post(l->s.events, &pod, EVENT_WARNING, STR("GPUMemoryLimitMissing"), buf_str(&text));
    loop_defer(l->s.loop, &l->late);
}

static void limits_tell_ours(struct track *t)
{
    struct limits *l = t->owner;
    l->counts.ours++;
    if (!l->said_ours)
        log_warn("the container runtime has not set a memory limit; cardpack-node has, but the "
                 "container ran without it for a moment",
                 kv_str("namespace", t->namespace), kv_str("pod", t->pod),
                 kv_str("container", t->container), kv_uint("card", t->card),
                 kv_uint("mib", t->request.bytes / MIB));
    else
        log_debug("a memory limit was set late", kv_str("pod", t->pod),
                  kv_str("container", t->container), kv_uint("card", t->card));
    l->said_ours = true;
}

static void limits_tell(struct track *t, enum limit_news news)
{
    switch (news) {
    case LIMIT_NEWS_NONE:
        break;
    case LIMIT_NEWS_OURS:
        limits_tell_ours(t);
        break;
    case LIMIT_NEWS_MISSING:
        limits_tell_missing(t);
        break;
    case LIMIT_NEWS_BACK:
        log_info("a container's memory limit reads back again", kv_str("namespace", t->namespace),
                 kv_str("pod", t->pod), kv_str("container", t->container),
                 kv_uint("card", t->card));
        loop_defer(t->owner->s.loop, &t->owner->late);
        break;
    }
}

/* ---- one check ---- */

static void limits_react(struct track *t, enum limit_event event)
{
    const struct limit_input in = {.event = event, .now_ms = loop_now_ms(t->owner->s.loop)};
    limits_perform(t, limit_step(&t->state, &in));
}

static void limits_on_done(struct gpu_limit_request *r)
{
    static const enum limit_event events[] = {
        [GPU_LIMIT_UNKNOWN] = LIMIT_ON_UNKNOWN,   [GPU_LIMIT_NO_CARD] = LIMIT_ON_LOST,
        [GPU_LIMIT_NO_GROUP] = LIMIT_ON_NO_GROUP, [GPU_LIMIT_THERE] = LIMIT_ON_THERE,
        [GPU_LIMIT_SET] = LIMIT_ON_OURS,          [GPU_LIMIT_ABSENT] = LIMIT_ON_ABSENT,
    };
    struct track *t = CONTAINER_OF(r, struct track, request);
    timer_cancel(&t->timer);
    memcpy(t->why, r->limit.why, sizeof(t->why));
    if (r->limit.outcome == GPU_LIMIT_NO_GROUP)
        t->folder[0] = '\0';
    limits_react(t, events[r->limit.outcome]);
}

static void limits_on_timer(struct timer *timer)
{
    struct track *t = CONTAINER_OF(timer, struct track, timer);
    limits_react(t, LIMIT_ON_TIMER);
}

/* The folder is found by a walk, once: it stays where it is as long as the container runs. */
static enum errc limits_find_folder(struct track *t)
{
    struct stat st;
    struct err e = ERR_INIT;
    struct buf path = BUF_ON(t->folder);
    if (t->folder[0] != '\0' && stat(t->folder, &st) == 0)
        return OK;
    t->folder[0] = '\0';
    enum errc code = cgroup_folder(t->owner->s.cgroup_root, str_of(t->id), &path, &e);
    if (code == OK && buf_cstr(&path) == NULL)
        code = err_set(&e, ERR_LIMIT, "the path of the cgroup is too long");
    if (code != OK) {
        t->folder[0] = '\0';
        (void)snprintf(t->why, sizeof(t->why), "%.*s", (int)sizeof(t->why) - 1, e.text);
    }
    return code;
}

static void limits_check(struct track *t)
{
    struct limits *l = t->owner;
    const struct gpu_card *card = gpu_watch_find(l->s.gpu, t->card);
    if (card == NULL || card->missing || card->health == GPU_UNHEALTHY) {
        limits_react(t, LIMIT_ON_LOST);
        return;
    }
    enum errc code = limits_find_folder(t);
    if (code != OK) {
        limits_react(t, code == ERR_NOTFOUND ? LIMIT_ON_NO_GROUP : LIMIT_ON_UNKNOWN);
        return;
    }
    t->request.base.index = t->card;
    t->request.cgroup = str_of(t->folder);
    t->request.on_done = limits_on_done;
    gpu_watch_limit(l->s.gpu, &t->request);
}

static void limits_perform(struct track *t, struct limit_action a)
{
    timer_cancel(&t->timer);
    limits_tell(t, a.news);
    if (a.what == LIMIT_WAIT)
        timer_arm(t->owner->s.loop, &t->timer, a.delay_ms);
    else if (a.what == LIMIT_CHECK)
        limits_check(t);
}

/* ---- tracks ---- */

static void limits_on_late(struct deferred *d)
{
    struct limits *l = CONTAINER_OF(d, struct limits, late);
    l->s.changed(l->s.ctx);
}

static void limits_drop(struct track *t)
{
    if (t->state.missing)
        loop_defer(t->owner->s.loop, &t->owner->late);
    timer_cancel(&t->timer);
    gpu_watch_cancel(&t->request.base);
    list_remove(&t->link);
    t->owner->n--;
    mem_free(t);
}

static struct track *limits_find(struct limits *l, const struct container *c, uint32_t card)
{
    LIST_FOR_EACH (struct track, t, &l->tracks, link) {
        if (t->card == card && str_eq(t->uid, c->pod->uid) && str_eq(t->container, c->name))
            return t;
    }
    return NULL;
}

static struct track *limits_add(struct limits *l, const struct container *c, uint32_t card)
{
    const struct container_pod *p = c->pod;
    struct track *t =
        l->n >= LIMITS_MAX
            ? NULL
            : mem_alloc(sizeof(*t) + p->uid.n + p->namespace.n + p->name.n + c->name.n);
    if (t == NULL) {
        l->counts.left_out++;
        log_error("a container's memory limit can't be watched", kv_str("pod", p->name),
                  kv_str("container", c->name));
        return NULL;
    }
    *t = (struct track){.owner = l, .card = card, .timer = {.fire = limits_on_timer}};
    char *at = (char *)(t + 1);
    t->uid = str_store(&at, p->uid);
    t->namespace = str_store(&at, p->namespace);
    t->pod = str_store(&at, p->name);
    t->container = str_store(&at, c->name);
    list_push_back(&l->tracks, &t->link);
    l->n++;
    return t;
}

static void limits_start(struct track *t, const struct container *c, const struct card_share *s)
{
    bool same = str_eq(str_of(t->id), c->id);
    if (c->running && same)
        return;
    if (!c->running && t->id[0] == '\0')
        return;
    gpu_watch_cancel(&t->request.base);
    t->folder[0] = '\0';
    (void)snprintf(t->id, sizeof(t->id), "%.*s", (int)(c->running ? c->id.n : 0), c->id.p);
    if (__builtin_mul_overflow((uint64_t)s->units, t->owner->s.unit_bytes, &t->request.bytes))
        t->request.bytes = INT64_MAX;
    t->request.bytes = t->request.bytes / MIB * MIB; /* as the runtime gets it */
    limits_react(t, c->running ? LIMIT_ON_START : LIMIT_ON_END);
}

static void limits_look_at(struct limits *l, const struct container *c)
{
    struct card_share share;
    if (!l->s.share(l->s.ctx, c, &share) || share.cards.n == 0)
        return;
    LIST_FOR_EACH (struct track, t, &l->tracks, link) {
        if (str_eq(t->uid, c->pod->uid) && str_eq(t->container, c->name) &&
            !card_list_has(&share.cards, t->card))
            limits_drop(t);
    }
    for (uint32_t i = 0; i < share.cards.n; i++) {
        const struct gpu_card *card = gpu_watch_find(l->s.gpu, share.cards.cards[i]);
        struct track *t = limits_find(l, c, share.cards.cards[i]);
        if (card != NULL && card->mig)
            continue; /* the slice is the limit */
        if (t == NULL && c->running)
            t = limits_add(l, c, share.cards.cards[i]);
        if (t != NULL)
            limits_start(t, c, &share);
    }
}

void limits_look(struct limits *l, struct str uid)
{
    const struct container_pod *p = containers_pod(l->s.containers, uid);
    if (!l->on)
        return;
    for (size_t i = 0; p != NULL && i < p->n; i++)
        limits_look_at(l, &p->items[i]);
    LIST_FOR_EACH (struct track, t, &l->tracks, link) {
        if (p == NULL && str_eq(t->uid, uid))
            limits_drop(t);
    }
}

void limits_look_all(struct limits *l)
{
    size_t cursor = 0;
    if (!l->on)
        return;
    LIST_FOR_EACH (struct track, t, &l->tracks, link) {
        if (containers_pod(l->s.containers, t->uid) == NULL)
            limits_drop(t);
    }
    for (const struct container_pod *p = map_next(&l->s.containers->pods, &cursor); p != NULL;
         p = map_next(&l->s.containers->pods, &cursor))
        limits_look(l, p->uid);
}

void limits_enable(struct limits *l, bool on)
{
    if (l->on == on)
        return;
    l->on = on;
    LIST_FOR_EACH (struct track, t, &l->tracks, link)
        limits_drop(t);
    limits_look_all(l);
}

/* ---- questions ---- */

struct str limits_fault(const struct limits *l, uint32_t card)
{
    LIST_FOR_EACH (const struct track, t, &l->tracks, link) {
        if (t->card == card && t->state.missing)
            return str_of(t->fault);
    }
    return STR("");
}

struct limits_counts limits_counts(const struct limits *l)
{
    struct limits_counts counts = l->counts;
    LIST_FOR_EACH (const struct track, t, &l->tracks, link) {
        counts.enforced += t->state.enforced ? 1 : 0;
        counts.missing += t->state.missing ? 1 : 0;
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
    list_init(&l->tracks);
    *ret = l;
    return OK;
}

struct limits *limits_free(struct limits *l)
{
    if (l == NULL)
        return NULL;
    LIST_FOR_EACH (struct track, t, &l->tracks, link)
        limits_drop(t);
    deferred_cancel(&l->late);
    mem_free(l);
    return NULL;
}
