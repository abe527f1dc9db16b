/* What the HTTP server counts, and what it reports of each request. */
#include "http_fixture.h"

/* The last answer belongs to a request that began after the previous one. */
static void later(const struct http_fixture *c, uint64_t *start_ns)
{
    ck_assert_uint_ge(c->last_ns, *start_ns);
    *start_ns = c->last_ns;
}

TEST(every_answer_is_told)
{
    struct http_fixture c;
    struct raw_conn p;
    uint64_t start_ns = 0;
    http_fixture_open(&c);
    dial(&c, &p);
    get(&p, "/a");
    raw_conn_await(&p, "HTTP/1.1 200", 1);
    ck_assert_uint_eq(c.answered, 1);
    ck_assert_uint_eq(c.last_status, 200);
    later(&c, &start_ns);
    get(&p, "/headers");
    raw_conn_await(&p, "HTTP/1.1 405", 1);
    ck_assert_uint_eq(c.answered, 2);
    ck_assert_uint_eq(c.last_status, 405);
    later(&c, &start_ns);
    get(&p, "/hop");
    raw_conn_await(&p, "HTTP/1.1 200", 2);
    ck_assert_uint_eq(c.answered, 3);
    get(&p, "/nul%00"); /* answered by the server itself */
    raw_conn_await(&p, "HTTP/1.1 400", 1);
    ck_assert_uint_eq(c.answered, 3);
    ck_assert_uint_eq(c.answered_alone, 1);
    ck_assert_uint_eq(c.last_status, 400);
    later(&c, &start_ns);
    raw_conn_close(&p);
    http_fixture_close(&c);
}

static bool is_alone(void *ctx)
{
    const struct http_fixture *c = ctx;
    return c->counts.open == 1;
}

TEST(connections_and_requests_are_counted)
{
    struct http_fixture c;
    struct raw_conn p;
    struct raw_conn q;
    http_fixture_open(&c);
    dial(&c, &p);
    dial(&c, &q);
    get(&p, "/hold");
    get(&q, "/hold");
    await_held(&c, 2);
    ck_assert_uint_eq(c.counts.connections, 2);
    ck_assert_uint_eq(c.counts.open, 2);
    ck_assert_uint_eq(c.counts.active, 2);
    respond(c.held[0], STR("first"));
    ck_assert_uint_eq(c.counts.active, 1);
    respond(c.held[1], STR("second"));
    ck_assert_uint_eq(c.counts.active, 0);
    raw_conn_await(&p, "first", 1);
    raw_conn_await(&q, "second", 1);
    raw_conn_close(&p);
    run_until(c.loop, is_alone, &c);
    ck_assert_uint_eq(c.counts.connections, 2);
    ck_assert_uint_eq(c.counts.not_admitted, 0);
    raw_conn_close(&q);
    http_fixture_close(&c);
}

static bool has_sent_all(void *ctx)
{
    const struct http_fixture *c = ctx;
    return c->counts.unsent_bytes == 0;
}

static bool has_begun(void *ctx)
{
    const struct http_fixture *c = ctx;
    return c->counts.unsent_bytes > 0;
}

/* Far more than a socket's buffers take: it stays until the client reads. */
TEST(bytes_that_have_not_left_are_counted)
{
    const size_t n = (size_t)32 << 20;
    struct http_fixture c;
    struct raw_conn p;
    http_fixture_open(&c);
    dial(&c, &p);
    get(&p, "/hold");
    await_held(&c, 1);
    loop_fd_del(&p.fd); /* the client reads no more */
    struct http_request *r = c.held[0];
    ck_assert(buf_reserve(r->answer, n));
    memset(r->answer->p, 'x', n);
    r->answer->n = n;
    http_request_respond(r, 200, "text/plain");
    run_until(c.loop, has_begun, &c);
    ck_assert_uint_eq(c.counts.unsent_bytes, n);
    ck_assert_uint_eq(c.counts.active, 0);
    raw_conn_close(&p);
    run_until(c.loop, has_sent_all, &c);
    http_fixture_close(&c);
}

TEST(headers_can_be_asked_for)
{
    struct http_fixture c;
    struct raw_conn p;
    http_fixture_open(&c);
    dial(&c, &p);
    get(&p, "/a");
    raw_conn_await(&p, "HTTP/1.1 200", 1);
    ck_assert(!c.accepts);
    raw_conn_send(&p, STR("GET /a HTTP/1.1\r\nHost: x\r\nACCEPT: text/plain;q=0.5\r\n\r\n"));
    raw_conn_await(&p, "HTTP/1.1 200", 2);
    ck_assert_str_eq(c.accept, "text/plain;q=0.5");
    raw_conn_send(&p, STR("GET /a HTTP/1.1\r\nHost: x\r\nAccept:\r\n\r\n"));
    raw_conn_await(&p, "HTTP/1.1 200", 3);
    ck_assert(c.accepts);
    ck_assert_str_eq(c.accept, "");
    raw_conn_close(&p);
    http_fixture_close(&c);
}

static unsigned nobody(void *ctx, const struct http_caller *caller)
{
    (void)ctx;
    (void)caller;
    return 401;
}

TEST(who_is_not_admitted_is_counted)
{
    struct http_fixture c;
    struct raw_conn p;
    struct http_server_settings set = settings(&c);
    set.admit = nobody;
    open_with(&c, &set);
    dial(&c, &p);
    get(&p, "/a");
    raw_conn_await(&p, "HTTP/1.1 401", 1);
    ck_assert_uint_eq(c.counts.not_admitted, 1);
    ck_assert_uint_eq(c.answered_alone, 1);
    ck_assert_uint_eq(c.last_status, 401);
    raw_conn_close(&p);
    http_fixture_close(&c);
}
