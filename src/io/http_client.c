/*
 * A transfer (an easy handle with its timers, reused) carries each call. libcurl must not be called
 * from its own callbacks. So a call's start, a cancel inside a libcurl callback and our own
 * failures all go through one deferred step for each transfer. on_done therefore comes from that
 * step or from the hook, never from a library callback or from http_call_start.
 *
 * Deadlines are our own timers: libcurl measures silence in whole seconds, and its timeout error
 * does not say which limit was exceeded.
 *
 * libcurl cannot close its idle connections on demand. To forget them, the client makes a new multi
 * (a set of connections). The old multi finishes its transfers and is freed after the last one.
 */
#include "io/http_client.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/limit.h"
#include "multi.h"
#include "transfer.h"

#define CONFIG_MAX (8 * LIMIT_FILE_BYTES)

struct flight {
    struct transfer transfer;
    struct http_client *client;
    struct multi *multi; /* NULL while in none */
    struct deferred step;
    struct timer total;
    struct timer quiet;
    struct list_link link; /* in flying or idle */
};

struct http_client {
    struct loop *loop;
    struct loop_hook hook;
    struct arena arena; /* owns the strings of config */
    struct transfer_config config;
    struct list multis; /* the first is in use; each other one ends with its last transfer */
    struct deferred sweep;
    struct list flying;
    struct list idle; /* at most LIMIT_KEEP_TRANSFERS; the last used first */
    size_t n_idle;
    struct transfer *in_chunk; /* its on_chunk is being called */
    struct list starved;       /* calls that failed for want of memory */
    struct deferred feed;
};

/* ---- flights ---- */

static void http_client_flight_free(struct flight *f)
{
    transfer_done(&f->transfer);
    mem_free(f);
}

static struct multi *http_client_multi_in_use(const struct http_client *c)
{
    assert(!list_is_empty(&c->multis));
    return LIST_FIRST(&c->multis, struct multi, link);
}

static void http_client_flight_step(struct deferred *d);
static void http_client_flight_total(struct timer *t);
static void http_client_flight_quiet(struct timer *t);
static enum errc http_client_multis_mend(struct http_client *c);

static struct flight *http_client_flight_new(struct http_client *c)
{
    struct flight *f = LIST_FIRST(&c->idle, struct flight, link);
    assert((f != NULL) == (c->n_idle > 0));
    if (f != NULL) {
        list_remove(&f->link);
        c->n_idle--;
        assert(f->multi == NULL && f->transfer.call == NULL);
        list_push_front(&c->flying, &f->link);
        return f;
    }
    f = mem_alloc(sizeof(*f));
    if (f == NULL)
        return NULL;
    if (!transfer_init(&f->transfer, c->loop, &c->in_chunk)) {
        http_client_flight_free(f);
        return NULL;
    }
    f->client = c;
    f->step.run = http_client_flight_step;
    f->total.fire = http_client_flight_total;
    f->quiet.fire = http_client_flight_quiet;
    list_push_front(&c->flying, &f->link);
    return f;
}

/* Returns the flight to the idle list or frees it. Must not run inside libcurl. */
static void http_client_flight_end(struct flight *f)
{
    struct http_client *c = f->client;
    assert(c->in_chunk == NULL && c->n_idle <= LIMIT_KEEP_TRANSFERS);
    if (f->multi != NULL) {
        multi_del(f->multi, f->transfer.easy);
        if (f->multi != http_client_multi_in_use(c) && f->multi->n == 0)
            loop_defer(c->loop, &c->sweep);
        f->multi = NULL;
    }
    deferred_cancel(&f->step);
    timer_cancel(&f->total);
    timer_cancel(&f->quiet);
    list_remove(&f->link);
    if (c->n_idle == LIMIT_KEEP_TRANSFERS) {
        http_client_flight_free(f);
        return;
    }
    transfer_reset(&f->transfer);
    list_push_front(&c->idle, &f->link);
    c->n_idle++;
}

static void http_client_flight_land(struct flight *f, CURLcode result)
{
    struct http_call *call = f->transfer.call;
    if (call != NULL) {
        assert(call->client == f->client && call->transfer == f);
        transfer_set_outcome(&f->transfer, result);
        call->transfer = NULL;
        call->client = NULL;
    }
    http_client_flight_end(f);
    if (call != NULL)
        call->on_done(call);
}

static void http_client_flight_fail(struct flight *f, enum errc code, const char *why)
{
    assert(code != OK && why != NULL && list_is_linked(&f->link));
    if (f->transfer.failed == OK) {
        f->transfer.failed = code;
        f->transfer.why = why;
    }
    loop_defer(f->client->loop, &f->step);
}

