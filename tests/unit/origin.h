/* A server whose bytes the test writes itself, and calls that record how they ended. */
#pragma once

#include "io/http_client.h"
#include "peer.h"

#include <stdio.h>

#define ORIGIN_PEERS 128

struct origin {
    struct loop *loop;
    struct loop_fd listener;
    uint16_t port;
    struct peer peers[ORIGIN_PEERS]; /* sorted by arrival */
    size_t n;
    size_t wanted;
    char url[64]; /* without a path */
};

static inline void origin_accept(struct loop_fd *f, uint32_t events)
{
    struct origin *o = CONTAINER_OF(f, struct origin, listener);
    (void)events;
    /* cppcheck-suppress nullPointer; the address is not needed */
    int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    ck_assert_uint_lt(o->n, ORIGIN_PEERS);
    peer_adopt(&o->peers[o->n++], o->loop, fd);
}

static inline void origin_open(struct origin *o, struct loop *l)
{
    struct err e = ERR_INIT;
    struct sockaddr_in a = loopback(0);
    socklen_t n = sizeof(a);
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(listen(fd, SOMAXCONN), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *o = (struct origin){.loop = l,
                         .listener = {.fd = fd, .events = EPOLLIN, .ready = origin_accept},
                         .port = ntohs(a.sin_port)};
    (void)snprintf(o->url, sizeof(o->url), "http://127.0.0.1:%u", o->port);
    ck_assert_ok(loop_fd_add(l, &o->listener, &e), &e);
}

static inline void origin_stop_listening(struct origin *o)
{
    loop_fd_del(&o->listener);
    if (o->listener.fd >= 0)
        (void)close(o->listener.fd);
    o->listener.fd = -1;
}

static inline void origin_close(struct origin *o)
{
    origin_stop_listening(o);
    for (size_t i = 0; i < o->n; i++)
        peer_close(&o->peers[i]);
}

static inline bool origin_has(void *ctx)
{
    const struct origin *o = ctx;
    return o->n >= o->wanted;
}

/* Waits for the nth connection, counted from 0. */
static inline struct peer *origin_peer_here(struct origin *o, size_t i, struct here here)
{
    o->wanted = i + 1;
    run_until_here(o->loop, origin_has, o, here);
    return &o->peers[i];
}

#define origin_peer(o, i) origin_peer_here(o, i, HERE("origin_peer(" #o ", " #i ")"))

/* Waits until the nth connection has sent a head. */
static inline struct peer *origin_request_here(struct origin *o, size_t i, struct here here)
{
    struct peer *p = origin_peer_here(o, i, here);
    peer_await_here(p, "\r\n\r\n", 1, here);
    return p;
}

#define origin_request(o, i) origin_request_here(o, i, HERE("origin_request(" #o ", " #i ")"))

struct caller {
    struct http_call call;
    char url[256];
    bool done;
    size_t times;
    struct buf chunks;
    size_t n_chunks;
    bool refuses;
    void (*then)(struct caller *c);     /* called within on_done */
    void (*in_chunk)(struct caller *c); /* called within on_chunk */
    void *data;
};

static inline void caller_done(struct http_call *call)
{
    struct caller *c = CONTAINER_OF(call, struct caller, call);
    ck_assert_ptr_null(call->client);
    c->done = true;
    c->times++;
    if (c->then != NULL)
        c->then(c);
}

static inline enum errc caller_chunk(struct http_call *call, struct str chunk, struct err *reterr)
{
    struct caller *c = CONTAINER_OF(call, struct caller, call);
    ck_assert(!c->done);
    c->n_chunks++;
    buf_put(&c->chunks, chunk);
    if (c->in_chunk != NULL)
        c->in_chunk(c);
    return c->refuses ? err_set(reterr, ERR_SYNTAX, "not what was asked for") : OK;
}

static inline void caller_init(struct caller *c, const char *method, const char *base,
                               const char *path)
{
    *c = (struct caller){.call = {.method = method, .on_done = caller_done}};
    (void)snprintf(c->url, sizeof(c->url), "%s%s", base, path);
    c->call.url = str_of(c->url);
    buf_init(&c->chunks, 256U << 20);
}

static inline void caller_await_here(struct loop *l, struct caller *c, struct here here)
{
    run_until_here(l, until_flag, &c->done, here);
    ck_assert_uint_eq(c->times, 1);
}

#define caller_await(l, c) caller_await_here(l, c, HERE("caller_await(" #c ")"))

static inline void caller_end(struct caller *c)
{
    http_call_done(&c->call);
    buf_done(&c->chunks);
}

struct fixture {
    struct loop *loop;
    struct origin origin;
    struct http_client *client;
};

static inline void fixture_with(struct fixture *f, const struct http_client_settings *s)
{
    struct err e = ERR_INIT;
    f->loop = loop_make();
    origin_open(&f->origin, f->loop);
    ck_assert_ok(http_client_new(f->loop, s, &f->client, &e), &e);
}

static inline void fixture_open(struct fixture *f)
{
    struct http_client_settings s = {.user_agent = STR("unit/1"), .allow_http = true};
    fixture_with(f, &s);
}

static inline void fixture_close(struct fixture *f)
{
    f->client = http_client_free(f->client);
    origin_close(&f->origin);
    f->loop = loop_free(f->loop);
}

/* Removes proxy settings from the environment: they would disturb these tests. */
static inline void no_proxies(void)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)unsetenv(names[i]);
}
