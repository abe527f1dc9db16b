/*
 * Performs the actions of evict_step. Every input includes the present state of the cache, so the
 * plan is never applied to a pod that has changed since. During a rescue the cache is polled five
 * times a second between calls: this is simpler than change notifications, and no client waits for
 * it.
 */
#include "daemon/evict/evict_rescue.h"

#include "base/mem.h"
#include "daemon/limit.h"

/* Pause when the right to evict is missing: an administrator has to grant it first. */
#define DENIED_MS UINT64_C(300000)
/* The wait after each failed rescue of a pod doubles, up to eight times the first one. */
#define TRIES_SHIFT 3U
/* How long a refused victim is spared. Later its PodDisruptionBudget may allow the eviction. */
#define SPARE_MS UINT64_C(60000)

#define PLANS_BYTES   (64 * MIB)
#define OWN_BYTES     (64 * KIB)
#define EVICTED_BYTES ((size_t)LIMIT_EVICT_VICTIMS * EVICT_CHOICES * (REFUSAL_UID_BYTES + 1))

static uint64_t evict_rescue_now_ms(const struct evictor *e)
{
    return loop_now_ms(e->set.loop);
}

static uint64_t evict_rescue_term_now(const struct evictor *e)
{
    return e->set.backend->term(e->set.backend);
}

/* ---- spared pods ---- */

static void evict_rescue_spare(struct evictor *e, const struct evict_victim *v)
{
    struct spared *s = &e->spared[0];
    for (size_t i = 1; i < COUNT_OF(e->spared); i++) {
        if (e->spared[i].until_ms < s->until_ms)
            s = &e->spared[i];
    }
    if (v->uid.n > sizeof(s->uid))
        return;
    memcpy(s->uid, v->uid.p, v->uid.n);
    s->uid_n = v->uid.n;
    s->until_ms = evict_rescue_now_ms(e) + SPARE_MS;
    evict_tell_spared(e, v);
}

static size_t evict_rescue_spared_pods(const struct evictor *e,
                                       const struct pod *ret[LIMIT_EVICT_SPARED])
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(e->spared); i++) {
        const struct spared *s = &e->spared[i];
        if (s->until_ms <= evict_rescue_now_ms(e))
            continue;
        ret[n] = cache_pod(e->set.cache, (struct str){s->uid, s->uid_n});
        n += ret[n] != NULL ? 1 : 0;
    }
    return n;
}

/* ---- state for the step machine ---- */

static const struct pod *evict_rescue_pod_now(const struct evictor *e)
{
    return cache_pod(e->set.cache, e->rescue.pod.uid);
}

static enum evict_pod evict_rescue_see_pod(const struct evictor *e)
{
    const struct pod *p = evict_rescue_pod_now(e);
    if (p == NULL)
        return EVICT_POD_GONE;
    if (p->state == POD_BOUND || p->state == POD_CONFIRMED)
        return EVICT_POD_BOUND;
    if (p->deleting || !request_alike(p->request, e->rescue.request))
        return EVICT_POD_GONE;
    return p->state == POD_RESERVED ? EVICT_POD_BINDING : EVICT_POD_PENDING;
}

static bool evict_rescue_has_left(const struct evictor *e, struct str uid)
{
    const struct pod *p = cache_pod(e->set.cache, uid);
    return p == NULL || !pod_holds(p);
}

/* Gone or under deletion: another eviction would change nothing. */
static bool evict_rescue_leaves(const struct evictor *e, struct str uid)
{
    return evict_rescue_has_left(e, uid) || cache_pod(e->set.cache, uid)->deleting;
}

