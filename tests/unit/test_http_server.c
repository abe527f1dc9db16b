#include "http_server.h"

#include "fail_alloc.h"
#include "limit.h"
#include "peer.h"

#include <arpa/inet.h>
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

static void respond(struct http_request *r, struct str body)
{
    buf_put(r->answer, body);
    http_request_respond(r, 200, "text/plain");
}

static void hop(struct deferred *d)
{
    struct site *s = CONTAINER_OF(d, struct site, hop);
    respond(s->hopping, s->hopping->body);
}

static void handle(void *ctx, struct http_request *r)
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
        r->answer->max = 10;
        respond(r, STR("more than ten bytes"));
    } else if (str_eq(r->path, STR("/bad-header"))) {
        http_request_header(r, "X", "a\r\nY: b");
        respond(r, STR(""));
    } else {
        respond(r, r->body);
    }
}

static void too_large(void *ctx, struct http_request *r, uint64_t body_bytes)
{
    struct site *s = ctx;
    s->too_large++;
    s->too_large_bytes = body_bytes;
    ck_assert_ptr_null(r->body.p);
    buf_put(r->answer, STR("too large"));
    http_request_respond(r, 413, "text/plain");
}

static struct http_server_settings settings(struct site *s)
{
    return (struct http_server_settings){
        .address = STR("127.0.0.1"),
        .max_body = 300000,
        .max_connections = 200,
        .request_timeout_ms = 60000,
        .idle_seconds = 60,
        .handle = handle,
        .too_large = too_large,
        .ctx = s,
    };
}

static void open_with(struct site *s, const struct http_server_settings *set)
{
    struct err e = ERR_INIT;
    *s = (struct site){.loop = loop_make(), .hop = {.run = hop}};
    ck_assert_ok(http_server_new(s->loop, set, &s->server, &e), &e);
    ck_assert_uint_ne(http_server_port(s->server), 0);
}

static void open_site(struct site *s)
{
    struct http_server_settings set = settings(s);
    open_with(s, &set);
}

static void close_site(struct site *s)
{
    s->server = http_server_free(s->server);
    s->loop = loop_free(s->loop);
}

static void dial(struct site *s, struct peer *p)
{
    peer_connect(p, s->loop, http_server_port(s->server));
}

static bool holds(void *ctx)
{
    const struct site *s = ctx;
    return s->n_held >= s->wanted;
}

static void await_held(struct site *s, size_t n)
{
    s->wanted = n;
    run_until(s->loop, holds, s);
}

