/* The gRPC client against a server that writes each frame itself, also frames that are wrong. */
#include "grpc_rig.h"
#include "h2_peer.h"

#include <time.h>

#define HEAD ":status: 200\ncontent-type: application/grpc\n"
#define END  NGHTTP2_FLAG_END_STREAM

static struct rig rig; /* without its server */
static struct h2_peer peer;
static int listener;

/* The clock of the loop is moved by the test. */
static time_t passed_s;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = __real_clock_gettime(clock, ret);
    if (clock == CLOCK_BOOTTIME) /* check has its own */
        ret->tv_sec += passed_s;
    return r;
}

static void set_up(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    passed_s = 0;
    rig_make(&rig);
    rig.server = grpc_server_free(rig.server);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", rig.socket);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
}

static void tear_down(void)
{
    (void)close(listener);
    rig_done(&rig);
}

/* The client is connected at once: listen() suffices for that. */
static void adopt(struct h2_peer *p)
{
    struct sockaddr from;
    socklen_t n = sizeof(from);
    int fd = accept4(listener, &from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    h2_adopt(p, rig.loop, fd);
}

/* Starts a request, and waits until the server has all of it. */
static void begin(struct ask *a)
{
    ask_start(&rig, a, "/t/Echo", STR("hi"));
    adopt(&peer);
    h2_put_frame(&peer, NGHTTP2_SETTINGS, 0, 0, STR(""));
    (void)h2_await(&peer, NGHTTP2_DATA, END, 1, 1);
}

static void assert_result(struct ask *a, enum errc code, const char *part)
{
    run_while(rig.loop, !a->done);
    ck_assert_msg(a->request.result == code && strstr(a->request.err.text, part) != NULL,
                  "%s: \"%s\" without \"%s\"", errc_name(a->request.result), a->request.err.text,
                  part);
    grpc_request_done(&a->request);
}

static void end(struct ask *a, enum errc code, const char *part)
{
    assert_result(a, code, part);
    h2_close(&peer);
    run_turns(rig.loop, 3);
}

TEST(test_request)
{
    struct ask a;
    begin(&a);
    const char *head = h2_await(&peer, NGHTTP2_HEADERS, 0, 1, 1)->text;
    ck_assert_ptr_nonnull(strstr(head, ":method: POST\n:scheme: http\n:path: /t/Echo\n"));
    ck_assert_ptr_nonnull(strstr(head, "content-type: application/grpc\n"));
    ck_assert_ptr_nonnull(strstr(head, "te: trailers\n"));
    ck_assert_ptr_nonnull(strstr(head, "grpc-timeout: 10000m\n"));
    h2_put_headers(&peer, 0, 1, ":status: 103\n"); /* not final */
    h2_put_headers(&peer, 0, 1, HEAD);
    h2_put_message(&peer, 0, 1, 0, 2, STR("yo"));
    run_turns(rig.loop, 3);
    ck_assert(!a.done);
    h2_put_headers(&peer, END, 1, "grpc-status: 0\n");
    run_while(rig.loop, !a.done);
    ck_assert_ok(a.request.result, &a.request.err);
    ck_assert_str_is(buf_str(&a.request.reply), "yo");
    end(&a, OK, "");
}

/* The answer to one request: HEADERS, perhaps DATA, perhaps trailers. */
TEST(test_answers)
{
    static const struct {
        const char *head;
        struct str data;
        const char *trailers; /* NULL: the last frame before has END_STREAM */
        enum errc code;
        const char *part;
    } cases[] = {
        {HEAD "grpc-status: 5\ngrpc-message: no%20pod\n", STR_NULL, NULL, ERR_NOTFOUND,
         "not found: no pod"},
        {HEAD "grpc-status: 9\ngrpc-message: 50%% %zz%4\n", STR_NULL, NULL, ERR_CONFLICT,
         "failed precondition: 50%% %zz%4"},
        {HEAD "grpc-status: 14\ngrpc-message: \n", STR_NULL, NULL, ERR_UNAVAILABLE, "unavailable"},
        {HEAD "grpc-status: 99\n", STR_NULL, NULL, ERR_UNAVAILABLE, "unknown"},
        {HEAD "grpc-status: x\n", STR_NULL, NULL, ERR_SYNTAX, "without grpc-status"},
        {HEAD "grpc-status: -1\n", STR_NULL, NULL, ERR_SYNTAX, "without grpc-status"},
        {HEAD, STR_NULL, NULL, ERR_SYNTAX, "without grpc-status"},
        {HEAD, STR("\0\0\0\0\2hi"), NULL, ERR_SYNTAX, "without grpc-status"},
        {HEAD, STR("\0\0\0\0\2hi"), "x: y\n", ERR_SYNTAX, "without grpc-status"},
        {HEAD "grpc-status: 0\n", STR("\0\0\0\0\2hi"), NULL, OK, ""},
        {HEAD, STR("\0\0\0\0\2h"), "grpc-status: 0\n", ERR_SYNTAX, "cut short"},
        {HEAD, STR("\0\0\0"), "grpc-status: 0\n", ERR_SYNTAX, "cut short"},
        {HEAD, STR_NULL, "grpc-status: 0\n", ERR_SYNTAX, "no message"},
        {HEAD, STR("\0\0\0\0\0x"), "grpc-status: 0\n", ERR_SYNTAX, "more than one message"},
        {HEAD, STR("\1\0\0\0\2hi"), "grpc-status: 0\n", ERR_SYNTAX, "compressed"},
        {HEAD, STR("\0\1\0\0\1hi"), "grpc-status: 0\n", ERR_LIMIT, "at most 16777216"},
        {HEAD, STR("\0\0\0\0\2h"), "grpc-status: 13\n", ERR_INTERNAL, "internal"},
        {":status: 503\ncontent-type: text/html\n", STR("<html>"), NULL, ERR_UNAVAILABLE,
         "HTTP status 503"},
        {":status: 429\n", STR_NULL, NULL, ERR_UNAVAILABLE, "HTTP status 429"},
        {":status: 404\n"
         "grpc-status: 0\n",
         STR_NULL, NULL, ERR_SYNTAX, "HTTP status 404"},
        {":status: 2000\n", STR_NULL, NULL, ERR_SYNTAX, "HTTP status 0"},
        {":status: 200\ncontent-type: text/html\ngrpc-status: 0\n", STR("<html>"), NULL, ERR_SYNTAX,
         "not gRPC"},
        {"x: y\n", STR_NULL, NULL, ERR_SYNTAX, "HTTP status 0"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ask a;
        bool data = cases[i].data.n > 0;
        bool trailers = cases[i].trailers != NULL;
        begin(&a);
        h2_put_headers(&peer, data || trailers ? 0 : END, 1, cases[i].head);
        if (data)
            h2_put_frame(&peer, NGHTTP2_DATA, trailers ? 0 : END, 1, cases[i].data);
        if (trailers)
            h2_put_headers(&peer, END, 1, cases[i].trailers);
        end(&a, cases[i].code, cases[i].part);
    }
}

TEST(test_large_answer_headers)
{
    static char head[20000] = HEAD "x: ";
    struct ask a;
    size_t n = strlen(head);
    memset(head + n, 'x', LIMIT_GRPC_HEADERS);
    head[n + LIMIT_GRPC_HEADERS] = '\n';
    begin(&a);
    h2_put_headers(&peer, 0, 1, head);
    end(&a, ERR_LIMIT, "the headers of the answer are too large");
}

TEST(test_reset)
{
    for (uint32_t code = 0; code <= NGHTTP2_HTTP_1_1_REQUIRED + 1; code++) {
        struct ask a;
        begin(&a);
        h2_put_number(&peer, NGHTTP2_RST_STREAM, 1, code);
        end(&a, ERR_UNAVAILABLE, nghttp2_http2_strerror(code));
    }
}

/* The request that GOAWAY leaves out fails at once; one that it keeps is answered, and a new one
 * gets a new connection. */
TEST(test_goaway)
{
    struct ask a;
    struct ask b;
    struct ask c;
    struct h2_peer later;
    begin(&a);
    ask_start(&rig, &b, "/t/Echo", STR("hi"));
    (void)h2_await(&peer, NGHTTP2_DATA, END, 3, 1);
    h2_put_goaway(&peer, 1, NGHTTP2_NO_ERROR);
    assert_result(&b, ERR_UNAVAILABLE, "REFUSED_STREAM");
    ck_assert(!a.done);
    ask_start(&rig, &c, "/t/Echo", STR("hi"));
    adopt(&later);
    (void)h2_await(&later, NGHTTP2_DATA, END, 1, 1);
    h2_put_headers(&peer, END, 1, HEAD "grpc-status: 5\n");
    assert_result(&a, ERR_NOTFOUND, "not found");
    raw_conn_await_end(&peer.conn);
    h2_put_frame(&later, NGHTTP2_SETTINGS, 0, 0, STR(""));
    h2_put_headers(&later, END, 1, HEAD "grpc-status: 6\n");
    assert_result(&c, ERR_CONFLICT, "already exists");
    h2_close(&later);
    h2_close(&peer);
}

TEST(test_goaway_before_the_answer_of_settings)
{
    struct ask a;
    ask_start(&rig, &a, "/t/Echo", STR("hi"));
    adopt(&peer);
    h2_put_frame(&peer, NGHTTP2_SETTINGS, 0, 0, STR(""));
    h2_put_goaway(&peer, 0, NGHTTP2_ENHANCE_YOUR_CALM);
    end(&a, ERR_UNAVAILABLE, "");
}

/* Neither SETTINGS nor anything else comes. */
TEST(test_silent_server)
{
    struct ask a;
    ask_start(&rig, &a, "/t/Echo", STR("hi"));
    adopt(&peer);
    (void)h2_await(&peer, NGHTTP2_DATA, END, 1, 1);
    passed_s += LIMIT_GRPC_REQUEST_MS / 1000 - 5;
    run_turns(rig.loop, 4);
    ck_assert(!a.done);
    passed_s += 5;
    assert_result(&a, ERR_TIMEOUT, "no answer within the deadline");
    (void)h2_await(&peer, NGHTTP2_RST_STREAM, 0, 1, 1);
    h2_close(&peer);
}

TEST(test_no_http2)
{
    struct ask a;
    ask_start(&rig, &a, "/t/Echo", STR("hi"));
    adopt(&peer);
    raw_conn_send(&peer.conn, STR("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
    end(&a, ERR_UNAVAILABLE, "the connection was lost: ");
}

TEST(test_closed_at_once)
{
    struct ask a;
    ask_start(&rig, &a, "/t/Echo", STR("hi"));
    adopt(&peer);
    h2_close(&peer);
    assert_result(&a, ERR_UNAVAILABLE, "the connection was lost: ");
}

TEST(test_not_connected)
{
    struct ask a;
    (void)close(listener);
    listener = -1;
    ask_start(&rig, &a, "/t/Echo", STR("hi"));
    assert_result(&a, ERR_UNAVAILABLE, "Connection refused");
    ck_assert_int_eq(unlink(rig.socket), 0);
    ask_start(&rig, &a, "/t/Echo", STR("hi"));
    assert_result(&a, ERR_UNAVAILABLE, "No such file or directory");
}

/* The answer comes while the request still waits for a window. */
TEST(test_early_answer)
{
    static char large[200000];
    struct ask a;
    ask_start(&rig, &a, "/t/Echo", (struct str){large, sizeof(large)});
    adopt(&peer);
    h2_put_frame(&peer, NGHTTP2_SETTINGS, 0, 0, STR(""));
    (void)h2_await(&peer, NGHTTP2_DATA, 0, 1, 3);
    h2_put_headers(&peer, END, 1, HEAD "grpc-status: 8\n");
    assert_result(&a, ERR_LIMIT, "resource exhausted");
    (void)h2_await(&peer, NGHTTP2_RST_STREAM, 0, 1, 1);
    h2_close(&peer);
}

int main(void)
{
    TCase *t = unit_case("grpc_client_wire");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
