/* Answers in portions (streams) of the HTTP server: when it asks for a portion, and how streams
 * end. */
#include "fail_alloc.h"
#include "http_fixture.h"

static void open_stage(struct http_fixture *g, unsigned max_connections)
{
    struct http_server_settings set = settings(g);
    set.max_connections = max_connections;
    open_with(g, &set);
}

static void close_stage(struct http_fixture *g)
{
    http_fixture_close(g);
    ck_assert_uint_eq(g->n_gone, g->n_tellers);
}

/* A stream that has sent its first portion and pauses. */
static void begin(struct http_fixture *g, struct raw_conn *p)
{
    dial(g, p);
    get(p, "/stream");
    raw_conn_await(p, "<1>", 1);
    run_turns(g->loop, 3);
}

TEST(it_goes_on_when_it_is_woken)
{
    struct http_fixture g;
    struct raw_conn p;
    open_stage(&g, 10);
    begin(&g, &p);
    struct teller *t = &g.tellers[0];
    ck_assert_uint_eq(raw_conn_count(&p, "Transfer-Encoding: chunked"), 1);
    ck_assert_uint_eq(raw_conn_count(&p, "Content-Type: text/event-stream"), 1);
    ck_assert_uint_eq(raw_conn_count(&p, "Cache-Control: no-store"), 1);
    for (unsigned i = 2; i < 6; i++) {
        char text[16];
        t->wanted = i;
        t->padding = (i % 2) * PORTION * 4; /* more than the socket takes at once */
        http_stream_wake(&t->stream);
        http_stream_wake(&t->stream);
        (void)snprintf(text, sizeof(text), "<%u>", i);
        raw_conn_await(&p, text, 1);
        run_turns(g.loop, 20);
    }
    ck_assert_uint_eq(t->told, 5);
    struct str body = buf_str(&p.in);
    size_t dots = 0;
    for (size_t i = (size_t)((const char *)memmem(body.p, body.n, "<1>", 3) - body.p); i < body.n;
         i++)
        dots += body.p[i] == '.' ? 1 : 0;
    ck_assert_uint_eq(dots, 2 * PORTION * 4); /* the padding of the 3rd and 5th, complete */
    http_stream_end(&t->stream);
    raw_conn_await(&p, "\r\n0\r\n\r\n", 1);
    await_gone(&g, 1);
    /* The connection is kept, as after other answers. */
    post(&p, "/echo", STR("and on"));
    raw_conn_await(&p, "and on", 1);
    raw_conn_close(&p);
    close_stage(&g);
}

/* Nothing is sent on a paused stream, and the server's turns cost nothing. */
TEST(one_that_rests_is_left_alone)
{
    struct http_fixture g;
    struct raw_conn p;
    open_stage(&g, 10);
    begin(&g, &p);
    size_t before = p.in.n;
    run_turns(g.loop, 50);
    ck_assert_uint_eq(p.in.n, before);
    ck_assert_uint_eq(g.tellers[0].told, 1);
    ck_assert_uint_eq(g.tellers[0].stream.out.n, 0);
    raw_conn_close(&p);
    close_stage(&g);
}

