/* A client that ends its connection within a request, or right after one. No deadline may end it
 * here. */
#include "http_fixture.h"

#define TURNS 40 /* none of them sleeps */

enum way {
    SHUTS,  /* FIN for its half of the connection */
    CLOSES, /* FIN; what the server sends later is refused */
    RESETS, /* RST */
    WAYS,
};

enum moment {
    AT_ONCE,  /* all has come when the server accepts */
    ACCEPTED, /* the bytes and the end come together */
    LATER,    /* the server reads the bytes before the end comes */
    MOMENTS,
};

static const char *const halves[] = {
    "",
    "POST /ec",
    "POST /echo HTTP/1.1\r\nHo",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\nabc",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\nabc",
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
    "GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na",
};

static int dial_plainly(struct http_fixture *s)
{
    struct sockaddr_in a = loopback(http_server_port(s->server));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void send_plainly(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Returns the descriptor if it is still open. */
static int end(int fd, enum way way)
{
    struct linger hard = {.l_onoff = 1};
    if (way == SHUTS) {
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        return fd;
    }
    if (way == RESETS)
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    ck_assert_int_eq(close(fd), 0);
    return -1;
}

static int come_and_go(struct http_fixture *s, const char *text, enum way way, enum moment moment)
{
    int fd = dial_plainly(s);
    if (moment != AT_ONCE)
        run_turns(s->loop, TURNS);
    send_plainly(fd, text);
    if (moment == LATER)
        run_turns(s->loop, TURNS);
    fd = end(fd, way);
    run_turns(s->loop, TURNS);
    return fd;
}

TEST_EACH(half_a_request_ends_with_its_peer, COUNT_OF(halves) * WAYS * MOMENTS)
{
    const char *text = halves[_i / (WAYS * MOMENTS)];
    struct http_fixture s;
    http_fixture_open(&s);
    int fd = come_and_go(&s, text, (enum way)(_i / MOMENTS % WAYS), (enum moment)(_i % MOMENTS));
    ck_assert_uint_eq(s.counts.connections, 1);
    ck_assert_msg(s.counts.open == 0, "the connection is kept, with half a request: %s", text);
    /* A reset discards bytes that were not read. */
    if (_i / MOMENTS % WAYS != RESETS || _i % MOMENTS == LATER)
        ck_assert_uint_eq(s.handled, str_starts(str_of(text), STR("GET")) ? 1 : 0);
    if (fd >= 0)
        (void)close(fd);
    http_fixture_close(&s);
}

static const char *const whole[] = {
    "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /hop HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab",
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
};

static size_t read_plainly(int fd, char *bytes, size_t max)
{
    size_t n = 0;
    ssize_t got;
    while (n < max && (got = recv(fd, bytes + n, max - n, MSG_DONTWAIT)) > 0)
        n += (size_t)got;
    return n;
}

/* HTTP lets a client close its sending half after the request. It gets the answer, but the
 * connection is not kept. */
TEST_EACH(whole_requests_are_answered_though_their_peer_has_shut_its_half,
          COUNT_OF(whole) * MOMENTS)
{
    const char *text = whole[_i / MOMENTS];
    char answer[4096];
    struct http_fixture s;
    http_fixture_open(&s);
    int fd = come_and_go(&s, text, SHUTS, (enum moment)(_i % MOMENTS));
    size_t n = read_plainly(fd, answer, sizeof(answer));
    ck_assert_ptr_nonnull(memmem(answer, n, "HTTP/1.1 200 OK", 15));
    ck_assert_uint_eq(s.handled, 1);
    ck_assert_msg(s.counts.open == 0, "the connection is kept behind its last request: %s", text);
    (void)close(fd);
    http_fixture_close(&s);
}

TEST(pipelined_requests_before_the_end_are_all_answered)
{
    char answer[8192];
    struct http_fixture s;
    http_fixture_open(&s);
    int fd = dial_plainly(&s);
    for (int i = 0; i < 10; i++)
        send_plainly(fd, whole[i % 2]);
    fd = end(fd, SHUTS);
    run_turns(s.loop, TURNS);
    size_t n = read_plainly(fd, answer, sizeof(answer));
    ck_assert_uint_eq(s.handled, 10);
    ck_assert_ptr_nonnull(memmem(answer, n, "HTTP/1.1 200 OK", 15));
    ck_assert_uint_eq(s.counts.open, 0);
    (void)close(fd);
    http_fixture_close(&s);
}

/* As with a bind: the handler finishes and answers, even if the client's connection has ended. */
TEST_EACH(a_handler_goes_on_when_its_peer_has_ended, WAYS)
{
    char answer[4096];
    struct http_fixture s;
    http_fixture_open(&s);
    int fd = come_and_go(&s, "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
                         (enum way)_i, _i == RESETS ? LATER : AT_ONCE);
    ck_assert_uint_eq(s.n_held, 1);
    ck_assert_uint_eq(http_server_active(s.server), 1);
    ck_assert_str_is(s.held[0]->body, "body");
    respond(s.held[0], STR("done"));
    run_turns(s.loop, TURNS);
    if (fd >= 0) {
        size_t n = read_plainly(fd, answer, sizeof(answer));
        ck_assert_ptr_nonnull(memmem(answer, n, "done", 4));
        (void)close(fd);
    }
    ck_assert_uint_eq(s.counts.open, 0);
    http_fixture_close(&s);
}
