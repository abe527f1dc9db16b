/* A server whose handler does what the request's path says. */
#pragma once

#include "io/http_server.h"
#include "raw_conn.h"

#include <stdio.h>

#define HOLD_MAX    256
#define STREAMS_MAX 8
#define PORTION     ((size_t)64 * 1024)

/* A stream that sends "<N>" and some padding for each portion that the test requests. */
struct teller {
    struct http_stream stream;
    struct http_fixture *http;
    unsigned told;
    unsigned wanted; /* pauses after this many portions */
    size_t padding;
    bool gone;
};

/* The path of a request says what the handler does. */
struct http_fixture {
    struct loop *loop;
    struct http_server *server;
    struct http_request *held[HOLD_MAX];
    size_t n_held;
    size_t wanted;
    size_t handled;
    size_t too_large;
    uint64_t too_large_bytes;
    uint64_t last_id;
    struct deferred hop;
    struct http_request *hopping;
    char path[64];
    size_t path_n;
    char peer[64];
    bool draining;
    bool drained;
    char accept[64]; /* header of the last request with that name */
    bool accepts;    /* whether the header was present */

    struct teller tellers[STREAMS_MAX];
    size_t n_tellers;
    size_t n_gone; /* streams that have ended */
    size_t wanted_gone;

    struct http_server_counts counts;
    unsigned answered; /* answers by handlers, and by the server itself */
    unsigned answered_alone;
    unsigned last_status;
    uint64_t last_ns; /* when the last request began */
};

#define FIXTURE_KIND 2

static inline void http_fixture_answered(void *ctx, const struct http_request *r, unsigned status)
{
    struct http_fixture *s = ctx;
    ck_assert(r->kind == 0 || r->kind == FIXTURE_KIND);
    *(r->kind == FIXTURE_KIND ? &s->answered : &s->answered_alone) += 1;
    s->last_status = status;
    ck_assert_uint_gt(r->start_ns, 0);
    ck_assert_uint_le(r->start_ns, loop_clock_ns(s->loop));
    s->last_ns = r->start_ns;
}

static inline void teller_fill(struct http_stream *st, struct buf *out)
{
    struct teller *t = CONTAINER_OF(st, struct teller, stream);
    ck_assert(!t->gone);
    ck_assert_uint_eq(out->n, 0);
    if (t->told == t->wanted)
        return;
    buf_printf(out, "<%u>", ++t->told);
    for (size_t i = 0; i < t->padding; i++)
        buf_putc(out, '.');
}

static inline void teller_gone(struct http_stream *st)
{
    struct teller *t = CONTAINER_OF(st, struct teller, stream);
    ck_assert(!t->gone);
    t->gone = true;
    t->http->n_gone++;
}

static inline struct teller *teller_new(struct http_fixture *s)
{
    ck_assert_uint_lt(s->n_tellers, STREAMS_MAX);
    struct teller *t = &s->tellers[s->n_tellers++];
    *t = (struct teller){
        .stream = {.fill = teller_fill, .gone = teller_gone}, .http = s, .wanted = 1};
    return t;
}

static inline void tell(struct http_fixture *s, struct http_request *r)
{
    struct teller *t = teller_new(s);
    if (str_eq(r->path, STR("/stream/endless"))) {
        t->wanted = UINT32_MAX;
        t->padding = PORTION;
    }
    http_request_header(r, "Cache-Control", "no-store");
    http_request_stream(r, 200, "text/event-stream", &t->stream);
}

static inline void note(struct http_fixture *s, struct http_request *r)
{
    struct str accept = http_request_value(r, "accept");
    ck_assert_uint_gt(r->id, s->last_id);
    s->last_id = r->id;
    ck_assert_uint_lt(r->path.n, sizeof(s->path));
    memcpy(s->path, r->path.p, r->path.n);
    s->path_n = r->path.n;
    (void)snprintf(s->peer, sizeof(s->peer), "%.*s", STR_ARG(r->peer));
    (void)snprintf(s->accept, sizeof(s->accept), "%.*s", STR_ARG(accept));
    s->accepts = accept.p != NULL;
    ck_assert_uint_eq(r->kind, 0);
    r->kind = FIXTURE_KIND;
}

static inline void respond(struct http_request *r, struct str body)
{
    buf_put(r->answer, body);
    http_request_respond(r, 200, "text/plain");
}

static inline void hop(struct deferred *d)
{
    struct http_fixture *s = CONTAINER_OF(d, struct http_fixture, hop);
    respond(s->hopping, s->hopping->body);
}

