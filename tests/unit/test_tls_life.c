/* TLS connections over time: endless handshakes, bytes that are no handshake, and shutdown. */
#include "tls_fixture.h"

#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <time.h>

static time_t wall_s(time_t *ret)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (ret != NULL)
        *ret = t.tv_sec;
    return t.tv_sec;
}

struct drip {
    struct timer timer;
    struct raw_conn *peer;
    struct str rest;
    unsigned n;
};

/* Many connections; their deadlines are timers of one loop. */
#define DRIPS 100

static void drip(struct timer *t)
{
    struct drip *d = CONTAINER_OF(t, struct drip, timer);
    if (d->peer->closed || d->rest.n == 0)
        return;
    ck_assert_msg(d->n++ < DRIPS, "the handshake is not cut after %d bytes, 20 ms apart", DRIPS);
    raw_conn_send(d->peer, (struct str){d->rest.p, 1});
    d->rest = str_skip(d->rest, 1);
    timer_arm(d->peer->loop, t, 20);
}

/* The start of a record of 512 bytes, which begins a handshake. */
#define HELLO "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

TEST(a_handshake_has_a_deadline)
{
    static char record[517] = HELLO;
    struct tls_fixture s;
    struct raw_conn p;
    struct err e = ERR_INIT;
    tls_fixture_open(&s, "ca.crt", "", false);
    s.http.server = http_server_free(s.http.server);
    struct http_server_settings set = settings(&s.http);
    set.tls = s.tls;
    set.request_timeout_ms = 200;
    ck_assert_ok(http_server_new(s.http.loop, &set, &s.http.server, &e), &e);
    dial(&s.http, &p);
    struct drip d = {.timer = {.fire = drip}, .peer = &p, .rest = {record, sizeof(record)}};
    timer_arm(s.http.loop, &d.timer, 0);
    raw_conn_await_end(&p);
    ck_assert_uint_gt(d.rest.n, 0);
    timer_cancel(&d.timer);
    raw_conn_close(&p);
    tls_fixture_close(&s);
}

struct turns {
    struct loop_hook hook;
    size_t n;
};

static uint64_t turns_prepare(struct loop_hook *h, uint64_t now_ms)
{
    (void)now_ms;
    CONTAINER_OF(h, struct turns, hook)->n++;
    return UINT64_MAX;
}

static void turns_check(struct loop_hook *h, uint64_t now_ms)
{
    (void)h;
    (void)now_ms;
}

static void over(struct timer *t)
{
    t->order = 0;
}

static bool is_over(void *ctx)
{
    return !timer_armed(ctx);
}

/* While no bytes come the loop sleeps; libmicrohttpd by itself would make thousands of turns. */
TEST(half_a_handshake_costs_nothing)
{
    struct tls_fixture s;
    struct raw_conn p;
    struct timer some = {.fire = over};
    struct turns turns = {.hook = {.prepare = turns_prepare, .check = turns_check}};
    tls_fixture_open(&s, "ca.crt", "", false);
    dial(&s.http, &p);
    for (size_t n = 0; n < sizeof(HELLO) - 1; n++) {
        raw_conn_send(&p, (struct str){&HELLO[n], 1});
        run_turns(s.http.loop, 3);
    }
    loop_hook_add(s.http.loop, &turns.hook);
    timer_arm(s.http.loop, &some, 200);
    run_until(s.http.loop, is_over, &some);
    loop_hook_del(s.http.loop, &turns.hook);
    ck_assert_uint_lt(turns.n, 10);
    ck_assert(!p.closed);
    tls_fixture_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    raw_conn_close(&p);
    tls_fixture_close(&s);
}

/* This process' end of the connection whose other end is `peer`; -1: none. */
static int other_end_of(int peer)
{
    struct sockaddr_in own = {.sin_port = 0};
    struct sockaddr_in its = {.sin_port = 0};
    socklen_t n = sizeof(own);
    ck_assert_int_eq(getsockname(peer, (struct sockaddr *)&own, &n), 0);
    for (int fd = 0; fd < 256; fd++) {
        n = sizeof(its);
        if (fd != peer && getpeername(fd, (struct sockaddr *)&its, &n) == 0 &&
            its.sin_family == AF_INET && its.sin_port == own.sin_port)
            return fd;
    }
    return -1;
}

/* Else a handshake of TLS 1.3 takes 40 ms: see listener.c. */
TEST(no_piece_of_a_handshake_waits_for_an_ack)
{
    struct tls_fixture s;
    struct raw_conn p;
    int on = 0;
    socklen_t n = sizeof(on);
    tls_fixture_open(&s, "ca.crt", "", false);
    dial(&s.http, &p);
    raw_conn_send(&p, (struct str){HELLO, 1});
    run_turns(s.http.loop, 3);
    ck_assert_int_eq(getsockopt(other_end_of(p.fd.fd), IPPROTO_TCP, TCP_NODELAY, &on, &n), 0);
    ck_assert_int_eq(on, 1);
    raw_conn_close(&p);
    tls_fixture_close(&s);
}

