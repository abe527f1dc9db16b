/* An explain waits for the API server; shutdown waits for no explain. */
#include "daemon/query/query.h"
#include "site.h"

#define GET  "GET /gpushare-scheduler/explain/ns/pod HTTP/1.1\r\nHost: x\r\n"
#define OVER "cardpack is shutting down"

/* An API server that never answers. */
struct silence {
    struct site site;
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
    struct http_server_settings set = settings(&s->site);
    set.handle = routes_handle;
    set.ctx = &s->service;
    set.answered = NULL; /* this callback's context would be the site */
    open_with(&s->site, &set);
    s->service.loop = s->site.loop;
    s->service.backend = &s->backend;
}

static void drained(void *ctx)
{
    struct site *s = ctx;
    s->drained = true;
}

static bool has_asked(void *ctx)
{
    const struct silence *s = ctx;
    return s->asked > 0;
}

/* Three explains: one waits, the request of one has begun, and one has arrived but is not read. */
START_TEST(the_end_waits_for_no_answer)
{
    struct silence s;
    struct peer waits;
    struct peer begun;
    struct peer kept;
    open_silence(&s);
    dial(&s.site, &kept);
    get(&kept, "/version");
    peer_await(&kept, "HTTP/1.1 200", 1);
    dial(&s.site, &waits);
    peer_send(&waits, STR(GET "\r\n"));
    dial(&s.site, &begun);
    peer_send(&begun, STR(GET));
    run_until(s.site.loop, has_asked, &s);
    run_turns(s.site.loop, 5);
    ssize_t n = write(kept.fd.fd, GET "\r\n", sizeof(GET "\r\n") - 1);
    ck_assert_int_eq(n, sizeof(GET "\r\n") - 1);
    explain_end(&s.service);
    http_server_drain(s.site.server, drained, &s.site);
    peer_send(&begun, STR("\r\n"));
    run_until(s.site.loop, until_flag, &s.site.drained);
    ck_assert_uint_eq(s.asked, 1);
    peer_await_end(&waits);
    peer_await_end(&begun);
    peer_await_end(&kept);
    ck_assert_uint_eq(peer_count(&waits, OVER), 1);
    ck_assert_uint_eq(peer_count(&begun, OVER), 1);
    ck_assert_uint_eq(peer_count(&kept, OVER), 1);
    ck_assert_uint_eq(peer_count(&kept, "HTTP/1.1 503"), 1);
    peer_close(&waits);
    peer_close(&begun);
    peer_close(&kept);
    close_site(&s.site);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("explain");
    TCase *c = tcase_create("explain");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, the_end_waits_for_no_answer);
    suite_add_tcase(s, c);
    return unit_main(s);
}
