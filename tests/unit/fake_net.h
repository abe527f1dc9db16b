/*
 * Implements loop.h and http_client.h for tests, in place of src/io/loop.c and http_client.c. The
 * test moves the clock and decides how each request ends; nothing leaves the process. Only one file
 * of a test program may include it.
 */
#pragma once

#include "base/mem.h"
#include "io/http_client.h"
#include "unit.h"

#include <string.h>

#define FAKE_TURNS 1000

struct loop {
    uint64_t now_ms;   /* at the start of this turn */
    uint64_t clock_ms; /* now; ahead of now_ms after fake_stall */
    uint64_t random;
    struct timer *timers; /* sorted, soonest first */
    uint64_t armed;
    struct list deferred;
};

struct http_client {
    struct loop *loop;
};

/* Sorted by start. */
static struct list fake_calls = LIST_EMPTY(fake_calls);

/* Stops the process for `ms` right before it reads the clock for the nth time. */
static struct {
    size_t looks; /* reads so far */
    size_t nth;   /* 0: never */
    uint64_t ms;
    uint64_t behind_ms; /* how long it was stopped */
} fake_stop;

static inline void fake_look(void)
{
    if (++fake_stop.looks == fake_stop.nth)
        fake_stop.behind_ms += fake_stop.ms;
}

/* ---- loop.h ---- */

static inline struct loop *fake_loop(void)
{
    struct loop *l = mem_alloc(sizeof(*l));
    ck_assert_ptr_nonnull(l);
    l->now_ms = l->clock_ms = 1000000;
    list_init(&l->deferred);
    return l;
}

struct loop *loop_free(struct loop *l)
{
    while (l->timers != NULL)
        timer_cancel(l->timers);
    LIST_FOR_EACH (struct deferred, d, &l->deferred, link)
        deferred_cancel(d);
    mem_free(l);
    return NULL;
}

uint64_t loop_now_ms(const struct loop *l)
{
    fake_look();
    return l->now_ms;
}

uint64_t loop_clock_ms(const struct loop *l)
{
    fake_look();
    return l->clock_ms + fake_stop.behind_ms;
}

uint64_t loop_clock_ns(const struct loop *l)
{
    return loop_clock_ms(l) * 1000000;
}

uint64_t loop_wall_ns(const struct loop *l)
{
    fake_look();
    return UINT64_C(1700000000000000000) + l->now_ms * 1000000;
}

uint64_t loop_random(struct loop *l)
{
    return l->random;
}

void timer_cancel(struct timer *t)
{
    if (t->loop == NULL)
        return;
    struct timer **at = &t->loop->timers;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->loop = NULL;
}