static const struct str strange[] = {
    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27},
    {"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10},
    {"\x15\x03\x01\x00\x02\x02\x28", 7},
    {"\0\0\0\0\0\0\0\0\0\0\0\0", 12},
};

TEST_EACH(what_is_no_handshake_is_cut, COUNT_OF(strange))
{
    struct tls_fixture s;
    struct raw_conn p;
    tls_fixture_open(&s, "ca.crt", "", false);
    dial(&s.http, &p);
    raw_conn_send(&p, strange[_i]);
    raw_conn_await_end(&p);
    ck_assert_uint_eq(s.http.handled, 0);
    ck_assert_uint_eq(raw_conn_count(&p, "HTTP"), 0);
    tls_fixture_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    raw_conn_close(&p);
    tls_fixture_close(&s);
}

static void serve_streams(struct tls_fixture *s)
{
    struct err e = ERR_INIT;
    tls_fixture_open(s, "ca.crt", "", false);
    s->http.server = http_server_free(s->http.server);
    struct http_server_settings set = settings(&s->http);
    set.tls = s->tls;
    set.admit = admit;
    set.refused = refused;
    set.admit_ctx = s;
    set.recheck_ms = 5;
    ck_assert_ok(http_server_new(s->http.loop, &set, &s->http.server, &e), &e);
    (void)snprintf(s->url, sizeof(s->url), "https://127.0.0.1:%u",
                   http_server_port(s->http.server));
    tls_fixture_client(s, "client", "ca.crt");
}

static bool has_chunk(void *ctx)
{
    const struct recorded_call *c = ctx;
    return c->n_chunks > 0;
}

/* A paused stream has no requests that would check the certificate; so the server looks for its
 * expiry, and only for this one's. */
TEST(a_stream_ends_with_its_certificate)
{
    struct tls_fixture s;
    struct recorded_call c;
    struct recorded_call next;
    struct timer some = {.fire = over};
    serve_streams(&s);
    gnutls_global_set_time_function(wall_s);
    recorded_call_init(&c, "GET", s.url, "/stream");
    c.call.on_chunk = recorded_call_chunk;
    http_call_start(s.client, &c.call);
    run_until(s.http.loop, has_chunk, &c);
    timer_arm(s.http.loop, &some, 100);
    run_until(s.http.loop, is_over, &some);
    ck_assert(!c.done);
    idle_clock_wall_ahead_s = 86400; /* half its life */
    timer_arm(s.http.loop, &some, 50);
    run_until(s.http.loop, is_over, &some);
    ck_assert(!c.done);
    idle_clock_wall_ahead_s = 2 * 86400 + 3600;
    recorded_call_await(s.http.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
    ck_assert_uint_eq(s.http.n_gone, 1);
    ck_assert_str_eq(s.fault, "the certificate has expired");
    /* Nor does its connection get it a second stream. */
    recorded_call_init(&next, "GET", s.url, "/stream");
    http_call_start(s.client, &next.call);
    recorded_call_await(s.http.loop, &next);
    ck_assert_uint_eq(s.http.n_tellers, 1);
    recorded_call_end(&c);
    recorded_call_end(&next);
    tls_fixture_close(&s);
}

/* Shutdown with handshakes under way, kept connections and a replaced certificate: nothing
 * leaks. */
TEST(an_end_amid_everything)
{
    struct tls_fixture s;
    struct raw_conn p[3];
    struct err e = ERR_INIT;
    tls_fixture_open_moving(&s);
    tls_fixture_client(&s, "client", "ca.crt");
    ck_assert_uint_eq(ask(&s), 200);
    for (int i = 0; i < 3; i++) {
        dial(&s.http, &p[i]);
        raw_conn_send(&p[i], (struct str){HELLO, (size_t)(3 * i)});
    }
    run_turns(s.http.loop, 3);
    run_shell("cd \"$1\" && touch -d '1 hour ago' now.crt", certificates_folder);
    ck_assert_int_eq(tls_refresh(s.tls, &e), TLS_TAKEN);
    s.http.server = http_server_free(s.http.server);
    for (int i = 0; i < 3; i++) {
        raw_conn_await_end(&p[i]);
        raw_conn_close(&p[i]);
    }
    tls_fixture_close(&s);
}

int main(void)
{
    no_proxies();
    if (!certificates_make()) {
        certificates_remove();
        return EXIT_FAILURE;
    }
    int status = unit_run();
    certificates_remove();
    return status;
}