/* No wake-up of the stream is needed for that. */
TEST(a_peer_that_goes_is_noticed)
{
    struct http_fixture g;
    struct raw_conn p[3];
    open_stage(&g, 10);
    for (int i = 0; i < 3; i++)
        begin(&g, &p[i]);
    raw_conn_close(&p[1]);
    await_gone(&g, 1);
    ck_assert(g.tellers[1].gone);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    ck_assert_int_eq(setsockopt(p[0].fd.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    raw_conn_close(&p[0]);
    await_gone(&g, 2);
    ck_assert(g.tellers[0].gone);
    g.tellers[2].wanted = 2;
    http_stream_wake(&g.tellers[2].stream);
    raw_conn_await(&p[2], "<2>", 1);
    raw_conn_close(&p[2]);
    close_stage(&g);
}

/* While the client does not read, one portion waits, and no other is made. */
static void await_stuck(struct http_fixture *g)
{
    unsigned told;
    do {
        told = g->tellers[0].told;
        run_turns(g->loop, 50);
    } while (told == 0 || told != g->tellers[0].told);
}

TEST(who_does_not_read_costs_one_portion)
{
    struct http_fixture g;
    struct raw_conn p;
    open_stage(&g, 10);
    dial(&g, &p);
    p.deaf = true;
    get(&p, "/stream/endless");
    await_stuck(&g);
    const struct teller *t = &g.tellers[0];
    unsigned told = t->told;
    ck_assert_uint_le(t->stream.out.cap, 4 * PORTION);
    ck_assert_uint_gt(t->stream.out.n, t->stream.sent);
    for (int i = 0; i < 50; i++) {
        http_stream_wake(&g.tellers[0].stream);
        run_turns(g.loop, 1);
    }
    ck_assert_uint_eq(t->told, told);
    /* The client reads again, and gets all portions that were made, in order. */
    p.deaf = false;
    raw_conn_watch(&p);
    char next[16];
    (void)snprintf(next, sizeof(next), "<%u>", told + 1);
    raw_conn_await(&p, next, 1);
    for (unsigned i = 1; i <= told; i++) {
        (void)snprintf(next, sizeof(next), "<%u>", i);
        ck_assert_uint_eq(raw_conn_count(&p, next), 1);
    }
    raw_conn_close(&p);
    await_gone(&g, 1);
    close_stage(&g);
}

TEST(who_never_reads_is_cut)
{
    struct http_fixture g;
    struct raw_conn p;
    struct http_server_settings set = settings(&g);
    set.request_timeout_ms = 20;
    set.idle_seconds = 1;
    open_with(&g, &set);
    dial(&g, &p);
    p.deaf = true;
    get(&p, "/stream/endless");
    await_gone(&g, 1);
    raw_conn_close(&p);
    close_stage(&g);
}

static void drained(void *ctx)
{
    struct http_fixture *g = ctx;
    g->drained = true;
}

/* A paused stream, one whose client does not read, and one requested too late: shutdown waits for
 * none of them. */
TEST(draining_ends_them)
{
    struct http_fixture g;
    struct raw_conn p[3];
    open_stage(&g, 10);
    dial(&g, &p[0]);
    p[0].deaf = true;
    get(&p[0], "/stream/endless");
    await_stuck(&g);
    begin(&g, &p[1]);
    dial(&g, &p[2]);
    post(&p[2], "/hold", STR(""));
    await_held(&g, 1);
    http_server_drain(g.server, drained, &g);
    await_gone(&g, 2);
    raw_conn_await(&p[1], "\r\n0\r\n\r\n", 1);
    raw_conn_await_end(&p[1]);
    ck_assert(!g.drained);
    struct teller *t = teller_new(&g);
    http_request_stream(g.held[0], 200, "text/plain", &t->stream);
    run_until(g.loop, until_flag, &g.drained);
    ck_assert(t->gone);
    ck_assert_uint_eq(t->told, 0);
    for (int i = 0; i < 3; i++)
        raw_conn_close(&p[i]);
    close_stage(&g);
}

TEST(freeing_ends_them)
{
    struct http_fixture g;
    struct raw_conn p[2];
    open_stage(&g, 10);
    dial(&g, &p[0]);
    p[0].deaf = true;
    get(&p[0], "/stream/endless");
    await_stuck(&g);
    begin(&g, &p[1]);
    g.server = http_server_free(g.server);
    ck_assert_uint_eq(g.n_gone, 2);
    raw_conn_await_end(&p[1]);
    ck_assert_uint_eq(raw_conn_count(&p[1], "\r\n0\r\n\r\n"), 1);
    raw_conn_close(&p[0]);
    raw_conn_close(&p[1]);
    close_stage(&g);
}

/* The oldest stream is closed, because the page connects again by itself; an idle connection might
 * lose its next request. */
TEST(when_there_is_no_room_the_oldest_gives_way)
{
    struct http_fixture g;
    struct raw_conn kept;
    struct raw_conn p[2];
    struct raw_conn late[2];
    open_stage(&g, 3);
    dial(&g, &kept);
    post(&kept, "/echo", STR("one"));
    raw_conn_await(&kept, "one", 1);
    begin(&g, &p[0]);
    begin(&g, &p[1]);
    for (int i = 0; i < 2; i++) {
        dial(&g, &late[i]);
        post(&late[i], "/hold", STR(""));
        await_held(&g, (size_t)i + 1);
        await_gone(&g, (size_t)i + 1);
        ck_assert(g.tellers[i].gone);
        ck_assert(!kept.closed);
    }
    post(&kept, "/echo", STR("two"));
    raw_conn_await(&kept, "two", 1);
    respond(g.held[0], STR(""));
    respond(g.held[1], STR(""));
    for (int i = 0; i < 2; i++) {
        raw_conn_close(&p[i]);
        raw_conn_close(&late[i]);
    }
    raw_conn_close(&kept);
    close_stage(&g);
}

TEST(of_a_head_there_is_only_that)
{
    struct http_fixture g;
    struct raw_conn p;
    open_stage(&g, 10);
    dial(&g, &p);
    raw_conn_send(&p, STR("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
    await_gone(&g, 1);
    raw_conn_await(&p, "\r\n\r\n", 1);
    ck_assert_uint_eq(g.tellers[0].told, 0);
    raw_conn_close(&p);
    close_stage(&g);
}

static bool told_or_cut(void *ctx)
{
    const struct raw_conn_wants *w = ctx;
    return w->peer->closed || raw_conn_count(w->peer, "<1>") > 0 ||
           raw_conn_count(w->peer, " 503 ") > 0;
}

/* If memory for any part of it lacks, the stream ends, its owner gets a notice, and other requests
 * are served. */
TEST(without_memory_it_ends)
{
    bool hit = true;
    size_t nth = 0;
    while (hit) {
        struct http_fixture g;
        struct raw_conn p;
        struct raw_conn other;
        open_stage(&g, 10);
        dial(&g, &p);
        ck_assert(buf_reserve(&p.in, 1U << 20));
        ck_assert(buf_reserve(&p.out, 1U << 10));
        get(&p, "/stream");
        fail_alloc_arm(FAIL_ONCE, ++nth);
        struct raw_conn_wants w = {&p, "", 0};
        run_until(g.loop, told_or_cut, &w);
        run_turns(g.loop, 3);
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        dial(&g, &other);
        post(&other, "/echo", STR("served"));
        raw_conn_await(&other, "served", 1);
        raw_conn_close(&p);
        await_gone(&g, g.n_tellers);
        raw_conn_close(&other);
        close_stage(&g);
    }
    ck_assert_uint_gt(nth, 4);
}
