/*
 * The HTTP client: what it sends, what it accepts, and which failures prove that nothing was sent.
 */
#include "client_fixture.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* ---- what is sent ---- */

static const struct {
    const char *method;
    const char *body; /* NULL: none */
    const char *content_type;
    const char *bearer;
    const char *username;
    const char *header;
    const char *lines; /* after the Host line */
} requests[] = {
    {"GET", NULL, NULL, NULL, NULL, NULL, "User-Agent: unit/1\r\nAccept: */*\r\n\r\n"},
    {"GET", NULL, NULL, "t0k.en", NULL, NULL,
     "Authorization: Bearer t0k.en\r\nUser-Agent: unit/1\r\nAccept: */*\r\n\r\n"},
    {"GET", NULL, NULL, NULL, "me", "Accept: application/json",
     "Authorization: Basic bWU6c2VjcmV0\r\nUser-Agent: unit/1\r\nAccept: application/json\r\n"
     "\r\n"},
    {"GET", NULL, NULL, "t0k.en", "me", "Impersonate-User: you",
     "Authorization: Bearer t0k.en\r\nUser-Agent: unit/1\r\nAccept: */*\r\n"
     "Impersonate-User: you\r\n\r\n"},
    {"POST", "{}", NULL, NULL, NULL, NULL,
     "User-Agent: unit/1\r\nAccept: */*\r\nContent-Type: application/json\r\n"
     "Content-Length: 2\r\n\r\n{}"},
    {"PATCH", "[1]", "application/merge-patch+json", NULL, NULL, NULL,
     "User-Agent: unit/1\r\nAccept: */*\r\nContent-Type: application/merge-patch+json\r\n"
     "Content-Length: 3\r\n\r\n[1]"},
    {"PUT", "", NULL, NULL, NULL, NULL,
     "User-Agent: unit/1\r\nAccept: */*\r\nContent-Type: application/json\r\n"
     "Content-Length: 0\r\n\r\n"},
    {"POST", NULL, NULL, NULL, NULL, NULL,
     "User-Agent: unit/1\r\nAccept: */*\r\nContent-Length: 0\r\n"},
    {"DELETE", NULL, NULL, NULL, NULL, NULL, "User-Agent: unit/1\r\nAccept: */*\r\n\r\n"},
    {"DELETE", "{}", NULL, NULL, NULL, NULL,
     "User-Agent: unit/1\r\nAccept: */*\r\nContent-Type: application/json\r\n"
     "Content-Length: 2\r\n\r\n{}"},
};

TEST_EACH(a_request_on_the_wire, COUNT_OF(requests))
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, requests[_i].method, f.server.url, "/a/b?x=%20y");
    struct str header = str_of(requests[_i].header);
    c.call.body = str_of(requests[_i].body);
    c.call.content_type = str_of(requests[_i].content_type);
    c.call.bearer = str_of(requests[_i].bearer);
    c.call.username = str_of(requests[_i].username);
    c.call.password = STR("secret");
    c.call.headers = &header;
    c.call.n_headers = header.p == NULL ? 0 : 1;
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_await(p, requests[_i].lines, 1);
    char line[128];
    (void)snprintf(line, sizeof(line), "%s /a/b?x=%%20y HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n",
                   requests[_i].method, f.server.port);
    ck_assert(str_starts(buf_str(&p->in), str_of(line)));
    ck_assert_uint_eq(raw_conn_count(p, "Expect"), 0);
    ck_assert_uint_eq(raw_conn_count(p, "Accept-Encoding"), 0);
    raw_conn_send(p, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
    ck_assert_uint_eq(c.call.status, 200);
    ck_assert_str_is(buf_str(&c.call.reply), "ok");
    recorded_call_end(&c);
    client_fixture_close(&f);
}

