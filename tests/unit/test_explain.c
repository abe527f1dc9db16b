/* An explain waits for the API server; shutdown waits for no explain. */
#include "daemon/query/query.h"
#include "http_fixture.h"

#define GET  "GET /gpushare-scheduler/explain/ns/pod HTTP/1.1\r\nHost: x\r\n"
#define OVER "cardpack is shutting down"

/* An API server that never answers. */
struct silence {
    struct http_fixture http;
    struct service service;
    struct backend backend;
    unsigned asked;
};

static bool ready(struct backend *b, struct str *ret_missing)
{
    (void)b;
    (void)ret_missing;
    return true;
}

static void asks(struct backend *b, struct backend_call *c, struct str namespace, struct str name)
{
    (void)c;
    ck_assert_str_is(namespace, "ns");
    ck_assert_str_is(name, "pod");
    CONTAINER_OF(b, struct silence, backend)->asked++;
}

static void cancels(struct backend_call *c)
{
    (void)c;
}

static void open_silence(struct silence *s)
{
    *s = (struct silence){.backend = {.ready = ready, .get = asks, .cancel = cancels}};
    struct http_server_settings set = settings(&s->http);
    set.handle = routes_handle;
    set.ctx = &s->service;
    set.answered = NULL; /* this callback's context would be the fixture */
    open_with(&s->http, &set);
    s->service.loop = s->http.loop;
    s->service.backend = &s->backend;
    list_init(&s->service.explains);
}

static void drained(void *ctx)
{
    struct http_fixture *s = ctx;
    s->drained = true;
}

static bool has_asked(void *ctx)
{
    const struct silence *s = ctx;
    return s->asked > 0;
}

/* Three explains: one waits, the request of one has begun, and one has arrived but is not read. */
TEST(the_end_waits_for_no_answer)
{
    struct silence s;
    struct raw_conn waits;
    struct raw_conn begun;
    struct raw_conn kept;
    open_silence(&s);
    dial(&s.http, &kept);
    get(&kept, "/version");
    raw_conn_await(&kept, "HTTP/1.1 200", 1);
    dial(&s.http, &waits);
    raw_conn_send(&waits, STR(GET "\r\n"));
    dial(&s.http, &begun);
    raw_conn_send(&begun, STR(GET));
    run_until(s.http.loop, has_asked, &s);
    run_turns(s.http.loop, 5);
    ssize_t n = write(kept.fd.fd, GET "\r\n", sizeof(GET "\r\n") - 1);
    ck_assert_int_eq(n, sizeof(GET "\r\n") - 1);
    query_end(&s.service);
    http_server_drain(s.http.server, drained, &s.http);
    raw_conn_send(&begun, STR("\r\n"));
    run_until(s.http.loop, until_flag, &s.http.drained);
    ck_assert_uint_eq(s.asked, 1);
    raw_conn_await_end(&waits);
    raw_conn_await_end(&begun);
    raw_conn_await_end(&kept);
    ck_assert_uint_eq(raw_conn_count(&waits, OVER), 1);
    ck_assert_uint_eq(raw_conn_count(&begun, OVER), 1);
    ck_assert_uint_eq(raw_conn_count(&kept, OVER), 1);
    ck_assert_uint_eq(raw_conn_count(&kept, "HTTP/1.1 503"), 1);
    raw_conn_close(&waits);
    raw_conn_close(&begun);
    raw_conn_close(&kept);
    http_fixture_close(&s.http);
}
