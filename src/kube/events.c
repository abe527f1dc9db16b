/*
 * Sends Events through a bounded queue and a few senders. Each record of the book has at most one
 * post, which waits in the queue or is with a sender. If the record changes meanwhile, the post is
 * changed and sent again afterwards: so no Event is patched before it was created, and many repeats
 * become one PATCH. A sender that pauses before another try keeps its post and takes no other: so a
 * failing API server gets fewer and fewer requests, and the full queue drops new events.
 */
#include "kube/events.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/event_book.h"
#include "kube/limit.h"

#define TRIES              4
#define CALL_TIMEOUT_MS    10000
#define RETRY_AFTER_MAX_MS UINT64_C(30000)
#define TELL_EACH_MS       600000
#define BODY_MAX           (64 * KIB)

/* Both names with every byte escaped, and the fixed parts of the path. */
#define PATH_BYTES (3 * (EVENT_NAMESPACE_BYTES + EVENT_NAME_BYTES) + 64)

struct post {
    struct list_link link; /* in the queue */
    struct event_record *record;
    struct kube_event event; /* its strings follow the struct in memory; its message is below */
    char message[EVENT_MESSAGE_BYTES + 1];
    unsigned tries;
    bool sent;  /* with a sender */
    bool stale; /* changed since the sender wrote its request */
    bool patch; /* the sender's request is a PATCH, not a POST */
};

struct sender {
    struct events *owner;
    struct post *post; /* NULL: idle */
    struct kube_call call;
    struct buf body;
    struct timer again;
};

struct events {
    struct events_settings set;
    struct events_counts own; /* used if the caller wants no counts */
    struct events_counts *counts;
    struct event_book book;
    struct list queue;
    size_t n_posts; /* queued and with senders */
    struct sender senders[LIMIT_EVENTS_IN_FLIGHT];

    uint64_t dropped; /* since the last log line about it */
    uint64_t log_dropped_ms;
    uint64_t lost; /* since the last note about it */
    uint64_t tell_lost_ms;

    bool draining;
    void (*drained)(void *ctx); /* NULL: was called */
    void *drained_ctx;
    struct timer drain_over;
    struct deferred drain_done;
};

static void events_send(struct sender *s);

/* ---- dropped and lost Events ---- */

static void events_drop(struct events *ev)
{
    uint64_t now_ms = loop_now_ms(ev->set.loop);
    ev->dropped++;
    ev->counts->dropped++;
    if (now_ms < ev->log_dropped_ms)
        return;
    log_debug("events dropped", kv_uint("events", ev->dropped));
    ev->dropped = 0;
    ev->log_dropped_ms = now_ms + TELL_EACH_MS;
}

static void events_lose(struct events *ev, const struct err *why)
{
    uint64_t now_ms = loop_now_ms(ev->set.loop);
    ev->lost++;
    ev->counts->lost++;
    if (now_ms < ev->tell_lost_ms)
        return;
    ev->set.note(ev->set.ctx, ev->lost, why);
    ev->lost = 0;
    ev->tell_lost_ms = now_ms + TELL_EACH_MS;
}

/* ---- the queue ---- */

static struct post *events_dequeue(struct events *ev)
{
    struct post *p = LIST_FIRST(&ev->queue, struct post, link);
    if (p != NULL)
        list_remove(&p->link);
    return p;
}

static void events_post_free(struct events *ev, struct post *p)
{
    assert(p->record->post == p && !list_is_linked(&p->link) && ev->n_posts > 0);
    p->record->pinned = false;
    p->record->post = NULL;
    ev->counts->waiting = --ev->n_posts;
    mem_free(p);
}

static struct post *events_post_new(struct events *ev, const struct event_sight *e,
                                    struct event_record *record)
{
    const struct event_subject *pod = e->pod;
    if (ev->n_posts == LIMIT_EVENTS_QUEUED)
        return NULL;
    struct post *p =
        mem_alloc(sizeof(*p) + pod->namespace.n + pod->name.n + pod->uid.n + e->reason.n);
    if (p == NULL)
        return NULL;
    char *at = (char *)(p + 1);
    p->event.pod.namespace = str_store(&at, pod->namespace);
    p->event.pod.name = str_store(&at, pod->name);
    p->event.pod.uid = str_store(&at, pod->uid);
    p->event.reason = str_store(&at, e->reason);
    p->event.level = e->level;
    p->event.component = ev->set.component;
    p->event.first_ns = record->first_ns;
    assert(record->post == NULL && !record->pinned);
    p->record = record;
    record->pinned = true;
    record->post = p;
    ev->counts->waiting = ++ev->n_posts;
    return p;
}