/* Victims that still hold cards: those of this plan, and those evicted by earlier plans. */
static unsigned evict_rescue_count_left(const struct evictor *e)
{
    const struct rescue *s = &e->rescue;
    const struct buf *all = &s->evicted;
    unsigned n = 0;
    for (size_t at = 0; at < all->n; at += strlen(all->p + at) + 1)
        n += evict_rescue_has_left(e, str_of(all->p + at)) ? 0 : 1;
    for (uint32_t i = 0; i < s->plan.n; i++)
        n += evict_rescue_has_left(e, s->plan.victims[i].uid) ? 0 : 1;
    return n;
}

static struct evict_question evict_rescue_question(const struct evictor *e,
                                                   const struct pod **spared)
{
    return (struct evict_question){.cache = e->set.cache,
                                   .budgets = e->set.budgets,
                                   .pod = evict_rescue_pod_now(e),
                                   .nodes = e->rescue.nodes,
                                   .n_nodes = e->rescue.n_nodes,
                                   .spared = spared,
                                   .n_spared =
                                       spared == NULL ? 0 : evict_rescue_spared_pods(e, spared)};
}

static void evict_rescue_see(const struct evictor *e, struct evict_input *in)
{
    const struct rescue *s = &e->rescue;
    const struct evict_machine *m = &s->machine;
    in->leads = evict_rescue_term_now(e) == s->term;
    in->pod = evict_rescue_see_pod(e);
    in->left = evict_rescue_count_left(e);
    in->leaves = m->at < s->plan.n && evict_rescue_leaves(e, s->plan.victims[m->at].uid);
    if (in->pod != EVICT_POD_PENDING)
        return;
    struct evict_question q = evict_rescue_question(e, NULL);
    in->has_room = q.pod->kept;
    in->fits = evict_fits(&q);
}

/* ---- actions ---- */

static struct evict_input evict_rescue_choose(struct evictor *e)
{
    struct rescue *s = &e->rescue;
    struct evict_input in = {.type = EVICT_IN_CHOSEN};
    const struct pod *spared[LIMIT_EVICT_SPARED];
    struct evict_question q = evict_rescue_question(e, spared);
    arena_reset(&s->plans);
    s->plan = (struct evict_plan){.found = false};
    if (evict_plan(&q, &s->plans, &s->plan) != OK) {
        s->plan = (struct evict_plan){.found = false};
        (void)err_set(&s->why, ERR_NOMEM, "out of memory");
    }
    in.guarded = s->plan.found && s->plan.cost.violations > 0;
    in.found = s->plan.found && !in.guarded;
    in.chosen = s->plan.n;
    if (in.guarded)
        (void)err_set(&s->why, ERR_CONFLICT,
                      "to evict pod %.*s/%.*s, or another pod in its place, would violate a "
                      "PodDisruptionBudget",
                      STR_ARG(s->plan.victims[0].namespace), STR_ARG(s->plan.victims[0].name));
    return in;
}

static struct evict_input evict_rescue_keep(struct evictor *e)
{
    struct rescue *s = &e->rescue;
    struct effect fx;
    struct cache_event keep = {
        .type = CACHE_KEEP,
        .keep = {.uid = s->pod.uid, .node = s->plan.node, .there = &s->plan.there}};
    enum errc code = cache_apply(e->set.cache, &keep, loop_wall_ns(e->set.loop), &fx);
    if (code != OK)
        (void)err_set(&s->why, code, "no room can be kept on node %.*s: %s", STR_ARG(s->plan.node),
                      code == ERR_NOMEM ? "out of memory" : "it has changed");
    else if (s->machine.phase == EVICT_KEEPING)
        evict_tell_begin(e);
    return (struct evict_input){.type = EVICT_IN_KEPT, .kept = code == OK};
}

/* Sends the eviction. False: not sent, because the victim has changed since the plan was made; *ret
 * is the next input. */
