/*
 * Notes the pods that filter refuses, and chooses the next pod to rescue. evict_rescue.c performs
 * the rescue.
 */
#include "daemon/evict/evictor.h"

#include "base/log.h"
#include "base/mem.h"
#include "daemon/evict/evict_rescue.h"

#define TICK_MS  UINT64_C(1000)
#define PAUSE_MS UINT64_C(10000)

/* An entry whose pod is not in the cache is dropped this long after the last filter call: the watch
 * may lag behind, but not longer. */
#define UNKNOWN_MS UINT64_C(60000)

/* An entry is dropped this long after the last filter call: kube-scheduler tries a pending pod
 * again after 60 s to 5 min at the latest. */
#define STALE_MS UINT64_C(600000)

static uint64_t evictor_now_ms(const struct evictor *e)
{
    return loop_now_ms(e->set.loop);
}

static uint64_t evictor_term_now(const struct evictor *e)
{
    return e->set.backend->term(e->set.backend);
}

/* ---- results of filter ---- */

/* Drops the entries of another leadership term: another replica may have led meanwhile. */
static void evictor_note_term(struct evictor *e)
{
    uint64_t term = evictor_term_now(e);
    for (size_t i = 0; term != e->term && i < COUNT_OF(e->refusals.all); i++)
        refusals_forget(&e->refusals, refusal_uid(&e->refusals.all[i]));
    e->term = term;
}

/* Whether pods on the node's cards cause the verdict, so that evictions can help. VERDICT_KEPT does
 * not count: that room is kept for pods of equal or higher priority. */
static bool evictor_is_for_cards(enum verdict v)
{
    return v == VERDICT_ANTI_AFFINITY || v == VERDICT_HELD_WHOLE || v == VERDICT_NOT_EMPTY ||
           v == VERDICT_POD_LIMIT || v == VERDICT_NO_CORES || v == VERDICT_NO_CARD_FREE ||
           v == VERDICT_NODE_FULL || v == VERDICT_EXCLUSIVE;
}

static bool evictor_is_candidate(const struct evictor *e, const struct filter_args *args,
                                 const struct candidates *j, size_t i)
{
    if (!evictor_is_for_cards((enum verdict)j->verdicts[i]))
        return false;
    const struct node *n = cache_node(e->set.cache, args->names[i]);
    return n != NULL && j->request.mem <= node_free(n);
}

/* Notes the pod and the nodes that refuse it for their cards. No such node: drops the entry. */
static void evictor_note(struct evictor *e, const struct filter_args *args,
                         const struct candidates *j)
{
    struct refusal *f = NULL;
    for (size_t i = 0; i < args->n; i++) {
        if (!evictor_is_candidate(e, args, j, i))
            continue;
        if (f == NULL)
            f = refusals_note(&e->refusals, args->pod.uid, j->request.priority, evictor_now_ms(e));
        if (f == NULL)
            return;
        refusal_add(f, args->names[i]);
    }
    if (f == NULL)
        refusals_forget(&e->refusals, args->pod.uid);
    else if (!timer_armed(&e->tick))
        timer_arm(e->set.loop, &e->tick, e->set.tick_ms);
}

static bool evictor_is_clearing(const struct evictor *e, struct str uid)
{
    const struct rescue *s = &e->rescue;
    bool evicts = s->machine.phase == EVICT_EVICTING || s->machine.phase == EVICT_LEAVING;
    return s->active && evicts && str_eq(s->pod.uid, uid);
}

struct str evictor_filtered(struct evictor *e, const struct filter_args *args,
                            const struct candidates *j)
{
    if (e == NULL || j->bad_request.code != OK || !request_shares(&j->request) ||
        j->request.never_preempts)
        return STR_NULL;
    evictor_note_term(e);
    if (j->counts[VERDICT_FITS] > 0) {
        refusals_forget(&e->refusals, args->pod.uid);
        return STR_NULL;
    }
    evictor_note(e, args, j);
    return evictor_is_clearing(e, args->pod.uid)
               ? STR("cardpack makes room for the pod: the pods that it evicted are ending")
               : STR_NULL;
}

