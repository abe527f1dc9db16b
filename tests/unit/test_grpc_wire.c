/* The gRPC server against a client that writes each frame itself, also frames that are wrong. */
#include "grpc_rig.h"
#include "h2_peer.h"

#include <time.h>

#define ORDINARY ":method: POST\n:scheme: http\n:path: /t/Echo\n:authority: localhost\n"
#define GRPC     "content-type: application/grpc\n"
#define KEEP     ":method: POST\n:scheme: http\n:path: /t/Keep\n:authority: localhost\n" GRPC

#define AT(authority) \
    (":method: POST\n:scheme: http\n:path: /t/Echo\n:authority: " authority "\n" GRPC)

static struct rig rig;
static struct h2_peer peer;

/* The clock of the loop is moved by the test. */
static uint64_t passed_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = __real_clock_gettime(clock, ret);
    if (clock == CLOCK_BOOTTIME) /* check has its own */
        ret->tv_sec += (time_t)(passed_ms / 1000);
    return r;
}

static void pass_s(uint64_t s)
{
    passed_ms += s * 1000;
    run_turns(rig.loop, 6);
}

static void begin(struct h2_peer *p)
{
    h2_connect(p, rig.loop, rig.socket);
    raw_conn_send(&p->conn, STR(H2_PREFACE));
    h2_put_frame(p, NGHTTP2_SETTINGS, 0, 0, STR(""));
}

static void set_up(void)
{
    passed_ms = 0;
    rig_make(&rig);
    begin(&peer);
}

static void tear_down(void)
{
    h2_close(&peer);
    rig_done(&rig);
}

/* A whole request with the message "hi". */
static void ask(struct h2_peer *p, uint32_t stream, const char *head)
{
    h2_put_headers(p, 0, stream, head);
    h2_put_message(p, NGHTTP2_FLAG_END_STREAM, stream, 0, 2, STR("hi"));
}

/* The HEADERS that end the stream have this line. */
static void assert_ends(struct h2_peer *p, uint32_t stream, const char *line)
{
    const struct h2_frame *f = h2_await(p, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, stream, 1);
    ck_assert_msg(strstr(f->text, line) != NULL, "\"%s\" without \"%s\"", f->text, line);
}

static void assert_echo(struct h2_peer *p, uint32_t stream, const char *message)
{
    struct buf all;
    buf_init(&all, 1 << 20);
    assert_ends(p, stream, "grpc-status: 0\n");
    h2_gather(p, stream, &all);
    ck_assert_uint_ge(all.n, 5);
    ck_assert_str_is(str_skip(buf_str(&all), 5), message);
    buf_done(&all);
}

static void assert_code(const struct h2_frame *f, size_t at, uint32_t code)
{
    ck_assert_uint_ge(f->n, at + 4);
    ck_assert_uint_eq(h2_u32(f->text + at), code);
}

