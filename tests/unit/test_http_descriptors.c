/* The HTTP server in a process without a free descriptor. */
#include "http_fixture.h"

#include <sys/resource.h>

#define FREE_MAX 4096

/* Takes all descriptors below the limit; each test has a process and a limit of its own. */
struct full {
    int fds[FREE_MAX];
    size_t n;
};

static void fill(struct full *f)
{
    struct rlimit r;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = MIN_OF(r.rlim_max, (rlim_t)FREE_MAX);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    f->n = 0;
    int fd;
    while ((fd = dup(STDERR_FILENO)) >= 0)
        f->fds[f->n++] = fd;
    ck_assert_int_eq(errno, EMFILE);
    ck_assert_uint_gt(f->n, 10);
}

static void leave(struct full *f, size_t n)
{
    while (n-- > 0)
        ck_assert_int_eq(close(f->fds[--f->n]), 0);
}

/* As dial, but for a process without free descriptors. */
static void dial_full(struct http_fixture *s, struct full *f, struct raw_conn *p)
{
    leave(f, 1);
    dial(s, p);
}

struct span {
    struct loop_hook hook;
    struct timer timer;
    size_t turns;
};

#define SPIN 1000

static uint64_t span_prepare(struct loop_hook *h, uint64_t now_ms)
{
    (void)now_ms;
    CONTAINER_OF(h, struct span, hook)->turns++;
    return UINT64_MAX;
}

static void span_check(struct loop_hook *h, uint64_t now_ms)
{
    (void)h;
    (void)now_ms;
}

static void over(struct timer *t)
{
    t->order = 0;
}

static bool is_over(void *ctx)
{
    struct span *p = ctx;
    return !timer_armed(&p->timer) || p->turns > SPIN;
}

/* The number of loop turns within this time. A loop that sleeps makes few turns, however slow they
 * are. */
static size_t turns_within(struct http_fixture *s, uint64_t ms)
{
    struct span p = {.hook = {.prepare = span_prepare, .check = span_check},
                     .timer = {.fire = over}};
    loop_hook_add(s->loop, &p.hook);
    timer_arm(s->loop, &p.timer, ms);
    run_until(s->loop, is_over, &p);
    timer_cancel(&p.timer);
    loop_hook_del(s->loop, &p.hook);
    return p.turns;
}

/* A client waits in the listen queue and can't be accepted: the loop must not spin. */
TEST(the_first_client_waits_without_a_spin)
{
    struct http_fixture s;
    struct full f;
    struct raw_conn p;
    http_fixture_open(&s);
    fill(&f);
    dial_full(&s, &f, &p);
    post(&p, "/echo", STR("served"));
    ck_assert_uint_lt(turns_within(&s, 350), 20);
    ck_assert_uint_eq(s.handled, 0);
    leave(&f, 1);
    raw_conn_await(&p, "served", 1);
    /* The client's next request does not wait for a retry. */
    post(&p, "/echo", STR("again"));
    raw_conn_await(&p, "again", 1);
    ck_assert_uint_lt(turns_within(&s, 350), 5);
    leave(&f, f.n);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

/* libmicrohttpd accepts nothing until one of its connections ends: an idle one is closed. */
TEST(a_connection_that_rests_gives_way)
{
    struct http_fixture s;
    struct full f;
    struct raw_conn kept;
    struct raw_conn late[3];
    http_fixture_open(&s);
    dial(&s, &kept);
    post(&kept, "/echo", STR("first"));
    raw_conn_await(&kept, "first", 1);
    fill(&f);
    for (size_t i = 0; i < COUNT_OF(late); i++) {
        dial_full(&s, &f, &late[i]);
        post(&late[i], "/echo", STR("served"));
        raw_conn_await(&late[i], "served", 1);
        struct raw_conn *before = i == 0 ? &kept : &late[i - 1];
        raw_conn_await_end(before);
    }
    ck_assert_uint_eq(s.counts.open, 1);
    leave(&f, f.n);
    raw_conn_close(&kept);
    for (size_t i = 0; i < COUNT_OF(late); i++)
        raw_conn_close(&late[i]);
    http_fixture_close(&s);
}

/* A connection with a handler at work is not cut: the next client waits for its end. */
TEST(a_busy_connection_is_not_cut)
{
    struct http_fixture s;
    struct full f;
    struct raw_conn busy;
    struct raw_conn late;
    http_fixture_open(&s);
    dial(&s, &busy);
    post(&busy, "/hold", STR("held"));
    await_held(&s, 1);
    fill(&f);
    dial_full(&s, &f, &late);
    post(&late, "/echo", STR("served"));
    ck_assert_uint_lt(turns_within(&s, 350), 20);
    ck_assert_uint_eq(s.handled, 1);
    ck_assert(!busy.closed);
    respond(s.held[0], s.held[0]->body);
    raw_conn_await(&busy, "held", 1);
    raw_conn_await(&late, "served", 1);
    leave(&f, f.n);
    raw_conn_close(&busy);
    raw_conn_close(&late);
    http_fixture_close(&s);
}

/* When the server stops listening, nothing remains of a client that could not be accepted. */
TEST(a_server_ends_while_a_client_waits)
{
    struct http_fixture s;
    struct full f;
    struct raw_conn p;
    http_fixture_open(&s);
    fill(&f);
    dial_full(&s, &f, &p);
    ck_assert_uint_lt(turns_within(&s, 150), 20);
    http_fixture_close(&s);
    leave(&f, f.n);
    ck_assert_int_eq(close(p.fd.fd), 0);
    buf_done(&p.in);
    buf_done(&p.out);
}
