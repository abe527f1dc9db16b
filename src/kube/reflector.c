/*
 * Performs the actions of reflector_step and gives it the results: one call at a time, one JSON
 * cutter, one timer.
 *
 * The timer is always armed, without end if nothing is due: to move an armed timer needs no memory,
 * and a reflector whose timer cannot be armed would never run again. A relist goes through the
 * timer too, because its caller may be inside a callback of the call that must be cancelled.
 *
 * The version comes from a list's first page and then from every event and bookmark, as an opaque
 * string. It changes only after the sink has seen the event.
 */
#include "kube/reflector.h"

#include "base/log.h"
#include "base/mem.h"
#include "kube/limit.h"
#include "objects/watch.h"
#include "json/jcut.h"

#define ENVELOPE_BYTES   (1 * KIB)
#define EVENT_ARENA      (256 * KIB)
#define VERSION_MAX      (1 * KIB)
#define TOKEN_MAX        (64 * KIB)
#define QUERY_MAX        (256 * KIB)
#define STATUS_MAX_BYTES (64 * KIB)

/* The API server gives up on any list after 60 s. */
#define LIST_QUIET_MS 75000

/* The API server may end a watch this much later than timeoutSeconds. */
#define WATCH_GRACE_MS 30000

struct reflector {
    struct loop *loop;
    struct kube_api *api;
    struct reflector_sink sink;
    struct buf path;     /* with '?' */
    struct buf selector; /* with '&', or empty */
    struct str kind;
    unsigned page_size;
    size_t max_objects;
    uint64_t quiet_ms;
    struct reflector_counts own; /* used if the caller wants no counts */
    struct reflector_counts *counts;

    struct reflector_state state;
    struct timer timer;
    bool relist_wanted;

    struct kube_call call;
    struct buf query; /* of the call under way, with its path */
    struct jcut cut;
    struct arena arena; /* for one event or list metadata */
    struct buf version; /* fully reserved: to store a version never needs memory */
    struct buf token;   /* continue token of the next page; empty: no more pages */
    struct buf asked;   /* continue token of the page under way; empty: the first page */

    /* For the list under way: */
    size_t n_objects;
    size_t empty_pages;

    /* For the call under way: */
    bool streaming; /* the body has begun */
    bool meta_seen; /* the page had metadata */
    bool kind_seen; /* the page had a kind */
    bool item_seen;
    bool stopped;                /* an ERROR event ended the watch */
    struct reflector_input stop; /* that event, for reflector_step */
};

static void reflector_react(struct reflector *r, const struct reflector_input *in,
                            const struct err *e);

/* ---- requests ---- */

static enum errc reflector_on_piece(void *ctx, enum jcut_piece kind, struct str piece,
                                    struct err *reterr);
static void reflector_on_done(struct http_call *http);

static enum errc reflector_on_chunk(struct http_call *http, struct str chunk, struct err *reterr)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct reflector *r = CONTAINER_OF(call, struct reflector, call);
    assert((r->cut.mode == JCUT_LIST) == (r->state.phase == REFLECTOR_LISTING));
    r->streaming = true;
    return jcut_push(&r->cut, chunk, reterr);
}

/* The path and query are in r->query. */
static void reflector_send_request(struct reflector *r, enum jcut_mode mode, uint64_t timeout_ms,
                                   uint64_t quiet_ms)
{
    assert(r->call.http.client == NULL);
    if (r->cut.mode == mode) {
        jcut_reset(&r->cut);
    } else {
        jcut_done(&r->cut);
        jcut_init(&r->cut, mode, LIMIT_OBJECT_BYTES + ENVELOPE_BYTES, reflector_on_piece, r);
    }
    r->streaming = r->meta_seen = r->kind_seen = r->item_seen = r->stopped = false;
    r->call.http = (struct http_call){
        .timeout_ms = timeout_ms,
        .quiet_ms = quiet_ms,
        .max_reply = STATUS_MAX_BYTES,
        .on_chunk = reflector_on_chunk,
        .bulk = mode == JCUT_LIST,
        .on_done = reflector_on_done,
    };
    /* A query that did not fit becomes an invalid URL: the call fails with the usual back-off. */
    kube_call_start(r->api, &r->call, "GET", buf_failed(&r->query) ? STR(" ") : buf_str(&r->query));
}

