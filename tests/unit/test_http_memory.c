/* One memory budget for all requests of a server. */
#include "http_fixture.h"
#include "io/limit.h"
#include "seeded.h"

#define TURNS  60 /* none of them sleeps */
#define BUDGET MIB
#define LARGE  ((size_t)900 * 1024) /* over half of the budget, also without what is free */

struct scarce {
    struct http_fixture http;
    struct mem_budget budget;
    size_t told; /* refused requests */
};

static void scarce_handle(void *ctx, struct http_request *r)
{
    struct http_fixture *s = ctx;
    s->last_id = 0; /* the answers to large requests may come out of order */
    if (!str_eq(r->path, STR("/arena"))) {
        handle(s, r);
        return;
    }
    r->kind = FIXTURE_KIND;
    bool there = arena_alloc(r->arena, 2 * BUDGET) != NULL;
    respond(r, there ? STR("made of memory") : STR("made of nothing"));
}

static void told(void *ctx, const struct http_request *r)
{
    struct scarce *s = CONTAINER_OF((struct http_fixture *)ctx, struct scarce, http);
    ck_assert_uint_gt(r->id, 0);
    s->told++;
}

static void open_scarce(struct scarce *s, size_t max, size_t max_body)
{
    struct http_server_settings set = settings(&s->http);
    s->budget = (struct mem_budget){.max = max};
    s->told = 0;
    set.max_body = max_body;
    set.memory = &s->budget;
    set.handle = scarce_handle;
    set.no_memory = told;
    set.stall_ms = 1;
    open_with(&s->http, &set);
}

static void close_scarce(struct scarce *s)
{
    /* The server first reads what was sent, some KiB a turn. */
    for (int turn = 0; turn < 2000 && s->http.counts.open > 0; turn++)
        run_turns(s->http.loop, 1);
    ck_assert_uint_eq(s->http.counts.open, 0);
    ck_assert_uint_eq(s->budget.used, 0);
    http_fixture_close(&s->http);
    ck_assert_uint_eq(s->budget.used, 0);
}

static void dial_scarce(struct scarce *s, struct raw_conn *p)
{
    dial(&s->http, p);
}

#define REFUSAL "HTTP/1.1 503 Service Unavailable\r\n"

TEST(a_body_beyond_it_is_refused)
{
    struct scarce s;
    struct raw_conn p;
    struct raw_conn q;
    struct buf memory;
    struct str body = letters(&memory, LARGE);
    open_scarce(&s, BUDGET, 8 * MIB);
    dial_scarce(&s, &p);
    dial_scarce(&s, &q);
    post(&p, "/hold", body);
    await_held(&s.http, 1);
    ck_assert_uint_ge(s.budget.used, LARGE - LIMIT_REQUEST_FREE);
    ck_assert_uint_le(s.budget.used, BUDGET);
    post(&q, "/echo", body);
    raw_conn_await(&q, "memory-budget is spent", 1);
    ck_assert_uint_eq(raw_conn_count(&q, REFUSAL), 1);
    ck_assert_uint_eq(raw_conn_count(&q, "Retry-After: 1\r\n"), 1);
    ck_assert_uint_eq(s.http.counts.no_memory, 1);
    ck_assert_uint_eq(s.told, 1);
    ck_assert_uint_eq(s.http.handled, 1);
    /* The connection stays usable, and small requests are served. */
    post(&q, "/echo", STR("small"));
    raw_conn_await(&q, "small", 1);
    respond(s.http.held[0], STR("held"));
    raw_conn_await(&p, "held", 1);
    /* The memory is free again. */
    post(&q, "/method", body);
    raw_conn_await(&q, "POST", 1);
    ck_assert_uint_eq(s.http.counts.no_memory, 1);
    raw_conn_close(&p);
    raw_conn_close(&q);
    buf_done(&memory);
    close_scarce(&s);
}

/* Answers and what handlers allocate count for the same budget. */
TEST_EACH(what_a_handler_makes_is_refused_too, 2)
{
    struct scarce s;
    struct raw_conn p;
    struct buf memory;
    struct str body = letters(&memory, LARGE);
    open_scarce(&s, BUDGET, 8 * MIB);
    dial_scarce(&s, &p);
    if (_i == 0)
        post(&p, "/echo", body);
    else
        get(&p, "/arena");
    raw_conn_await(&p, "memory-budget is spent", 1);
    ck_assert_uint_eq(raw_conn_count(&p, REFUSAL), 1);
    ck_assert_uint_eq(raw_conn_count(&p, "made of nothing"), 0);
    ck_assert_uint_eq(s.http.last_status, 503);
    get(&p, "/method");
    raw_conn_await(&p, "GET", 1);
    raw_conn_close(&p);
    buf_done(&memory);
    close_scarce(&s);
}