void timer_arm(struct loop *l, struct timer *t, uint64_t delay_ms)
{
    struct timer **at = &l->timers;
    timer_cancel(t);
    t->loop = l;
    t->due_ms = delay_ms > UINT64_MAX - l->now_ms ? UINT64_MAX : l->now_ms + delay_ms;
    t->order = l->armed++;
    while (*at != NULL && (*at)->due_ms <= t->due_ms)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

void loop_defer(struct loop *l, struct deferred *d)
{
    if (d->loop != NULL)
        return;
    d->loop = l;
    list_push_back(&l->deferred, &d->link);
}

void deferred_cancel(struct deferred *d)
{
    if (d->loop == NULL)
        return;
    list_remove(&d->link);
    d->loop = NULL;
}

/* Runs due timers and deferred work until none is left. */
static inline void fake_turn(struct loop *l)
{
    unsigned turns = 0;
    l->now_ms = loop_clock_ms(l);
    while (!list_is_empty(&l->deferred) || (l->timers != NULL && l->timers->due_ms <= l->now_ms)) {
        struct deferred *d = LIST_FIRST(&l->deferred, struct deferred, link);
        struct timer *t = l->timers;
        ck_assert_uint_lt(turns++, FAKE_TURNS);
        if (d != NULL) {
            deferred_cancel(d);
            d->run(d);
        } else {
            timer_cancel(t);
            t->fire(t);
        }
    }
}

/* The process sleeps for `ms` in the middle of a turn. */
static inline void fake_stall(struct loop *l, uint64_t ms)
{
    l->clock_ms += ms;
}

/* ---- http_client.h ---- */

enum errc http_client_new(struct loop *l, const struct http_client_settings *s,
                          struct http_client **ret, struct err *reterr)
{
    struct http_client *c = mem_alloc(sizeof(*c));
    (void)s;
    if (c == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for an HTTP client");
    c->loop = l;
    *ret = c;
    return OK;
}

struct http_client *http_client_free(struct http_client *c)
{
    LIST_FOR_EACH (struct http_call, call, &fake_calls, link)
        http_call_cancel(call);
    mem_free(c);
    return NULL;
}

void http_client_forget_connections(struct http_client *c)
{
    (void)c;
}

void http_call_start(struct http_client *c, struct http_call *call)
{
    ck_assert(call->client == NULL && call->method != NULL && call->on_done != NULL);
    call->client = c;
    call->transfer = NULL; /* marks that the request's bytes have left */
    call->outcome = HTTP_NOT_SENT;
    call->status = 0;
    call->retry_after_ms = 0;
    call->err = ERR_INIT;
    buf_clear(&call->reply, SIZE_MAX);
    call->reply.max = call->max_reply > 0 ? call->max_reply : (size_t)1 << 24;
    list_push_back(&fake_calls, &call->link);
}

void http_call_cancel(struct http_call *call)
{
    if (call->client == NULL)
        return;
    list_remove(&call->link);
    call->client = NULL;
}

void http_call_done(struct http_call *call)
{
    ck_assert_ptr_null(call->client);
    buf_done(&call->reply);
}

/* ---- how a request ends ---- */

/* The oldest request with this method and with this text in its URL, or NULL. */
static inline struct http_call *fake_waiting(const char *method, const char *part)
{
    LIST_FOR_EACH (struct http_call, c, &fake_calls, link) {
        if (strcmp(c->method, method) == 0 &&
            memmem(c->url.p, c->url.n, part, strlen(part)) != NULL)
            return c;
    }
    return NULL;
}

/* The same; it must exist. */
static inline struct http_call *fake_find(const char *method, const char *part)
{
    struct http_call *c = fake_waiting(method, part);
    ck_assert_msg(c != NULL, "no %s of %s waits", method, part);
    return c;
}

static inline void fake_land(struct http_call *c, enum http_outcome outcome, unsigned status)
{
    struct loop *l = c->client->loop;
    http_call_cancel(c);
    c->outcome = outcome;
    c->status = status;
    if (outcome != HTTP_ANSWERED && c->err.code == OK)
        (void)err_set(&c->err, ERR_UNAVAILABLE, "%s: no whole answer", c->method);
    c->on_done(c);
    fake_turn(l);
}

/* Makes the connection. False: the request's bytes did not leave, and the call has ended. */
static inline bool fake_send(struct http_call *c)
{
    if (c->transfer == c || c->may_send == NULL || c->may_send(c)) {
        c->transfer = c;
        return true;
    }
    fake_land(c, HTTP_NOT_SENT, 0);
    return false;
}

/* A part of the body of a 200. If on_chunk refuses it, the call ends. */
static inline void fake_chunk(struct http_call *c, const char *text)
{
    struct loop *l = c->client->loop;
    ck_assert(fake_send(c));
    if (c->on_chunk == NULL)
        buf_put(&c->reply, str_of(text));
    else if (c->on_chunk(c, str_of(text), &c->err) != OK)
        fake_land(c, HTTP_REFUSED, 0);
    fake_turn(l);
}

/* A whole answer. */
static inline void fake_answer(struct http_call *c, unsigned status, const char *body)
{
    ck_assert(fake_send(c));
    if (status == 200)
        fake_chunk(c, body);
    else
        buf_put(&c->reply, str_of(body));
    if (c->client != NULL)
        fake_land(c, HTTP_ANSWERED, status);
}
