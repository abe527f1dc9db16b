/* Long calls of the HTTP client: deadlines, and bodies that are handed over in chunks. */
#include "client_fixture.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

TEST(the_whole_call_has_a_deadline)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/");
    c.call.timeout_ms = 100;
    http_call_start(f.client, &c.call);
    uint64_t start = loop_now_ms(f.loop);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_send(p, STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"));
    recorded_call_await(f.loop, &c);
    ck_assert_uint_ge(loop_now_ms(f.loop) - start, 100);
    ck_assert_int_eq(c.call.outcome, HTTP_UNKNOWN);
    ck_assert_int_eq(c.call.err.code, ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(c.call.err.text, "no whole answer in time"));
    recorded_call_end(&c);
    client_fixture_close(&f);
}

struct say {
    struct timer timer;
    struct raw_conn *peer;
    uint64_t at_ms;
};

static void say(struct timer *t)
{
    struct say *s = CONTAINER_OF(t, struct say, timer);
    if (s->peer->closed)
        return;
    s->at_ms = loop_now_ms(s->peer->loop);
    raw_conn_send(s->peer, STR("1\r\nx\r\n"));
}

TEST(silence_counts_from_the_last_byte)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/");
    c.call.quiet_ms = 200;
    c.call.on_chunk = recorded_call_chunk;
    http_call_start(f.client, &c.call);
    struct say s = {.timer = {.fire = say}, .peer = raw_server_request(&f.server, 0)};
    raw_conn_send(s.peer, STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    timer_arm(f.loop, &s.timer, 150);
    recorded_call_await(f.loop, &c);
    timer_cancel(&s.timer);
    ck_assert_int_eq(c.call.outcome, HTTP_UNKNOWN);
    ck_assert_int_eq(c.call.err.code, ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(c.call.err.text, "silence for too long"));
    if (c.n_chunks > 0)
        ck_assert_uint_ge(loop_now_ms(f.loop) - s.at_ms, 200);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

/* ---- streams ---- */

TEST(chunks_are_handed_over_as_they_come)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/");
    c.call.on_chunk = recorded_call_chunk;
    c.call.max_reply = 1; /* does not apply to a stream */
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_send(p, STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    for (size_t i = 1; i <= 5; i++) {
        raw_conn_send(p, STR("5\r\nhello\r\n"));
        run_while(f.loop, c.chunks.n < 5 * i);
        ck_assert(!c.done);
    }
    raw_conn_send(p, STR("0\r\n\r\n"));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
    ck_assert_uint_eq(c.call.reply.n, 0);
    ck_assert_str_is(buf_str(&c.chunks), "hellohellohellohellohello");
    recorded_call_end(&c);
    client_fixture_close(&f);
}

TEST(another_status_is_collected)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/");
    c.call.on_chunk = recorded_call_chunk;
    http_call_start(f.client, &c.call);
    raw_conn_send(raw_server_request(&f.server, 0),
                  STR("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone"));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
    ck_assert_uint_eq(c.call.status, 410);
    ck_assert_uint_eq(c.n_chunks, 0);
    ck_assert_str_is(buf_str(&c.call.reply), "gone");
    recorded_call_end(&c);
    client_fixture_close(&f);
}

TEST(a_chunk_may_be_refused)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/x?y");
    c.call.on_chunk = recorded_call_chunk;
    c.refuses = true;
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_send(p, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_REFUSED);
    ck_assert_int_eq(c.call.err.code, ERR_SYNTAX);
    char text[128];
    (void)snprintf(text, sizeof(text), "GET %s/x: not what was asked for", f.server.url);
    ck_assert_str_eq(c.call.err.text, text);
    ck_assert_uint_eq(c.n_chunks, 1);
    raw_conn_await_end(p);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

int main(void)
{
    no_proxies();
    return unit_run();
}