/* ---- choice of the next pod ---- */

/*
 * Whether kube-scheduler has preempted pods for this pod and waits for their end. A nominated node
 * alone does not show it: 1.20 also nominates a node if it has no victim and only cards are
 * missing. Then no pod of the node is under deletion.
 */
static bool evictor_is_preempting(const struct pod *p)
{
    for (const struct pod *q = p->keeper == NULL ? NULL : p->keeper->pods; q != NULL; q = q->next) {
        if (q->deleting)
            return true;
    }
    return false;
}

/* The pod, if it still needs a rescue. NULL: it does not, or kube-scheduler preempts for it. */
static const struct pod *evictor_in_need(const struct evictor *e, const struct refusal *f)
{
    const struct pod *p = cache_pod(e->set.cache, refusal_uid(f));
    bool waits = p != NULL && p->seen && p->state == POD_PENDING && !p->deleting &&
                 !p->request->never_preempts && request_shares(p->request);
    return waits && !evictor_is_preempting(p) ? p : NULL;
}

/* The entry is obsolete: the pod holds a card, or filter calls for it have stopped. */
static bool evictor_is_over(const struct evictor *e, const struct refusal *f)
{
    const struct pod *p = cache_pod(e->set.cache, refusal_uid(f));
    if (p == NULL ? f->last_ms + UNKNOWN_MS < evictor_now_ms(e) : pod_holds(p))
        return true;
    return f->last_ms + STALE_MS < evictor_now_ms(e);
}

/* Drops obsolete entries. True: some entries remain. */
static bool evictor_prune(struct evictor *e)
{
    bool any = false;
    evictor_note_term(e);
    for (size_t i = 0; i < COUNT_OF(e->refusals.all); i++) {
        const struct refusal *f = &e->refusals.all[i];
        if (!refusal_used(f))
            continue;
        if (evictor_is_over(e, f))
            refusals_forget(&e->refusals, refusal_uid(f));
        else
            any = true;
    }
    return any;
}

static void evictor_ticked(struct timer *t)
{
    struct evictor *e = CONTAINER_OF(t, struct evictor, tick);
    if (!evictor_prune(e))
        return;
    timer_arm(e->set.loop, t, e->set.tick_ms);
    if (e->rescue.active || e->term == 0 || evictor_now_ms(e) < e->not_before_ms)
        return;
    struct refusal *f = refusals_due(&e->refusals, e->set.after_ms, evictor_now_ms(e));
    if (f == NULL)
        return;
    const struct pod *p = evictor_in_need(e, f);
    if (p == NULL)
        f->not_before_ms = evictor_now_ms(e) + e->set.after_ms;
    else if (!evict_rescue_begin(e, f, p))
        log_error("out of memory: no eviction for a pod");
}

/* ---- create and free ---- */

enum errc evictor_new(const struct evictor_settings *s, struct evictor **ret, struct err *reterr)
{
    struct evictor *e = mem_alloc(sizeof(*e));
    if (e == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for evictions");
    e->set = *s;
    e->counts = s->counts == NULL ? &e->own : s->counts;
    e->set.tick_ms = s->tick_ms == 0 ? TICK_MS : s->tick_ms;
    e->set.pause_ms = s->pause_ms == 0 ? PAUSE_MS : s->pause_ms;
    e->set.look_ms = s->look_ms == 0 ? EVICT_LOOK_MS : s->look_ms;
    e->set.retry_ms = s->retry_ms == 0 ? EVICT_RETRY_MS : s->retry_ms;
    e->tick.fire = evictor_ticked;
    refusals_init(&e->refusals);
    evict_rescue_init(e);
    *ret = e;
    return OK;
}

struct evictor *evictor_free(struct evictor *e)
{
    if (e == NULL)
        return NULL;
    timer_cancel(&e->tick);
    evict_rescue_done(e);
    refusals_done(&e->refusals);
    mem_free(e);
    return NULL;
}
