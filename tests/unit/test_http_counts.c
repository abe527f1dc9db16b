/* What the HTTP server counts, and what it tells of each request. */
#include "site.h"

struct counted {
    struct site site;
    struct http_server_counts counts;
    unsigned kinds[4];
    unsigned last_status;
    uint64_t last_ns; /* the start of the last one */
    struct str asked;
    char asked_bytes[64];
};

static void answered(void *ctx, const struct http_request *r, unsigned status)
{
    struct counted *c = CONTAINER_OF(ctx, struct counted, site);
    ck_assert_uint_lt(r->kind, COUNT_OF(c->kinds));
    c->kinds[r->kind]++;
    c->last_status = status;
    ck_assert_uint_gt(r->start_ns, 0);
    ck_assert_uint_ge(r->start_ns, c->last_ns);
    ck_assert_uint_le(r->start_ns, loop_clock_ns(c->site.loop));
    c->last_ns = r->start_ns;
}

static void handle_counted(void *ctx, struct http_request *r)
{
    struct counted *c = CONTAINER_OF(ctx, struct counted, site);
    struct str accept = http_request_value(r, "accept");
    ck_assert_uint_lt(accept.n, sizeof(c->asked_bytes));
    if (accept.p != NULL)
        memcpy(c->asked_bytes, accept.p, accept.n);
    c->asked = (struct str){accept.p == NULL ? NULL : c->asked_bytes, accept.n};
    ck_assert_uint_eq(r->kind, 0);
    r->kind = 2;
    r->outcome = 3;
    handle(ctx, r);
}

static void open_counted(struct counted *c)
{
    *c = (struct counted){.last_status = 0};
    struct http_server_settings set = settings(&c->site);
    set.handle = handle_counted;
    set.answered = answered;
    set.counts = &c->counts;
    open_with(&c->site, &set);
}

START_TEST(every_answer_is_told)
{
    struct counted c;
    struct peer p;
    open_counted(&c);
    dial(&c.site, &p);
    get(&p, "/a");
    peer_await(&p, "HTTP/1.1 200", 1);
    ck_assert_uint_eq(c.kinds[2], 1);
    ck_assert_uint_eq(c.last_status, 200);
    get(&p, "/headers");
    peer_await(&p, "HTTP/1.1 405", 1);
    ck_assert_uint_eq(c.kinds[2], 2);
    ck_assert_uint_eq(c.last_status, 405);
    get(&p, "/hop");
    peer_await(&p, "HTTP/1.1 200", 2);
    ck_assert_uint_eq(c.kinds[2], 3);
    get(&p, "/nul%00"); /* answered by the server itself */
    peer_await(&p, "HTTP/1.1 400", 1);
    ck_assert_uint_eq(c.kinds[2], 3);
    ck_assert_uint_eq(c.kinds[0], 1);
    ck_assert_uint_eq(c.last_status, 400);
    peer_close(&p);
    close_site(&c.site);
}

END_TEST

static bool is_alone(void *ctx)
{
    const struct counted *c = ctx;
    return c->counts.open == 1;
}

START_TEST(connections_and_requests_are_counted)
{
    struct counted c;
    struct peer p;
    struct peer q;
    open_counted(&c);
    dial(&c.site, &p);
    dial(&c.site, &q);
    get(&p, "/hold");
    get(&q, "/hold");
    await_held(&c.site, 2);
    ck_assert_uint_eq(c.counts.connections, 2);
    ck_assert_uint_eq(c.counts.open, 2);
    ck_assert_uint_eq(c.counts.active, 2);
    respond(c.site.held[0], STR("first"));
    ck_assert_uint_eq(c.counts.active, 1);
    respond(c.site.held[1], STR("second"));
    ck_assert_uint_eq(c.counts.active, 0);
    peer_await(&p, "first", 1);
    peer_await(&q, "second", 1);
    peer_close(&p);
    run_until(c.site.loop, is_alone, &c);
    ck_assert_uint_eq(c.counts.connections, 2);
    ck_assert_uint_eq(c.counts.not_admitted, 0);
    peer_close(&q);
    close_site(&c.site);
}

END_TEST

static bool has_sent_all(void *ctx)
{
    const struct counted *c = ctx;
    return c->counts.unsent_bytes == 0;
}

static bool has_begun(void *ctx)
{
    const struct counted *c = ctx;
    return c->counts.unsent_bytes > 0;
}

/* Much more than a socket's buffers take: it stays until somebody reads. */
START_TEST(bytes_that_have_not_left_are_counted)
{
    const size_t n = (size_t)32 << 20;
    struct counted c;
    struct peer p;
    open_counted(&c);
    dial(&c.site, &p);
    get(&p, "/hold");
    await_held(&c.site, 1);
    loop_fd_del(&p.fd); /* reads no more */
    struct http_request *r = c.site.held[0];
    ck_assert(buf_reserve(r->answer, n));
    memset(r->answer->p, 'x', n);
    r->answer->n = n;
    http_request_respond(r, 200, "text/plain");
    run_until(c.site.loop, has_begun, &c);
    ck_assert_uint_eq(c.counts.unsent_bytes, n);
    ck_assert_uint_eq(c.counts.active, 0);
    peer_close(&p);
    run_until(c.site.loop, has_sent_all, &c);
    close_site(&c.site);
}

END_TEST

START_TEST(headers_can_be_asked_for)
{
    struct counted c;
    struct peer p;
    open_counted(&c);
    dial(&c.site, &p);
    get(&p, "/a");
    peer_await(&p, "HTTP/1.1 200", 1);
    ck_assert_ptr_null(c.asked.p);
    peer_send(&p, STR("GET /a HTTP/1.1\r\nHost: x\r\nACCEPT: text/plain;q=0.5\r\n\r\n"));
    peer_await(&p, "HTTP/1.1 200", 2);
    ck_assert_str_is(c.asked, "text/plain;q=0.5");
    peer_send(&p, STR("GET /a HTTP/1.1\r\nHost: x\r\nAccept:\r\n\r\n"));
    peer_await(&p, "HTTP/1.1 200", 3);
    ck_assert_uint_eq(c.asked.n, 0);
    peer_close(&p);
    close_site(&c.site);
}

END_TEST

static unsigned nobody(void *ctx, const struct http_caller *caller)
{
    (void)ctx;
    (void)caller;
    return 401;
}

START_TEST(who_is_not_admitted_is_counted)
{
    struct counted c = {.last_status = 0};
    struct peer p;
    struct http_server_settings set = settings(&c.site);
    set.handle = handle_counted;
    set.answered = answered;
    set.counts = &c.counts;
    set.admit = nobody;
    open_with(&c.site, &set);
    dial(&c.site, &p);
    get(&p, "/a");
    peer_await(&p, "HTTP/1.1 401", 1);
    ck_assert_uint_eq(c.counts.not_admitted, 1);
    ck_assert_uint_eq(c.kinds[0], 1);
    ck_assert_uint_eq(c.last_status, 401);
    peer_close(&p);
    close_site(&c.site);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("http_counts");
    TCase *t = tcase_create("http_counts");
    tcase_add_test(t, every_answer_is_told);
    tcase_add_test(t, connections_and_requests_are_counted);
    tcase_add_test(t, bytes_that_have_not_left_are_counted);
    tcase_add_test(t, headers_can_be_asked_for);
    tcase_add_test(t, who_is_not_admitted_is_counted);
    suite_add_tcase(suite, t);
    return unit_main(suite);
}
