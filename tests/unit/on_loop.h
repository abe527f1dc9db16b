/*
 * Runs a loop until a condition holds. A wait that does not end fails with its own name.
 *
 * Two limits end a wait. First, the loop may sleep for WAIT_MOST_MS in all: this catches a lost
 * wake-up and a wait that only a periodic timer keeps awake. One sleep counts as at most one
 * second, and work within a turn does not count, so a slow machine fails no test. Second, the loop
 * may turn WAIT_MOST_TURNS times: this catches a loop that spins. Nothing here allocates, because a
 * test may count allocations.
 */
#pragma once

#ifndef REAL_CLOCK /* defined by tests with a second thread, which has a clock of its own */
#    include "idle_clock.h"
#endif
#include "io/loop.h"
#include "unit.h"

#define WAIT_SLEEP_MS   1000
#define WAIT_MOST_MS    15000
#define WAIT_MOST_TURNS 50000

/* The name of a wait, for the message when it does not end. */
struct here {
    const char *file;
    int line;
    const char *what;
};

#define HERE(what) ((struct here){__FILE__, __LINE__, (what)})

struct wait {
    struct loop_hook hook;
    struct loop *loop;
    bool (*done)(void *ctx); /* NULL: one turn */
    void *ctx;
    struct here here;
    uint64_t asleep_at_ms;
    uint64_t slept_ms;
    unsigned turns;
};

static inline void wait_bound(const struct wait *w)
{
    /* Not ck_assert: it writes to check's pipe even when it holds. */
    if (w->slept_ms >= WAIT_MOST_MS)
        ck_abort_msg("%s:%d: %s does not end: the loop slept for %u ms in %u turns", w->here.file,
                     w->here.line, w->here.what, (unsigned)w->slept_ms, w->turns);
    if (w->turns >= WAIT_MOST_TURNS)
        ck_abort_msg("%s:%d: %s does not end: the loop spins, %u turns in which it slept for %u ms",
                     w->here.file, w->here.line, w->here.what, w->turns, (unsigned)w->slept_ms);
}

static inline uint64_t wait_prepare(struct loop_hook *h, uint64_t now_ms)
{
    struct wait *w = CONTAINER_OF(h, struct wait, hook);
    w->asleep_at_ms = now_ms;
    bool done = w->done != NULL && w->done(w->ctx);
    if (done || w->done == NULL)
        loop_stop(w->loop);
    if (done)
        return 0;
    wait_bound(w);
    return now_ms + WAIT_SLEEP_MS;
}

static inline void wait_check(struct loop_hook *h, uint64_t now_ms)
{
    struct wait *w = CONTAINER_OF(h, struct wait, hook);
    w->slept_ms += MIN_OF(now_ms - w->asleep_at_ms, (uint64_t)WAIT_SLEEP_MS);
    w->turns++;
}

static inline struct wait wait_begin(struct loop *l, struct here here)
{
    return (struct wait){
        .hook = {.prepare = wait_prepare, .check = wait_check}, .loop = l, .here = here};
}

static inline void wait_turn(struct wait *w)
{
    struct err e = ERR_INIT;
    loop_hook_add(w->loop, &w->hook);
    ck_assert_ok(loop_run(w->loop, &e), &e);
    loop_hook_del(w->loop, &w->hook);
}

static inline void run_until_here(struct loop *l, bool (*done)(void *ctx), void *ctx,
                                  struct here here)
{
    struct wait w = wait_begin(l, here);
    w.done = done;
    w.ctx = ctx;
    wait_turn(&w);
}

/* Runs turns until done(ctx) holds; checks it within the turn, which is the last one. */
#define run_until(l, done, ctx) run_until_here(l, done, ctx, HERE("run_until(" #done ")"))

/* The same with an expression, checked between turns. */
#define run_while(l, cond)                                               \
    do {                                                                 \
        struct wait wait_ = wait_begin(l, HERE("run_while(" #cond ")")); \
        while (cond)                                                     \
            wait_turn(&wait_);                                           \
    } while (0)

static inline bool until_flag(void *ctx)
{
    return *(const bool *)ctx;
}

static inline void run_turns(struct loop *l, int n)
{
    bool now = true;
    while (n-- > 0)
        run_until(l, until_flag, &now);
}

static inline struct loop *loop_make(void)
{
    struct err e = ERR_INIT;
    struct loop *l = NULL;
    ck_assert_ok(loop_new(&l, &e), &e);
    return l;
}
