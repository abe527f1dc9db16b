/*
 * Writes the annotations of pods. A merge patch with the pod's UID and version: the API server
 * refuses it for a pod of the same name with another UID, and for one that has changed. To the
 * status, because that right does not include the pod's spec, with its images.
 */
#include "node/pods/pod_patcher.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/pods/pod_patch.h"
#include "node/pods/pod_watch.h"

#define PAUSE_MS       UINT64_C(200)
#define PAUSE_MAX_MS   UINT64_C(5000)
#define BODY_MAX       (64 * KIB)
#define PATH_MAX_BYTES (4 * KIB)

static void pod_patcher_on_again(struct timer *t)
{
    struct pod_patcher *m = CONTAINER_OF(t, struct pod_patcher, again);
    m->changed(m->ctx);
}

static void pod_patcher_on_rested(struct timer *t)
{
    struct pod_patcher *m = CONTAINER_OF(t, struct pod_patcher, rested);
    m->changed(m->ctx);
}

static void pod_patcher_on_late(struct timer *t)
{
    struct pod_patcher *m = CONTAINER_OF(t, struct pod_patcher, late);
    m->passed = true;
    m->changed(m->ctx);
}

static void pod_patcher_on_retry(struct timer *t)
{
    struct pod_patcher *m = CONTAINER_OF(t, struct pod_patcher, retry);
    exchange_retry(m->roster);
    m->changed(m->ctx);
}

void pod_patcher_init(struct pod_patcher *m, struct loop *l, struct kube_api *api,
                      struct events *events, struct roster *r, void (*changed)(void *ctx),
                      void *ctx)
{
    *m = (struct pod_patcher){.loop = l, .api = api, .events = events, .roster = r};
    m->changed = changed;
    m->ctx = ctx;
    m->again.fire = pod_patcher_on_again;
    m->retry.fire = pod_patcher_on_retry;
    m->rested.fire = pod_patcher_on_rested;
    m->late.fire = pod_patcher_on_late;
    timer_arm(l, &m->late, POD_PATCHER_LATE_MS);
    m->last = (struct err)ERR_INIT;
    arena_init(&m->arena, LIMIT_OBJECT_ARENA);
    for (size_t i = 0; i < POD_PATCHER_CALLS; i++)
        buf_init(&m->calls[i].body, BODY_MAX);
}

static void pod_patcher_release(struct pod_patcher_call *c)
{
    mem_free(c->uid);
    c->uid = NULL;
    c->owner = NULL;
}

void pod_patcher_done(struct pod_patcher *m)
{
    timer_cancel(&m->again);
    timer_cancel(&m->retry);
    timer_cancel(&m->rested);
    timer_cancel(&m->late);
    for (size_t i = 0; i < POD_PATCHER_CALLS; i++) {
        struct pod_patcher_call *c = &m->calls[i];
        if (c->owner != NULL) {
            kube_call_cancel(&c->call);
            pod_patcher_release(c);
        }
        kube_call_done(&c->call);
        buf_done(&c->body);
    }
    arena_done(&m->arena);
}

static void pod_patcher_rest(struct pod_patcher *m)
{
    m->pause_ms = m->pause_ms == 0 ? PAUSE_MS : MIN_OF(2 * m->pause_ms, PAUSE_MAX_MS);
    timer_arm(m->loop, &m->again, m->pause_ms);
}

/* It is about this pod and stays so: not a pod that has gone, no lack of a token, no overload. */
static bool pod_patcher_is_refusal(const struct http_call *h)
{
    return h->outcome == HTTP_ANSWERED && h->status >= 400 && h->status < 500 && h->status != 401 &&
           h->status != 404 && h->status != 408 && h->status != 409 && h->status != 429;
}

static void pod_patcher_give_up(const struct pod_patcher *m, const struct roster_pod *p,
                                const struct err *e)
{
    char bytes[EVENT_MESSAGE_BYTES];
    struct buf text = BUF_ON(bytes);
    const struct event_subject pod = {p->namespace, p->name, p->uid};
    buf_printf(&text, "the API server refuses to write the pod's cards: %s", e->text);
    log_warn("the API server refuses to write a pod's cards", kv_str("namespace", p->namespace),
             kv_str("pod", p->name), kv_cstr("error", e->text));
    events_post(m->events, &pod, EVENT_WARNING, STR("GPUCardsNotWritten"), buf_str(&text));
}

static bool pod_patcher_has_failed_for(const struct pod_patcher *m, struct roster_pod *p,
                                       uint64_t ms)
{
    uint64_t now = loop_now_ms(m->loop);
    if (p->failing_ms == 0)
        p->failing_ms = now;
    return now - p->failing_ms >= ms;
}

