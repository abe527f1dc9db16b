/*
 * Each stream keeps the version of the cache's changes up to which its page knows everything. It
 * makes the next portion only when the previous one has been sent. While a stream is open, each
 * tick checks for news. The texts that are equal for all streams, the pending pods and the status,
 * are written once.
 *
 * The cache keeps the names of removed nodes up to a limit. A stream that missed more sends "hello"
 * and starts again.
 */
#include "daemon/page/ui_feed.h"

#include "base/mem.h"
#include "daemon/limit.h"
#include "daemon/page/ui_history.h"
#include "daemon/page/ui_quota.h"
#include "daemon/page/ui_write.h"
#include "io/limit.h"

#define BEAT_TICKS    30
#define QUOTA_TICKS   4 /* the usage of quotas changes with each pod, and is sent as a whole */
#define PORTION_BYTES (64 * KIB) /* checked before each node, so it may be exceeded by one node */
#define PORTION_NODES 200

/* An event that is the same for all streams; its version is never 0. */
struct said {
    struct buf text; /* text of the event */
    uint64_t version;
};

struct ui_stream {
    struct http_stream stream;
    struct ui_feed *feed;
    struct list_link link; /* in the feed's streams */
    bool greeted;
    bool ready;     /* all nodes were sent once */
    uint64_t begun; /* version of the changes at "hello" */
    uint64_t nodes; /* the page knows all changed nodes up to this version */
    uint64_t gone;  /* the page knows all removed nodes up to this version */
    uint64_t pods;  /* version of feed->pods that the page knows; likewise the others */
    uint64_t status;
    uint64_t quotas;
    uint64_t past;
    uint64_t beats;
};

struct ui_feed {
    struct service *service;
    struct ui_reasons reasons;
    struct ui_history history;
    struct timer tick; /* while a stream is open */
    uint64_t tick_ms;
    struct timer minute; /* always */
    struct list streams;
    size_t n_streams;
    uint64_t seen; /* ready streams send changes up to this version */
    uint64_t ticks;
    uint64_t beats;

    struct said pods;
    uint64_t pods_of[2]; /* the versions of the pending pods and the reasons in `pods` */
    struct said status;
    struct said quotas;
    struct said past;
    uint64_t past_of;    /* the samples taken in `past` */
    uint64_t counted_at; /* version of the changes at which nodes and cards were counted */
    size_t nodes;
    size_t cards;
    struct buf draft;
};

/* ---- what is the same for all ---- */

static void ui_feed_begin_event(struct buf *out, const char *name)
{
    buf_printf(out, "event: %s\ndata: ", name);
}

static void ui_feed_end_event(struct buf *out)
{
    buf_put(out, STR("\n\n"));
}

/*
 * Publishes the draft if it differs from the last text. If an allocation fails, the next tick tries
 * again.
 */
static bool ui_feed_publish(struct ui_feed *f, struct said *said)
{
    if (buf_failed(&f->draft) || str_eq(buf_str(&f->draft), buf_str(&said->text)))
        return false;
    struct buf old = said->text;
    said->text = f->draft;
    said->version++;
    f->draft = old;
    return true;
}

static struct jwrite ui_feed_start_draft(struct ui_feed *f, const char *name)
{
    struct jwrite w;
    buf_clear(&f->draft, LIMIT_KEEP_BYTES);
    ui_feed_begin_event(&f->draft, name);
    jwrite_init(&w, &f->draft);
    return w;
}

static bool ui_feed_refresh_pods(struct ui_feed *f)
{
    const struct cache *c = &f->service->cache;
    if (f->pods.version > 0 && f->pods_of[0] == c->pending_version &&
        f->pods_of[1] == f->reasons.version)
        return false;
    struct jwrite w = ui_feed_start_draft(f, "pods");
    ui_write_pending(&w, c, &f->reasons);
    ui_feed_end_event(&f->draft);
    if (!buf_failed(&f->draft)) {
        f->pods_of[0] = c->pending_version;
        f->pods_of[1] = f->reasons.version;
    }
    return ui_feed_publish(f, &f->pods);
}

