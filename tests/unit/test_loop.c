/* The event loop: timers, descriptors, deferred work, signals, and frees within callbacks. */
#include "on_loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Each callback appends its letter. */
struct trace {
    struct loop *loop;
    char text[128];
    size_t n;
};

static void mark(struct trace *t, char c)
{
    ck_assert(t->n + 1 < sizeof(t->text));
    t->text[t->n++] = c;
    t->text[t->n] = '\0';
}

struct in_order {
    size_t n;
    size_t fired;
};

struct alarm {
    struct timer timer;
    struct trace *trace;
    char name;
    struct alarm *cancels;
    struct alarm *arms;
    int again;
    bool seen;
    size_t rank;
    struct in_order *check;
};

static void alarm_fire(struct timer *t)
{
    struct alarm *a = CONTAINER_OF(t, struct alarm, timer);
    ck_assert(!timer_armed(t));
    mark(a->trace, a->name);
    if (a->cancels != NULL)
        timer_cancel(&a->cancels->timer);
    if (a->arms != NULL)
        timer_arm(a->trace->loop, &a->arms->timer, 0);
    if (a->again-- > 0)
        timer_arm(a->trace->loop, t, 0);
    if (a->name == '.')
        loop_stop(a->trace->loop);
}

static struct alarm alarm_make(struct trace *t, char name)
{
    return (struct alarm){.timer = {.fire = alarm_fire}, .trace = t, .name = name};
}

static void run(struct loop *l)
{
    struct err e = ERR_INIT;
    ck_assert_ok(loop_run(l, &e), &e);
}

static bool all_fired(void *ctx)
{
    const struct in_order *check = ctx;
    return check->fired == check->n;
}