static inline void handle(void *ctx, struct http_request *r)
{
    struct http_fixture *s = ctx;
    s->handled++;
    note(s, r);
    ck_assert_ptr_nonnull(arena_alloc(r->arena, 100));
    ck_assert_uint_eq(r->answer->n, 0);
    if (str_eq(r->path, STR("/hold"))) {
        ck_assert_uint_lt(s->n_held, HOLD_MAX);
        s->held[s->n_held++] = r;
    } else if (str_eq(r->path, STR("/hop"))) {
        s->hopping = r;
        loop_defer(s->loop, &s->hop);
    } else if (str_starts(r->path, STR("/stream"))) {
        tell(s, r);
    } else if (str_eq(r->path, STR("/method"))) {
        respond(r, r->method);
    } else if (str_eq(r->path, STR("/headers"))) {
        http_request_header(r, "Allow", "GET, POST");
        http_request_header(r, "Retry-After", "7");
        http_request_respond(r, 405, "application/json");
    } else if (str_eq(r->path, STR("/too-much"))) {
        r->answer->failed = true;
        respond(r, STR("more than fits"));
    } else if (str_eq(r->path, STR("/bad-header"))) {
        http_request_header(r, "X", "a\r\nY: b");
        respond(r, STR(""));
    } else {
        respond(r, r->body);
    }
}

static inline void too_large(void *ctx, struct http_request *r, uint64_t body_bytes)
{
    struct http_fixture *s = ctx;
    s->too_large++;
    s->too_large_bytes = body_bytes;
    ck_assert_ptr_null(r->body.p);
    buf_put(r->answer, STR("too large"));
    http_request_respond(r, 413, "text/plain");
}

static inline struct http_server_settings settings(struct http_fixture *s)
{
    return (struct http_server_settings){
        .address = STR("127.0.0.1"),
        .max_body = 300000,
        .max_connections = 200,
        .request_timeout_ms = 60000,
        .idle_seconds = 60,
        .stall_ms = 60000,
        .recheck_ms = 60000,
        .handle = handle,
        .too_large = too_large,
        .answered = http_fixture_answered,
        .ctx = s,
        .counts = &s->counts,
    };
}

static inline void open_with(struct http_fixture *s, const struct http_server_settings *set)
{
    struct err e = ERR_INIT;
    *s = (struct http_fixture){.loop = loop_make(), .hop = {.run = hop}};
    ck_assert_ok(http_server_new(s->loop, set, &s->server, &e), &e);
    ck_assert_uint_ne(http_server_port(s->server), 0);
}

static inline void http_fixture_open(struct http_fixture *s)
{
    struct http_server_settings set = settings(s);
    open_with(s, &set);
}

static inline void http_fixture_close(struct http_fixture *s)
{
    s->server = http_server_free(s->server);
    s->loop = loop_free(s->loop);
}

static inline bool has_gone(void *ctx)
{
    const struct http_fixture *s = ctx;
    return s->n_gone >= s->wanted_gone;
}

static inline void await_gone_here(struct http_fixture *s, size_t n, struct here here)
{
    s->wanted_gone = n;
    run_until_here(s->loop, has_gone, s, here);
}

#define await_gone(s, n) await_gone_here(s, n, HERE("await_gone(" #s ", " #n ")"))

static inline void dial(struct http_fixture *s, struct raw_conn *p)
{
    raw_conn_connect(p, s->loop, http_server_port(s->server));
}

static inline bool holds(void *ctx)
{
    const struct http_fixture *s = ctx;
    return s->n_held >= s->wanted;
}

static inline void await_held_here(struct http_fixture *s, size_t n, struct here here)
{
    s->wanted = n;
    run_until_here(s->loop, holds, s, here);
}

#define await_held(s, n) await_held_here(s, n, HERE("await_held(" #s ", " #n ")"))

static inline void post(struct raw_conn *p, const char *path, struct str body)
{
    char head[256];
    int n = snprintf(head, sizeof(head),
                     "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path, body.n);
    raw_conn_send(p, (struct str){head, (size_t)n});
    raw_conn_send(p, body);
}

static inline void get(struct raw_conn *p, const char *path)
{
    char head[256];
    int n = snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    raw_conn_send(p, (struct str){head, (size_t)n});
}

static inline struct str letters(struct buf *memory, size_t n)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz";
    buf_init(memory, n);
    for (size_t i = 0; i < n; i++)
        buf_putc(memory, alphabet[i % 26]);
    ck_assert(!buf_failed(memory));
    return buf_str(memory);
}

static inline bool whole_body(void *ctx)
{
    const struct raw_conn_wants *w = ctx;
    return w->peer->in.n > w->n;
}
