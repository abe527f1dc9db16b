/* Which connections the HTTP server cuts: when it is full, and during shutdown. */
#include "http_fixture.h"

#define LONG_MS 60000

static struct http_server_settings small(struct http_fixture *s, unsigned max_connections,
                                         uint64_t stall_ms)
{
    struct http_server_settings set = settings(s);
    set.max_connections = max_connections;
    set.stall_ms = stall_ms;
    return set;
}

static const char half[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc";

/* Makes the server read what was sent: it answers another request that came later. */
static void let_it_read(struct http_fixture *s)
{
    run_turns(s->loop, 5);
}

static void ask(struct http_fixture *s, struct raw_conn *p)
{
    dial(s, p);
    post(p, "/echo", STR("served"));
    raw_conn_await(p, "served", 1);
}

TEST(who_never_asks_gives_way)
{
    enum {
        LIMIT = 20,
        SILENT = 60
    };
    struct http_fixture s;
    struct raw_conn p[SILENT];
    struct raw_conn late;
    size_t cut = 0;
    struct http_server_settings set = small(&s, LIMIT, LONG_MS);
    open_with(&s, &set);
    for (int i = 0; i < SILENT; i++)
        dial(&s, &p[i]);
    ask(&s, &late);
    /* Another request on this connection: so it is not the one to be cut. */
    post(&late, "/echo", STR("again"));
    raw_conn_await(&late, "again", 1);
    for (int i = 0; i < SILENT; i++) {
        cut += p[i].closed ? 1 : 0;
        ck_assert(i == 0 || !p[i].closed || p[i - 1].closed); /* the longest idle first */
        raw_conn_close(&p[i]);
    }
    ck_assert_uint_eq(cut, SILENT - LIMIT + 1);
    raw_conn_close(&late);
    http_fixture_close(&s);
}

enum guest {
    FRESH,
    KEPT,
    READING,
    BUSY,
    GUESTS,
};

/* In the order in which they came; with three new clients, in the order in which they became
 * idle. */
static const struct {
    enum guest come[4];
    uint64_t stall_ms;
    enum guest go[3];
} orders[] = {
    {{BUSY, KEPT, READING, FRESH}, 1, {FRESH, READING, KEPT}},
    {{KEPT, READING, FRESH, BUSY}, 1, {FRESH, READING, KEPT}},
    {{READING, FRESH, BUSY, KEPT}, 1, {FRESH, READING, KEPT}},
};

static void come(struct http_fixture *s, struct raw_conn *p, enum guest g)
{
    if (g == KEPT) {
        ask(s, p);
        return;
    }
    dial(s, p);
    if (g == BUSY) {
        post(p, "/hold", STR(""));
        await_held(s, s->n_held + 1);
    } else if (g == READING) {
        raw_conn_send(p, str_of(half));
    }
    let_it_read(s);
}

TEST_EACH(an_order_of_giving_way, COUNT_OF(orders))
{
    struct http_fixture s;
    struct raw_conn p[GUESTS];
    struct raw_conn late[3];
    struct http_server_settings set = small(&s, GUESTS, orders[_i].stall_ms);
    open_with(&s, &set);
    for (int i = 0; i < GUESTS; i++)
        come(&s, &p[orders[_i].come[i]], orders[_i].come[i]);
    idle_clock_pass(5);
    run_turns(s.loop, 1);
    for (int i = 0; i < 3; i++) {
        dial(&s, &late[i]);
        post(&late[i], "/hold", STR(""));
        await_held(&s, s.n_held + 1);
        raw_conn_await_end(&p[orders[_i].go[i]]);
        for (int later = i + 1; later < 3; later++)
            ck_assert(!p[orders[_i].go[later]].closed);
    }
    ck_assert(!p[BUSY].closed);
    for (size_t i = 0; i < s.n_held; i++)
        respond(s.held[i], STR("at last"));
    raw_conn_await(&p[BUSY], "at last", 1);
    for (int i = 0; i < 3; i++) {
        raw_conn_await(&late[i], "at last", 1);
        raw_conn_close(&late[i]);
    }
    for (int i = 0; i < GUESTS; i++)
        raw_conn_close(&p[i]);
    http_fixture_close(&s);
}

/* No other event happens: the server checks again by itself. */
TEST(half_a_request_gives_way_once_it_stalls)
{
    struct http_fixture s;
    struct raw_conn p;
    struct raw_conn late;
    struct http_server_settings set = small(&s, 1, 100);
    open_with(&s, &set);
    dial(&s, &p);
    raw_conn_send(&p, str_of(half));
    let_it_read(&s);
    ask(&s, &late);
    raw_conn_await_end(&p);
    ck_assert_uint_eq(p.in.n, 0);
    raw_conn_close(&p);
    raw_conn_close(&late);
    http_fixture_close(&s);
}

TEST(who_does_not_take_his_answer_gives_way)
{
    struct http_fixture s;
    struct raw_conn p;
    struct raw_conn late;
    struct http_server_settings set = small(&s, 1, 10);
    set.max_body = 32U << 20;
    open_with(&s, &set);
    struct buf memory;
    struct str body = letters(&memory, 16U << 20);
    dial(&s, &p);
    p.deaf = true;
    post(&p, "/hold", STR(""));
    await_held(&s, 1);
    respond(s.held[0], body);
    ask(&s, &late);
    buf_done(&memory);
    raw_conn_close(&p);
    raw_conn_close(&late);
    http_fixture_close(&s);
}

static void drained(void *ctx)
{
    struct http_fixture *s = ctx;
    s->drained = true;
}

/* Requests that came before the shutdown are served, even if they were not read yet; other
 * connections are cut. */
TEST(the_end_is_told_to_the_idle)
{
    struct http_fixture s;
    struct raw_conn fresh;
    struct raw_conn kept;
    struct raw_conn asking;
    http_fixture_open(&s);
    dial(&s, &fresh);
    ask(&s, &kept);
    ask(&s, &asking);
    static const char more[] = "GET /more HTTP/1.1\r\nHost: x\r\n\r\n";
    ck_assert_int_eq(write(asking.fd.fd, more, sizeof(more) - 1), sizeof(more) - 1);
    http_server_drain(s.server, drained, &s);
    raw_conn_await(&asking, "Connection: close", 1);
    ck_assert_uint_eq(s.handled, 3);
    run_until(s.loop, until_flag, &s.drained);
    raw_conn_await_end(&fresh);
    raw_conn_await_end(&kept);
    raw_conn_await_end(&asking);
    raw_conn_close(&fresh);
    raw_conn_close(&kept);
    raw_conn_close(&asking);
    http_fixture_close(&s);
}

static const char *const halves[] = {
    "POST /echo HTTP/1.1\r\nHo",
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
    "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
};

/* The request has a deadline of a minute, but shutdown does not wait for it: whether the client is
 * silent or has closed. */
TEST_EACH(half_a_request_does_not_hold_the_end_up, 2 * COUNT_OF(halves))
{
    struct http_fixture s;
    struct raw_conn p;
    struct http_server_settings set = small(&s, 10, 50);
    bool hangs_up = _i % 2 == 1;
    open_with(&s, &set);
    dial(&s, &p);
    raw_conn_send(&p, str_of(halves[_i / 2]));
    let_it_read(&s);
    http_server_drain(s.server, drained, &s);
    run_turns(s.loop, 1);
    ck_assert(!s.drained);
    if (hangs_up)
        ck_assert_int_eq(shutdown(p.fd.fd, SHUT_WR), 0);
    run_until(s.loop, until_flag, &s.drained);
    ck_assert_uint_eq(s.handled, 0);
    raw_conn_await_end(&p);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

struct sender {
    struct timer timer;
    struct raw_conn *peer;
    int left;
};

static void send_some(struct timer *t)
{
    struct sender *d = CONTAINER_OF(t, struct sender, timer);
    raw_conn_send(d->peer, STR("x"));
    if (--d->left > 0)
        timer_arm(d->peer->loop, t, 100);
}

/* Together they take longer than stall_ms. */
TEST(who_goes_on_sending_is_waited_for)
{
    struct http_fixture s;
    struct raw_conn p;
    struct http_server_settings set = small(&s, 10, 2000);
    open_with(&s, &set);
    dial(&s, &p);
    raw_conn_send(&p, STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 25\r\n\r\n"));
    let_it_read(&s);
    http_server_drain(s.server, drained, &s);
    struct sender d = {.timer = {.fire = send_some}, .peer = &p, .left = 25};
    timer_arm(s.loop, &d.timer, 0);
    run_until(s.loop, until_flag, &s.drained);
    raw_conn_await(&p, "xxxxxxxxxxxxxxxxxxxxxxxxx", 1);
    raw_conn_close(&p);
    http_fixture_close(&s);
}