TEST(test_preface)
{
    struct h2_peer web;
    h2_connect(&web, rig.loop, rig.socket);
    raw_conn_send(&web.conn, STR("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    raw_conn_await_end(&web.conn);
    h2_close(&web);
    ask(&peer, 1, ORDINARY GRPC);
    assert_echo(&peer, 1, "hi");
}

TEST(test_large_frame)
{
    h2_put_headers(&peer, 0, 1, KEEP);
    h2_put_frame_head(&peer, H2_FRAME_BYTES + 1, NGHTTP2_DATA, 0, 1);
    assert_code(h2_await(&peer, NGHTTP2_GOAWAY, 0, 0, 1), 4, NGHTTP2_FRAME_SIZE_ERROR);
    raw_conn_await_end(&peer.conn);
    ck_assert_uint_eq(rig.handled + rig.gone, 0);
}

TEST(test_heads)
{
    static const struct {
        const char *head;
        const char *line;
    } cases[] = {
        {ORDINARY, ":status: 415\n"},
        {ORDINARY "content-type: application/json\n", ":status: 415\n"},
        {ORDINARY "content-type: application/grpc-web\n", ":status: 415\n"},
        {":method: GET\n:scheme: http\n:path: /t/Echo\n" GRPC, ":status: 405\n"},
        {":scheme: http\n:path: /t/Echo\n" GRPC, ":status: 405\n"},
        {":method: POST\n:scheme: http\n:path: /t/Ech\n" GRPC, "grpc-status: 12\n"},
        {":method: POST\n:scheme: http\n:path: /t/Echo2\n" GRPC, "grpc-status: 12\n"},
        {":method: POST\n:scheme: http\n" GRPC, "grpc-status: 12\n"},
        {ORDINARY GRPC "grpc-encoding: gzip\n", "grpc-status: 12\n"},
        {ORDINARY GRPC "grpc-timeout: 123456789m\n", "grpc-status: 13\n"},
        {ORDINARY GRPC "grpc-timeout: 1\n", "grpc-status: 13\n"},
        {ORDINARY GRPC "grpc-timeout: m\n", "grpc-status: 13\n"},
        {ORDINARY GRPC "grpc-timeout: \n", "grpc-status: 13\n"},
        {ORDINARY GRPC "grpc-timeout: 1s\n", "grpc-status: 13\n"},
        {ORDINARY GRPC "grpc-timeout: -1m\n", "grpc-status: 13\n"},
        {ORDINARY GRPC "grpc-timeout: 1.5S\n", "grpc-status: 13\n"},
        {KEEP "grpc-timeout: 0m\n", "grpc-status: 4\n"},
        {KEEP "grpc-timeout: 0n\n", "grpc-status: 4\n"},
        {KEEP "grpc-timeout: 1n\n", "grpc-status: 4\n"},
        {KEEP "grpc-timeout: 1u\n", "grpc-status: 4\n"},
    };

    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        ask(&peer, 2 * i + 1, cases[i].head);
        assert_ends(&peer, 2 * i + 1, cases[i].line);
    }
    run_turns(rig.loop, 3);
    ck_assert_uint_eq(rig.n_kept, 0);
}

TEST(test_good_heads)
{
    static const char *const heads[] = {
        ORDINARY GRPC,
        ORDINARY "content-type: application/grpc+proto\n",
        ORDINARY "content-type: application/grpc;charset=utf-8\n",
        ORDINARY GRPC "grpc-encoding: identity\nte: trailers\n",
        ORDINARY GRPC "grpc-timeout: 99999999H\n",
        ORDINARY GRPC "grpc-timeout: 99999999M\n",
        ORDINARY GRPC "grpc-timeout: 1S\n",
        ORDINARY GRPC "grpc-timeout: 00099999m\n",
        ORDINARY GRPC "grpc-timeout: 99999999u\n",
        /* Kubelets before 1.26 */
        AT("/var/lib/kubelet/device-plugins/cardpack.sock"),
        AT("%2Fvar%2Flib%2Fkubelet%2Fdevice-plugins%2Fcardpack.sock"),
    };
    for (uint32_t i = 0; i < COUNT_OF(heads); i++) {
        ask(&peer, 2 * i + 1, heads[i]);
        assert_echo(&peer, 2 * i + 1, "hi");
    }
    ck_assert_uint_eq(rig.handled, COUNT_OF(heads));
}

/* Deadlines by the clock of the loop, which the test moves. */
TEST(test_deadlines)
{
    static const struct {
        const char *head;
        uint64_t seconds;
    } cases[] = {
        {KEEP "grpc-timeout: 2H\n", 7200},       {KEEP "grpc-timeout: 2M\n", 120},
        {KEEP "grpc-timeout: 100S\n", 100},      {KEEP "grpc-timeout: 100000m\n", 100},
        {KEEP "grpc-timeout: 99999999u\n", 100},
    };

    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        ask(&peer, 2 * i + 1, cases[i].head);
        run_while(rig.loop, rig.n_kept == 0);
        pass_s(cases[i].seconds - 60);
        ck_assert_uint_eq(rig.gone, i);
        pass_s(60);
        assert_ends(&peer, 2 * i + 1, "grpc-status: 4\n");
        ck_assert_uint_eq(rig.gone, i + 1);
    }
    h2_put_headers(&peer, 0, 99, KEEP "grpc-timeout: 100S\n"); /* its message never comes */
    run_turns(rig.loop, 4);
    pass_s(100);
    assert_ends(&peer, 99, "grpc-status: 4\n");
    ck_assert_uint_eq(rig.gone, COUNT_OF(cases));
}

