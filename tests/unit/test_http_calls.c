/* The life of calls: kept connections, calls within on_done, cancellation in each state. */
#include "client_fixture.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define STREAM    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void start(struct client_fixture *f, struct recorded_call *c, const char *path)
{
    recorded_call_init(c, "GET", f->server.url, path);
    http_call_start(f->client, &c->call);
}

TEST(connections_are_kept)
{
    struct client_fixture f;
    client_fixture_open(&f);
    for (size_t i = 1; i <= 5; i++) {
        struct recorded_call c;
        start(&f, &c, "/");
        struct raw_conn *p = raw_server_peer(&f.server, 0);
        raw_conn_await(p, "\r\n\r\n", i);
        raw_conn_send(p, STR(OK_ANSWER));
        recorded_call_await(f.loop, &c);
        ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
        recorded_call_end(&c);
    }
    ck_assert_uint_eq(f.server.n, 1);
    client_fixture_close(&f);
}

TEST(many_at_once_in_any_order)
{
    enum {
        N = 100
    };
    struct client_fixture f;
    static struct recorded_call c[N];
    client_fixture_open(&f);
    for (int i = 0; i < N; i++)
        start(&f, &c[i], "/");
    (void)raw_server_peer(&f.server, N - 1);
    for (size_t i = 0; i < N; i++)
        raw_conn_send(raw_server_request(&f.server, (i * 37) % N), STR(OK_ANSWER));
    for (int i = 0; i < N; i++) {
        recorded_call_await(f.loop, &c[i]);
        ck_assert_int_eq(c[i].call.outcome, HTTP_ANSWERED);
        recorded_call_end(&c[i]);
    }
    client_fixture_close(&f);
}

TEST(forgotten_connections_are_not_used_again)
{
    struct client_fixture f;
    struct recorded_call stream;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&stream, "GET", f.server.url, "/watch");
    stream.call.on_chunk = recorded_call_chunk;
    http_call_start(f.client, &stream.call);
    struct raw_conn *watch = raw_server_request(&f.server, 0);
    raw_conn_send(watch, STR(STREAM));
    start(&f, &c, "/a");
    struct raw_conn *old = raw_server_request(&f.server, 1);
    raw_conn_send(old, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c);
    recorded_call_end(&c);

    http_client_forget_connections(f.client);
    http_client_forget_connections(f.client);
    start(&f, &c, "/b");
    raw_conn_send(raw_server_request(&f.server, 2), STR(OK_ANSWER));
    recorded_call_await(f.loop, &c);
    recorded_call_end(&c);
    ck_assert(!old->closed); /* closed together with the stream */

    raw_conn_send(watch, STR("1\r\nx\r\n0\r\n\r\n"));
    recorded_call_await(f.loop, &stream);
    ck_assert_str_is(buf_str(&stream.chunks), "x");
    recorded_call_end(&stream);
    raw_conn_await_end(old);
    raw_conn_await_end(watch);
    ck_assert(!f.server.peers[2].closed);
    http_client_forget_connections(f.client);
    raw_conn_await_end(&f.server.peers[2]);
    client_fixture_close(&f);
}

/* ---- on_done ---- */

static void again(struct recorded_call *c)
{
    struct client_fixture *f = c->data;
    if (c->times < 3)
        http_call_start(f->client, &c->call);
}

TEST(on_done_may_start_it_again)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/");
    c.then = again;
    c.data = &f;
    http_call_start(f.client, &c.call);
    for (size_t i = 1; i <= 3; i++) {
        raw_conn_await(raw_server_peer(&f.server, 0), "\r\n\r\n", i);
        raw_conn_send(&f.server.peers[0], STR(OK_ANSWER));
    }
    run_while(f.loop, c.times < 3);
    ck_assert_str_is(buf_str(&c.call.reply), "ok");
    recorded_call_end(&c);
    client_fixture_close(&f);
}

static void free_it(struct recorded_call *c)
{
    bool *gone = c->data;
    *gone = true;
    recorded_call_end(c);
    free(c);
}

TEST(on_done_may_free_it)
{
    struct client_fixture f;
    bool gone = false;
    struct recorded_call *c = malloc(sizeof(*c));
    ck_assert_ptr_nonnull(c);
    client_fixture_open(&f);
    recorded_call_init(c, "GET", f.server.url, "/");
    c->then = free_it;
    c->data = &gone;
    http_call_start(f.client, &c->call);
    raw_conn_send(raw_server_request(&f.server, 0), STR(OK_ANSWER));
    run_until(f.loop, until_flag, &gone);
    client_fixture_close(&f);
}

static void cancel_other(struct recorded_call *c)
{
    struct recorded_call *other = c->data;
    http_call_cancel(&other->call);
    http_call_cancel(&other->call);
}

/* Both are ready in the same turn; the first one to end cancels the other. */
TEST(on_done_may_cancel_another)
{
    struct client_fixture f;
    struct recorded_call c[2];
    client_fixture_open(&f);
    for (int i = 0; i < 2; i++)
        recorded_call_init(&c[i], "GET", f.server.url, "/");
    for (int i = 0; i < 2; i++) {
        c[i].then = cancel_other;
        c[i].data = &c[1 - i];
        http_call_start(f.client, &c[i].call);
    }
    for (size_t i = 0; i < 2; i++)
        (void)raw_server_request(&f.server, i);
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(send(f.server.peers[i].fd.fd, OK_ANSWER, sizeof(OK_ANSWER) - 1, 0),
                         sizeof(OK_ANSWER) - 1);
    run_while(f.loop, c[0].times + c[1].times == 0);
    run_turns(f.loop, 3);
    ck_assert_uint_eq(c[0].times + c[1].times, 1);
    recorded_call_end(&c[0]);
    recorded_call_end(&c[1]);
    client_fixture_close(&f);
}