static void ui_feed_count_nodes(struct ui_feed *f)
{
    const struct cache *c = &f->service->cache;
    if (f->counted_at == c->changes.version)
        return;
    f->counted_at = c->changes.version;
    f->nodes = 0;
    f->cards = 0;
    for (const struct change_link *x = changes_after(&c->changes, 0); x != NULL;
         x = changes_next(&c->changes, x)) {
        const struct node *n = cache_changed_node(x);
        if (!ui_shows(n))
            continue;
        f->nodes++;
        for (uint32_t i = 0; i < n->n_cards; i++)
            f->cards += n->cards[i].absent ? 0 : 1;
    }
}

static bool ui_feed_leads(const struct ui_feed *f)
{
    struct backend *b = f->service->backend;
    return b->term(b) > 0;
}

/* Idle cards that the expected pods cannot use, with two decimals, once they are known. */
static void ui_feed_put_waste(const struct ui_feed *f, struct jwrite *w)
{
    const struct learn *l = &f->service->learn;
    char bytes[32];
    struct buf text = BUF_ON(bytes);
    if (!l->known)
        return;
    uint64_t cents = (uint64_t)(l->waste * 100 + 0.5);
    buf_printf(&text, "%llu.%02llu", (unsigned long long)(cents / 100),
               (unsigned long long)(cents % 100));
    jwrite_raw_at(w, STR("waste"), buf_str(&text));
}

static bool ui_feed_refresh_status(struct ui_feed *f)
{
    struct str why = STR("");
    bool ready = service_ready(f->service, &why);
    ui_feed_count_nodes(f);
    struct jwrite w = ui_feed_start_draft(f, "status");
    jwrite_object_begin(&w);
    jwrite_bool_at(&w, STR("ready"), ready);
    jwrite_str_at(&w, STR("why"), ready ? STR("") : why);
    jwrite_bool_at(&w, STR("leader"), ui_feed_leads(f));
    jwrite_u64_at(&w, STR("nodes"), f->nodes);
    jwrite_u64_at(&w, STR("cards"), f->cards);
    ui_feed_put_waste(f, &w);
    jwrite_object_end(&w);
    ui_feed_end_event(&f->draft);
    return ui_feed_publish(f, &f->status);
}

static bool ui_feed_refresh_quotas(struct ui_feed *f)
{
    if (f->quotas.text.n > 0 && f->ticks % QUOTA_TICKS != 0)
        return false;
    struct jwrite w = ui_feed_start_draft(f, "quotas");
    ui_quota_write(&w, &f->service->cache.quota);
    ui_feed_end_event(&f->draft);
    return ui_feed_publish(f, &f->quotas);
}

static bool ui_feed_refresh_past(struct ui_feed *f)
{
    if (f->past_of == f->history.taken)
        return false;
    struct jwrite w = ui_feed_start_draft(f, "history");
    ui_history_write(&w, &f->history);
    ui_feed_end_event(&f->draft);
    if (!buf_failed(&f->draft))
        f->past_of = f->history.taken;
    return ui_feed_publish(f, &f->past);
}

/* Updates the common texts; returns whether a stream has something to send. */
static bool ui_feed_refresh(struct ui_feed *f)
{
    struct changes *c = &f->service->cache.changes;
    bool news = f->seen != c->version;
    f->seen = changes_see(c);
    news |= ui_feed_refresh_status(f);
    news |= ui_feed_refresh_quotas(f);
    news |= ui_feed_refresh_past(f);
    news |= ui_feed_refresh_pods(f);
    return news;
}

/* ---- one stream ---- */

static void ui_feed_put_hello(struct ui_stream *s, struct buf *out)
{
    struct jwrite w;
    uint64_t now = changes_see(&s->feed->service->cache.changes);
    s->greeted = true;
    s->ready = false;
    s->begun = s->gone = now;
    s->nodes = 0;
    s->pods = s->status = s->quotas = s->past = 0;
    s->beats = s->feed->beats;
    ui_feed_begin_event(out, "hello");
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("version"), STR(CARDPACK_VERSION));
    jwrite_bool_at(&w, STR("leader"), ui_feed_leads(s->feed));
    jwrite_object_end(&w);
    ui_feed_end_event(out);
}

/* The changes that a portion contains: from `first` up to version `to`. */
struct span {
    const struct change_link *first;
    uint64_t to;
};