TEST(test_malformed_headers)
{
    static const char *const heads[] = {
        ORDINARY GRPC "Upper: x\n",
        ORDINARY GRPC ":path: /t/Keep\n",
        ":unknown: x\n" ORDINARY GRPC,
        ORDINARY GRPC "x: a\rb\n",
    };
    for (uint32_t i = 0; i < COUNT_OF(heads); i++) {
        h2_put_headers(&peer, 0, 2 * i + 1, heads[i]);
        assert_code(h2_await(&peer, NGHTTP2_RST_STREAM, 0, 2 * i + 1, 1), 0,
                    NGHTTP2_PROTOCOL_ERROR);
        ck_assert(!h2_has(&peer, NGHTTP2_HEADERS, 2 * i + 1));
    }
    ask(&peer, 99, ORDINARY GRPC);
    assert_echo(&peer, 99, "hi");
}

TEST(test_large_headers)
{
    static char head[20000];
    static const char begin_of_last[] = ORDINARY GRPC "x: ";
    memset(head, 'x', sizeof(head) - 1);
    memcpy(head, begin_of_last, sizeof(begin_of_last) - 1);
    head[LIMIT_GRPC_HEADERS] = '\n';
    head[LIMIT_GRPC_HEADERS + 1] = '\0';
    ask(&peer, 1, head);
    assert_ends(&peer, 1, "grpc-status: 8\n");
    head[LIMIT_GRPC_HEADERS / 2] = '\n';
    head[LIMIT_GRPC_HEADERS / 2 + 1] = '\0';
    ask(&peer, 3, head);
    assert_echo(&peer, 3, "hi");
}

/* Each is refused before its stream has ended, so that RST_STREAM follows. */
TEST(test_messages)
{
    static const struct {
        char flag;
        uint32_t length;
        struct str bytes;
        const char *line;
    } cases[] = {
        {1, 2, STR("hi"), "grpc-status: 12\n"},
        {2, 2, STR("hi"), "grpc-status: 13\n"},
        {0, LIMIT_GRPC_MESSAGE + 1, STR("hi"), "grpc-status: 8\n"},
        {0, UINT32_MAX, STR(""), "grpc-status: 8\n"},
        {0, 2, STR("hi\0\0\0\0\2hi"), "grpc-status: 13\n"},
        {0, 0, STR("x"), "grpc-status: 13\n"},
    };

    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t id = 2 * i + 1;
        h2_put_headers(&peer, 0, id, ORDINARY GRPC);
        h2_put_message(&peer, 0, id, cases[i].flag, cases[i].length, cases[i].bytes);
        assert_ends(&peer, id, cases[i].line);
        assert_code(h2_await(&peer, NGHTTP2_RST_STREAM, 0, id, 1), 0, NGHTTP2_NO_ERROR);
    }
    /* The second message in a frame of its own. */
    h2_put_headers(&peer, 0, 99, ORDINARY GRPC);
    h2_put_message(&peer, 0, 99, 0, 2, STR("hi"));
    h2_put_message(&peer, NGHTTP2_FLAG_END_STREAM, 99, 0, 2, STR("hi"));
    assert_ends(&peer, 99, "grpc-status: 13\n");
    ck_assert_uint_eq(rig.handled, 0);
}

TEST(test_cut_messages)
{
    struct str whole = STR("\0\0\0\0\2hi");
    for (uint32_t n = 0; n < whole.n; n++) {
        h2_put_headers(&peer, 0, 2 * n + 1, ORDINARY GRPC);
        h2_put_frame(&peer, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 2 * n + 1, str_head(whole, n));
        assert_ends(&peer, 2 * n + 1, "grpc-status: 13\n");
    }
    h2_put_headers(&peer, NGHTTP2_FLAG_END_STREAM, 99, ORDINARY GRPC);
    assert_ends(&peer, 99, "grpc-message: no message\n");
    ck_assert_uint_eq(rig.handled, 0);
    /* Byte by byte, and ended by trailers. */
    h2_put_headers(&peer, 0, 101, ORDINARY GRPC);
    for (size_t i = 0; i < whole.n; i++)
        h2_put_frame(&peer, NGHTTP2_DATA, 0, 101, (struct str){whole.p + i, 1});
    h2_put_headers(&peer, NGHTTP2_FLAG_END_STREAM, 101, "x: y\n");
    assert_echo(&peer, 101, "hi");
}

