/* One memory budget for all requests of a server. */
#include "io/limit.h"
#include "seeded.h"
#include "site.h"

#define TURNS  60 /* none of them sleeps */
#define BUDGET MIB
#define LARGE  ((size_t)900 * 1024) /* over half of the budget, also without what is free */

struct scarce {
    struct site site;
    struct mem_budget budget;
    size_t told; /* refused requests */
};

static void scarce_handle(void *ctx, struct http_request *r)
{
    struct site *s = ctx;
    s->last_id = 0; /* the answers to large requests may come out of order */
    if (!str_eq(r->path, STR("/arena"))) {
        handle(s, r);
        return;
    }
    r->kind = SITE_KIND;
    bool there = arena_alloc(r->arena, 2 * BUDGET) != NULL;
    respond(r, there ? STR("made of memory") : STR("made of nothing"));
}

static void told(void *ctx, const struct http_request *r)
{
    struct scarce *s = CONTAINER_OF((struct site *)ctx, struct scarce, site);
    ck_assert_uint_gt(r->id, 0);
    s->told++;
}

static void open_scarce(struct scarce *s, size_t max, size_t max_body)
{
    struct http_server_settings set = settings(&s->site);
    s->budget = (struct mem_budget){.max = max};
    s->told = 0;
    set.max_body = max_body;
    set.memory = &s->budget;
    set.handle = scarce_handle;
    set.no_memory = told;
    set.stall_ms = 1;
    open_with(&s->site, &set);
}

static void close_scarce(struct scarce *s)
{
    /* The server first reads what was sent, some KiB a turn. */
    for (int turn = 0; turn < 2000 && s->site.counts.open > 0; turn++)
        run_turns(s->site.loop, 1);
    ck_assert_uint_eq(s->site.counts.open, 0);
    ck_assert_uint_eq(s->budget.used, 0);
    close_site(&s->site);
    ck_assert_uint_eq(s->budget.used, 0);
}

static void dial_scarce(struct scarce *s, struct peer *p)
{
    dial(&s->site, p);
}

#define REFUSAL "HTTP/1.1 503 Service Unavailable\r\n"

START_TEST(a_body_beyond_it_is_refused)
{
    struct scarce s;
    struct peer p;
    struct peer q;
    struct buf memory;
    struct str body = letters(&memory, LARGE);
    open_scarce(&s, BUDGET, 8 * MIB);
    dial_scarce(&s, &p);
    dial_scarce(&s, &q);
    post(&p, "/hold", body);
    await_held(&s.site, 1);
    ck_assert_uint_ge(s.budget.used, LARGE - LIMIT_REQUEST_FREE);
    ck_assert_uint_le(s.budget.used, BUDGET);
    post(&q, "/echo", body);
    peer_await(&q, "memory-budget is spent", 1);
    ck_assert_uint_eq(peer_count(&q, REFUSAL), 1);
    ck_assert_uint_eq(peer_count(&q, "Retry-After: 1\r\n"), 1);
    ck_assert_uint_eq(s.site.counts.no_memory, 1);
    ck_assert_uint_eq(s.told, 1);
    ck_assert_uint_eq(s.site.handled, 1);
    /* The connection stays usable, and small requests are served. */
    post(&q, "/echo", STR("small"));
    peer_await(&q, "small", 1);
    respond(s.site.held[0], STR("held"));
    peer_await(&p, "held", 1);
    /* The memory is free again. */
    post(&q, "/method", body);
    peer_await(&q, "POST", 1);
    ck_assert_uint_eq(s.site.counts.no_memory, 1);
    peer_close(&p);
    peer_close(&q);
    buf_done(&memory);
    close_scarce(&s);
}

END_TEST

/* Answers and what handlers allocate count for the same budget. */
START_TEST(what_a_handler_makes_is_refused_too)
{
    struct scarce s;
    struct peer p;
    struct buf memory;
    struct str body = letters(&memory, LARGE);
    open_scarce(&s, BUDGET, 8 * MIB);
    dial_scarce(&s, &p);
    if (_i == 0)
        post(&p, "/echo", body);
    else
        get(&p, "/arena");
    peer_await(&p, "memory-budget is spent", 1);
    ck_assert_uint_eq(peer_count(&p, REFUSAL), 1);
    ck_assert_uint_eq(peer_count(&p, "made of nothing"), 0);
    ck_assert_uint_eq(s.site.last_status, 503);
    get(&p, "/method");
    peer_await(&p, "GET", 1);
    peer_close(&p);
    buf_done(&memory);
    close_scarce(&s);
}

END_TEST

/* A connection that stalls within a body or an answer while it holds needed memory is cut. */
START_TEST(who_stalls_with_memory_gives_way)
{
    struct scarce s;
    struct peer idle;
    struct peer p;
    struct buf memory;
    struct str body = letters(&memory, 7 * LARGE);
    open_scarce(&s, 8 * LARGE, 8 * MIB);
    dial_scarce(&s, &idle);
    dial_scarce(&s, &p);
    if (_i == 0) {
        peer_send(&idle, STR("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n"));
        peer_send(&idle, body);
    } else {
        idle.deaf = true;
        post(&idle, "/hold", STR(""));
        await_held(&s.site, 1);
        respond(s.site.held[0], body);
    }
    run_turns(s.site.loop, 400);
    while (s.site.counts.open == 2) {
        buf_clear(&p.in, 0);
        post(&p, "/method", body);
        peer_await(&p, "HTTP/1.1 ", 1);
        ck_assert_uint_eq(peer_count(&p, REFUSAL), 1);
    }
    buf_clear(&p.in, 0);
    post(&p, "/method", body);
    peer_await(&p, "POST", 1);
    peer_close(&idle);
    peer_close(&p);
    buf_done(&memory);
    close_scarce(&s);
}

