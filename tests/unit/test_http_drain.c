/* The HTTP server during shutdown: which connections it waits for. */
#include "site.h"

#include <fcntl.h>

static void drained(void *ctx)
{
    struct site *s = ctx;
    s->drained = true;
}

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

/* A client that reads nothing of its answer delays the shutdown no longer than stall_ms. */
START_TEST(draining_waits_for_no_deaf_peer)
{
    struct site s;
    struct peer p;
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
    peer_close(&p);
    close_site(&s);
}

END_TEST

#define SIP ((size_t)256 * 1024)

struct sips {
    struct timer timer;
    struct peer *peer;
};

static void sip(struct timer *t)
{
    struct peer *p = CONTAINER_OF(t, struct sips, timer)->peer;
    ck_assert(buf_reserve(&p->in, SIP));
    ssize_t n = read(p->fd.fd, p->in.p + p->in.n, SIP);
    p->closed = n == 0 || (n < 0 && errno != EAGAIN);
    p->in.n += n > 0 ? (size_t)n : 0;
    if (!p->closed)
        timer_arm(p->loop, t, 10);
}

/* The answer takes much longer than a stall, but advances. Then its connection, which did not know
 * that this was its last answer, is closed at once, while the server still waits for others. */
START_TEST(draining_waits_for_a_slow_peer)
{
    struct site s;
    struct peer p;
    struct peer other;
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
    peer_await_end(&p);
    ck_assert_uint_eq(peer_count(&p, "Connection: close"), 0);
    ck_assert_uint_gt(p.in.n, body.n);
    ck_assert(!s.drained);
    respond(s.held[1], STR("done"));
    peer_await(&other, "done", 1);
    run_until(s.loop, until_flag, &s.drained);
    buf_done(&memory);
    peer_close(&p);
    peer_close(&other);
    close_site(&s);
}

END_TEST

/* The client has connected and sent a request; the server has not accepted it yet. */
START_TEST(draining_serves_who_stands_in_line)
{
    enum {
        N = 64
    };
    struct site s;
    struct peer p[N];
    open_site(&s);
    struct sockaddr_in a = loopback(http_server_port(s.server));
    struct str asks = STR("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < N; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        ck_assert_int_eq(write(fd, asks.p, asks.n), (ssize_t)asks.n);
        ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
        peer_adopt(&p[i], s.loop, fd);
    }
    http_server_drain(s.server, drained, &s);
    for (int i = 0; i < N; i++) {
        peer_await_end(&p[i]);
        ck_assert_uint_eq(peer_count(&p[i], "HTTP/1.1 200"), 1);
        ck_assert_uint_eq(peer_count(&p[i], "Connection: close"), 1);
        peer_close(&p[i]);
    }
    run_until(s.loop, until_flag, &s.drained);
    close_site(&s);
}

END_TEST

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

int main(void)
{
    Suite *s = suite_create("http_drain");
    TCase *c = tcase_create("http_drain");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, draining_waits_for_what_is_under_way);
    tcase_add_loop_test(c, draining_waits_for_no_deaf_peer, 0, 2);
    tcase_add_test(c, draining_waits_for_a_slow_peer);
    tcase_add_test(c, draining_serves_who_stands_in_line);
    tcase_add_test(c, draining_with_nothing_to_do_ends_at_once);
    suite_add_tcase(s, c);
    return unit_main(s);
}
