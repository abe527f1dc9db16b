/* The HTTP server over time: deadlines, limits and shutdown. */
#include "fail_alloc.h"
#include "http_fixture.h"

/* Half a request, then silence or a byte from time to time: the deadline counts from the start. */
static const char *const slow[] = {
    "",
    "POST / HT",
    "POST / HTTP/1.1\r\nHost: x\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
    "GET /echo HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
};

struct drip {
    struct timer timer;
    struct raw_conn *peer;
    unsigned n;
};

/* Many connections; their deadlines are timers of one loop. */
#define DRIPS 100

static void drip(struct timer *t)
{
    struct drip *d = CONTAINER_OF(t, struct drip, timer);
    if (!d->peer->closed) {
        ck_assert_msg(d->n++ < DRIPS, "the request is not cut after %d bytes, 30 ms apart", DRIPS);
        raw_conn_send(d->peer, STR("x"));
        timer_arm(d->peer->loop, t, 30);
    }
}

TEST_EACH(a_slow_request_is_cut, COUNT_OF(slow))
{
    struct http_fixture s;
    struct raw_conn p;
    struct http_server_settings set = settings(&s);
    set.request_timeout_ms = 200;
    set.max_body = 1U << 30;
    open_with(&s, &set);
    dial(&s, &p);
    raw_conn_send(&p, str_of(slow[_i]));
    struct drip d = {.timer = {.fire = drip}, .peer = &p};
    if (slow[_i][0] != '\0' && _i < 4)
        timer_arm(s.loop, &d.timer, 30);
    raw_conn_await_end(&p);
    ck_assert_uint_eq(s.handled, _i == 4 ? 1 : 0);
    timer_cancel(&d.timer);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST(a_pending_handler_has_all_the_time)
{
    struct http_fixture s;
    struct raw_conn p;
    struct http_server_settings set = settings(&s);
    set.request_timeout_ms = 20;
    set.idle_seconds = 1;
    open_with(&s, &set);
    dial(&s, &p);
    post(&p, "/hold", STR(""));
    await_held(&s, 1);
    for (int i = 0; i < 60; i++) {
        idle_clock_pass(1);
        run_turns(s.loop, 1);
    }
    ck_assert(!p.closed);
    respond(s.held[0], STR("at last"));
    raw_conn_await(&p, "at last", 1);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

static void drained(void *ctx)
{
    struct http_fixture *s = ctx;
    s->drained = true;
}

static bool nobody_left(void *ctx)
{
    struct http_fixture *s = ctx;
    if (!s->draining)
        http_server_drain(s->server, drained, s);
    s->draining = true;
    return s->drained;
}

/* The client does not read: its answer waits in the socket until the deadline. */
TEST(a_peer_that_does_not_read_is_cut)
{
    struct http_fixture s;
    struct raw_conn p;
    struct http_server_settings set = settings(&s);
    set.request_timeout_ms = 20;
    set.idle_seconds = 1;
    set.max_body = 32U << 20;
    open_with(&s, &set);
    struct buf memory;
    struct str body = letters(&memory, 16U << 20);
    dial(&s, &p);
    p.deaf = true;
    post(&p, "/hold", STR(""));
    await_held(&s, 1);
    respond(s.held[0], body);
    s.held[0] = NULL;
    run_until(s.loop, nobody_left, &s);
    buf_done(&memory);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST(freeing_answers_who_still_waits)
{
    struct http_fixture s;
    struct raw_conn held[3];
    struct raw_conn reading;
    struct raw_conn idle;
    http_fixture_open(&s);
    for (int i = 0; i < 3; i++) {
        dial(&s, &held[i]);
        post(&held[i], "/hold", STR("x"));
    }
    dial(&s, &reading);
    raw_conn_send(&reading, STR("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"));
    dial(&s, &idle);
    await_held(&s, 3);
    run_turns(s.loop, 3);
    s.server = http_server_free(s.server);
    for (int i = 0; i < 3; i++) {
        raw_conn_await_end(&held[i]);
        ck_assert_uint_eq(raw_conn_count(&held[i], "503 Service Unavailable"), 1);
        ck_assert_uint_eq(raw_conn_count(&held[i], "shutting down"), 1);
        raw_conn_close(&held[i]);
    }
    raw_conn_await_end(&reading);
    ck_assert_uint_eq(reading.in.n, 0);
    raw_conn_close(&reading);
    raw_conn_await_end(&idle);
    raw_conn_close(&idle);
    ck_assert_ptr_null(http_server_free(NULL));
    http_fixture_close(&s);
}

TEST(beyond_the_connection_limit_they_queue)
{
    struct http_fixture s;
    struct raw_conn p[3];
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
        if (raw_conn_count(&p[i], "200 OK") == 1) {
            raw_conn_close(&p[i]);
            p[i].closed = true;
        }
    await_held(&s, 3);
    respond(s.held[2], STR("third"));
    for (int i = 0; i < 3; i++) {
        if (p[i].closed)
            continue;
        raw_conn_await(&p[i], "200 OK", 1);
        raw_conn_close(&p[i]);
    }
    http_fixture_close(&s);
}

static const struct {
    const char *address;
    const char *error;
    enum errc code;
} addresses[] = {
    {"127.0.0.1", "", OK},
    {"localhost", "not an IP address to listen on: \"localhost\"", ERR_SYNTAX},
    {"", "not an IP address to listen on: \"\"", ERR_SYNTAX},
    {"8.8.8.8", "cannot listen on 8.8.8.8:0: Cannot assign requested address", ERR_UNAVAILABLE},
};

TEST_EACH(addresses_to_listen_on, COUNT_OF(addresses))
{
    struct http_fixture s;
    struct err e = ERR_INIT;
    struct http_server_settings set = settings(&s);
    set.address = str_of(addresses[_i].address);
    s = (struct http_fixture){.loop = loop_make()};
    enum errc code = http_server_new(s.loop, &set, &s.server, &e);
    ck_assert_int_eq(code, addresses[_i].code);
    ck_assert_str_eq(e.text, addresses[_i].error);
    http_fixture_close(&s);
}

TEST(a_port_that_is_taken_is_named)
{
    struct http_fixture s;
    struct err e = ERR_INIT;
    char text[128];
    struct http_server *second = NULL;
    struct http_server_settings set = settings(&s);
    http_fixture_open(&s);
    set.port = http_server_port(s.server);
    ck_assert_int_eq(http_server_new(s.loop, &set, &second, &e), ERR_UNAVAILABLE);
    (void)snprintf(text, sizeof(text), "cannot listen on 127.0.0.1:%u: Address already in use",
                   set.port);
    ck_assert_str_eq(e.text, text);
    http_fixture_close(&s);
}

TEST(a_steady_load_allocates_nothing_of_ours)
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    struct buf memory;
    struct str body = letters(&memory, 250000);
    dial(&s, &p);
    for (size_t i = 0; i < 20; i++) {
        if (i == 3)
            fail_alloc_arm(FAIL_NEVER, 0);
        buf_clear(&p.in, SIZE_MAX);
        post(&p, i % 2 == 0 ? "/echo" : "/hop", body);
        struct raw_conn_wants w = {&p, "", body.n + 100};
        run_until(s.loop, whole_body, &w);
    }
    ck_assert_uint_eq(fail_alloc_count(), 0);
    fail_alloc_disarm();
    buf_done(&memory);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

static bool cut_or_answered(void *ctx)
{
    const struct raw_conn_wants *w = ctx;
    return w->peer->closed || raw_conn_count(w->peer, "\r\n\r\n") > 0;
}

/* Each allocation of a new server's first request fails: the connection is cut, or gets an
 * error. */
TEST(without_memory_a_request_fails)
{
    bool hit = true;
    size_t nth = 0;
    while (hit) {
        struct http_fixture s;
        struct raw_conn p;
        http_fixture_open(&s);
        dial(&s, &p);
        ck_assert(buf_reserve(&p.in, 1U << 20));
        ck_assert(buf_reserve(&p.out, 1U << 20));
        post(&p, "/hop", STR("body"));
        fail_alloc_arm(FAIL_ONCE, ++nth);
        struct raw_conn_wants w = {&p, "", 0};
        run_until(s.loop, cut_or_answered, &w);
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert_uint_eq(raw_conn_count(&p, "200 OK"), hit ? 0 : 1);
        raw_conn_close(&p);
        http_fixture_close(&s);
    }
    ck_assert_uint_gt(nth, 4); /* connection, request, body, arena, answer */
}