/* A connection that stalls within a body or an answer while it holds needed memory is cut. */
TEST_EACH(who_stalls_with_memory_gives_way, 2)
{
    struct scarce s;
    struct raw_conn idle;
    struct raw_conn p;
    struct buf memory;
    struct str body = letters(&memory, 7 * LARGE);
    open_scarce(&s, 8 * LARGE, 8 * MIB);
    dial_scarce(&s, &idle);
    dial_scarce(&s, &p);
    if (_i == 0) {
        raw_conn_send(&idle,
                      STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n"));
        raw_conn_send(&idle, body);
    } else {
        idle.deaf = true;
        post(&idle, "/hold", STR(""));
        await_held(&s.http, 1);
        respond(s.http.held[0], body);
    }
    run_turns(s.http.loop, 400);
    while (s.http.counts.open == 2) {
        buf_clear(&p.in, 0);
        idle_clock_pass(1); /* stall_ms */
        post(&p, "/method", body);
        raw_conn_await(&p, "HTTP/1.1 ", 1);
        ck_assert_uint_eq(raw_conn_count(&p, REFUSAL), 1);
    }
    buf_clear(&p.in, 0);
    post(&p, "/method", body);
    raw_conn_await(&p, "POST", 1);
    raw_conn_close(&idle);
    raw_conn_close(&p);
    buf_done(&memory);
    close_scarce(&s);
}

#define CROWD 60

static bool all_answered(void *ctx)
{
    const struct http_fixture *s = ctx;
    return s->answered + s->answered_alone >= s->wanted;
}

/* Many requests at once, of which few fit. */
TEST(a_crowd_is_served_or_refused)
{
    struct scarce s;
    struct raw_conn p[CROWD];
    struct buf memory;
    struct str body = letters(&memory, LARGE / 2);
    open_scarce(&s, 4 * BUDGET, 8 * MIB);
    for (int i = 0; i < CROWD; i++) {
        dial_scarce(&s, &p[i]);
        post(&p[i], i % 2 == 0 ? "/echo" : "/method", body);
    }
    s.http.wanted = CROWD;
    struct wait w = wait_begin(s.http.loop, HERE("the answers to the crowd"));
    while (!all_answered(&s.http)) {
        wait_turn(&w);
        ck_assert_uint_le(s.budget.used, s.budget.max);
    }
    ck_assert_uint_eq(s.told, s.http.counts.no_memory);
    ck_assert_uint_lt(s.told, CROWD);
    run_turns(s.http.loop, TURNS);
    for (int i = 0; i < CROWD; i++) {
        raw_conn_await(&p[i], "HTTP/1.1 ", 1);
        ck_assert_uint_eq(raw_conn_count(&p[i], "HTTP/1.1 200 OK") + raw_conn_count(&p[i], REFUSAL),
                          1);
        raw_conn_close(&p[i]);
    }
    buf_done(&memory);
    close_scarce(&s);
}

static void reset(struct raw_conn *p)
{
    struct linger hard = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(p->fd.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    raw_conn_close(p);
}

static void one_life(struct scarce *s, struct raw_conn *p, struct str body, uint64_t *seed)
{
    static const char *const paths[] = {"/echo",   "/hold",  "/hop",
                                        "/method", "/arena", "/stream/endless"};
    char head[256];
    size_t n = seeded_draw(seed, (uint32_t)body.n);
    size_t sent = seeded_draw(seed, 3) == 0 ? seeded_draw(seed, (uint32_t)n + 1) : n;
    const char *path = paths[seeded_draw(seed, COUNT_OF(paths))];
    if (strcmp(path, "/stream/endless") == 0 && s->http.n_tellers == STREAMS_MAX)
        path = "/echo";
    dial_scarce(s, p);
    p->deaf = seeded_draw(seed, 4) == 0;
    (void)snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                   path, n);
    raw_conn_send(p, str_of(head));
    raw_conn_send(p, (struct str){body.p, sent});
}

/* However requests end, nothing of them stays counted. */
TEST_EACH(nothing_stays_counted_when_all_are_gone, 12)
{
    struct scarce s;
    struct raw_conn p[20];
    struct buf memory;
    uint64_t seed = (uint64_t)_i + 1;
    struct str body = letters(&memory, 9 * MIB / 8); /* some bodies are larger than max_body */
    open_scarce(&s, (2U << seeded_draw(&seed, 4)) * (MIB / 8), MIB);
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        one_life(&s, &p[i], body, &seed);
        run_turns(s.http.loop, (int)seeded_draw(&seed, 40));
        ck_assert_uint_le(s.budget.used, s.budget.max);
    }
    for (size_t i = 0; i < s.http.n_held; i++)
        if (seeded_draw(&seed, 2) == 0) {
            respond(s.http.held[i], body);
            s.http.held[i] = NULL;
        }
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        run_turns(s.http.loop, (int)seeded_draw(&seed, 10));
        ck_assert_uint_le(s.budget.used, s.budget.max);
        if (seeded_draw(&seed, 2) == 0)
            reset(&p[i]);
        else
            raw_conn_close(&p[i]);
    }
    if (seeded_draw(&seed, 4) == 0) { /* with handlers that have not answered, and open streams */
        http_fixture_close(&s.http);
        ck_assert_uint_eq(s.budget.used, 0);
    } else {
        for (size_t i = 0, turn = 0; turn < 2000 && s.http.counts.open > 0; turn++) {
            run_turns(s.http.loop, 1);
            for (; i < s.http.n_held; i++)
                if (s.http.held[i] != NULL)
                    respond(s.http.held[i], body);
        }
        close_scarce(&s);
    }
    buf_done(&memory);
}
