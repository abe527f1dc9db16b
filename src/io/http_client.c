/*
 * A transfer (an easy handle with its timers, reused) carries each call. libcurl must not be called
 * from its own callbacks. So a call's start, a cancel inside a libcurl callback and our own
 * failures all go through one deferred step for each transfer. on_done therefore comes from that
 * step or from the hook, never from a library callback or from http_call_start.
 *
 * Deadlines are our own timers: libcurl measures silence in whole seconds, and its timeout error
 * does not tell which limit was exceeded.
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
    struct flight *next; /* in the list flying or idle */
    struct flight *prev; /* in the list flying */
};

struct http_client {
    struct loop *loop;
    struct loop_hook hook;
    struct arena arena; /* owns the strings of config */
    struct transfer_config config;
    struct multi *multis; /* the first is in use; each other one ends with its last transfer */
    struct deferred sweep;
    struct flight *flying;
    struct flight *idle; /* at most LIMIT_KEEP_TRANSFERS */
    size_t n_idle;
    struct transfer *in_chunk; /* its on_chunk is being called */
    struct http_call *starved; /* calls that failed for want of memory */
    struct deferred feed;
};

/* ---- flights ---- */

static void flight_free(struct flight *f)
{
    transfer_done(&f->transfer);
    mem_free(f);
}

static void flight_link(struct flight *f)
{
    struct http_client *c = f->client;
    f->prev = NULL;
    f->next = c->flying;
    if (f->next != NULL)
        f->next->prev = f;
    c->flying = f;
}

static void flight_unlink(struct flight *f)
{
    if (f->prev != NULL)
        f->prev->next = f->next;
    else
        f->client->flying = f->next;
    if (f->next != NULL)
        f->next->prev = f->prev;
}

static void flight_step(struct deferred *d);
static void flight_total(struct timer *t);
static void flight_quiet(struct timer *t);
static enum errc multis_mend(struct http_client *c);

static struct flight *flight_new(struct http_client *c)
{
    struct flight *f = c->idle;
    if (f != NULL) {
        c->idle = f->next;
        c->n_idle--;
        flight_link(f);
        return f;
    }
    f = mem_alloc(sizeof(*f));
    if (f == NULL)
        return NULL;
    if (!transfer_init(&f->transfer, c->loop, &c->in_chunk)) {
        flight_free(f);
        return NULL;
    }
    f->client = c;
    f->step.run = flight_step;
    f->total.fire = flight_total;
    f->quiet.fire = flight_quiet;
    flight_link(f);
    return f;
}

/* Returns the flight to the idle list or frees it. Must not run inside libcurl. */
static void flight_end(struct flight *f)
{
    struct http_client *c = f->client;
    if (f->multi != NULL) {
        multi_del(f->multi, f->transfer.easy);
        if (f->multi != c->multis && f->multi->n == 0)
            loop_defer(c->loop, &c->sweep);
        f->multi = NULL;
    }
    deferred_cancel(&f->step);
    timer_cancel(&f->total);
    timer_cancel(&f->quiet);
    flight_unlink(f);
    if (c->n_idle == LIMIT_KEEP_TRANSFERS) {
        flight_free(f);
        return;
    }
    transfer_reset(&f->transfer);
    f->next = c->idle;
    c->idle = f;
    c->n_idle++;
}

static void flight_land(struct flight *f, CURLcode result)
{
    struct http_call *call = f->transfer.call;
    if (call != NULL) {
        transfer_judge(&f->transfer, result);
        call->transfer = NULL;
        call->client = NULL;
    }
    flight_end(f);
    if (call != NULL)
        call->on_done(call);
}

static void flight_fail(struct flight *f, enum errc code, const char *why)
{
    if (f->transfer.failed == OK) {
        f->transfer.failed = code;
        f->transfer.why = why;
    }
    loop_defer(f->client->loop, &f->step);
}