static bool evict_rescue_call(struct evictor *e, unsigned at, bool dry, struct evict_input *ret)
{
    struct rescue *s = &e->rescue;
    const struct evict_victim *v = &s->plan.victims[at];
    if (evict_rescue_leaves(e, v->uid)) {
        *ret = (struct evict_input){.type = EVICT_IN_ANSWER, .answer = EVICT_GONE};
        return false;
    }
    int32_t priority = cache_pod(e->set.cache, v->uid)->request->priority;
    if (priority >= s->request->priority) {
        (void)err_set(&s->why, ERR_CONFLICT,
                      "pod %.*s/%.*s has priority %d by now, and only pods below %d are evicted "
                      "for it",
                      STR_ARG(v->namespace), STR_ARG(v->name), priority, s->request->priority);
        *ret = (struct evict_input){.type = EVICT_IN_RISEN};
        return false;
    }
    struct eviction x = {
        .namespace = v->namespace, .name = v->name, .uid = v->uid, .beta = e->beta};
    evict_call_start(&e->call, &x, dry);
    return true;
}

static void evict_rescue_evicted(struct evictor *e, const struct evict_victim *v)
{
    struct buf *all = &e->rescue.evicted;
    if (buf_reserve(all, v->uid.n + 1)) {
        buf_put(all, v->uid);
        buf_putc(all, '\0');
    }
    evict_tell_victim(e, v);
}

static void evict_rescue_close(struct evictor *e)
{
    struct effect fx;
    struct cache_event unkeep = {.type = CACHE_UNKEEP, .holder = {.uid = e->rescue.pod.uid}};
    enum errc code = cache_apply(e->set.cache, &unkeep, loop_wall_ns(e->set.loop), &fx);
    assert(code == OK);
    (void)code;
    mem_free(e->rescue.request);
    e->rescue.request = NULL;
    e->rescue.active = false;
}

/* After a rescue: sets when this pod, and when any pod, may be rescued again. */
static void evict_rescue_rest(struct evictor *e, enum evict_end why)
{
    struct rescue *s = &e->rescue;
    struct refusal *f = refusals_get(&e->refusals, s->pod.uid);
    if (s->machine.evicted > 0)
        e->not_before_ms = evict_rescue_now_ms(e) + e->set.pause_ms;
    else if (why == EVICT_END_DENIED)
        e->not_before_ms = evict_rescue_now_ms(e) + DENIED_MS;
    if (f == NULL)
        return;
    if (why == EVICT_END_BOUND || why == EVICT_END_POD_GONE) {
        refusals_forget(&e->refusals, s->pod.uid);
    } else if (why == EVICT_END_NEEDLESS) {
        f->since_ms = evict_rescue_now_ms(e);
    } else {
        f->not_before_ms = evict_rescue_now_ms(e) + (MAX_OF(e->set.after_ms, e->set.pause_ms)
                                                     << MIN_OF(f->tries, TRIES_SHIFT));
        f->tries++;
    }
}

static void evict_rescue_end(struct evictor *e, enum evict_end why)
{
    e->counts->ends[why]++;
    evict_tell_end(e, why);
    evict_rescue_rest(e, why);
    evict_rescue_close(e);
}

/* One step. True: *in is the next input. False: wait for an answer or the timer, or the end. */
static bool evict_rescue_step(struct evictor *e, struct evict_input *in)
{
    struct rescue *s = &e->rescue;
    const struct evict_victim *v =
        s->machine.at < s->plan.n ? &s->plan.victims[s->machine.at] : NULL;
    unsigned before = s->machine.evicted;
    evict_rescue_see(e, in);
    struct evict_output out = evict_step(&s->machine, in, evict_rescue_now_ms(e));
    assert(v != NULL || (s->machine.evicted == before && !out.spare));
    if (v != NULL && s->machine.evicted > before)
        evict_rescue_evicted(e, v);
    if (v != NULL && out.spare)
        evict_rescue_spare(e, v);
    e->beta = e->beta != out.other_version;
    switch (out.action) {
    case EVICT_DO_CHOOSE:
        *in = evict_rescue_choose(e);
        return true;
    case EVICT_DO_KEEP:
        *in = evict_rescue_keep(e);
        return true;
    case EVICT_DO_TRY:
    case EVICT_DO_EVICT:
        return !evict_rescue_call(e, out.at, out.action == EVICT_DO_TRY, in);
    case EVICT_DO_WAIT:
        if (out.room)
            evict_tell_room(e);
        timer_arm(e->set.loop, &e->wake, out.pause_ms);
        return false;
    case EVICT_DO_END:
        evict_rescue_end(e, out.end);
        return false;
    }
    return false;
}