static void events_pump(struct events *ev)
{
    for (size_t i = 0; i < COUNT_OF(ev->senders) && !list_is_empty(&ev->queue); i++) {
        struct sender *s = &ev->senders[i];
        if (s->post != NULL)
            continue;
        s->post = events_dequeue(ev);
        s->post->sent = true;
        s->post->tries = 0;
        events_send(s);
    }
    if (ev->draining && ev->n_posts == 0)
        loop_defer(ev->set.loop, &ev->drain_done);
}

/* ---- senders ---- */

static void events_end(struct sender *s, bool good)
{
    struct events *ev = s->owner;
    struct post *p = s->post;
    assert(p->sent && p->record->post == p);
    s->post = NULL;
    kube_call_done(&s->call);
    p->sent = false;
    if (good && p->stale)
        list_push_back(&ev->queue, &p->link);
    else
        events_post_free(ev, p);
    events_pump(ev);
}

static void events_pause_or_lose(struct sender *s, const struct err *why)
{
    struct events *ev = s->owner;
    uint64_t asked_ms = MIN_OF(s->call.http.retry_after_ms, RETRY_AFTER_MAX_MS);
    assert(s->post->tries > 0 && !timer_armed(&s->again));
    if (ev->draining || s->post->tries >= TRIES) {
        events_lose(ev, why);
        events_end(s, false);
        return;
    }
    uint64_t ms = ev->set.retry_ms << s->post->tries;
    ms += loop_random(ev->set.loop) % (ms + 1);
    timer_arm(ev->set.loop, &s->again, MAX_OF(ms, asked_ms));
}

static void events_on_again(struct timer *t)
{
    events_send(CONTAINER_OF(t, struct sender, again));
}

static bool events_is_worth_a_try(const struct http_call *h)
{
    return h->outcome != HTTP_ANSWERED || h->status == 401 || h->status == 429 || h->status >= 500;
}

static void events_on_done(struct http_call *http)
{
    struct sender *s = CONTAINER_OF(http, struct sender, call.http);
    struct post *p = s->post;
    struct err e = ERR_INIT;
    enum errc code = kube_call_result(&s->call, &e);
    if (http->status == 401)
        kube_api_refresh(s->owner->set.api);
    if (code == OK) {
        p->record->made = true;
        s->owner->counts->written++;
        events_end(s, true);
    } else if (http->status == (p->patch ? 404U : 409U) && p->tries < TRIES) {
        /* 404 to a PATCH: the Event has expired (by default after an hour), so create it again. 409
         * to a POST: an earlier try whose answer was lost created it, perhaps with a lower count,
         * so patch it. */
        p->record->made = !p->patch;
        events_send(s);
    } else if (events_is_worth_a_try(http)) {
        events_pause_or_lose(s, &e);
    } else {
        events_lose(s->owner, &e);
        events_end(s, false);
    }
}

static void events_put_path(struct buf *out, const struct post *p)
{
    char bytes[EVENT_NAME_BYTES + 32];
    struct buf name = BUF_ON(bytes);
    buf_put(out, STR("/api/v1/namespaces/"));
    kube_put_segment(out, event_namespace(&p->event.pod));
    buf_put(out, STR("/events"));
    if (!p->patch)
        return;
    event_put_name(&name, p->event.pod.name, p->event.first_ns);
    buf_putc(out, '/');
    kube_put_segment(out, buf_str(&name));
}

static void events_send(struct sender *s)
{
    struct events *ev = s->owner;
    struct post *p = s->post;
    struct err e = ERR_INIT;
    struct jwrite w;
    char bytes[PATH_BYTES];
    struct buf path = BUF_ON(bytes);
    assert(p->sent && !timer_armed(&s->again));
    p->tries++;
    p->stale = false;
    p->patch = p->record->made;
    events_put_path(&path, p);
    assert(!buf_failed(&path));
    buf_clear(&s->body, SIZE_MAX);
    jwrite_init(&w, &s->body);
    if (p->patch)
        event_write_repeat(&w, &p->event);
    else
        event_write(&w, &p->event);
    if (buf_failed(&s->body)) {
        s->call.http.retry_after_ms = 0;
        (void)err_set(&e, ERR_NOMEM, "no memory for an event");
        events_pause_or_lose(s, &e);
        return;
    }
    s->call.http.body = buf_str(&s->body);
    s->call.http.content_type = p->patch ? STR("application/strategic-merge-patch+json") : STR_NULL;
    s->call.http.timeout_ms = CALL_TIMEOUT_MS;
    s->call.http.on_done = events_on_done;
    kube_call_start(ev->set.api, &s->call, p->patch ? "PATCH" : "POST", buf_str(&path));
}