static void http_client_flight_step(struct deferred *d)
{
    struct flight *f = CONTAINER_OF(d, struct flight, step);
    struct http_client *c = f->client;
    if (f->transfer.call == NULL || f->transfer.failed != OK) {
        http_client_flight_land(f, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    assert(f->multi == NULL);
    enum errc code = http_client_multis_mend(c);
    if (code == OK)
        code = multi_add(http_client_multi_in_use(c), f->transfer.easy);
    if (code != OK) {
        f->transfer.failed = code;
        f->transfer.why = "libcurl does not take it";
        http_client_flight_land(f, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    f->multi = http_client_multi_in_use(c);
    multi_run(f->multi, loop_now_ms(c->loop));
}

static void http_client_flight_total(struct timer *t)
{
    http_client_flight_fail(CONTAINER_OF(t, struct flight, total), ERR_TIMEOUT,
                            "no whole answer in time");
}

/*
 * Received bytes only update heard_ms: to move the timer would happen thousands of times a second
 * on a busy stream.
 */
static void http_client_flight_quiet(struct timer *t)
{
    struct flight *f = CONTAINER_OF(t, struct flight, quiet);
    uint64_t silence_ms = loop_now_ms(f->client->loop) - f->transfer.heard_ms;
    if (f->transfer.call == NULL)
        return;
    assert(f->transfer.call->quiet_ms > 0);
    if (silence_ms >= f->transfer.call->quiet_ms)
        http_client_flight_fail(f, ERR_TIMEOUT, "silence for too long");
    else
        timer_arm(f->client->loop, t, f->transfer.call->quiet_ms - silence_ms);
}

/* ---- multis ---- */

static struct flight *http_client_flight_of(CURL *easy)
{
    char *private = NULL; /* libcurl's type for any pointer */
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    void *transfer = private;
    return transfer == NULL ? NULL : CONTAINER_OF(transfer, struct flight, transfer);
}

static void http_client_on_finished(struct multi *m, CURL *easy, CURLcode result)
{
    struct flight *f = http_client_flight_of(easy);
    assert(f != NULL && f->multi == m);
    http_client_flight_land(f, result);
}

static void http_client_on_stuck(struct multi *m, CURL *easy)
{
    struct http_client *c = m->owner;
    if (easy != NULL) {
        struct flight *f = http_client_flight_of(easy);
        if (f != NULL)
            http_client_flight_fail(f, ERR_NOMEM, "cannot watch its socket");
        return;
    }
    LIST_FOR_EACH (struct flight, f, &c->flying, link) {
        if (f->multi == m)
            http_client_flight_fail(f, ERR_INTERNAL, "libcurl lost track of it");
    }
}

static enum errc http_client_multis_add(struct http_client *c)
{
    struct multi *m = mem_alloc(sizeof(*m));
    if (m == NULL)
        return ERR_NOMEM;
    enum errc code = multi_init(m, c->loop);
    if (code != OK) {
        mem_free(m);
        return code;
    }
    m->owner = c;
    m->finished = http_client_on_finished;
    m->stuck = http_client_on_stuck;
    list_push_front(&c->multis, &m->link);
    return OK;
}

/* A broken multi takes no new transfer; its transfers can only be removed. */
static enum errc http_client_multis_mend(struct http_client *c)
{
    if (!http_client_multi_in_use(c)->broken)
        return OK;
    enum errc code = http_client_multis_add(c);
    if (code == OK)
        loop_defer(c->loop, &c->sweep);
    return code;
}

static void http_client_multi_free(struct multi *m)
{
    assert(m->n == 0);
    list_remove(&m->link);
    multi_done(m);
    mem_free(m);
}

static void http_client_multis_sweep(struct deferred *d)
{
    struct http_client *c = CONTAINER_OF(d, struct http_client, sweep);
    const struct multi *in_use = http_client_multi_in_use(c);
    LIST_FOR_EACH (struct multi, m, &c->multis, link) {
        if (m != in_use && m->n == 0)
            http_client_multi_free(m);
    }
}

void http_client_forget_connections(struct http_client *c)
{
    if (http_client_multis_add(c) != OK)
        log_debug("no memory to forget connections");
    loop_defer(c->loop, &c->sweep);
}

static uint64_t http_client_prepare(struct loop_hook *h, uint64_t now_ms)
{
    const struct http_client *c = CONTAINER_OF(h, struct http_client, hook);
    uint64_t due = UINT64_MAX;
    (void)now_ms;
    LIST_FOR_EACH (const struct multi, m, &c->multis, link)
        due = MIN_OF(due, m->due_ms);
    return due;
}

static void http_client_check(struct loop_hook *h, uint64_t now_ms)
{
    const struct http_client *c = CONTAINER_OF(h, struct http_client, hook);
    LIST_FOR_EACH (struct multi, m, &c->multis, link)
        multi_run(m, now_ms);
}

/* ---- calls ---- */

/* Fails one call at a time, from the front: on_done may add and remove calls. */
static void http_client_feed(struct deferred *d)
{
    struct http_client *c = CONTAINER_OF(d, struct http_client, feed);
    struct http_call *call = LIST_FIRST(&c->starved, struct http_call, link);
    if (call == NULL)
        return;
    assert(call->client == c && call->transfer == NULL);
    list_remove(&call->link);
    if (!list_is_empty(&c->starved))
        loop_defer(c->loop, &c->feed);
    call->client = NULL;
    call->outcome = HTTP_NOT_SENT;
    (void)err_set(&call->err, ERR_NOMEM, "%s: no memory for a request", call->method);
    call->on_done(call);
}

void http_call_start(struct http_client *c, struct http_call *call)
{
    assert(call->client == NULL && call->method != NULL && call->on_done != NULL);
    assert(call->n_headers == 0 || call->headers != NULL);
    call->client = c;
    call->outcome = HTTP_NOT_SENT;
    call->status = 0;
    call->retry_after_ms = 0;
    call->err = ERR_INIT;
    buf_clear(&call->reply, LIMIT_KEEP_BYTES);
    call->reply.max = call->max_reply > 0 ? call->max_reply : LIMIT_REPLY_BYTES;
    struct flight *f = http_client_flight_new(c);
    call->transfer = f;
    if (f == NULL) {
        list_push_front(&c->starved, &call->link);
        loop_defer(c->loop, &c->feed);
        return;
    }
    transfer_setup(&f->transfer, &c->config, call);
    if (call->timeout_ms > 0)
        timer_arm(f->client->loop, &f->total, call->timeout_ms);
    if (call->quiet_ms > 0)
        timer_arm(f->client->loop, &f->quiet, call->quiet_ms);
    loop_defer(c->loop, &f->step);
}

void http_call_cancel(struct http_call *call)
{
    struct http_client *c = call->client;
    struct flight *f = call->transfer;
    if (c == NULL)
        return;
    call->client = NULL;
    call->transfer = NULL;
    if (f == NULL) {
        list_remove(&call->link);
        return;
    }
    assert(c->in_chunk != &f->transfer);
    assert(f->client == c && f->transfer.call == call);
    f->transfer.call = NULL;
    if (c->in_chunk != NULL) /* libcurl is running, for another call */
        loop_defer(c->loop, &f->step);
    else
        http_client_flight_end(f);
}

void http_call_done(struct http_call *call)
{
    assert(call->client == NULL);
    buf_done(&call->reply);
}

/* ---- life ---- */

enum errc http_client_new(struct loop *l, const struct http_client_settings *s,
                          struct http_client **ret, struct err *reterr)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(reterr, ERR_INTERNAL, "libcurl does not start");
    struct http_client *c = mem_alloc(sizeof(*c));
    if (c == NULL) {
        curl_global_cleanup();
        return err_set(reterr, ERR_NOMEM, "no memory for an HTTP client");
    }
    c->loop = l;
    list_init(&c->multis);
    list_init(&c->flying);
    list_init(&c->idle);
    list_init(&c->starved);
    c->sweep.run = http_client_multis_sweep;
    c->feed.run = http_client_feed;
    c->hook = (struct loop_hook){.prepare = http_client_prepare, .check = http_client_check};
    loop_hook_add(l, &c->hook);
    arena_init(&c->arena, CONFIG_MAX);
    enum errc code = transfer_config_init(&c->config, &c->arena, s) ? OK : ERR_NOMEM;
    if (code == OK)
        code = http_client_multis_add(c);
    if (code != OK) {
        (void)http_client_free(c);
        return err_set(reterr, code, "no memory for an HTTP client");
    }
    *ret = c;
    return OK;
}

struct http_client *http_client_free(struct http_client *c)
{
    if (c == NULL)
        return NULL;
    assert(c->in_chunk == NULL);
    LIST_FOR_EACH (struct http_call, call, &c->starved, link)
        http_call_cancel(call);
    LIST_FOR_EACH (struct flight, f, &c->flying, link) {
        if (f->transfer.call != NULL)
            http_call_cancel(f->transfer.call);
        else
            http_client_flight_end(f);
    }
    assert(list_is_empty(&c->starved) && list_is_empty(&c->flying));
    LIST_FOR_EACH (struct flight, f, &c->idle, link)
        http_client_flight_free(f);
    LIST_FOR_EACH (struct multi, m, &c->multis, link)
        http_client_multi_free(m);
    loop_hook_del(c->loop, &c->hook);
    deferred_cancel(&c->sweep);
    deferred_cancel(&c->feed);
    arena_done(&c->arena);
    mem_free(c);
    curl_global_cleanup();
    return NULL;
}