static bool ui_feed_put_changed(const struct ui_stream *s, struct jwrite *w, struct span *span)
{
    const struct changes *c = &s->feed->service->cache.changes;
    uint64_t limit = span->to;
    unsigned written = 0;
    jwrite_array_at(w, STR("nodes"));
    for (const struct change_link *x = span->first; x != NULL && x->version <= limit;
         x = changes_next(c, x)) {
        if (written == PORTION_NODES || w->out->n >= PORTION_BYTES) {
            span->to = x->version - 1;
            break;
        }
        const struct node *n = cache_changed_node(x);
        if (!ui_shows(n))
            continue;
        ui_write_node(w, &s->feed->service->measured, n);
        written++;
    }
    jwrite_array_end(w);
    return written > 0;
}

/*
 * Writes the names of nodes that are removed or no longer shown. A node that has not changed since
 * "hello" was never sent, so it is skipped.
 */
static bool ui_feed_put_gone(const struct ui_stream *s, struct jwrite *w, const struct span *span)
{
    const struct cache *cache = &s->feed->service->cache;
    const struct change_gone *g;
    uint64_t cursor = 0;
    bool any = false;
    jwrite_array_at(w, STR("gone"));
    for (const struct change_link *x = span->first; x != NULL && x->version <= span->to;
         x = changes_next(&cache->changes, x)) {
        const struct node *n = cache_changed_node(x);
        if (ui_shows(n) || x->version <= s->begun)
            continue;
        jwrite_str(w, n->name);
        any = true;
    }
    while ((g = changes_gone(&cache->changes, s->gone, &cursor)) != NULL) {
        struct str name = {g->name, g->n};
        if (ui_shows(cache_node(cache, name))) /* it exists again: it was sent, or will be soon */
            continue;
        jwrite_str(w, name);
        any = true;
    }
    jwrite_array_end(w);
    return any;
}

static void ui_feed_put_nodes(struct ui_stream *s, struct buf *out)
{
    struct changes *c = &s->feed->service->cache.changes;
    struct span span = {.to = s->ready ? s->feed->seen : changes_see(c)};
    span.first = changes_after(c, s->nodes);
    size_t before = out->n;
    struct jwrite w;
    ui_feed_begin_event(out, "nodes");
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    bool any = ui_feed_put_changed(s, &w, &span);
    any |= ui_feed_put_gone(s, &w, &span);
    jwrite_object_end(&w);
    ui_feed_end_event(out);
    if (!any && !buf_failed(out))
        out->n = before;
    s->nodes = MAX_OF(s->nodes, span.to);
    s->gone = c->version;
    if (s->ready || s->nodes != c->version)
        return;
    s->ready = true;
    ui_feed_begin_event(out, "ready");
    buf_put(out, STR("{}\n\n"));
}

static void ui_feed_put_said(struct buf *out, const struct said *said, uint64_t *known)
{
    if (*known == said->version)
        return;
    *known = said->version;
    buf_put(out, buf_str(&said->text));
}

static void ui_feed_fill(struct http_stream *st, struct buf *out)
{
    struct ui_stream *s = CONTAINER_OF(st, struct ui_stream, stream);
    struct ui_feed *f = s->feed;
    if (!s->greeted || s->gone < f->service->cache.changes.lost)
        ui_feed_put_hello(s, out);
    ui_feed_put_said(out, &f->status, &s->status);
    ui_feed_put_said(out, &f->quotas, &s->quotas);
    ui_feed_put_said(out, &f->past, &s->past);
    ui_feed_put_nodes(s, out);
    if (s->ready)
        ui_feed_put_said(out, &f->pods, &s->pods);
    if (out->n == 0 && s->beats != f->beats)
        buf_put(out, STR(":\n\n"));
    s->beats = f->beats;
}

static void ui_feed_gone(struct http_stream *st)
{
    struct ui_stream *s = CONTAINER_OF(st, struct ui_stream, stream);
    struct ui_feed *f = s->feed;
    assert(f->n_streams > 0);
    list_remove(&s->link);
    mem_free(s);
    if (--f->n_streams > 0)
        return;
    timer_cancel(&f->tick);
    buf_clear(&f->pods.text, 0);
    buf_clear(&f->status.text, 0);
    buf_clear(&f->quotas.text, 0);
    buf_clear(&f->past.text, 0);
    f->past_of = UINT64_MAX;
    buf_clear(&f->draft, 0);
    f->pods_of[0] = f->pods_of[1] = UINT64_MAX;
}

