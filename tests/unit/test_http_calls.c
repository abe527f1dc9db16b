/* The life of calls: kept connections, calls within on_done, cancellation in each state. */
#include "origin.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define STREAM    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void start(struct fixture *f, struct caller *c, const char *path)
{
    caller_init(c, "GET", f->origin.url, path);
    http_call_start(f->client, &c->call);
}

START_TEST(connections_are_kept)
{
    struct fixture f;
    fixture_open(&f);
    for (size_t i = 1; i <= 5; i++) {
        struct caller c;
        start(&f, &c, "/");
        struct peer *p = origin_peer(&f.origin, 0);
        peer_await(p, "\r\n\r\n", i);
        peer_send(p, STR(OK_ANSWER));
        caller_await(f.loop, &c);
        ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
        caller_end(&c);
    }
    ck_assert_uint_eq(f.origin.n, 1);
    fixture_close(&f);
}

END_TEST

START_TEST(many_at_once_in_any_order)
{
    enum {
        N = 100
    };
    struct fixture f;
    static struct caller c[N];
    fixture_open(&f);
    for (int i = 0; i < N; i++)
        start(&f, &c[i], "/");
    (void)origin_peer(&f.origin, N - 1);
    for (size_t i = 0; i < N; i++)
        peer_send(origin_request(&f.origin, (i * 37) % N), STR(OK_ANSWER));
    for (int i = 0; i < N; i++) {
        caller_await(f.loop, &c[i]);
        ck_assert_int_eq(c[i].call.outcome, HTTP_ANSWERED);
        caller_end(&c[i]);
    }
    fixture_close(&f);
}

END_TEST

START_TEST(forgotten_connections_are_not_used_again)
{
    struct fixture f;
    struct caller stream;
    struct caller c;
    fixture_open(&f);
    caller_init(&stream, "GET", f.origin.url, "/watch");
    stream.call.on_chunk = caller_chunk;
    http_call_start(f.client, &stream.call);
    struct peer *watch = origin_request(&f.origin, 0);
    peer_send(watch, STR(STREAM));
    start(&f, &c, "/a");
    struct peer *old = origin_request(&f.origin, 1);
    peer_send(old, STR(OK_ANSWER));
    caller_await(f.loop, &c);
    caller_end(&c);

    http_client_forget_connections(f.client);
    http_client_forget_connections(f.client);
    start(&f, &c, "/b");
    peer_send(origin_request(&f.origin, 2), STR(OK_ANSWER));
    caller_await(f.loop, &c);
    caller_end(&c);
    ck_assert(!old->closed); /* closed together with the stream */

    peer_send(watch, STR("1\r\nx\r\n0\r\n\r\n"));
    caller_await(f.loop, &stream);
    ck_assert_str_is(buf_str(&stream.chunks), "x");
    caller_end(&stream);
    peer_await_end(old);
    peer_await_end(watch);
    ck_assert(!f.origin.peers[2].closed);
    http_client_forget_connections(f.client);
    peer_await_end(&f.origin.peers[2]);
    fixture_close(&f);
}

END_TEST

/* ---- on_done ---- */

static void again(struct caller *c)
{
    struct fixture *f = c->data;
    if (c->times < 3)
        http_call_start(f->client, &c->call);
}

START_TEST(on_done_may_start_it_again)
{
    struct fixture f;
    struct caller c;
    fixture_open(&f);
    caller_init(&c, "GET", f.origin.url, "/");
    c.then = again;
    c.data = &f;
    http_call_start(f.client, &c.call);
    for (size_t i = 1; i <= 3; i++) {
        peer_await(origin_peer(&f.origin, 0), "\r\n\r\n", i);
        peer_send(&f.origin.peers[0], STR(OK_ANSWER));
    }
    run_while(f.loop, c.times < 3);
    ck_assert_str_is(buf_str(&c.call.reply), "ok");
    caller_end(&c);
    fixture_close(&f);
}

END_TEST

static void free_it(struct caller *c)
{
    bool *gone = c->data;
    *gone = true;
    caller_end(c);
    free(c);
}