/* ---- public functions ---- */

void events_post(struct events *ev, const struct event_subject *pod, enum event_level level,
                 struct str reason, struct str message)
{
    const struct event_sight e = {.pod = pod,
                                  .level = level,
                                  .reason = reason,
                                  .message = str_head(message, EVENT_MESSAGE_BYTES)};
    struct event_record *record = NULL;
    log_debug("event", kv_str("namespace", pod->namespace), kv_str("pod", pod->name),
              kv_str("reason", reason), kv_str("message", message));
    if (ev == NULL)
        return;
    uint64_t unix_ns = loop_wall_ns(ev->set.loop);
    enum event_advice advice = EVENT_DROP;
    if (event_fits(pod, reason))
        advice = event_book_see(&ev->book, &e, loop_now_ms(ev->set.loop), unix_ns, &record);
    if (advice == EVENT_DROP) {
        events_drop(ev);
        return;
    }
    struct post *p = record->post;
    bool is_known = p != NULL;
    if (!is_known)
        p = events_post_new(ev, &e, record);
    if (p == NULL) {
        events_drop(ev);
        return;
    }
    struct buf text = BUF_ON(p->message);
    event_put_message(&text, message, advice == EVENT_SEND_COMBINED);
    p->event.message = buf_str(&text);
    p->event.last_ns = unix_ns;
    p->event.count = record->count;
    p->stale = p->sent;
    if (is_known)
        return;
    list_push_back(&ev->queue, &p->link);
    events_pump(ev);
}

static void events_on_drain_over(struct timer *t)
{
    struct events *ev = CONTAINER_OF(t, struct events, drain_over);
    loop_defer(ev->set.loop, &ev->drain_done);
}

static void events_on_drain_done(struct deferred *d)
{
    struct events *ev = CONTAINER_OF(d, struct events, drain_done);
    void (*done)(void *ctx) = ev->drained;
    assert(ev->draining);
    timer_cancel(&ev->drain_over);
    ev->drained = NULL;
    if (done != NULL)
        done(ev->drained_ctx);
}

void events_drain(struct events *ev, void (*done)(void *ctx), void *ctx)
{
    if (ev == NULL) {
        done(ctx);
        return;
    }
    assert(!ev->draining);
    ev->draining = true;
    ev->drained = done;
    ev->drained_ctx = ctx;
    timer_arm(ev->set.loop, &ev->drain_over, ev->set.drain_ms);
    for (size_t i = 0; i < COUNT_OF(ev->senders); i++) {
        if (timer_armed(&ev->senders[i].again))
            timer_arm(ev->set.loop, &ev->senders[i].again, 0); /* the last try of its post */
    }
    events_pump(ev);
}

/* ---- create and free ---- */

enum errc events_new(const struct events_settings *s, struct events **ret, struct err *reterr)
{
    struct events *ev = mem_alloc(sizeof(*ev));
    struct map_seed seed = {loop_random(s->loop), loop_random(s->loop)};
    struct map_seed other = {loop_random(s->loop), loop_random(s->loop)};
    if (ev == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for events");
    ev->set = *s;
    ev->counts = s->counts == NULL ? &ev->own : s->counts;
    list_init(&ev->queue);
    ev->drain_over.fire = events_on_drain_over;
    ev->drain_done.run = events_on_drain_done;
    for (size_t i = 0; i < COUNT_OF(ev->senders); i++) {
        ev->senders[i].owner = ev;
        ev->senders[i].again.fire = events_on_again;
        buf_init(&ev->senders[i].body, BODY_MAX);
    }
    if (event_book_init(&ev->book, seed, other) != OK) {
        (void)events_free(ev);
        return err_set(reterr, ERR_NOMEM, "no memory for events");
    }
    *ret = ev;
    return OK;
}

struct events *events_free(struct events *ev)
{
    if (ev == NULL)
        return NULL;
    timer_cancel(&ev->drain_over);
    deferred_cancel(&ev->drain_done);
    for (size_t i = 0; i < COUNT_OF(ev->senders); i++) {
        struct sender *s = &ev->senders[i];
        timer_cancel(&s->again);
        kube_call_cancel(&s->call);
        kube_call_done(&s->call);
        buf_done(&s->body);
        if (s->post != NULL)
            events_post_free(ev, s->post);
    }
    for (struct post *p = events_dequeue(ev); p != NULL; p = events_dequeue(ev))
        events_post_free(ev, p);
    assert(ev->n_posts == 0);
    event_book_done(&ev->book);
    mem_free(ev);
    return NULL;
}