/* ---- all of them ---- */

static void ui_feed_tick(struct timer *t)
{
    struct ui_feed *f = CONTAINER_OF(t, struct ui_feed, tick);
    assert(f->n_streams > 0);
    bool news = ui_feed_refresh(f);
    if (++f->ticks % BEAT_TICKS == 0) {
        f->beats++;
        news = true;
    }
    if (news) {
        LIST_FOR_EACH (struct ui_stream, s, &f->streams, link)
            http_stream_wake(&s->stream);
    }
    timer_arm(f->service->loop, t, f->tick_ms);
}

static void ui_feed_minute(struct timer *t)
{
    struct ui_feed *f = CONTAINER_OF(t, struct ui_feed, minute);
    ui_history_take(&f->history, &f->service->cache);
    timer_arm(f->service->loop, t, UI_HISTORY_MS);
}

static struct ui_stream *ui_feed_stream_new(struct ui_feed *f)
{
    struct ui_stream *s = mem_alloc(sizeof(*s));
    if (s == NULL)
        return NULL;
    s->stream.fill = ui_feed_fill;
    s->stream.gone = ui_feed_gone;
    s->feed = f;
    list_push_back(&f->streams, &s->link);
    f->n_streams++;
    assert(f->n_streams <= LIMIT_UI_STREAMS);
    return s;
}

void ui_feed_handle(struct ui_feed *f, struct http_request *r)
{
    http_request_header(r, "Cache-Control", "no-store");
    if (f == NULL || f->n_streams == LIMIT_UI_STREAMS) {
        http_request_header(r, "Retry-After", "5");
        http_respond_error(r, 503, STR("as many pages are open as can be served"));
        return;
    }
    struct ui_stream *s = ui_feed_stream_new(f);
    if (s == NULL) {
        http_respond_error(r, 503, STR("out of memory"));
        return;
    }
    if (!timer_armed(&f->tick)) {
        (void)ui_feed_refresh(f);
        timer_arm(f->service->loop, &f->tick, f->tick_ms);
    }
    http_request_header(r, "X-Accel-Buffering", "no"); /* nginx: do not buffer */
    http_request_stream(r, 200, "text/event-stream", &s->stream);
}

enum errc ui_feed_new(struct service *s, uint64_t tick_ms, struct ui_feed **ret, struct err *reterr)
{
    struct ui_feed *f = mem_alloc(sizeof(*f));
    if (f == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the page's events");
    f->service = s;
    list_init(&f->streams);
    f->tick.fire = ui_feed_tick;
    f->tick_ms = tick_ms;
    f->minute.fire = ui_feed_minute;
    timer_arm(s->loop, &f->minute, UI_HISTORY_MS);
    f->past_of = UINT64_MAX;
    ui_reasons_init(&f->reasons, (struct map_seed){loop_random(s->loop), loop_random(s->loop)});
    buf_init(&f->pods.text, LIMIT_REPLY_BYTES);
    buf_init(&f->status.text, LIMIT_REPLY_BYTES);
    buf_init(&f->quotas.text, LIMIT_REPLY_BYTES);
    buf_init(&f->past.text, LIMIT_REPLY_BYTES);
    buf_init(&f->draft, LIMIT_REPLY_BYTES);
    f->pods_of[0] = f->pods_of[1] = UINT64_MAX;
    s->reasons = &f->reasons;
    *ret = f;
    return OK;
}

struct ui_feed *ui_feed_free(struct ui_feed *f)
{
    if (f == NULL)
        return NULL;
    assert(f->n_streams == 0 && list_is_empty(&f->streams));
    timer_cancel(&f->tick);
    timer_cancel(&f->minute);
    f->service->reasons = NULL;
    buf_done(&f->pods.text);
    buf_done(&f->status.text);
    buf_done(&f->quotas.text);
    buf_done(&f->past.text);
    buf_done(&f->draft);
    mem_free(f);
    return NULL;
}