/* Others of the node must not wait for it. */
static void pod_patcher_refused(struct pod_patcher *m, struct roster_pod *p,
                                const struct http_call *h, const struct err *e)
{
    bool first = false;
    if (h->outcome == HTTP_ANSWERED && h->status < 500)
        p->failing_ms = 0;
    if (pod_patcher_is_refusal(h))
        first = exchange_refuse(p);
    else if (h->outcome == HTTP_ANSWERED && h->status >= 500 &&
             pod_patcher_has_failed_for(
                 m, p, POD_PATCHER_FAILING_MS)) /* a webhook may be asked about it only */
        first = exchange_give_up(p);
    if (first)
        pod_patcher_give_up(m, p, e);
    if (!p->refused)
        return;
    m->pause_ms = 0;
    if (!timer_armed(&m->retry))
        timer_arm(m->loop, &m->retry, POD_PATCHER_RETRY_MS);
}

/* The watch shows the new version, or that the pod is gone. An author who edits the pod all the
 * time must not stop the exchanges of others. */
static void pod_patcher_await(struct pod_patcher *m, const struct pod_patcher_call *c,
                              struct roster_pod *p, const struct err *e)
{
    log_debug("a pod has changed before its cards were written", kv_cstr("uid", c->uid));
    if (p != NULL && pod_patcher_has_failed_for(m, p, POD_PATCHER_CONTENDED_MS) &&
        p->conflicts >= POD_PATCHER_CONFLICTS && exchange_give_up(p))
        pod_patcher_give_up(m, p, e);
    if (!timer_armed(&m->retry))
        timer_arm(m->loop, &m->retry, POD_PATCHER_RETRY_MS);
}

static void pod_patcher_fail(struct pod_patcher *m, const struct pod_patcher_call *c,
                             const struct err *e)
{
    const struct http_call *h = &c->call.http;
    struct roster_pod *p = roster_find(m->roster, str_of(c->uid));
    bool gone = h->outcome == HTTP_ANSWERED && h->status == 404;
    if (h->outcome == HTTP_ANSWERED && h->status == 401)
        kube_api_refresh(m->api);
    m->counts.failures++;
    if (gone) {
        log_debug("a pod is gone before its cards were written", kv_cstr("uid", c->uid));
    } else if (m->last.code == OK) {
        log_warn("a pod's cards can't be written", kv_cstr("uid", c->uid),
                 kv_cstr("error", e->text));
    }
    m->last = *e;
    if (p != NULL)
        pod_patcher_refused(m, p, h, e);
    pod_patcher_rest(m);
}

/* The watch may be ahead of the answer: a pod that it has removed stays away. */
static enum errc pod_patcher_take(struct pod_patcher *m, const struct pod_patcher_call *c,
                                  struct err *e)
{
    struct pod_view view;
    uint64_t version = 0;
    arena_reset(&m->arena);
    enum errc code = pod_watch_read(buf_str(&c->call.http.reply), &m->arena, &view, &version, e);
    if (code != OK)
        return code;
    if (!str_eq(view.uid, str_of(c->uid)))
        return err_set(e, ERR_SYNTAX, "the answer is about another pod");
    return roster_find(m->roster, view.uid) == NULL ? OK : roster_set(m->roster, &view, version);
}

static void pod_patcher_succeed(struct pod_patcher *m, const struct pod_patcher_call *c)
{
    if (m->last.code != OK)
        log_info("the pods' cards can be written again");
    m->last = (struct err)ERR_INIT;
    m->pause_ms = 0;
    timer_cancel(&m->again);
    m->counts.moved += c->action == EXCHANGE_MOVE ? 1 : 0;
}

/* A status of 5xx says nothing about it: the API server may only not have seen the end. */
static enum exchange_outcome pod_patcher_outcome(const struct http_call *h, enum errc code)
{
    bool refused =
        h->outcome == HTTP_ANSWERED && h->status >= 400 && h->status < 500 && h->status != 408;
    if (code == OK)
        return EXCHANGE_WRITTEN;
    if (refused && h->status == 409)
        return EXCHANGE_CONFLICT;
    return refused ? EXCHANGE_NOT_WRITTEN : EXCHANGE_UNKNOWN;
}