START_TEST(on_done_may_free_it)
{
    struct fixture f;
    bool gone = false;
    struct caller *c = malloc(sizeof(*c));
    ck_assert_ptr_nonnull(c);
    fixture_open(&f);
    caller_init(c, "GET", f.origin.url, "/");
    c->then = free_it;
    c->data = &gone;
    http_call_start(f.client, &c->call);
    peer_send(origin_request(&f.origin, 0), STR(OK_ANSWER));
    run_until(f.loop, until_flag, &gone);
    fixture_close(&f);
}

END_TEST

static void cancel_other(struct caller *c)
{
    struct caller *other = c->data;
    http_call_cancel(&other->call);
    http_call_cancel(&other->call);
}

/* Both are ready in the same turn; the first one to end cancels the other. */
START_TEST(on_done_may_cancel_another)
{
    struct fixture f;
    struct caller c[2];
    fixture_open(&f);
    for (int i = 0; i < 2; i++)
        caller_init(&c[i], "GET", f.origin.url, "/");
    for (int i = 0; i < 2; i++) {
        c[i].then = cancel_other;
        c[i].data = &c[1 - i];
        http_call_start(f.client, &c[i].call);
    }
    for (size_t i = 0; i < 2; i++)
        (void)origin_request(&f.origin, i);
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(send(f.origin.peers[i].fd.fd, OK_ANSWER, sizeof(OK_ANSWER) - 1, 0),
                         sizeof(OK_ANSWER) - 1);
    run_while(f.loop, c[0].times + c[1].times == 0);
    run_turns(f.loop, 3);
    ck_assert_uint_eq(c[0].times + c[1].times, 1);
    caller_end(&c[0]);
    caller_end(&c[1]);
    fixture_close(&f);
}

END_TEST

static void forget_all(struct caller *c)
{
    struct fixture *f = c->data;
    http_client_forget_connections(f->client);
}

START_TEST(on_done_may_forget_connections)
{
    struct fixture f;
    struct caller c;
    fixture_open(&f);
    caller_init(&c, "GET", f.origin.url, "/");
    c.then = forget_all;
    c.data = &f;
    http_call_start(f.client, &c.call);
    struct peer *p = origin_request(&f.origin, 0);
    peer_send(p, STR(OK_ANSWER));
    caller_await(f.loop, &c);
    peer_await_end(p);
    caller_end(&c);
    fixture_close(&f);
}

END_TEST

/* ---- cancel ---- */

enum stage {
    JUST_STARTED,
    CONNECTED,
    SENT,
    IN_BODY,
    STAGES,
};