static void reflector_send_list(struct reflector *r, bool paged)
{
    buf_clear(&r->query, KIB);
    buf_put(&r->query, buf_str(&r->path));
    if (paged && r->page_size > 0)
        buf_printf(&r->query, "limit=%u", r->page_size);
    struct buf spare = r->asked;
    r->asked = r->token;
    r->token = spare;
    if (r->asked.n > 0) {
        buf_put(&r->query, STR("&continue="));
        kube_put_escaped(&r->query, buf_str(&r->asked));
    }
    buf_put(&r->query, buf_str(&r->selector));
    buf_clear(&r->token, KIB);
    reflector_send_request(r, JCUT_LIST, 0, MIN_OF(r->quiet_ms, LIST_QUIET_MS));
}

static void reflector_send_watch(struct reflector *r, unsigned seconds)
{
    buf_clear(&r->query, KIB);
    buf_put(&r->query, buf_str(&r->path));
    buf_printf(&r->query,
               "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", seconds);
    kube_put_escaped(&r->query, buf_str(&r->version));
    buf_put(&r->query, buf_str(&r->selector));
    reflector_send_request(r, JCUT_LINES, (uint64_t)seconds * 1000 + WATCH_GRACE_MS, r->quiet_ms);
}

/* ---- answers ---- */

static enum errc reflector_remember(struct buf *b, struct str s, const char *what,
                                    struct err *reterr)
{
    /* A value that is too long keeps the old one: an empty version would mean another watch. */
    if (s.n > b->max)
        return err_set(reterr, ERR_LIMIT, "%s of %zu bytes", what, s.n);
    buf_clear(b, SIZE_MAX);
    buf_put(b, s);
    return buf_failed(b) ? err_set(reterr, ERR_NOMEM, "out of memory") : OK;
}

static enum errc reflector_on_list_meta(struct reflector *r, struct str json, struct err *reterr)
{
    struct list_meta meta;
    arena_reset(&r->arena);
    enum errc code = list_meta_read(json, &r->arena, &meta, reterr);
    if (code == OK && r->asked.n == 0)
        code = reflector_remember(&r->version, meta.resource_version, "a resourceVersion", reterr);
    if (code == OK)
        code = reflector_remember(&r->token, meta.next, "a continue token", reterr);
    if (code == OK && r->asked.n > 0 && str_eq(buf_str(&r->token), buf_str(&r->asked)))
        code = err_set(reterr, ERR_SYNTAX, "a page that continues with itself");
    r->meta_seen = true;
    return code;
}

static enum errc reflector_on_item(struct reflector *r, struct str json, struct err *reterr)
{
    r->item_seen = true;
    if (++r->n_objects > r->max_objects)
        return err_set(reterr, ERR_LIMIT, "a list of more than %zu objects", r->max_objects);
    r->counts->objects++;
    r->sink.change(r->sink.ctx, REFLECTOR_SET, json);
    return OK;
}

static void reflector_tell_step(struct reflector *r, enum reflector_event event)
{
    const struct reflector_input in = {.event = event};
    struct reflector_action a =
        reflector_step(&r->state, &in, loop_now_ms(r->loop), loop_random(r->loop));
    assert(a.what == REFLECTOR_DO_NOTHING);
}

static struct reflector_input reflector_failure(unsigned status, const struct kube_status *s)
{
    return (struct reflector_input){
        .event = REFLECTOR_ON_FAILED,
        .status = status,
        .expired = str_eq(s->reason, STR("Expired")) || str_eq(s->reason, STR("Gone")),
        .too_large = s->too_large,
    };
}