/* The name is for TLS alone; the address gives the peer and the Host header. */
TEST(a_tls_server_name_is_not_the_host)
{
    struct client_fixture f;
    struct recorded_call c;
    struct http_client_settings s = {.tls_server_name = STR("kubernetes"), .allow_http = true};
    client_fixture_with(&f, &s);
    recorded_call_init(&c, "GET", f.server.url, "/a?b");
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    char head[128];
    (void)snprintf(head, sizeof(head), "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n",
                   f.server.port);
    ck_assert(str_starts(buf_str(&p->in), str_of(head)));
    raw_conn_send(p, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

TEST(head_has_no_body)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "HEAD", f.server.url, "/");
    http_call_start(f.client, &c.call);
    raw_conn_send(raw_server_request(&f.server, 0),
                  STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
    ck_assert_uint_eq(c.call.reply.n, 0);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

TEST(a_large_body_goes_whole)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    static char body[2000000];
    memset(body, 'b', sizeof(body));
    recorded_call_init(&c, "POST", f.server.url, "/");
    c.call.body = (struct str){body, sizeof(body)};
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    run_while(f.loop, p->in.n < sizeof(body));
    raw_conn_send(p, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_ANSWERED);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

/* ---- answers ---- */

enum then {
    STAYS,
    CLOSES,
    RESETS,
};

static const struct {
    const char *answer;
    enum then then;
    enum http_outcome outcome;
    unsigned status;
    enum errc code;
    const char *reply;
    uint64_t retry_after_ms;
} answers[] = {
    {"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad", STAYS, HTTP_ANSWERED, 500, OK, "bad", 0},
    {"HTTP/1.1 204 No Content\r\n\r\n", STAYS, HTTP_ANSWERED, 204, OK, "", 0},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 C\r\nContent-Length: 1\r\n\r\nx", STAYS,
     HTTP_ANSWERED, 201, OK, "x", 0},
    {"HTTP/1.1 301 M\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", STAYS,
     HTTP_ANSWERED, 301, OK, "", 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", STAYS,
     HTTP_ANSWERED, 200, OK, "abcde", 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n", STAYS,
     HTTP_ANSWERED, 200, OK, "a", 0},
    {"HTTP/1.1 200 OK\r\n\r\nuntil the end", CLOSES, HTTP_ANSWERED, 200, OK, "until the end", 0},
    {"HTTP/1.1 429 T\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n", STAYS, HTTP_ANSWERED, 429, OK,
     "", 3000},
    {"HTTP/1.1 429 T\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n",
     STAYS, HTTP_ANSWERED, 429, OK, "", 0},
    {"HTTP/1.1 429 T\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n", STAYS,
     HTTP_ANSWERED, 429, OK, "", 0},
    {"", CLOSES, HTTP_UNKNOWN, 0, ERR_UNAVAILABLE, "", 0},
    {"", RESETS, HTTP_UNKNOWN, 0, ERR_UNAVAILABLE, "", 0},
    {"HTTP/1.1 200 OK\r\nContent-Le", CLOSES, HTTP_UNKNOWN, 0, ERR_UNAVAILABLE, NULL, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", CLOSES, HTTP_UNKNOWN, 0, ERR_UNAVAILABLE,
     NULL, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", RESETS, HTTP_UNKNOWN, 0, ERR_UNAVAILABLE,
     NULL, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", CLOSES, HTTP_UNKNOWN, 0,
     ERR_UNAVAILABLE, NULL, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", CLOSES, HTTP_UNKNOWN, 0,
     ERR_UNAVAILABLE, NULL, 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", CLOSES, HTTP_UNKNOWN, 0,
     ERR_UNAVAILABLE, NULL, 0},
    {"this is no HTTP\r\n\r\n", CLOSES, HTTP_UNKNOWN, 0, ERR_SYNTAX, NULL, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world", STAYS, HTTP_UNKNOWN, 0, ERR_LIMIT,
     NULL, 0},
};

#define REPLY_MAX 10

TEST_EACH(an_answer_and_its_outcome, COUNT_OF(answers))
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "GET", f.server.url, "/pods?limit=1");
    c.call.max_reply = answers[_i].code == ERR_LIMIT ? REPLY_MAX : 0;
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_send(p, str_of(answers[_i].answer));
    run_turns(f.loop, 2);
    struct linger hard = {.l_onoff = 1};
    if (answers[_i].then == RESETS)
        ck_assert_int_eq(setsockopt(p->fd.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    if (answers[_i].then != STAYS)
        raw_conn_close(p);
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, answers[_i].outcome);
    ck_assert_uint_eq(c.call.status, answers[_i].status);
    ck_assert_int_eq(c.call.err.code, answers[_i].code);
    ck_assert_uint_eq(c.call.retry_after_ms, answers[_i].retry_after_ms);
    if (answers[_i].reply != NULL)
        ck_assert_str_is(buf_str(&c.call.reply), answers[_i].reply);
    if (answers[_i].code != OK) {
        char start[128];
        (void)snprintf(start, sizeof(start), "GET %s/pods: ", f.server.url);
        ck_assert_msg(str_starts(str_of(c.call.err.text), str_of(start)), "%s", c.call.err.text);
    }
    recorded_call_end(&c);
    client_fixture_close(&f);
}

