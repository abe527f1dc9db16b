/* A server whose bytes the test writes itself, and calls that record how they ended. */
#pragma once

#include "io/http_client.h"
#include "raw_conn.h"

#include <stdio.h>

#define RAW_SERVER_CONNS 128

struct raw_server {
    struct loop *loop;
    struct loop_fd listener;
    uint16_t port;
    struct raw_conn peers[RAW_SERVER_CONNS]; /* sorted by arrival */
    size_t n;
    size_t wanted;
    char url[64]; /* without a path */
};

static inline void raw_server_accept(struct loop_fd *f, uint32_t events)
{
    struct raw_server *o = CONTAINER_OF(f, struct raw_server, listener);
    (void)events;
    /* cppcheck-suppress nullPointer; the address is not needed */
    int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    ck_assert_uint_lt(o->n, RAW_SERVER_CONNS);
    raw_conn_adopt(&o->peers[o->n++], o->loop, fd);
}

static inline void raw_server_open(struct raw_server *o, struct loop *l)
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
    *o = (struct raw_server){.loop = l,
                             .listener = {.fd = fd, .events = EPOLLIN, .ready = raw_server_accept},
                             .port = ntohs(a.sin_port)};
    (void)snprintf(o->url, sizeof(o->url), "http://127.0.0.1:%u", o->port);
    ck_assert_ok(loop_fd_add(l, &o->listener, &e), &e);
}

static inline void raw_server_stop_listening(struct raw_server *o)
{
    loop_fd_del(&o->listener);
    if (o->listener.fd >= 0)
        (void)close(o->listener.fd);
    o->listener.fd = -1;
}

static inline void raw_server_close(struct raw_server *o)
{
    raw_server_stop_listening(o);
    for (size_t i = 0; i < o->n; i++)
        raw_conn_close(&o->peers[i]);
}

static inline bool raw_server_has(void *ctx)
{
    const struct raw_server *o = ctx;
    return o->n >= o->wanted;
}

/* Waits for the nth connection, counted from 0. */
static inline struct raw_conn *raw_server_peer_here(struct raw_server *o, size_t i,
                                                    struct here here)
{
    o->wanted = i + 1;
    run_until_here(o->loop, raw_server_has, o, here);
    return &o->peers[i];
}

#define raw_server_peer(o, i) raw_server_peer_here(o, i, HERE("raw_server_peer(" #o ", " #i ")"))

/* Waits until the nth connection has sent a head. */
static inline struct raw_conn *raw_server_request_here(struct raw_server *o, size_t i,
                                                       struct here here)
{
    struct raw_conn *p = raw_server_peer_here(o, i, here);
    raw_conn_await_here(p, "\r\n\r\n", 1, here);
    return p;
}

#define raw_server_request(o, i) \
    raw_server_request_here(o, i, HERE("raw_server_request(" #o ", " #i ")"))

struct recorded_call {
    struct http_call call;
    char url[256];
    bool done;
    size_t times;
    struct buf chunks;
    size_t n_chunks;
    bool refuses;
    void (*then)(struct recorded_call *c);     /* called within on_done */
    void (*in_chunk)(struct recorded_call *c); /* called within on_chunk */
    void *data;
};

static inline void recorded_call_done(struct http_call *call)
{
    struct recorded_call *c = CONTAINER_OF(call, struct recorded_call, call);
    ck_assert_ptr_null(call->client);
    c->done = true;
    c->times++;
    if (c->then != NULL)
        c->then(c);
}

static inline enum errc recorded_call_chunk(struct http_call *call, struct str chunk,
                                            struct err *reterr)
{
    struct recorded_call *c = CONTAINER_OF(call, struct recorded_call, call);
    ck_assert(!c->done);
    c->n_chunks++;
    buf_put(&c->chunks, chunk);
    if (c->in_chunk != NULL)
        c->in_chunk(c);
    return c->refuses ? err_set(reterr, ERR_SYNTAX, "not what was asked for") : OK;
}

static inline void recorded_call_init(struct recorded_call *c, const char *method, const char *base,
                                      const char *path)
{
    *c = (struct recorded_call){.call = {.method = method, .on_done = recorded_call_done}};
    (void)snprintf(c->url, sizeof(c->url), "%s%s", base, path);
    c->call.url = str_of(c->url);
    buf_init(&c->chunks, 256U << 20);
}

static inline void recorded_call_await_here(struct loop *l, struct recorded_call *c,
                                            struct here here)
{
    run_until_here(l, until_flag, &c->done, here);
    ck_assert_uint_eq(c->times, 1);
}

#define recorded_call_await(l, c) \
    recorded_call_await_here(l, c, HERE("recorded_call_await(" #c ")"))

static inline void recorded_call_end(struct recorded_call *c)
{
    http_call_done(&c->call);
    buf_done(&c->chunks);
}

struct client_fixture {
    struct loop *loop;
    struct raw_server server;
    struct http_client *client;
};

static inline void client_fixture_with(struct client_fixture *f,
                                       const struct http_client_settings *s)
{
    struct err e = ERR_INIT;
    f->loop = loop_make();
    raw_server_open(&f->server, f->loop);
    ck_assert_ok(http_client_new(f->loop, s, &f->client, &e), &e);
}

static inline void client_fixture_open(struct client_fixture *f)
{
    struct http_client_settings s = {.user_agent = STR("unit/1"), .allow_http = true};
    client_fixture_with(f, &s);
}

static inline void client_fixture_close(struct client_fixture *f)
{
    f->client = http_client_free(f->client);
    raw_server_close(&f->server);
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