static void post(struct peer *p, const char *path, struct str body)
{
    char head[256];
    int n = snprintf(head, sizeof(head),
                     "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path, body.n);
    peer_send(p, (struct str){head, (size_t)n});
    peer_send(p, body);
}

static void get(struct peer *p, const char *path)
{
    char head[256];
    int n = snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    peer_send(p, (struct str){head, (size_t)n});
}

static struct str letters(size_t n)
{
    char *p = malloc(n + 1);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('a' + (int)(i % 26));
    return (struct str){p, n};
}

static void free_letters(struct str s)
{
    free((void *)(uintptr_t)s.p);
}

static bool whole_body(void *ctx)
{
    const struct peer_wants *w = ctx;
    return w->peer->in.n > w->n;
}

static const struct {
    const char *path;
    size_t n;
} bodies[] = {
    {"/echo", 0}, {"/echo", 1}, {"/echo", 250000}, {"/echo", 300000},
    {"/hop", 0},  {"/hop", 1},  {"/hop", 250000},
};

START_TEST(bodies_come_whole_and_go_back_whole)
{
    struct site s;
    struct peer p;
    open_site(&s);
    dial(&s, &p);
    struct str body = letters(bodies[_i].n);
    for (int again = 0; again < 3; again++) { /* on the same connection */
        buf_clear(&p.in, 0);
        post(&p, bodies[_i].path, body);
        char length[64];
        (void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n", body.n);
        peer_await(&p, "\r\n\r\n", 1);
        ck_assert_uint_eq(peer_count(&p, length), 1);
        ck_assert_uint_eq(peer_count(&p, "HTTP/1.1 200 OK\r\n"), 1);
        ck_assert_uint_eq(peer_count(&p, "Content-Type: text/plain\r\n"), 1);
        const char *end = memmem(p.in.p, p.in.n, "\r\n\r\n", 4);
        size_t head = (size_t)(end - p.in.p) + 4;
        struct peer_wants w = {&p, "", head + body.n - 1};
        run_until(s.loop, whole_body, &w);
        ck_assert(str_eq(str_skip(buf_str(&p.in), head), body));
    }
    ck_assert_uint_eq(s.handled, 3);
    ck_assert_uint_eq(http_server_active(s.server), 0);
    char self[64];
    struct sockaddr_in a;
    socklen_t n = sizeof(a);
    ck_assert_int_eq(getsockname(p.fd.fd, (struct sockaddr *)&a, &n), 0);
    (void)snprintf(self, sizeof(self), "127.0.0.1:%u", ntohs(a.sin_port));
    ck_assert_str_eq(s.peer, self);
    free_letters(body);
    peer_close(&p);
    close_site(&s);
}

END_TEST

START_TEST(a_chunked_body_comes_whole)
{
    struct site s;
    struct peer p;
    open_site(&s);
    dial(&s, &p);
    peer_send(&p, STR("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "5\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\n\r\n"));
    peer_await(&p, "hello, world", 1);
    peer_close(&p);
    close_site(&s);
}

END_TEST

START_TEST(a_body_over_the_limit_is_swallowed)
{
    struct site s;
    struct peer p;
    open_site(&s);
    dial(&s, &p);
    struct str body = letters(300001);
    post(&p, "/echo", body);
    peer_await(&p, "too large", 1);
    ck_assert_uint_eq(peer_count(&p, "HTTP/1.1 413 "), 1);
    ck_assert_uint_eq(s.too_large, 1);
    ck_assert_uint_eq(s.too_large_bytes, 300001);
    peer_send(&p, STR("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 20; i++) {
        peer_send(&p, STR("10000\r\n"));
        peer_send(&p, (struct str){body.p, 65536});
        peer_send(&p, STR("\r\n"));
    }
    peer_send(&p, STR("0\r\n\r\n"));
    peer_await(&p, "too large", 2);
    ck_assert_uint_eq(s.too_large_bytes, 20u * 65536);
    /* The connection is still good. */
    post(&p, "/echo", STR("small"));
    peer_await(&p, "small", 1);
    ck_assert_uint_eq(s.handled, 1);
    free_letters(body);
    peer_close(&p);
    close_site(&s);
}

END_TEST

static const struct {
    const char *request;
    const char *answer; /* a part of it */
    size_t handled;
} forms[] = {
    {"GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", 1},
    {"GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request", 0},
    {"GET /?a=%00 HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request", 0},
    {"DELETE /method HTTP/1.1\r\nHost: x\r\n\r\n", "DELETE", 1},
    {"HEAD /method HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 4\r\n\r\n", 1},
    {"GET /headers HTTP/1.1\r\nHost: x\r\n\r\n", "Allow: GET, POST\r\nRetry-After: 7\r\n", 1},
    {"GET /too-much HTTP/1.1\r\nHost: x\r\n\r\n", "503 Service Unavailable", 1},
    {"GET /too-much HTTP/1.1\r\nHost: x\r\n\r\n", "the answer did not fit", 1},
    {"GET /e HTTP/1.0\r\n\r\n", "200 OK", 1},
    {"GET /e HTTP/1.1\r\n\r\n", "400 Bad Request", 0},
    {"POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", "400 Bad Request", 0},
};

START_TEST(forms_of_requests)
{
    struct site s;
    struct peer p;
    open_site(&s);
    dial(&s, &p);
    peer_send(&p, str_of(forms[_i].request));
    peer_await(&p, forms[_i].answer, 1);
    ck_assert_uint_eq(s.handled, forms[_i].handled);
    if (_i == 0)
        ck_assert_str_is(((struct str){s.path, s.path_n}), "/a b");
    peer_close(&p);
    close_site(&s);
}

END_TEST

static const char *const garbage[] = {
    "\r\n\r\n\r\n",
    "nonsense\r\n\r\n",
    "GET\r\n\r\n",
    "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
};

/* Whatever becomes of it, the next one is served. */
START_TEST(garbage_harms_nobody)
{
    struct site s;
    struct peer p;
    struct peer q;
    open_site(&s);
    dial(&s, &p);
    peer_send(&p, str_of(garbage[_i]));
    peer_send(&p, (struct str){"\0\0\0\0", 4});
    run_turns(s.loop, 3);
    dial(&s, &q);
    post(&q, "/echo", STR("fine"));
    peer_await(&q, "fine", 1);
    ck_assert_uint_le(s.handled, 2);
    peer_close(&p);
    peer_close(&q);
    close_site(&s);
}

END_TEST

START_TEST(an_answer_that_cannot_be_made_ends_the_connection)
{
    struct site s;
    struct peer p;
    open_site(&s);
    dial(&s, &p);
    get(&p, "/bad-header");
    peer_await_end(&p);
    ck_assert_uint_eq(p.in.n, 0);
    peer_close(&p);
    close_site(&s);
}

END_TEST

/*
 * MHD_get_timeout bounds the wait: the second request is in a buffer already, and no descriptor
 * will ever become ready for it.
 */
START_TEST(pipelined_requests_are_all_answered)
{
    struct site s;
    struct peer p;
    open_site(&s);
    dial(&s, &p);
    struct buf many;
    buf_init(&many, 1u << 20);
    for (int i = 0; i < 50; i++)
        buf_printf(&many, "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n%02d",
                   i % 3 == 0 ? "hop" : "echo", i);
    peer_send(&p, buf_str(&many));
    peer_await(&p, "HTTP/1.1 200 OK", 50);
    ck_assert_uint_eq(s.handled, 50);
    buf_done(&many);
    peer_close(&p);
    close_site(&s);
}

END_TEST

START_TEST(an_idle_connection_is_closed_without_any_other_event)
{
    struct site s;
    struct peer p;
    struct http_server_settings set = settings(&s);
    set.idle_seconds = 1;
    open_with(&s, &set);
    dial(&s, &p);
    post(&p, "/echo", STR("x"));
    peer_await(&p, "200 OK", 1);
    peer_await_end(&p);
    peer_close(&p);
    close_site(&s);
}

END_TEST

START_TEST(a_hundred_wait_and_are_answered_in_another_order)
{
    enum {
        N = 100
    };
    struct site s;
    static struct peer p[N];
    open_site(&s);
    for (int i = 0; i < N; i++) {
        char body[32];
        int n = snprintf(body, sizeof(body), "<%d>", i);
        dial(&s, &p[i]);
        post(&p[i], "/hold", (struct str){body, (size_t)n});
    }
    await_held(&s, N);
    ck_assert_uint_eq(http_server_active(s.server), N);
    for (size_t i = 0; i < N; i++) {
        struct http_request *r = s.held[(i * 37) % N];
        respond(r, r->body);
    }
    ck_assert_uint_eq(http_server_active(s.server), 0);
    for (int i = 0; i < N; i++) {
        char body[32];
        (void)snprintf(body, sizeof(body), "<%d>", i);
        peer_await(&p[i], body, 1);
        peer_close(&p[i]);
    }
    close_site(&s);
}

END_TEST

START_TEST(a_peer_may_vanish_while_it_waits)
{
    struct site s;
    struct peer p[3];
    open_site(&s);
    for (int i = 0; i < 3; i++) {
        dial(&s, &p[i]);
        post(&p[i], "/hold", STR("body"));
    }
    await_held(&s, 3);
    peer_close(&p[0]);
    struct linger hard = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(p[1].fd.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    peer_close(&p[1]);
    run_turns(s.loop, 3);
    ck_assert_uint_eq(http_server_active(s.server), 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_is(s.held[i]->body, "body");
        respond(s.held[i], STR("late"));
    }
    peer_await(&p[2], "late", 1);
    run_turns(s.loop, 3);
    peer_close(&p[2]);
    close_site(&s);
}

END_TEST

/* Half a request, then silence or a byte now and then: the deadline counts from the start. */
static const char *const slow[] = {
    "",
    "POST / HT",
    "POST / HTTP/1.1\r\nHost: x\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
    "GET /echo HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
};

struct drip {
    struct timer timer;
    struct peer *peer;
};

static void drip(struct timer *t)
{
    struct drip *d = CONTAINER_OF(t, struct drip, timer);
    if (!d->peer->closed) {
        peer_send(d->peer, STR("x"));
        ck_assert_int_eq(timer_arm(d->peer->loop, t, 30), OK);
    }
}

START_TEST(a_slow_request_is_cut)
{
    struct site s;
    struct peer p;
    struct http_server_settings set = settings(&s);
    set.request_timeout_ms = 200;
    set.max_body = 1u << 30;
    open_with(&s, &set);
    dial(&s, &p);
    peer_send(&p, str_of(slow[_i]));
    struct drip d = {.timer = {.fire = drip}, .peer = &p};
    if (slow[_i][0] != '\0' && _i < 4)
        ck_assert_int_eq(timer_arm(s.loop, &d.timer, 30), OK);
    peer_await_end(&p);
    ck_assert_uint_eq(s.handled, _i == 4 ? 1 : 0);
    timer_cancel(&d.timer);
    peer_close(&p);
    close_site(&s);
}

END_TEST

START_TEST(a_pending_handler_has_all_the_time)
{
    struct site s;
    struct peer p;
    struct http_server_settings set = settings(&s);
    set.request_timeout_ms = 20;
    set.idle_seconds = 1;
    open_with(&s, &set);
    dial(&s, &p);
    post(&p, "/hold", STR(""));
    await_held(&s, 1);
    for (int i = 0; i < 60; i++) {
        (void)usleep(1000);
        run_turns(s.loop, 1);
    }
    ck_assert(!p.closed);
    respond(s.held[0], STR("at last"));
    peer_await(&p, "at last", 1);
    peer_close(&p);
    close_site(&s);
}

END_TEST

static void drained(void *ctx)
{
    struct site *s = ctx;
    s->drained = true;
}

static bool nobody_left(void *ctx)
{
    struct site *s = ctx;
    if (!s->draining)
        http_server_drain(s->server, drained, s);
    s->draining = true;
    return s->drained;
}

/* It does not read: its answer waits in the socket, and goes with the deadline. */
START_TEST(a_peer_that_does_not_read_is_cut)
{
    struct site s;
    struct peer p;
    struct http_server_settings set = settings(&s);
    set.request_timeout_ms = 20;
    set.idle_seconds = 1;
    set.max_body = 32u << 20;
    open_with(&s, &set);
    struct str body = letters(16u << 20);
    dial(&s, &p);
    p.deaf = true;
    post(&p, "/hold", STR(""));
    await_held(&s, 1);
    respond(s.held[0], body);
    s.held[0] = NULL;
    run_until(s.loop, nobody_left, &s);
    free_letters(body);
    peer_close(&p);
    close_site(&s);
}

END_TEST

START_TEST(draining_waits_for_what_is_under_way)
{
    struct site s;
    struct peer waiting;
    struct peer idle;
    struct peer late;
    open_site(&s);
    dial(&s, &waiting);
    dial(&s, &idle);
    post(&idle, "/echo", STR("one"));
    peer_await(&idle, "one", 1);
    post(&waiting, "/hold", STR(""));
    await_held(&s, 1);
    uint16_t port = http_server_port(s.server);
    http_server_drain(s.server, drained, &s);
    run_turns(s.loop, 3);
    ck_assert(!s.drained);
    peer_connect(&late, s.loop, port);
    peer_await_end(&late);
    ck_assert_uint_eq(late.in.n, 0);
    /* A kept connection is still served, for the last time. */
    post(&idle, "/echo", STR("two"));
    peer_await(&idle, "two", 1);
    ck_assert_uint_eq(peer_count(&idle, "Connection: close"), 1);
    peer_await_end(&idle);
    ck_assert(!s.drained);
    respond(s.held[0], STR("done"));
    run_until(s.loop, until_flag, &s.drained);
    peer_await(&waiting, "done", 1);
    peer_close(&waiting);
    peer_close(&idle);
    peer_close(&late);
    close_site(&s);
}

END_TEST

static void drained_and_freed(void *ctx)
{
    struct site *s = ctx;
    s->server = http_server_free(s->server);
    s->drained = true;
}

START_TEST(draining_with_nothing_to_do_ends_at_once)
{
    struct site s;
    open_site(&s);
    http_server_drain(s.server, drained_and_freed, &s);
    run_until(s.loop, until_flag, &s.drained);
    ck_assert_ptr_null(s.server);
    close_site(&s);
}

END_TEST

START_TEST(freeing_answers_who_still_waits)
{
    struct site s;
    struct peer held[3];
    struct peer reading;
    struct peer idle;
    open_site(&s);
    for (int i = 0; i < 3; i++) {
        dial(&s, &held[i]);
        post(&held[i], "/hold", STR("x"));
    }
    dial(&s, &reading);
    peer_send(&reading, STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"));
    dial(&s, &idle);
    await_held(&s, 3);
    run_turns(s.loop, 3);
    s.server = http_server_free(s.server);
    for (int i = 0; i < 3; i++) {
        peer_await_end(&held[i]);
        ck_assert_uint_eq(peer_count(&held[i], "503 Service Unavailable"), 1);
        ck_assert_uint_eq(peer_count(&held[i], "shutting down"), 1);
        peer_close(&held[i]);
    }
    peer_await_end(&reading);
    ck_assert_uint_eq(reading.in.n, 0);
    peer_close(&reading);
    peer_await_end(&idle);
    peer_close(&idle);
    ck_assert_ptr_null(http_server_free(NULL));
    close_site(&s);
}

END_TEST

START_TEST(beyond_the_connection_limit_they_queue)
{
    struct site s;
    struct peer p[3];
    struct http_server_settings set = settings(&s);
    set.max_connections = 2;
    open_with(&s, &set);
    for (int i = 0; i < 3; i++) {
        dial(&s, &p[i]);
        post(&p[i], "/hold", STR("x"));
    }
    await_held(&s, 2);
    run_turns(s.loop, 3);
    ck_assert_uint_eq(s.n_held, 2);
    respond(s.held[0], STR("first"));
    respond(s.held[1], STR("second"));
    run_turns(s.loop, 3);
    for (int i = 0; i < 3; i++)
        if (peer_count(&p[i], "200 OK") == 1) {
            peer_close(&p[i]);
            p[i].closed = true;
        }
    await_held(&s, 3);
    respond(s.held[2], STR("third"));
    for (int i = 0; i < 3; i++) {
        if (p[i].closed)
            continue;
        peer_await(&p[i], "200 OK", 1);
        peer_close(&p[i]);
    }
    close_site(&s);
}

END_TEST

static const struct {
    const char *address;
    const char *error;
    enum errc code;
} addresses[] = {
    {"127.0.0.1", "", OK},
    {"0.0.0.0", "", OK},
    {"::1", "", OK},
    {"::", "", OK},
    {"localhost", "not an IP address to listen on: \"localhost\"", ERR_SYNTAX},
    {"", "not an IP address to listen on: \"\"", ERR_SYNTAX},
    {"8.8.8.8", "cannot listen on 8.8.8.8:0: Cannot assign requested address", ERR_UNAVAILABLE},
};

/* Only asked whether it would: nothing but loopback is listened on. */
START_TEST(addresses_to_listen_on)
{
    struct site s;
    struct err e = ERR_INIT;
    struct http_server_settings set = settings(&s);
    set.address = str_of(addresses[_i].address);
    s = (struct site){.loop = loop_make()};
    enum errc code = http_server_new(s.loop, &set, &s.server, &e);
    ck_assert_int_eq(code, addresses[_i].code);
    ck_assert_str_eq(e.text, addresses[_i].error);
    close_site(&s);
}

END_TEST

START_TEST(a_port_that_is_taken_is_named)
{
    struct site s;
    struct err e = ERR_INIT;
    char text[128];
    struct http_server *second = NULL;
    struct http_server_settings set = settings(&s);
    open_site(&s);
    set.port = http_server_port(s.server);
    ck_assert_int_eq(http_server_new(s.loop, &set, &second, &e), ERR_UNAVAILABLE);
    (void)snprintf(text, sizeof(text), "cannot listen on 127.0.0.1:%u: Address already in use",
                   set.port);
    ck_assert_str_eq(e.text, text);
    close_site(&s);
}

END_TEST

START_TEST(a_steady_load_allocates_nothing_of_ours)
{
    struct site s;
    struct peer p;
    open_site(&s);
    struct str body = letters(250000);
    dial(&s, &p);
    for (size_t i = 0; i < 20; i++) {
        if (i == 3)
            fail_alloc_arm(FAIL_NEVER, 0);
        buf_clear(&p.in, SIZE_MAX);
        post(&p, i % 2 == 0 ? "/echo" : "/hop", body);
        struct peer_wants w = {&p, "", body.n + 100};
        run_until(s.loop, whole_body, &w);
    }
    ck_assert_uint_eq(fail_alloc_count(), 0);
    fail_alloc_disarm();
    free_letters(body);
    peer_close(&p);
    close_site(&s);
}

END_TEST

static bool cut_or_answered(void *ctx)
{
    const struct peer_wants *w = ctx;
    return w->peer->closed || peer_count(w->peer, "\r\n\r\n") > 0;
}

/* Each allocation of a request fails once: the peer is cut off or told, and the next one served. */
START_TEST(without_memory_a_request_fails_alone)
{
    struct site s;
    size_t served = 0;
    open_site(&s);
    for (size_t nth = 1; nth < 100 && served < 3; nth++) {
        struct peer p;
        dial(&s, &p);
        ck_assert(buf_reserve(&p.in, 1u << 20) && buf_reserve(&p.out, 1u << 20));
        run_turns(s.loop, 1);
        s.server = http_server_free(s.server);
        struct http_server_settings set = settings(&s);
        struct err e = ERR_INIT;
        ck_assert_ok(http_server_new(s.loop, &set, &s.server, &e), &e);
        peer_close(&p);
        s.last_id = 0;
        dial(&s, &p);
        ck_assert(buf_reserve(&p.in, 1u << 20) && buf_reserve(&p.out, 1u << 20));
        post(&p, "/hop", STR("body"));
        fail_alloc_arm(FAIL_ONCE, nth);
        struct peer_wants w = {&p, "", 0};
        run_until(s.loop, cut_or_answered, &w);
        bool hit = fail_alloc_hit();
        fail_alloc_disarm();
        if (!hit) {
            ck_assert_uint_eq(peer_count(&p, "200 OK"), 1);
            served++;
        }
        peer_close(&p);
    }
    ck_assert_uint_eq(served, 3);
    close_site(&s);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("http_server");
    TCase *c = tcase_create("http_server");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, bodies_come_whole_and_go_back_whole, 0, COUNT_OF(bodies));
    tcase_add_test(c, a_chunked_body_comes_whole);
    tcase_add_test(c, a_body_over_the_limit_is_swallowed);
    tcase_add_loop_test(c, forms_of_requests, 0, COUNT_OF(forms));
    tcase_add_loop_test(c, garbage_harms_nobody, 0, COUNT_OF(garbage));
    tcase_add_test(c, an_answer_that_cannot_be_made_ends_the_connection);
    tcase_add_test(c, pipelined_requests_are_all_answered);
    tcase_add_test(c, an_idle_connection_is_closed_without_any_other_event);
    tcase_add_test(c, a_hundred_wait_and_are_answered_in_another_order);
    tcase_add_test(c, a_peer_may_vanish_while_it_waits);
    tcase_add_loop_test(c, a_slow_request_is_cut, 0, COUNT_OF(slow));
    tcase_add_test(c, a_pending_handler_has_all_the_time);
    tcase_add_test(c, a_peer_that_does_not_read_is_cut);
    tcase_add_test(c, draining_waits_for_what_is_under_way);
    tcase_add_test(c, draining_with_nothing_to_do_ends_at_once);
    tcase_add_test(c, freeing_answers_who_still_waits);
    tcase_add_test(c, beyond_the_connection_limit_they_queue);
    tcase_add_loop_test(c, addresses_to_listen_on, 0, COUNT_OF(addresses));
    tcase_add_test(c, a_port_that_is_taken_is_named);
    tcase_add_test(c, a_steady_load_allocates_nothing_of_ours);
    tcase_add_test(c, without_memory_a_request_fails_alone);
    suite_add_tcase(s, c);
    return unit_main(s);
}