static void reflector_note(struct reflector *r, const char *what, const struct err *err,
                           uint64_t retry_in_ms)
{
    const char *of = r->sink.of;
    if (r->sink.note != NULL)
        r->sink.note(r->sink.ctx, what, err, retry_in_ms);
    else if (of != NULL && err == NULL)
        log_debug(what, kv_cstr("of", of));
    else if (of != NULL)
        log_warn(what, kv_cstr("of", of), kv_cstr("error", err->text),
                 kv_uint("retry_in_ms", retry_in_ms));
}

static void reflector_note_unknown(struct reflector *r, const struct watch_event *ev)
{
    struct err e;
    (void)err_set(&e, ERR_SYNTAX, "watch event of type \"%.*s\"",
                  (int)MIN_OF(ev->type.n, (size_t)64), ev->type.p);
    reflector_note(r, "unknown event ignored", &e, 0);
}

static enum errc reflector_on_event(struct reflector *r, struct str line, struct err *reterr)
{
    struct watch_event ev;
    arena_reset(&r->arena);
    enum errc code = watch_event_read(line, &r->arena, &ev, reterr);
    if (code != OK)
        return code;
    switch (ev.kind) {
    case WATCH_UNKNOWN:
        reflector_note_unknown(r, &ev);
        return OK;
    case WATCH_ERROR:
        r->stopped = true;
        r->stop = reflector_failure(ev.status.code, &ev.status);
        return err_set(reterr, ERR_UNAVAILABLE, "ERROR event: %u: %.*s", ev.status.code,
                       STR_ARG(ev.status.message));
    case WATCH_ADDED:
    case WATCH_MODIFIED:
        r->counts->set++;
        r->sink.change(r->sink.ctx, REFLECTOR_SET, ev.object);
        break;
    case WATCH_DELETED:
        r->counts->gone++;
        r->sink.change(r->sink.ctx, REFLECTOR_GONE, ev.object);
        break;
    case WATCH_BOOKMARK:
        r->counts->bookmarks++;
        break;
    }
    r->counts->heard_ms = loop_now_ms(r->loop);
    if (str_eq(ev.resource_version, buf_str(&r->version)))
        return OK;
    code = reflector_remember(&r->version, ev.resource_version, "a resourceVersion", reterr);
    if (code == OK)
        reflector_tell_step(r, REFLECTOR_ON_PROGRESS);
    return code;
}

static enum errc reflector_on_piece(void *ctx, enum jcut_piece kind, struct str piece,
                                    struct err *reterr)
{
    struct reflector *r = ctx;
    if (kind == JCUT_METADATA)
        return reflector_on_list_meta(r, piece, reterr);
    if (r->cut.mode == JCUT_LINES)
        return str_trim(piece).n == 0 ? OK : reflector_on_event(r, piece, reterr);
    if (kind == JCUT_ITEM)
        return reflector_on_item(r, piece, reterr);
    r->kind_seen = true;
    return list_kind_check(piece, r->kind, reterr);
}

/* ---- how a call ended ---- */

/* The input for a failed call: its HTTP status and the content of a Status body. */
static struct reflector_input reflector_call_failure(struct reflector *r)
{
    const struct http_call *h = &r->call.http;
    struct kube_status status = {0};
    /* HTTP_REFUSED: a callback here refused the body of a 200, so the server is reachable. */
    if (h->outcome != HTTP_ANSWERED)
        return reflector_failure(h->outcome == HTTP_REFUSED ? 200 : 0, &status);
    arena_reset(&r->arena);
    if (kube_status_read(buf_str(&h->reply), &r->arena, &status, NULL) != OK)
        status = (struct kube_status){0};
    struct reflector_input in = reflector_failure(h->status, &status);
    in.own = kube_status_is_failure(&status, h->status);
    in.retry_after_ms = h->retry_after_ms;
    return in;
}