static bool before(const struct timer *a, const struct timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void alarm_in_order(struct timer *t)
{
    struct alarm *a = CONTAINER_OF(t, struct alarm, timer);
    ck_assert_uint_eq(a->rank, a->check->fired);
    a->check->fired++;
}

TEST(timers_fire_in_order_of_time_then_of_arming)
{
    struct trace t = {.loop = loop_make()};
    struct alarm a = alarm_make(&t, 'a');
    struct alarm b = alarm_make(&t, 'b');
    struct alarm c = alarm_make(&t, 'c');
    struct alarm d = alarm_make(&t, 'd');
    struct alarm end = alarm_make(&t, '.');
    timer_arm(t.loop, &end.timer, 9);
    timer_arm(t.loop, &a.timer, 5);
    timer_arm(t.loop, &b.timer, 3);
    timer_arm(t.loop, &c.timer, 5);
    timer_arm(t.loop, &d.timer, 7);
    timer_arm(t.loop, &d.timer, 3); /* moved */
    run(t.loop);
    ck_assert_str_eq(t.text, "bdac.");
    loop_free(t.loop);
}

TEST(a_timer_of_zero_waits_for_the_next_turn)
{
    struct trace t = {.loop = loop_make()};
    struct alarm a = alarm_make(&t, 'a');
    struct alarm b = alarm_make(&t, 'b');
    struct alarm c = alarm_make(&t, 'c');
    struct alarm end = alarm_make(&t, '.');
    a.arms = &c;
    a.again = 2;
    timer_arm(t.loop, &a.timer, 0);
    timer_arm(t.loop, &b.timer, 0);
    run_turns(t.loop, 1);
    ck_assert_str_eq(t.text, "ab");
    run_turns(t.loop, 1);
    ck_assert_str_eq(t.text, "abca");
    timer_arm(t.loop, &end.timer, 0);
    run(t.loop);
    ck_assert_str_eq(t.text, "abcaca.");
    loop_free(t.loop);
}

TEST(a_timer_may_cancel_one_that_is_due)
{
    struct trace t = {.loop = loop_make()};
    struct alarm a = alarm_make(&t, 'a');
    struct alarm b = alarm_make(&t, 'b');
    struct alarm end = alarm_make(&t, '.');
    a.cancels = &b;
    timer_arm(t.loop, &a.timer, 0);
    timer_arm(t.loop, &b.timer, 0);
    timer_arm(t.loop, &end.timer, 1);
    run(t.loop);
    ck_assert_str_eq(t.text, "a.");
    ck_assert(!timer_armed(&b.timer));
    timer_cancel(&b.timer);
    loop_free(t.loop);
}

TEST(a_timer_far_away_does_not_overflow)
{
    struct trace t = {.loop = loop_make()};
    struct alarm never = alarm_make(&t, 'n');
    struct alarm end = alarm_make(&t, '.');
    timer_arm(t.loop, &never.timer, UINT64_MAX);
    timer_arm(t.loop, &end.timer, 1);
    run(t.loop);
    ck_assert_str_eq(t.text, ".");
    ck_assert(timer_armed(&never.timer));
    loop_free(t.loop);
    ck_assert(!timer_armed(&never.timer));
}

/* The order must equal that of a search of an array for the smallest (due, order). */
TEST(the_heap_agrees_with_a_sorted_array)
{
    enum {
        N = 300,
        STEPS = 20000
    };
    static struct alarm alarms[N];
    struct trace t = {.loop = loop_make()};
    uint64_t rng = 12345;
    for (int i = 0; i < N; i++)
        alarms[i] = (struct alarm){.timer = {.fire = alarm_in_order}, .trace = &t};
    for (int step = 0; step < STEPS; step++) {
        rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407;
        struct alarm *a = &alarms[(rng >> 33) % N];
        if ((rng >> 60) < 5)
            timer_cancel(&a->timer);
        else
            timer_arm(t.loop, &a->timer, (rng >> 40) % 20);
    }
    struct in_order check = {0};
    for (;;) {
        struct alarm *least = NULL;
        for (int i = 0; i < N; i++)
            if (timer_armed(&alarms[i].timer) && !alarms[i].seen &&
                (least == NULL || before(&alarms[i].timer, &least->timer)))
                least = &alarms[i];
        if (least == NULL)
            break;
        least->seen = true;
        least->check = &check;
        least->rank = check.n++;
    }
    ck_assert_uint_gt(check.n, N / 2);
    run_until(t.loop, all_fired, &check);
    loop_free(t.loop);
}

struct work {
    struct deferred deferred;
    struct trace *trace;
    char name;
    struct work *adds;
    struct work *cancels;
    int again;
};

static void work_run(struct deferred *d)
{
    struct work *w = CONTAINER_OF(d, struct work, deferred);
    mark(w->trace, w->name);
    if (w->adds != NULL)
        loop_defer(w->trace->loop, &w->adds->deferred);
    if (w->cancels != NULL)
        deferred_cancel(&w->cancels->deferred);
    if (w->again-- > 0)
        loop_defer(w->trace->loop, d);
}

static struct work work_make(struct trace *t, char name)
{
    return (struct work){.deferred = {.run = work_run}, .trace = t, .name = name};
}

TEST(deferred_work_runs_in_order_once)
{
    struct trace t = {.loop = loop_make()};
    struct work a = work_make(&t, 'a');
    struct work b = work_make(&t, 'b');
    struct work c = work_make(&t, 'c');
    struct work d = work_make(&t, 'd');
    a.adds = &d;
    a.cancels = &b;
    loop_defer(t.loop, &a.deferred);
    loop_defer(t.loop, &b.deferred);
    loop_defer(t.loop, &a.deferred);
    loop_defer(t.loop, &c.deferred);
    run_turns(t.loop, 1);
    ck_assert_str_eq(t.text, "acd");
    deferred_cancel(&a.deferred);
    loop_free(t.loop);
}

TEST(deferred_work_does_not_starve_descriptors)
{
    struct trace t = {.loop = loop_make()};
    struct work w = work_make(&t, 'w');
    w.again = 20;
    loop_defer(t.loop, &w.deferred);
    run_turns(t.loop, 1);
    ck_assert_uint_eq(t.n, 8);
    run_turns(t.loop, 1);
    ck_assert_uint_eq(t.n, 16);
    run_turns(t.loop, 2);
    ck_assert_uint_eq(t.n, 21);
    loop_free(t.loop);
}

struct end {
    struct loop_fd fd;
    struct trace *trace;
    char name;
    struct end *deletes; /* and frees */
    struct end *narrows;
};

static void end_ready(struct loop_fd *f, uint32_t events)
{
    struct end *x = CONTAINER_OF(f, struct end, fd);
    ck_assert_uint_ne(events, 0);
    mark(x->trace, x->name);
    if (x->narrows != NULL)
        ck_assert_int_eq(loop_fd_set(&x->narrows->fd, 0), OK);
    if (x->deletes != NULL) {
        loop_fd_del(&x->deletes->fd);
        ck_assert_int_eq(close(x->deletes->fd.fd), 0);
        free(x->deletes);
        x->deletes = NULL;
    }
}

static struct end *end_make(struct trace *t, char name, int fd, uint32_t events)
{
    struct err e = ERR_INIT;
    struct end *x = calloc(1, sizeof(*x));
    ck_assert_ptr_nonnull(x);
    *x = (struct end){
        .fd = {.fd = fd, .events = events, .ready = end_ready}, .trace = t, .name = name};
    ck_assert_ok(loop_fd_add(t->loop, &x->fd, &e), &e);
    return x;
}

static void pipe_make(int ends[2])
{
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
}

/* Two descriptors are ready in one batch; the first callback frees the other one, whichever it
 * is. */
TEST(a_callback_may_free_one_that_is_ready_too)
{
    struct trace t = {.loop = loop_make()};
    int one[2];
    int two[2];
    pipe_make(one);
    pipe_make(two);
    struct end *a = end_make(&t, 'a', one[1], EPOLLOUT);
    struct end *b = end_make(&t, 'b', two[1], EPOLLOUT);
    a->deletes = b;
    b->deletes = a;
    run_turns(t.loop, 1);
    ck_assert_uint_eq(t.n, 1);
    struct end *left = t.text[0] == 'a' ? a : b;
    run_turns(t.loop, 1);
    ck_assert_uint_eq(t.n, 2);
    ck_assert_int_eq(t.text[0], t.text[1]);
    loop_fd_del(&left->fd);
    loop_fd_del(&left->fd);
    (void)close(left->fd.fd);
    free(left);
    (void)close(one[0]);
    (void)close(two[0]);
    loop_free(t.loop);
}

TEST(a_callback_may_narrow_one_that_is_ready_too)
{
    struct trace t = {.loop = loop_make()};
    int one[2];
    int two[2];
    pipe_make(one);
    pipe_make(two);
    struct end *a = end_make(&t, 'a', one[1], EPOLLOUT);
    struct end *b = end_make(&t, 'b', two[1], EPOLLOUT);
    a->narrows = b;
    b->narrows = a;
    run_turns(t.loop, 3);
    ck_assert_uint_eq(t.n, 3);
    ck_assert(strcmp(t.text, "aaa") == 0 || strcmp(t.text, "bbb") == 0);
    loop_fd_del(&a->fd);
    loop_fd_del(&b->fd);
    for (int i = 0; i < 2; i++) {
        (void)close(one[i]);
        (void)close(two[i]);
    }
    free(a);
    free(b);
    loop_free(t.loop);
}

TEST(a_bad_descriptor_is_an_error)
{
    struct loop *l = loop_make();
    struct err e = ERR_INIT;
    struct loop_fd f = {.fd = -1, .events = EPOLLIN, .ready = end_ready};
    ck_assert_int_eq(loop_fd_add(l, &f, &e), ERR_INTERNAL);
    ck_assert_str_eq(e.text, "cannot watch descriptor -1: Bad file descriptor");
    loop_fd_del(&f);
    loop_free(l);
}

struct visitor {
    struct loop_hook hook;
    struct trace *trace;
    char name;  /* marks check */
    char upper; /* marks prepare */
    struct visitor *deletes;
};

static uint64_t visitor_prepare(struct loop_hook *h, uint64_t now_ms)
{
    struct visitor *v = CONTAINER_OF(h, struct visitor, hook);
    mark(v->trace, v->upper);
    return now_ms;
}

static void visitor_check(struct loop_hook *h, uint64_t now_ms)
{
    struct visitor *v = CONTAINER_OF(h, struct visitor, hook);
    ck_assert_uint_eq(now_ms, loop_now_ms(v->trace->loop));
    mark(v->trace, v->name);
    if (v->deletes != NULL)
        loop_hook_del(v->trace->loop, &v->deletes->hook);
}

TEST(hooks_run_in_order_and_may_remove_each_other)
{
    struct trace t = {.loop = loop_make()};
    struct visitor v[3];
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        v[i] = (struct visitor){.hook = {.prepare = visitor_prepare, .check = visitor_check},
                                .trace = &t,
                                .name = "abc"[i],
                                .upper = "ABC"[i]};
        loop_hook_add(t.loop, &v[i].hook);
    }
    v[0].deletes = &v[1];
    run_turns(t.loop, 1);
    ck_assert_str_eq(t.text, "ABCac");
    run_turns(t.loop, 1);
    ck_assert_str_eq(t.text, "ABCacACac");
    loop_hook_del(t.loop, &v[1].hook);
    loop_hook_del(t.loop, &v[0].hook);
    loop_hook_del(t.loop, &v[2].hook);
    loop_free(t.loop);
}