static void pod_patcher_on_done(struct http_call *http)
{
    struct pod_patcher_call *c = CONTAINER_OF(http, struct pod_patcher_call, call.http);
    struct pod_patcher *m = c->owner;
    struct err e = ERR_INIT;
    enum errc code = kube_call_result(&c->call, &e);
    if (code == OK)
        code = pod_patcher_take(m, c, &e);
    struct roster_pod *p = roster_find(m->roster, str_of(c->uid));
    enum exchange_outcome outcome = pod_patcher_outcome(&c->call.http, code);
    if (p != NULL)
        exchange_answered(p, outcome);
    if (outcome == EXCHANGE_UNKNOWN) {
        m->passed = false;
        timer_arm(m->loop, &m->late, POD_PATCHER_LATE_MS);
    }
    if (p != NULL && code == OK) {
        p->refusals = 0;
        p->failing_ms = 0;
    }
    if (code == OK)
        pod_patcher_succeed(m, c);
    else if (outcome == EXCHANGE_CONFLICT)
        pod_patcher_await(m, c, p, &e);
    else
        pod_patcher_fail(m, c, &e);
    kube_call_done(&c->call);
    pod_patcher_release(c);
    m->changed(m->ctx);
}

static enum errc pod_patcher_write(struct pod_patcher *m, struct pod_patcher_call *c,
                                   const struct exchange_step *step, struct buf *path)
{
    buf_clear(&c->body, SIZE_MAX);
    buf_put(path, STR("/api/v1/namespaces/"));
    kube_put_segment(path, step->pod->namespace);
    buf_put(path, STR("/pods/"));
    kube_put_segment(path, step->pod->name);
    buf_put(path, STR("/status?timeout="));
    buf_put_u64(path, LIMIT_PATCH_MS);
    buf_put(path, STR("ms"));
    c->uid = mem_alloc(step->pod->uid.n + 1);
    if (c->uid == NULL)
        return ERR_NOMEM;
    memcpy(c->uid, step->pod->uid.p, step->pod->uid.n);
    c->uid[step->pod->uid.n] = '\0';
    enum errc code = pod_patch_write(&c->body, m->roster, step);
    return code == OK ? buf_fault(path) : code;
}

/* A pod whose cards are known is written back because its author edits it: at once, and then less
 * and less often, so that this costs the API server no more than that. */
static void pod_patcher_note_edit(const struct pod_patcher *m, struct roster_pod *p)
{
    uint64_t now = loop_now_ms(m->loop);
    if (!p->held)
        return;
    if (p->edits > 0 && now >= p->edit_ms + POD_PATCHER_CALM_MS)
        p->edits = 0;
    p->rests = p->edits++ > 0;
    p->edit_ms = now;
    if (p->rests)
        p->edit_ms += MIN_OF(PAUSE_MS << MIN_OF(p->edits, 16U), POD_PATCHER_RETRY_MS);
}

static bool pod_patcher_send(struct pod_patcher *m, struct pod_patcher_call *c,
                             const struct exchange_step *step)
{
    char bytes[PATH_MAX_BYTES];
    struct buf path = BUF_ON(bytes);
    c->owner = m;
    c->action = step->action;
    if (pod_patcher_write(m, c, step, &path) != OK) {
        pod_patcher_release(c);
        pod_patcher_rest(m);
        return false;
    }
    c->call.http = (struct http_call){
        .timeout_ms = LIMIT_PATCH_MS,
        .body = buf_str(&c->body),
        .content_type = STR("application/merge-patch+json"),
        .on_done = pod_patcher_on_done,
    };
    exchange_sent(step);
    m->counts.sent++;
    if (step->action != EXCHANGE_ASSIGN)
        pod_patcher_note_edit(m, step->pod);
    if (step->action == EXCHANGE_MOVE)
        log_info("a pod's annotations follow its containers to other cards",
                 kv_str("namespace", step->pod->namespace), kv_str("pod", step->pod->name));
    kube_call_start(m->api, &c->call, "PATCH", buf_str(&path));
    return true;
}

static void pod_patcher_end_rests(struct pod_patcher *m)
{
    uint64_t now = loop_now_ms(m->loop);
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < m->roster->n_pods; i++) {
        struct roster_pod *p = m->roster->pods[i];
        p->rests = p->rests && now < p->edit_ms;
        if (p->rests)
            next = MIN_OF(next, p->edit_ms - now);
    }
    if (next != UINT64_MAX)
        timer_arm(m->loop, &m->rested, next);
}

void pod_patcher_step(struct pod_patcher *m)
{
    struct exchange_step step;
    pod_patcher_end_rests(m);
    for (size_t i = 0; i < POD_PATCHER_CALLS && !timer_armed(&m->again); i++) {
        if (m->calls[i].owner != NULL)
            continue;
        exchange_next(m->roster, &step);
        if (step.action == EXCHANGE_NOTHING || !pod_patcher_send(m, &m->calls[i], &step))
            return;
    }
}
