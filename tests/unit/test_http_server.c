/* How the HTTP server reads and answers requests. */
#include "http_fixture.h"

static const struct {
    const char *path;
    size_t n;
} bodies[] = {
    {"/echo", 0}, {"/echo", 1}, {"/echo", 250000}, {"/echo", 300000},
    {"/hop", 0},  {"/hop", 1},  {"/hop", 250000},
};

TEST_EACH(bodies_come_whole_and_go_back_whole, COUNT_OF(bodies))
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    struct buf memory;
    struct str body = letters(&memory, bodies[_i].n);
    for (int again = 0; again < 3; again++) { /* on the same connection */
        buf_clear(&p.in, 0);
        post(&p, bodies[_i].path, body);
        char length[64];
        (void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n", body.n);
        raw_conn_await(&p, "\r\n\r\n", 1);
        ck_assert_uint_eq(raw_conn_count(&p, length), 1);
        ck_assert_uint_eq(raw_conn_count(&p, "HTTP/1.1 200 OK\r\n"), 1);
        ck_assert_uint_eq(raw_conn_count(&p, "Content-Type: text/plain\r\n"), 1);
        const char *end = memmem(p.in.p, p.in.n, "\r\n\r\n", 4);
        size_t head = (size_t)(end - p.in.p) + 4;
        struct raw_conn_wants w = {&p, "", head + body.n - 1};
        run_until(s.loop, whole_body, &w);
        ck_assert(str_eq(str_skip(buf_str(&p.in), head), body));
    }
    ck_assert_uint_eq(s.handled, 3);
    ck_assert_uint_eq(http_server_active(s.server), 0);
    char self[64];
    struct sockaddr_in a = {.sin_port = 0};
    socklen_t n = sizeof(a);
    ck_assert_int_eq(getsockname(p.fd.fd, (struct sockaddr *)&a, &n), 0);
    (void)snprintf(self, sizeof(self), "127.0.0.1:%u", ntohs(a.sin_port));
    ck_assert_str_eq(s.peer, self);
    buf_done(&memory);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST(a_chunked_body_comes_whole)
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    raw_conn_send(&p, STR("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "5\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\n\r\n"));
    raw_conn_await(&p, "hello, world", 1);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST(a_body_over_the_limit_is_swallowed)
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    struct buf memory;
    struct str body = letters(&memory, 300001);
    post(&p, "/echo", body);
    raw_conn_await(&p, "too large", 1);
    ck_assert_uint_eq(raw_conn_count(&p, "HTTP/1.1 413 "), 1);
    ck_assert_uint_eq(s.too_large, 1);
    ck_assert_uint_eq(s.too_large_bytes, 300001);
    raw_conn_send(&p, STR("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 20; i++) {
        raw_conn_send(&p, STR("10000\r\n"));
        raw_conn_send(&p, (struct str){body.p, 65536});
        raw_conn_send(&p, STR("\r\n"));
    }
    raw_conn_send(&p, STR("0\r\n\r\n"));
    raw_conn_await(&p, "too large", 2);
    ck_assert_uint_eq(s.too_large_bytes, (uint64_t)20 * 65536);
    /* The connection stays usable. */
    post(&p, "/echo", STR("small"));
    raw_conn_await(&p, "small", 1);
    ck_assert_uint_eq(s.handled, 1);
    buf_done(&memory);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

static const struct {
    const char *request;
    const char *answer; /* a part of the answer */
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

TEST_EACH(forms_of_requests, COUNT_OF(forms))
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    raw_conn_send(&p, str_of(forms[_i].request));
    raw_conn_await(&p, forms[_i].answer, 1);
    ck_assert_uint_eq(s.handled, forms[_i].handled);
    if (_i == 0)
        ck_assert_str_is(((struct str){s.path, s.path_n}), "/a b");
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST(headers_are_counted)
{
    static const struct {
        int n;
        const char *answer;
    } cases[] = {{100, "200 OK"}, {101, "431 "}, {2000, "431 "}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_fixture s;
        struct raw_conn p;
        struct buf request;
        http_fixture_open(&s);
        dial(&s, &p);
        buf_init(&request, 1U << 20);
        buf_put(&request, STR("POST /echo HTTP/1.1\r\nContent-Length: 4\r\n"));
        for (int n = 1; n < cases[i].n; n++)
            buf_put(&request, n == 1 ? STR("Host: x\r\n") : STR("A: b\r\n"));
        buf_put(&request, STR("\r\nbody"));
        raw_conn_send(&p, buf_str(&request));
        raw_conn_await(&p, cases[i].answer, 1);
        ck_assert_uint_eq(s.handled, cases[i].n <= 100 ? 1 : 0);
        buf_done(&request);
        raw_conn_close(&p);
        http_fixture_close(&s);
    }
}

static const char *const garbage[] = {
    "\r\n\r\n\r\n",
    "nonsense\r\n\r\n",
    "GET\r\n\r\n",
    "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
};

/* Whatever happens to it, the next request is served. */
TEST_EACH(garbage_harms_nobody, COUNT_OF(garbage))
{
    struct http_fixture s;
    struct raw_conn p;
    struct raw_conn q;
    http_fixture_open(&s);
    dial(&s, &p);
    raw_conn_send(&p, str_of(garbage[_i]));
    raw_conn_send(&p, (struct str){"\0\0\0\0", 4});
    run_turns(s.loop, 3);
    dial(&s, &q);
    post(&q, "/echo", STR("fine"));
    raw_conn_await(&q, "fine", 1);
    ck_assert_uint_le(s.handled, 2);
    raw_conn_close(&p);
    raw_conn_close(&q);
    http_fixture_close(&s);
}

TEST(an_answer_that_cannot_be_made_ends_the_connection)
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    get(&p, "/bad-header");
    raw_conn_await_end(&p);
    ck_assert_uint_eq(p.in.n, 0);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

/*
 * MHD_get_timeout limits the wait: the second request is already in a buffer, so no descriptor
 * becomes ready for it.
 */
TEST(pipelined_requests_are_all_answered)
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    struct buf many;
    buf_init(&many, 1U << 20);
    for (int i = 0; i < 50; i++)
        buf_printf(&many, "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n%02d",
                   i % 3 == 0 ? "hop" : "echo", i);
    raw_conn_send(&p, buf_str(&many));
    raw_conn_await(&p, "HTTP/1.1 200 OK", 50);
    ck_assert_uint_eq(s.handled, 50);
    buf_done(&many);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST(an_idle_connection_is_closed_without_any_other_event)
{
    struct http_fixture s;
    struct raw_conn p;
    struct http_server_settings set = settings(&s);
    set.idle_seconds = 1;
    open_with(&s, &set);
    dial(&s, &p);
    post(&p, "/echo", STR("x"));
    raw_conn_await(&p, "200 OK", 1);
    raw_conn_await_end(&p);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST(a_hundred_wait_and_are_answered_in_another_order)
{
    enum {
        N = 100
    };
    struct http_fixture s;
    static struct raw_conn p[N];
    http_fixture_open(&s);
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
        raw_conn_await(&p[i], body, 1);
        raw_conn_close(&p[i]);
    }
    http_fixture_close(&s);
}

TEST(a_peer_may_vanish_while_it_waits)
{
    struct http_fixture s;
    struct raw_conn p[3];
    http_fixture_open(&s);
    for (int i = 0; i < 3; i++) {
        dial(&s, &p[i]);
        post(&p[i], "/hold", STR("body"));
    }
    await_held(&s, 3);
    raw_conn_close(&p[0]);
    struct linger hard = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(p[1].fd.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    raw_conn_close(&p[1]);
    run_turns(s.loop, 3);
    ck_assert_uint_eq(http_server_active(s.server), 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_is(s.held[i]->body, "body");
        respond(s.held[i], STR("late"));
    }
    raw_conn_await(&p[2], "late", 1);
    run_turns(s.loop, 3);
    raw_conn_close(&p[2]);
    http_fixture_close(&s);
}