static void reach(struct fixture *f, enum stage stage)
{
    if (stage >= CONNECTED)
        (void)origin_peer(&f->origin, 0);
    if (stage >= SENT)
        (void)origin_request(&f->origin, 0);
    if (stage >= IN_BODY) {
        peer_send(&f->origin.peers[0], STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"));
        run_turns(f->loop, 3);
    }
}

/* The call's memory and that of its body are freed at once. */
static struct caller *upload(struct fixture *f, char **ret_body)
{
    struct caller *c = malloc(sizeof(*c));
    *ret_body = malloc(1000000);
    ck_assert(c != NULL && *ret_body != NULL);
    memset(*ret_body, 'b', 1000000);
    caller_init(c, "POST", f->origin.url, "/");
    c->call.body = (struct str){*ret_body, 1000000};
    c->call.timeout_ms = 60000;
    c->call.quiet_ms = 60000;
    http_call_start(f->client, &c->call);
    return c;
}

START_TEST(a_canceled_call_is_gone)
{
    struct fixture f;
    char *body = NULL;
    fixture_open(&f);
    struct caller *c = upload(&f, &body);
    reach(&f, (enum stage)_i);
    http_call_cancel(&c->call);
    ck_assert_ptr_null(c->call.client);
    ck_assert_uint_eq(c->times, 0);
    caller_end(c);
    free(c);
    free(body);
    run_turns(f.loop, 3);
    if (_i > JUST_STARTED)
        peer_await_end(&f.origin.peers[0]);
    struct caller next;
    size_t n = f.origin.n;
    start(&f, &next, "/next");
    peer_send(origin_request(&f.origin, n), STR(OK_ANSWER));
    caller_await(f.loop, &next);
    caller_end(&next);
    fixture_close(&f);
}

END_TEST

START_TEST(freeing_the_client_cancels)
{
    struct fixture f;
    char *body = NULL;
    fixture_open(&f);
    struct caller *c = upload(&f, &body);
    reach(&f, (enum stage)_i);
    fixture_close(&f);
    ck_assert_uint_eq(c->times, 0);
    ck_assert_ptr_null(c->call.client);
    caller_end(c);
    free(c);
    free(body);
}

END_TEST

static void cancel_and_free_other(struct caller *c)
{
    struct caller *other = c->data;
    if (other == NULL)
        return;
    c->data = NULL;
    http_call_cancel(&other->call);
    caller_end(other);
    free(other);
}

/* Within on_chunk libcurl is running: the other call's memory is freed all the same. */
START_TEST(a_chunk_may_cancel_another_call)
{
    struct fixture f;
    struct caller c;
    char *body = NULL;
    fixture_open(&f);
    caller_init(&c, "GET", f.origin.url, "/watch");
    c.call.on_chunk = caller_chunk;
    c.in_chunk = cancel_and_free_other;
    http_call_start(f.client, &c.call);
    struct peer *watch = origin_request(&f.origin, 0);
    peer_send(watch, STR(STREAM));
    c.data = upload(&f, &body);
    struct peer *p = origin_request(&f.origin, 1);
    if (_i == 1)
        peer_send(p, STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"));
    peer_send(watch, STR("1\r\nx\r\n"));
    if (_i == 1)
        peer_send(p, STR("de"));
    run_while(f.loop, c.data != NULL);
    free(body);
    peer_await_end(p);
    ck_assert(!c.done);
    http_call_cancel(&c.call);
    caller_end(&c);
    fixture_close(&f);
}

END_TEST

static void start_other(struct caller *c)
{
    struct caller *other = c->data;
    struct fixture *f = other->data;
    if (other->call.client == NULL && !other->done)
        http_call_start(f->client, &other->call);
}

START_TEST(a_chunk_may_start_another_call)
{
    struct fixture f;
    struct caller c;
    struct caller other;
    fixture_open(&f);
    caller_init(&c, "GET", f.origin.url, "/watch");
    caller_init(&other, "GET", f.origin.url, "/other");
    c.call.on_chunk = caller_chunk;
    c.in_chunk = start_other;
    c.data = &other;
    other.data = &f;
    http_call_start(f.client, &c.call);
    peer_send(origin_request(&f.origin, 0), STR(STREAM "1\r\nx\r\n"));
    peer_send(origin_request(&f.origin, 1), STR(OK_ANSWER));
    caller_await(f.loop, &other);
    http_call_cancel(&c.call);
    caller_end(&c);
    caller_end(&other);
    fixture_close(&f);
}

END_TEST

START_TEST(canceling_what_is_not_under_way_is_nothing)
{
    struct http_call call = {0};
    http_call_cancel(&call);
    http_call_done(&call);
    ck_assert_ptr_null(http_client_free(NULL));
}

END_TEST

int main(void)
{
    no_proxies();
    Suite *s = suite_create("http_calls");
    TCase *c = tcase_create("http_calls");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, connections_are_kept);
    tcase_add_test(c, many_at_once_in_any_order);
    tcase_add_test(c, forgotten_connections_are_not_used_again);
    tcase_add_test(c, on_done_may_start_it_again);
    tcase_add_test(c, on_done_may_free_it);
    tcase_add_test(c, on_done_may_cancel_another);
    tcase_add_test(c, on_done_may_forget_connections);
    tcase_add_loop_test(c, a_canceled_call_is_gone, 0, STAGES);
    tcase_add_loop_test(c, freeing_the_client_cancels, 0, STAGES);
    tcase_add_loop_test(c, a_chunk_may_cancel_another_call, 0, 2);
    tcase_add_test(c, a_chunk_may_start_another_call);
    tcase_add_test(c, canceling_what_is_not_under_way_is_nothing);
    suite_add_tcase(s, c);
    return unit_main(s);
}
