/* Runs a loop until something is so. Too long is for check's own timeout to find. */
#pragma once

#include "loop.h"
#include "unit.h"

struct until {
    struct loop_hook hook;
    struct loop *loop;
    bool (*done)(void *ctx);
    void *ctx;
};

static inline uint64_t until_prepare(struct loop_hook *h, uint64_t now_ms)
{
    struct until *u = CONTAINER_OF(h, struct until, hook);
    (void)now_ms;
    if (!u->done(u->ctx))
        return UINT64_MAX;
    loop_stop(u->loop);
    return 0;
}

static inline void until_check(struct loop_hook *h, uint64_t now_ms)
{
    (void)h;
    (void)now_ms;
}

static inline void run_until(struct loop *l, bool (*done)(void *ctx), void *ctx)
{
    struct err e = ERR_INIT;
    struct until u = {.hook = {.prepare = until_prepare, .check = until_check},
                      .loop = l,
                      .done = done,
                      .ctx = ctx};
    loop_hook_add(l, &u.hook);
    ck_assert_ok(loop_run(l, &e), &e);
    loop_hook_del(l, &u.hook);
}

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