/* Checks a complete page: it must belong to a list, and the list must not be endless. */
static enum errc reflector_check_page(struct reflector *r, struct err *e)
{
    if (!r->meta_seen)
        return err_set(e, ERR_SYNTAX, "a list without metadata");
    if (!r->kind_seen)
        return err_set(e, ERR_SYNTAX, "a list without a kind");
    if (!r->item_seen && r->token.n > 0 && ++r->empty_pages > LIMIT_LIST_EMPTY_PAGES)
        return err_set(e, ERR_LIMIT, "a list with more than %zu pages without objects",
                       LIMIT_LIST_EMPTY_PAGES);
    return OK;
}

static struct reflector_input reflector_list_outcome(struct reflector *r, struct err *e)
{
    enum errc code = kube_call_result(&r->call, e);
    if (code == OK)
        code = jcut_finish(&r->cut, e);
    if (code == OK)
        code = reflector_check_page(r, e);
    if (code != OK) {
        struct reflector_input in = reflector_call_failure(r);
        in.continued = r->asked.n > 0;
        return in;
    }
    if (r->token.n > 0)
        return (struct reflector_input){.event = REFLECTOR_ON_PAGE};
    r->sink.end(r->sink.ctx);
    return (struct reflector_input){.event = REFLECTOR_ON_LISTED};
}

static struct reflector_input reflector_watch_outcome(struct reflector *r, struct err *e)
{
    const struct http_call *h = &r->call.http;
    bool cut = h->outcome == HTTP_REFUSED;
    enum errc code = kube_call_result(&r->call, e);
    if (code == OK && h->status == 200) {
        /* The last line may lack its newline, and may be invalid. */
        code = jcut_finish(&r->cut, e);
        cut = code != OK;
        if (!cut)
            return (struct reflector_input){.event = REFLECTOR_ON_ENDED};
    }
    if (r->stopped)
        return r->stop;
    if (cut)
        return (struct reflector_input){.event = REFLECTOR_ON_GARBLED};
    if (h->outcome != HTTP_ANSWERED && r->streaming)
        return (struct reflector_input){.event = REFLECTOR_ON_ENDED};
    return reflector_call_failure(r);
}

static void reflector_on_done(struct http_call *http)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct reflector *r = CONTAINER_OF(call, struct reflector, call);
    struct err e = ERR_INIT;
    if (r->relist_wanted)
        return;
    assert(r->state.phase == REFLECTOR_LISTING || r->state.phase == REFLECTOR_WATCHING);
    struct reflector_input in = r->state.phase == REFLECTOR_LISTING
                                    ? reflector_list_outcome(r, &e)
                                    : reflector_watch_outcome(r, &e);
    kube_call_done(&r->call);
    reflector_react(r, &in, &e);
}

/* ---- what to do next ---- */

static void reflector_count(struct reflector *r, const struct reflector_input *in)
{
    struct reflector_counts *c = r->counts;
    bool listing = r->state.phase == REFLECTOR_LISTING;
    if (in->event == REFLECTOR_ON_FAILED || in->event == REFLECTOR_ON_GARBLED)
        ++*(listing ? &c->list_failures : &c->watch_failures);
    if (in->event != REFLECTOR_ON_LISTED)
        return;
    c->listed++;
    c->synced = true;
    c->heard_ms = loop_now_ms(r->loop);
}

static void reflector_react(struct reflector *r, const struct reflector_input *in,
                            const struct err *e)
{
    reflector_count(r, in);
    struct reflector_action a =
        reflector_step(&r->state, in, loop_now_ms(r->loop), loop_random(r->loop));
    if (a.refresh)
        kube_api_refresh(r->api);
    if (a.note != NULL)
        reflector_note(r, a.note, e->code == OK ? NULL : e, a.delay_ms);
    switch (a.what) {
    case REFLECTOR_DO_NOTHING:
        break;
    case REFLECTOR_DO_WAIT:
        /* `note` may have called reflector_relist, which is due earlier. */
        if (!r->relist_wanted)
            timer_arm(r->loop, &r->timer, a.delay_ms);
        break;
    case REFLECTOR_DO_LIST:
        r->counts->lists++;
        r->n_objects = r->empty_pages = 0;
        buf_clear(&r->token, KIB);
        r->sink.begin(r->sink.ctx);
        reflector_send_list(r, !a.unpaged);
        break;
    case REFLECTOR_DO_PAGE:
        reflector_send_list(r, true);
        break;
    case REFLECTOR_DO_WATCH:
        r->counts->watches++;
        reflector_send_watch(r, a.watch_seconds);
        break;
    }
}

