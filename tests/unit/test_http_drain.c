/* The HTTP server during shutdown: which connections it waits for. */
#include "http_fixture.h"

#include <fcntl.h>

static void drained(void *ctx)
{
    struct http_fixture *s = ctx;
    s->drained = true;
}

TEST(draining_waits_for_what_is_under_way)
{
    struct http_fixture s;
    struct raw_conn waiting;
    struct raw_conn idle;
    struct raw_conn late;
    http_fixture_open(&s);
    dial(&s, &waiting);
    dial(&s, &idle);
    post(&idle, "/echo", STR("one"));
    raw_conn_await(&idle, "one", 1);
    post(&waiting, "/hold", STR(""));
    await_held(&s, 1);
    uint16_t port = http_server_port(s.server);
    http_server_drain(s.server, drained, &s);
    run_turns(s.loop, 3);
    ck_assert(!s.drained);
    raw_conn_connect(&late, s.loop, port);
    raw_conn_await_end(&late);
    ck_assert_uint_eq(late.in.n, 0);
    raw_conn_await_end(&idle);
    ck_assert(!s.drained);
    respond(s.held[0], STR("done"));
    run_until(s.loop, until_flag, &s.drained);
    raw_conn_await(&waiting, "done", 1);
    raw_conn_close(&waiting);
    raw_conn_close(&idle);
    raw_conn_close(&late);
    http_fixture_close(&s);
}

static void drained_and_freed(void *ctx)
{
    struct http_fixture *s = ctx;
    s->server = http_server_free(s->server);
    s->drained = true;
}

/* A client that reads nothing of its answer delays the shutdown no longer than stall_ms. */
TEST_EACH(draining_waits_for_no_deaf_peer, 2)
{
    struct http_fixture s;
    struct raw_conn p;
    struct buf memory;
    struct http_server_settings set = settings(&s);
    set.stall_ms = 50;
    open_with(&s, &set);
    struct str body = letters(&memory, 16U << 20);
    dial(&s, &p);
    p.deaf = true;
    post(&p, "/hold", STR(""));
    await_held(&s, 1);
    if (_i == 0)
        http_server_drain(s.server, drained, &s);
    respond(s.held[0], body);
    run_turns(s.loop, 20);
    if (_i == 1)
        http_server_drain(s.server, drained, &s);
    run_until(s.loop, until_flag, &s.drained);
    buf_done(&memory);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

#define SIP ((size_t)256 * 1024)

struct sips {
    struct timer timer;
    struct raw_conn *peer;
};

static void sip(struct timer *t)
{
    struct raw_conn *p = CONTAINER_OF(t, struct sips, timer)->peer;
    ck_assert(buf_reserve(&p->in, SIP));
    ssize_t n = read(p->fd.fd, p->in.p + p->in.n, SIP);
    p->closed = n == 0 || (n < 0 && errno != EAGAIN);
    p->in.n += n > 0 ? (size_t)n : 0;
    if (!p->closed)
        timer_arm(p->loop, t, 10);
}

/* The answer takes much longer than a stall, but advances. Then its connection, which did not know
 * that this was its last answer, is closed at once, while the server still waits for others. */
TEST(draining_waits_for_a_slow_peer)
{
    struct http_fixture s;
    struct raw_conn p;
    struct raw_conn other;
    struct buf memory;
    struct http_server_settings set = settings(&s);
    set.stall_ms = 200;
    open_with(&s, &set);
    struct str body = letters(&memory, 16U << 20);
    dial(&s, &p);
    p.deaf = true;
    post(&p, "/hold", STR(""));
    await_held(&s, 1);
    dial(&s, &other);
    post(&other, "/hold", STR(""));
    await_held(&s, 2);
    respond(s.held[0], body);
    run_turns(s.loop, 20);
    http_server_drain(s.server, drained, &s);
    struct sips sips = {.timer = {.fire = sip}, .peer = &p};
    loop_fd_del(&p.fd);
    timer_arm(s.loop, &sips.timer, 10);
    raw_conn_await_end(&p);
    ck_assert_uint_eq(raw_conn_count(&p, "Connection: close"), 0);
    ck_assert_uint_gt(p.in.n, body.n);
    ck_assert(!s.drained);
    respond(s.held[1], STR("done"));
    raw_conn_await(&other, "done", 1);
    run_until(s.loop, until_flag, &s.drained);
    buf_done(&memory);
    raw_conn_close(&p);
    raw_conn_close(&other);
    http_fixture_close(&s);
}

/* The client has connected and sent a request; the server has not accepted it yet. */
TEST(draining_serves_who_stands_in_line)
{
    enum {
        N = 64
    };
    struct http_fixture s;
    struct raw_conn p[N];
    http_fixture_open(&s);
    struct sockaddr_in a = loopback(http_server_port(s.server));
    struct str asks = STR("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < N; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        ck_assert_int_eq(write(fd, asks.p, asks.n), (ssize_t)asks.n);
        ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
        raw_conn_adopt(&p[i], s.loop, fd);
    }
    http_server_drain(s.server, drained, &s);
    for (int i = 0; i < N; i++) {
        raw_conn_await_end(&p[i]);
        ck_assert_uint_eq(raw_conn_count(&p[i], "HTTP/1.1 200"), 1);
        ck_assert_uint_eq(raw_conn_count(&p[i], "Connection: close"), 1);
        raw_conn_close(&p[i]);
    }
    run_until(s.loop, until_flag, &s.drained);
    http_fixture_close(&s);
}

TEST(draining_with_nothing_to_do_ends_at_once)
{
    struct http_fixture s;
    http_fixture_open(&s);
    http_server_drain(s.server, drained_and_freed, &s);
    run_until(s.loop, until_flag, &s.drained);
    ck_assert_ptr_null(s.server);
    http_fixture_close(&s);
}