TEST(test_reset)
{
    ask(&peer, 1, KEEP);
    run_while(rig.loop, rig.n_kept == 0);
    h2_put_number(&peer, NGHTTP2_RST_STREAM, 1, NGHTTP2_CANCEL);
    run_while(rig.loop, rig.gone == 0);
    ck_assert_uint_eq(rig.n_kept, 0);
    /* Together with the request: the owner never sees the call. */
    ask(&peer, 3, KEEP);
    h2_put_number(&peer, NGHTTP2_RST_STREAM, 3, NGHTTP2_CANCEL);
    ask(&peer, 5, ORDINARY GRPC);
    assert_echo(&peer, 5, "hi");
    ck_assert_uint_eq(rig.n_kept, 0);
    ck_assert(!h2_has(&peer, NGHTTP2_HEADERS, 3));
}

TEST(test_goaway)
{
    ask(&peer, 1, KEEP);
    run_while(rig.loop, rig.n_kept == 0);
    h2_put_goaway(&peer, 0, NGHTTP2_NO_ERROR);
    run_turns(rig.loop, 4);
    ck_assert_uint_eq(rig.gone, 0);
    grpc_call_reply(rig.kept[0], STR("late"));
    rig.n_kept = 0;
    assert_echo(&peer, 1, "late");
    raw_conn_await_end(&peer.conn);
}

TEST(test_ping)
{
    h2_put_frame(&peer, NGHTTP2_PING, 0, 0, STR("12345678"));
    const struct h2_frame *f = h2_await(&peer, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, 1);
    ck_assert_str_is(((struct str){f->text, f->n}), "12345678");
    (void)h2_await(&peer, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, 1);
}