static void flight_step(struct deferred *d)
{
    struct flight *f = CONTAINER_OF(d, struct flight, step);
    struct http_client *c = f->client;
    if (f->transfer.call == NULL || f->transfer.failed != OK) {
        flight_land(f, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    assert(f->multi == NULL);
    enum errc code = multis_mend(c);
    if (code == OK)
        code = multi_add(c->multis, f->transfer.easy);
    if (code != OK) {
        f->transfer.failed = code;
        f->transfer.why = "libcurl does not take it";
        flight_land(f, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    f->multi = c->multis;
    multi_run(c->multis, loop_now_ms(c->loop));
}

static void flight_total(struct timer *t)
{
    flight_fail(CONTAINER_OF(t, struct flight, total), ERR_TIMEOUT, "no whole answer in time");
}

/*
 * Received bytes only update heard_ms: to move the timer would happen thousands of times a second
 * on a busy stream.
 */
static void flight_quiet(struct timer *t)
{
    struct flight *f = CONTAINER_OF(t, struct flight, quiet);
    uint64_t silence_ms = loop_now_ms(f->client->loop) - f->transfer.heard_ms;
    if (f->transfer.call == NULL)
        return;
    if (silence_ms >= f->transfer.call->quiet_ms)
        flight_fail(f, ERR_TIMEOUT, "silence for too long");
    else
        timer_arm(f->client->loop, t, f->transfer.call->quiet_ms - silence_ms);
}

/* ---- multis ---- */

static struct flight *flight_of(CURL *easy)
{
    char *private = NULL; /* libcurl's type for any pointer */
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    void *transfer = private;
    return transfer == NULL ? NULL : CONTAINER_OF(transfer, struct flight, transfer);
}

static void on_finished(struct multi *m, CURL *easy, CURLcode result)
{
    (void)m;
    flight_land(flight_of(easy), result);
}

static void on_stuck(struct multi *m, CURL *easy)
{
    struct http_client *c = m->owner;
    if (easy != NULL) {
        struct flight *f = flight_of(easy);
        if (f != NULL)
            flight_fail(f, ERR_NOMEM, "cannot watch its socket");
        return;
    }
    for (struct flight *f = c->flying; f != NULL; f = f->next)
        if (f->multi == m)
            flight_fail(f, ERR_INTERNAL, "libcurl lost track of it");
}

static enum errc multis_add(struct http_client *c)
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
    m->finished = on_finished;
    m->stuck = on_stuck;
    m->next = c->multis;
    c->multis = m;
    return OK;
}

/* A broken multi takes no new transfer; its transfers can only be removed. */
static enum errc multis_mend(struct http_client *c)
{
    if (!c->multis->broken)
        return OK;
    enum errc code = multis_add(c);
    if (code == OK)
        loop_defer(c->loop, &c->sweep);
    return code;
}

static void multis_sweep(struct deferred *d)
{
    struct http_client *c = CONTAINER_OF(d, struct http_client, sweep);
    struct multi **at = &c->multis->next;
    while (*at != NULL) {
        struct multi *m = *at;
        if (m->n > 0) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        multi_done(m);
        mem_free(m);
    }
}

void http_client_forget_connections(struct http_client *c)
{
    if (multis_add(c) != OK)
        log_debug("no memory to forget connections");
    loop_defer(c->loop, &c->sweep);
}

static uint64_t client_prepare(struct loop_hook *h, uint64_t now_ms)
{
    const struct http_client *c = CONTAINER_OF(h, struct http_client, hook);
    uint64_t due = UINT64_MAX;
    (void)now_ms;
    for (const struct multi *m = c->multis; m != NULL; m = m->next)
        due = MIN_OF(due, m->due_ms);
    return due;
}

static void client_check(struct loop_hook *h, uint64_t now_ms)
{
    const struct http_client *c = CONTAINER_OF(h, struct http_client, hook);
    for (struct multi *m = c->multis; m != NULL; m = m->next)
        multi_run(m, now_ms);
}

/* ---- calls ---- */

/* Fails one call at a time, from the front: on_done may add and remove calls. */
static void client_feed(struct deferred *d)
{
    struct http_client *c = CONTAINER_OF(d, struct http_client, feed);
    struct http_call *call = c->starved;
    if (call == NULL)
        return;
    c->starved = call->next;
    if (c->starved != NULL)
        loop_defer(c->loop, &c->feed);
    call->client = NULL;
    call->outcome = HTTP_NOT_SENT;
    (void)err_set(&call->err, ERR_NOMEM, "%s: no memory for a request", call->method);
    call->on_done(call);
}

void http_call_start(struct http_client *c, struct http_call *call)
{
    assert(call->client == NULL && call->method != NULL && call->on_done != NULL);
    call->client = c;
    call->outcome = HTTP_NOT_SENT;
    call->status = 0;
    call->retry_after_ms = 0;
    call->err = ERR_INIT;
    buf_clear(&call->reply, LIMIT_KEEP_BYTES);
    call->reply.max = call->max_reply > 0 ? call->max_reply : LIMIT_REPLY_BYTES;
    struct flight *f = flight_new(c);
    call->transfer = f;
    if (f == NULL) {
        call->next = c->starved;
        c->starved = call;
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
        struct http_call **at = &c->starved;
        while (*at != call)
            at = &(*at)->next;
        *at = call->next;
        return;
    }
    assert(c->in_chunk != &f->transfer);
    f->transfer.call = NULL;
    if (c->in_chunk != NULL) /* libcurl is running, for another call */
        loop_defer(c->loop, &f->step);
    else
        flight_end(f);
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
    c->sweep.run = multis_sweep;
    c->feed.run = client_feed;
    c->hook = (struct loop_hook){.prepare = client_prepare, .check = client_check};
    loop_hook_add(l, &c->hook);
    arena_init(&c->arena, CONFIG_MAX);
    enum errc code = transfer_config_init(&c->config, &c->arena, s) ? OK : ERR_NOMEM;
    if (code == OK)
        code = multis_add(c);
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
    while (c->starved != NULL)
        http_call_cancel(c->starved);
    while (c->flying != NULL) {
        if (c->flying->transfer.call != NULL)
            http_call_cancel(c->flying->transfer.call);
        else
            flight_end(c->flying);
    }
    while (c->idle != NULL) {
        struct flight *f = c->idle;
        c->idle = f->next;
        flight_free(f);
    }
    while (c->multis != NULL) {
        struct multi *m = c->multis;
        c->multis = m->next;
        multi_done(m);
        mem_free(m);
    }
    loop_hook_del(c->loop, &c->hook);
    deferred_cancel(&c->sweep);
    deferred_cancel(&c->feed);
    arena_done(&c->arena);
    mem_free(c);
    curl_global_cleanup();
    return NULL;
}