static void evict_rescue_advance(struct evictor *e, struct evict_input in)
{
    while (evict_rescue_step(e, &in))
        ;
}

static bool evict_rescue_may_send(struct evict_call *c)
{
    const struct evictor *e = CONTAINER_OF(c, struct evictor, call);
    return evict_rescue_term_now(e) == e->rescue.term;
}

static void evict_rescue_answered(struct evict_call *c)
{
    struct evictor *e = CONTAINER_OF(c, struct evictor, call);
    if (e->rescue.machine.phase == EVICT_EVICTING)
        e->counts->evictions[c->answer]++;
    if (c->answer == EVICT_GRANTED)
        e->denied = false;
    else
        e->rescue.why = c->err;
    evict_rescue_advance(e, (struct evict_input){.type = EVICT_IN_ANSWER, .answer = c->answer});
}

static void evict_rescue_woken(struct timer *t)
{
    struct evictor *e = CONTAINER_OF(t, struct evictor, wake);
    evict_rescue_advance(e, (struct evict_input){.type = EVICT_IN_LOOK});
}

static bool evict_rescue_open(struct evictor *e, const struct refusal *f, const struct pod *p)
{
    struct rescue *s = &e->rescue;
    arena_reset(&s->own);
    buf_clear(&s->evicted, SIZE_MAX);
    s->pod = (struct event_subject){.namespace = arena_dup(&s->own, p->namespace),
                                    .name = arena_dup(&s->own, p->name),
                                    .uid = arena_dup(&s->own, p->uid)};
    s->nodes = arena_dup(&s->own, buf_str(&f->nodes));
    s->n_nodes = f->n_nodes;
    s->request = request_copy(p->request);
    if (arena_failed(&s->own) || s->request == NULL) {
        mem_free(s->request);
        s->request = NULL;
        return false;
    }
    s->term = e->term;
    s->plan = (struct evict_plan){.found = false};
    s->why = (struct err)ERR_INIT;
    evict_machine_init(&s->machine, &(struct evict_times){.keep_ms = e->set.keep_ms,
                                                          .look_ms = e->set.look_ms,
                                                          .retry_ms = e->set.retry_ms});
    s->active = true;
    return true;
}

bool evict_rescue_begin(struct evictor *e, const struct refusal *f, const struct pod *p)
{
    if (!evict_rescue_open(e, f, p))
        return false;
    e->counts->begun++;
    evict_rescue_advance(e, (struct evict_input){.type = EVICT_IN_LOOK});
    return true;
}

void evict_rescue_init(struct evictor *e)
{
    e->wake.fire = evict_rescue_woken;
    e->call.loop = e->set.loop;
    e->call.api = e->set.api;
    e->call.may_send = evict_rescue_may_send;
    e->call.done = evict_rescue_answered;
    evict_call_init(&e->call);
    arena_init(&e->rescue.own, OWN_BYTES);
    arena_init(&e->rescue.plans, PLANS_BYTES);
    buf_init(&e->rescue.evicted, EVICTED_BYTES);
}

void evict_rescue_done(struct evictor *e)
{
    timer_cancel(&e->wake);
    evict_call_cancel(&e->call);
    evict_call_done(&e->call);
    if (e->rescue.active)
        evict_rescue_end(e, EVICT_END_STOPPED);
    arena_done(&e->rescue.own);
    arena_done(&e->rescue.plans);
    buf_done(&e->rescue.evicted);
}