TEST(test_tiny_window)
{
    struct buf all;
    buf_init(&all, 100);
    h2_put_setting(&peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    ask(&peer, 1, ORDINARY GRPC);
    (void)h2_await(&peer, NGHTTP2_HEADERS, 0, 1, 1);
    for (size_t i = 1; i <= 7; i++) {
        run_turns(rig.loop, 2);
        buf_clear(&all, SIZE_MAX);
        h2_gather(&peer, 1, &all);
        ck_assert_uint_eq(all.n, i - 1);
        h2_put_number(&peer, NGHTTP2_WINDOW_UPDATE, 1, 1);
        (void)h2_await(&peer, NGHTTP2_DATA, 0, 1, i);
    }
    assert_echo(&peer, 1, "hi");
    buf_done(&all);
}

/* A window that grows beyond what HTTP/2 allows ends the stream, or all. */
TEST(test_window_overflow)
{
    ask(&peer, 1, KEEP);
    run_while(rig.loop, rig.n_kept == 0);
    h2_put_number(&peer, NGHTTP2_WINDOW_UPDATE, 1, INT32_MAX);
    assert_code(h2_await(&peer, NGHTTP2_RST_STREAM, 0, 1, 1), 0, NGHTTP2_FLOW_CONTROL_ERROR);
    run_while(rig.loop, rig.gone == 0);
    h2_put_number(&peer, NGHTTP2_WINDOW_UPDATE, 0, INT32_MAX);
    raw_conn_await_end(&peer.conn);
}

static void keep_with_unsent(size_t n)
{
    char *bytes = calloc(1, n);
    ck_assert_ptr_nonnull(bytes);
    ask(&peer, 1, KEEP);
    run_while(rig.loop, rig.n_kept == 0);
    grpc_call_send(rig.kept[0], (struct str){bytes, n});
    run_turns(rig.loop, 20);
    free(bytes);
}

TEST(test_client_never_reads)
{
    peer.conn.deaf = true;
    keep_with_unsent(8 << 20);
    ck_assert_uint_gt(grpc_call_unsent(rig.kept[0]), 0);
    pass_s(LIMIT_GRPC_STALL_MS / 1000 - 2);
    ck_assert_uint_eq(rig.gone, 0);
    pass_s(3);
    ck_assert_uint_eq(rig.gone, 1);
}

TEST(test_window_never_grows)
{
    h2_put_setting(&peer, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 10);
    keep_with_unsent(100);
    pass_s(LIMIT_GRPC_STALL_MS / 1000 - 2);
    h2_put_number(&peer, NGHTTP2_WINDOW_UPDATE, 1, 1); /* it does read */
    run_turns(rig.loop, 4);
    pass_s(3);
    ck_assert_uint_eq(rig.gone, 0);
    pass_s(LIMIT_GRPC_STALL_MS / 1000 - 2);
    ck_assert_uint_eq(rig.gone, 0);
    h2_put_frame(&peer, NGHTTP2_PING, 0, 0, STR("12345678")); /* its answer helps no call */
    (void)h2_await(&peer, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, 1);
    pass_s(3);
    ck_assert_uint_eq(rig.gone, 1);
    raw_conn_await_end(&peer.conn);
}

static struct h2_peer crowd[LIMIT_GRPC_CONNECTIONS];

TEST(test_connections)
{
    struct h2_peer late;
    for (size_t i = 1; i < COUNT_OF(crowd); i++) {
        begin(&crowd[i]);
        (void)h2_await(&crowd[i], NGHTTP2_SETTINGS, 0, 0, 1);
    }
    ask(&peer, 1, KEEP);
    run_while(rig.loop, rig.n_kept == 0);
    begin(&late);
    ask(&late, 1, KEEP);
    run_while(rig.loop, rig.n_kept < 2);
    raw_conn_await_end(&crowd[1].conn); /* the oldest without a call */
    for (uint32_t i = 2; i < COUNT_OF(crowd); i++) {
        ck_assert(!crowd[i].conn.closed);
        ask(&crowd[i], 1, KEEP);
    }
    run_while(rig.loop, rig.n_kept < COUNT_OF(crowd));
    h2_close(&crowd[1]);
    h2_connect(&crowd[1], rig.loop, rig.socket); /* all have calls */
    raw_conn_await_end(&crowd[1].conn);
    ck_assert_uint_eq(rig.gone, 0);
    for (size_t i = 1; i < COUNT_OF(crowd); i++)
        h2_close(&crowd[i]);
    h2_close(&late);
    run_while(rig.loop, rig.n_kept > 1);
    ck_assert_uint_eq(rig.gone, COUNT_OF(crowd) - 1);
}

TEST(test_calls)
{
    uint32_t id = 1;
    for (unsigned i = 0; i < LIMIT_GRPC_CALLS; i++, id += 2)
        ask(&peer, id, KEEP);
    run_while(rig.loop, rig.n_kept < LIMIT_GRPC_CALLS);
    ask(&peer, id, KEEP);
    assert_code(h2_await(&peer, NGHTTP2_RST_STREAM, 0, id, 1), 0, NGHTTP2_REFUSED_STREAM);
    ck_assert_uint_eq(rig.handled, LIMIT_GRPC_CALLS);
    grpc_call_reply(rig.kept[0], STR("")); /* one ends, and another has room */
    rig.kept[0] = rig.kept[--rig.n_kept];
    assert_ends(&peer, 1, "grpc-status: 0\n");
    ask(&peer, id + 2, ORDINARY GRPC);
    assert_echo(&peer, id + 2, "hi");
}

/* After the client has ended its side, a stream goes on. */
TEST(test_half_close)
{
    ask(&peer, 1, KEEP);
    run_while(rig.loop, rig.n_kept == 0);
    for (size_t i = 1; i <= 3; i++) {
        grpc_call_send(rig.kept[0], STR("state"));
        (void)h2_await(&peer, NGHTTP2_DATA, 0, 1, i);
    }
    grpc_call_end(rig.kept[0]);
    rig.n_kept = 0;
    assert_ends(&peer, 1, "grpc-status: 0\n");
    ck_assert_uint_eq(rig.gone, 0);
}

/* A client that vanishes after each byte of a connection with two calls. */
TEST(test_connection_ends_anywhere)
{
    struct h2_peer p;
    struct buf script;
    buf_init(&script, 100000);
    h2_connect(&p, rig.loop, rig.socket);
    raw_conn_send(&p.conn, STR(H2_PREFACE));
    h2_put_frame(&p, NGHTTP2_SETTINGS, 0, 0, STR(""));
    ask(&p, 1, KEEP);
    h2_put_headers(&p, 0, 3, ORDINARY GRPC);
    h2_put_message(&p, 0, 3, 0, 2, STR("h"));
    buf_put(&script, buf_str(&p.conn.out));
    h2_close(&p);
    for (size_t n = 0; n <= script.n; n++) {
        unsigned before = rig.handled;
        h2_connect(&p, rig.loop, rig.socket);
        raw_conn_send(&p.conn, str_head(buf_str(&script), n));
        run_turns(rig.loop, (int)(n % 4));
        h2_close(&p);
        run_turns(rig.loop, 4);
        ck_assert_uint_le(rig.handled, before + 1);
        ck_assert_uint_eq(rig.n_kept, 0);
        ck_assert_uint_eq(rig.gone, rig.handled);
    }
    ck_assert_uint_gt(rig.handled, 0);
    buf_done(&script);
}

int main(void)
{
    TCase *t = unit_case("grpc_wire");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