static const struct {
    const char *url;
    enum errc code;
} nowhere[] = {
    {"http://127.0.0.1:1/x", ERR_UNAVAILABLE}, /* connection refused */
    {"https://127.0.0.1:1/x", ERR_UNAVAILABLE},
    {"ftp://127.0.0.1/x", ERR_SYNTAX},
    {"file:///etc/hostname", ERR_SYNTAX},
    {"", ERR_SYNTAX},
    {"http://", ERR_SYNTAX},
    {"http://127.0.0.1:99999/", ERR_SYNTAX},
    {"http://127.0.0.1/a\r\nX: y", ERR_SYNTAX},
};

TEST_EACH(what_cannot_be_sent_is_not_sent, COUNT_OF(nowhere))
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "POST", nowhere[_i].url, "");
    c.call.body = STR("{}");
    http_call_start(f.client, &c.call);
    ck_assert(!c.done);
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_NOT_SENT);
    ck_assert_int_eq(c.call.err.code, nowhere[_i].code);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

TEST(plain_http_must_be_allowed)
{
    struct client_fixture f;
    struct recorded_call c;
    struct http_client_settings s = {.user_agent = STR("unit/1")};
    client_fixture_with(&f, &s);
    recorded_call_init(&c, "GET", f.server.url, "/");
    http_call_start(f.client, &c.call);
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_NOT_SENT);
    ck_assert_uint_eq(f.server.n, 0);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

TEST(no_line_can_be_smuggled_in)
{
    struct client_fixture f;
    struct recorded_call c[2];
    struct str header = STR("X: a\r\nY: b");
    client_fixture_open(&f);
    for (int i = 0; i < 2; i++)
        recorded_call_init(&c[i], "GET", f.server.url, "/");
    c[0].call.headers = &header;
    c[0].call.n_headers = 1;
    c[1].call.bearer = STR("token\n");
    for (int i = 0; i < 2; i++) {
        http_call_start(f.client, &c[i].call);
        recorded_call_await(f.loop, &c[i]);
        ck_assert_int_eq(c[i].call.outcome, HTTP_NOT_SENT);
        ck_assert_int_eq(c[i].call.err.code, ERR_SYNTAX);
        recorded_call_end(&c[i]);
    }
    ck_assert_uint_eq(f.server.n, 0);
    client_fixture_close(&f);
}

/* libcurl quotes a proxy's URL in its error about that URL. */
TEST_EACH(a_proxy_keeps_its_password, 3)
{
    static const char *const proxies[] = {
        "http://me:hunter2@127.0.0.1:99999",
        "ftp://me:hunter2@127.0.0.1:1",
        "http://me:hunter2@127.0.0.1 x",
    };
    struct client_fixture f;
    struct recorded_call c;
    struct http_client_settings s = {
        .user_agent = STR("unit/1"), .allow_http = true, .proxy_url = str_of(proxies[_i])};
    client_fixture_with(&f, &s);
    recorded_call_init(&c, "GET", f.server.url, "/");
    http_call_start(f.client, &c.call);
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_NOT_SENT);
    ck_assert_ptr_nonnull(strstr(c.call.err.text, "the URL of its proxy cannot be used"));
    ck_assert_ptr_null(strstr(c.call.err.text, "hunter2"));
    recorded_call_end(&c);
    client_fixture_close(&f);
}