END_TEST

#define CROWD 60

static bool all_answered(void *ctx)
{
    const struct site *s = ctx;
    return s->answered + s->answered_alone >= s->wanted;
}

/* Many requests at once, of which few fit. */
START_TEST(a_crowd_is_served_or_refused)
{
    struct scarce s;
    struct peer p[CROWD];
    struct buf memory;
    struct str body = letters(&memory, LARGE / 2);
    open_scarce(&s, 4 * BUDGET, 8 * MIB);
    for (int i = 0; i < CROWD; i++) {
        dial_scarce(&s, &p[i]);
        post(&p[i], i % 2 == 0 ? "/echo" : "/method", body);
    }
    s.site.wanted = CROWD;
    struct wait w = wait_begin(s.site.loop, HERE("the answers to the crowd"));
    while (!all_answered(&s.site)) {
        wait_turn(&w);
        ck_assert_uint_le(s.budget.used, s.budget.max);
    }
    ck_assert_uint_eq(s.told, s.site.counts.no_memory);
    ck_assert_uint_lt(s.told, CROWD);
    run_turns(s.site.loop, TURNS);
    for (int i = 0; i < CROWD; i++) {
        peer_await(&p[i], "HTTP/1.1 ", 1);
        ck_assert_uint_eq(peer_count(&p[i], "HTTP/1.1 200 OK") + peer_count(&p[i], REFUSAL), 1);
        peer_close(&p[i]);
    }
    buf_done(&memory);
    close_scarce(&s);
}

END_TEST

static void reset(struct peer *p)
{
    struct linger hard = {.l_onoff = 1};
    ck_assert_int_eq(setsockopt(p->fd.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    peer_close(p);
}

static void one_life(struct scarce *s, struct peer *p, struct str body, uint64_t *seed)
{
    static const char *const paths[] = {"/echo",   "/hold",  "/hop",
                                        "/method", "/arena", "/stream/endless"};
    char head[256];
    size_t n = seeded_draw(seed, (uint32_t)body.n);
    size_t sent = seeded_draw(seed, 3) == 0 ? seeded_draw(seed, (uint32_t)n + 1) : n;
    const char *path = paths[seeded_draw(seed, COUNT_OF(paths))];
    if (strcmp(path, "/stream/endless") == 0 && s->site.n_tellers == STREAMS_MAX)
        path = "/echo";
    dial_scarce(s, p);
    p->deaf = seeded_draw(seed, 4) == 0;
    (void)snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                   path, n);
    peer_send(p, str_of(head));
    peer_send(p, (struct str){body.p, sent});
}

/* However requests end, nothing of them stays counted. */
START_TEST(nothing_stays_counted_when_all_are_gone)
{
    struct scarce s;
    struct peer p[20];
    struct buf memory;
    uint64_t seed = (uint64_t)_i + 1;
    struct str body = letters(&memory, 9 * MIB / 8); /* some bodies are larger than max_body */
    open_scarce(&s, (2U << seeded_draw(&seed, 4)) * (MIB / 8), MIB);
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        one_life(&s, &p[i], body, &seed);
        run_turns(s.site.loop, (int)seeded_draw(&seed, 40));
        ck_assert_uint_le(s.budget.used, s.budget.max);
    }
    for (size_t i = 0; i < s.site.n_held; i++)
        if (seeded_draw(&seed, 2) == 0) {
            respond(s.site.held[i], body);
            s.site.held[i] = NULL;
        }
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        run_turns(s.site.loop, (int)seeded_draw(&seed, 10));
        ck_assert_uint_le(s.budget.used, s.budget.max);
        if (seeded_draw(&seed, 2) == 0)
            reset(&p[i]);
        else
            peer_close(&p[i]);
    }
    if (seeded_draw(&seed, 4) == 0) { /* with handlers that have not answered, and open streams */
        close_site(&s.site);
        ck_assert_uint_eq(s.budget.used, 0);
    } else {
        for (size_t i = 0, turn = 0; turn < 2000 && s.site.counts.open > 0; turn++) {
            run_turns(s.site.loop, 1);
            for (; i < s.site.n_held; i++)
                if (s.site.held[i] != NULL)
                    respond(s.site.held[i], body);
        }
        close_scarce(&s);
    }
    buf_done(&memory);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("http_memory");
    TCase *c = tcase_create("http_memory");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_body_beyond_it_is_refused);
    tcase_add_loop_test(c, what_a_handler_makes_is_refused_too, 0, 2);
    tcase_add_loop_test(c, who_stalls_with_memory_gives_way, 0, 2);
    tcase_add_test(c, a_crowd_is_served_or_refused);
    tcase_add_loop_test(c, nothing_stays_counted_when_all_are_gone, 0, 12);
    suite_add_tcase(s, c);
    return unit_main(s);
}