static void on_signal(void *ctx, int signo)
{
    struct trace *t = ctx;
    mark(t, "ht"[signo == SIGTERM]);
    if (t->n == 2)
        loop_stop(t->loop);
}

TEST(signals_arrive_in_the_loop)
{
    struct trace t = {.loop = loop_make()};
    struct err e = ERR_INIT;
    ck_assert_ok(loop_signal(t.loop, SIGTERM, on_signal, &t, &e), &e);
    ck_assert_ok(loop_signal(t.loop, SIGHUP, on_signal, &t, &e), &e);
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert_int_eq(raise(SIGHUP), 0);
    ck_assert_uint_eq(t.n, 0);
    run(t.loop);
    ck_assert_uint_eq(t.n, 2);
    ck_assert(strchr(t.text, 't') != NULL && strchr(t.text, 'h') != NULL);
    loop_free(t.loop);
}

TEST(stop_before_run_lets_no_turn_begin)
{
    struct trace t = {.loop = loop_make()};
    struct work w = work_make(&t, 'w');
    loop_defer(t.loop, &w.deferred);
    loop_stop(t.loop);
    run(t.loop);
    ck_assert_uint_eq(t.n, 0);
    run_turns(t.loop, 1);
    ck_assert_str_eq(t.text, "w");
    loop_free(t.loop);
}

TEST(random_numbers_differ)
{
    struct loop *l = loop_make();
    uint64_t seen[100];
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        seen[i] = loop_random(l);
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(seen[i], seen[j]);
    }
    ck_assert_uint_gt(loop_wall_ns(l), UINT64_C(1600000000) * 1000000000);
    loop_free(l);
    loop_free(NULL);
}