/*
 * A TLS handshake with a server that does not speak TLS, or is silent: no byte of the request has
 * left. insecure: without the system's CAs the handshake would not even start.
 */
TEST_EACH(a_failed_handshake_is_not_sent, 2)
{
    struct http_client_settings s = {.user_agent = STR("unit/1"), .insecure = true};
    struct client_fixture f;
    struct recorded_call c;
    char url[64];
    client_fixture_with(&f, &s);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", f.server.port);
    recorded_call_init(&c, "POST", url, "");
    c.call.body = STR("{}");
    c.call.timeout_ms = _i == 0 ? 0 : 50;
    http_call_start(f.client, &c.call);
    struct raw_conn *p = raw_server_peer(&f.server, 0);
    if (_i == 0)
        raw_conn_send(p, STR("HTTP/1.1 400 Bad Request\r\n\r\n"));
    recorded_call_await(f.loop, &c);
    ck_assert_int_eq(c.call.outcome, HTTP_NOT_SENT);
    ck_assert_int_eq(c.call.err.code, _i == 0 ? ERR_UNAVAILABLE : ERR_TIMEOUT);
    recorded_call_end(&c);
    client_fixture_close(&f);
}

/*
 * libcurl repeats a request when a kept connection breaks. If the connection for the repetition is
 * refused, the first request may still have arrived.
 */
TEST(a_retry_that_is_refused_is_not_not_sent)
{
    struct client_fixture f;
    struct recorded_call c[2];
    client_fixture_open(&f);
    for (int i = 0; i < 2; i++) {
        recorded_call_init(&c[i], "POST", f.server.url, "/bind");
        c[i].call.body = STR("{}");
    }
    http_call_start(f.client, &c[0].call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_send(p, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c[0]);
    buf_clear(&p->in, 0);
    http_call_start(f.client, &c[1].call);
    raw_conn_await(p, "\r\n\r\n{}", 1); /* on the same connection */
    raw_server_stop_listening(&f.server);
    raw_conn_close(p);
    recorded_call_await(f.loop, &c[1]);
    ck_assert_int_eq(c[1].call.outcome, HTTP_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(c[1].call.err.text, "Couldn't connect to server"));
    recorded_call_end(&c[0]);
    recorded_call_end(&c[1]);
    client_fixture_close(&f);
}

/*
 * libcurl would repeat any request when a kept connection breaks. A POST may have taken effect by
 * then, and the answer to a second copy would not show that.
 */
TEST_EACH(a_post_is_not_sent_twice, 2)
{
    struct client_fixture f;
    struct recorded_call c[2];
    bool post = _i == 0;
    client_fixture_open(&f);
    for (int i = 0; i < 2; i++) {
        recorded_call_init(&c[i], post ? "POST" : "PUT", f.server.url, "/bind");
        c[i].call.body = STR("{}");
    }
    http_call_start(f.client, &c[0].call);
    struct raw_conn *p = raw_server_request(&f.server, 0);
    raw_conn_send(p, STR(OK_ANSWER));
    recorded_call_await(f.loop, &c[0]);
    buf_clear(&p->in, 0);
    http_call_start(f.client, &c[1].call);
    raw_conn_await(p, "\r\n\r\n{}", 1);
    raw_conn_close(p);
    if (!post)
        raw_conn_send(raw_server_request(&f.server, 1), STR(OK_ANSWER));
    recorded_call_await(f.loop, &c[1]);
    ck_assert_int_eq(c[1].call.outcome, post ? HTTP_UNKNOWN : HTTP_ANSWERED);
    if (post)
        ck_assert_ptr_nonnull(strstr(c[1].call.err.text, "what became of the request"));
    recorded_call_end(&c[0]);
    recorded_call_end(&c[1]);
    client_fixture_close(&f);
}

int main(void)
{
    no_proxies();
    return unit_run();
}