static void reflector_on_timer(struct timer *t)
{
    struct reflector *r = CONTAINER_OF(t, struct reflector, timer);
    struct reflector_input in = {.event = REFLECTOR_ON_TIMER};
    const struct err none = ERR_INIT;
    timer_arm(r->loop, &r->timer, UINT64_MAX);
    if (r->relist_wanted) {
        r->relist_wanted = false;
        in.event = REFLECTOR_ON_RELIST;
        kube_call_cancel(&r->call);
        kube_call_done(&r->call);
    }
    reflector_react(r, &in, &none);
}

void reflector_relist(struct reflector *r)
{
    r->relist_wanted = true;
    timer_arm(r->loop, &r->timer, 0);
}

/* ---- create and free ---- */

static bool reflector_copy_settings(struct reflector *r, const struct reflector_settings *s)
{
    buf_init(&r->path, QUERY_MAX);
    buf_put(&r->path, s->path);
    buf_putc(&r->path, '?');
    buf_init(&r->selector, QUERY_MAX);
    if (s->selector.n > 0) {
        buf_putc(&r->selector, '&');
        buf_put(&r->selector, s->selector);
    }
    if (s->field.n > 0) {
        buf_put(&r->selector, STR("&fieldSelector="));
        kube_put_escaped(&r->selector, s->field);
        kube_put_escaped(&r->selector, STR("="));
        kube_put_escaped(&r->selector, s->equals);
    }
    r->kind = s->kind;
    r->page_size = s->page_size;
    r->max_objects = s->max_objects == 0 ? LIMIT_LIST_OBJECTS : s->max_objects;
    r->quiet_ms = s->quiet_ms;
    return !buf_failed(&r->path) && !buf_failed(&r->selector);
}

enum errc reflector_new(struct loop *l, struct kube_api *api, const struct reflector_settings *s,
                        const struct reflector_sink *sink, struct reflector **ret,
                        struct err *reterr)
{
    struct reflector *r = mem_alloc(sizeof(*r));
    if (r == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    r->loop = l;
    r->api = api;
    r->sink = *sink;
    r->counts = s->counts == NULL ? &r->own : s->counts;
    r->timer.fire = reflector_on_timer;
    reflector_state_init(&r->state, &s->backoff);
    jcut_init(&r->cut, JCUT_LIST, LIMIT_OBJECT_BYTES, reflector_on_piece, r);
    arena_init(&r->arena, EVENT_ARENA);
    buf_init(&r->query, QUERY_MAX);
    buf_init(&r->version, VERSION_MAX);
    buf_init(&r->token, TOKEN_MAX);
    buf_init(&r->asked, TOKEN_MAX);
    if (!reflector_copy_settings(r, s) || !buf_reserve(&r->version, VERSION_MAX)) {
        (void)reflector_free(r);
        return err_set(reterr, ERR_NOMEM, "out of memory");
    }
    timer_arm(l, &r->timer, 0);
    *ret = r;
    return OK;
}

struct reflector *reflector_free(struct reflector *r)
{
    if (r == NULL)
        return NULL;
    timer_cancel(&r->timer);
    kube_call_cancel(&r->call);
    kube_call_done(&r->call);
    jcut_done(&r->cut);
    arena_done(&r->arena);
    buf_done(&r->query);
    buf_done(&r->version);
    buf_done(&r->token);
    buf_done(&r->asked);
    buf_done(&r->path);
    buf_done(&r->selector);
    mem_free(r);
    return NULL;
}

bool reflector_synced(const struct reflector *r)
{
    return r->state.synced;
}

bool reflector_denied(const struct reflector *r)
{
    return r->state.denied;
}

bool reflector_absent(const struct reflector *r)
{
    return r->state.absent;
}
