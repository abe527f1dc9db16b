/* A server whose handler does what the path says. */
#pragma once

#include "http_server.h"
#include "peer.h"

#include <stdio.h>

#define HOLD_MAX 256

/* What the handler does is in the path. */
struct site {
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
};

static inline void respond(struct http_request *r, struct str body)
{
    buf_put(r->answer, body);
    http_request_respond(r, 200, "text/plain");
}

static inline void hop(struct deferred *d)
{
    struct site *s = CONTAINER_OF(d, struct site, hop);
    respond(s->hopping, s->hopping->body);
}

static inline void handle(void *ctx, struct http_request *r)
{
    struct site *s = ctx;
    s->handled++;
    ck_assert_uint_gt(r->id, s->last_id);
    s->last_id = r->id;
    ck_assert_uint_lt(r->path.n, sizeof(s->path));
    memcpy(s->path, r->path.p, r->path.n);
    s->path_n = r->path.n;
    (void)snprintf(s->peer, sizeof(s->peer), "%.*s", STR_ARG(r->peer));
    ck_assert_ptr_nonnull(arena_alloc(r->arena, 100));
    ck_assert_uint_eq(r->answer->n, 0);
    if (str_eq(r->path, STR("/hold"))) {
        ck_assert_uint_lt(s->n_held, HOLD_MAX);
        s->held[s->n_held++] = r;
    } else if (str_eq(r->path, STR("/hop"))) {
        s->hopping = r;
        loop_defer(s->loop, &s->hop);
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
    struct site *s = ctx;
    s->too_large++;
    s->too_large_bytes = body_bytes;
    ck_assert_ptr_null(r->body.p);
    buf_put(r->answer, STR("too large"));
    http_request_respond(r, 413, "text/plain");
}

static inline struct http_server_settings settings(struct site *s)
{
    return (struct http_server_settings){
        .address = STR("127.0.0.1"),
        .max_body = 300000,
        .max_connections = 200,
        .request_timeout_ms = 60000,
        .idle_seconds = 60,
        .stall_ms = 60000,
        .handle = handle,
        .too_large = too_large,
        .ctx = s,
    };
}

static inline void open_with(struct site *s, const struct http_server_settings *set)
{
    struct err e = ERR_INIT;
    *s = (struct site){.loop = loop_make(), .hop = {.run = hop}};
    ck_assert_ok(http_server_new(s->loop, set, &s->server, &e), &e);
    ck_assert_uint_ne(http_server_port(s->server), 0);
}

static inline void open_site(struct site *s)
{
    struct http_server_settings set = settings(s);
    open_with(s, &set);
}

static inline void close_site(struct site *s)
{
    s->server = http_server_free(s->server);
    s->loop = loop_free(s->loop);
}

static inline void dial(struct site *s, struct peer *p)
{
    peer_connect(p, s->loop, http_server_port(s->server));
}

static inline bool holds(void *ctx)
{
    const struct site *s = ctx;
    return s->n_held >= s->wanted;
}

static inline void await_held(struct site *s, size_t n)
{
    s->wanted = n;
    run_until(s->loop, holds, s);
}

static inline void post(struct peer *p, const char *path, struct str body)
{
    char head[256];
    int n = snprintf(head, sizeof(head),
                     "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path, body.n);
    peer_send(p, (struct str){head, (size_t)n});
    peer_send(p, body);
}

static inline void get(struct peer *p, const char *path)
{
    char head[256];
    int n = snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    peer_send(p, (struct str){head, (size_t)n});
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
    const struct peer_wants *w = ctx;
    return w->peer->in.n > w->n;
}