static void forget_all(struct recorded_call *c)
{
    struct client_fixture *f = c->data;
    http_client_forget_connections(f->client);
}

TEST(on_done_may_forget_connections)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/");
    c.then = forget_all;
    c.data = &f;
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_send(p, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c);
    raw_conn_await_end(p);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

/* ---- cancel ---- */

enum stage {
    JUST_STARTED,
    CONNECTED,
    SENT,
    IN_BODY,
    STAGES,
};

static void reach(struct client_fixture *f, enum stage stage)
{
    if (stage >= CONNECTED)
        (void)raw_server_peer(&f->server, 0);
    if (stage >= SENT)
        (void)raw_server_request(&f->server, 0);
    if (stage >= IN_BODY) {
        raw_conn_send(&f->server.peers[0], STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"));
        run_turns(f->loop, 3);
    }
}

/* The call's memory and that of its body are freed at once. */
static struct recorded_call *upload(struct client_fixture *f, char **ret_body)
{
    struct recorded_call *c = malloc(sizeof(*c));
    *ret_body = malloc(1000000);
    ck_assert(c != NULL && *ret_body != NULL);
    memset(*ret_body, 'b', 1000000);
    recorded_call_init(c, "POST", f->server.url, "/");
    c->call.body = (struct str){*ret_body, 1000000};
    c->call.timeout_ms = 60000;
    c->call.quiet_ms = 60000;
    http_call_start(f->client, &c->call);
    return c;
}

TEST_EACH(a_canceled_call_is_gone, STAGES)
{
    struct client_fixture f;
    char *body = NULL;
    client_fixture_open(&f);
    struct recorded_call *c = upload(&f, &body);
    reach(&f, (enum stage)_i);
    http_call_cancel(&c->call);
    ck_assert_ptr_null(c->call.client);
    ck_assert_uint_eq(c->times, 0);
    recorded_call_end(c);
    free(c);
    free(body);
    run_turns(f.loop, 3);
    if (_i > JUST_STARTED)
        raw_conn_await_end(&f.server.peers[0]);
    struct recorded_call next;
    size_t n = f.server.n;
    start(&f, &next, "/next");
    raw_conn_send(raw_server_request(&f.server, n), STR(OK_ANSWER));
    recorded_call_await(f.loop, &next);
    recorded_call_end(&next);
    client_fixture_close(&f);
}

TEST_EACH(freeing_the_client_cancels, STAGES)
{
    struct client_fixture f;
    char *body = NULL;
    client_fixture_open(&f);
    struct recorded_call *c = upload(&f, &body);
    reach(&f, (enum stage)_i);
    client_fixture_close(&f);
    ck_assert_uint_eq(c->times, 0);
    ck_assert_ptr_null(c->call.client);
    recorded_call_end(c);
    free(c);
    free(body);
}

static void cancel_and_free_other(struct recorded_call *c)
{
    struct recorded_call *other = c->data;
    if (other == NULL)
        return;
    c->data = NULL;
    http_call_cancel(&other->call);
    recorded_call_end(other);
    free(other);
}

/* Within on_chunk libcurl is running: the other call's memory is freed all the same. */
TEST_EACH(a_chunk_may_cancel_another_call, 2)
{
    struct client_fixture f;
    struct recorded_call c;
    char *body = NULL;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/watch");
    c.call.on_chunk = recorded_call_chunk;
    c.in_chunk = cancel_and_free_other;
    http_call_start(f.client, &c.call);
    struct raw_conn *watch = raw_server_request(&f.server, 0);
    raw_conn_send(watch, STR(STREAM));
    c.data = upload(&f, &body);
    struct raw_conn *p = raw_server_request(&f.server, 1);
    if (_i == 1)
        raw_conn_send(p, STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"));
    raw_conn_send(watch, STR("1\r\nx\r\n"));
    if (_i == 1)
        raw_conn_send(p, STR("de"));
    run_while(f.loop, c.data != NULL);
    free(body);
    raw_conn_await_end(p);
    ck_assert(!c.done);
    http_call_cancel(&c.call);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

static void start_other(struct recorded_call *c)
{
    struct recorded_call *other = c->data;
    struct client_fixture *f = other->data;
    if (other->call.client == NULL && !other->done)
        http_call_start(f->client, &other->call);
}

TEST(a_chunk_may_start_another_call)
{
    struct client_fixture f;
    struct recorded_call c;
    struct recorded_call other;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/watch");
    recorded_call_init(&other, "GET", f.server.url, "/other");
    c.call.on_chunk = recorded_call_chunk;
    c.in_chunk = start_other;
    c.data = &other;
    other.data = &f;
    http_call_start(f.client, &c.call);
    raw_conn_send(raw_server_request(&f.server, 0), STR(STREAM "1\r\nx\r\n"));
    raw_conn_send(raw_server_request(&f.server, 1), STR(OK_ANSWER));
    recorded_call_await(f.loop, &other);
    http_call_cancel(&c.call);
    recorded_call_end(&c);
    recorded_call_end(&other);
    client_fixture_close(&f);
}

TEST(canceling_what_is_not_under_way_is_nothing)
{
    struct http_call call = {0};
    http_call_cancel(&call);
    http_call_done(&call);
    ck_assert_ptr_null(http_client_free(NULL));
}

int main(void)
{
    no_proxies();
    return unit_run();
}
