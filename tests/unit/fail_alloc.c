/* Failing allocations; see fail_alloc.h. */
#include "fail_alloc.h"

#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#define STEPS_MAX 100000

static _Thread_local struct {
    enum fail_alloc_mode mode;
    size_t nth;
    size_t count;
    bool hit;
} state;

static atomic_size_t elsewhere; /* still to fail */

/* Names that the linker's option --wrap requires. */
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);

static bool fails_now(void)
{
    if (atomic_load(&elsewhere) > 0 && gettid() != getpid()) {
        atomic_fetch_sub(&elsewhere, 1); /* one other thread at most */
        errno = ENOMEM;
        return true;
    }
    state.count++;
    bool fails = (state.mode == FAIL_ONCE && state.count == state.nth) ||
                 (state.mode == FAIL_FROM_THEN_ON && state.count >= state.nth);
    if (fails) {
        state.hit = true;
        errno = ENOMEM;
    }
    return fails;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __real_realloc(p, size);
}

void fail_alloc_arm(enum fail_alloc_mode mode, size_t nth)
{
    ck_assert(mode == FAIL_NEVER || nth > 0);
    state.mode = mode;
    state.nth = nth;
    state.count = 0;
    state.hit = false;
}

void fail_alloc_disarm(void)
{
    state.mode = FAIL_NEVER;
}

size_t fail_alloc_count(void)
{
    return state.count;
}

bool fail_alloc_hit(void)
{
    return state.hit;
}

void fail_alloc_elsewhere(size_t n)
{
    atomic_store(&elsewhere, n);
}

size_t fail_alloc_elsewhere_left(void)
{
    return atomic_load(&elsewhere);
}

static size_t staircase(enum fail_alloc_mode mode, enum errc (*scenario)(void *ctx), void *ctx)
{
    for (size_t nth = 1; nth <= STEPS_MAX; nth++) {
        fail_alloc_arm(mode, nth);
        enum errc code = scenario(ctx);
        fail_alloc_disarm();
        if (!state.hit) {
            ck_assert_msg(code == OK, "no allocation failed, but: %s", errc_name(code));
            return nth - 1;
        }
        ck_assert_msg(code == ERR_NOMEM, "allocation %zu failed (%s), but: %s", nth,
                      mode == FAIL_ONCE ? "once" : "and all later", errc_name(code));
    }
    ck_abort_msg("still failing after %d allocations", STEPS_MAX);
}

size_t fail_alloc_each(enum errc (*scenario)(void *ctx), void *ctx)
{
    size_t n = staircase(FAIL_ONCE, scenario, ctx);
    ck_assert_uint_eq(staircase(FAIL_FROM_THEN_ON, scenario, ctx), n);
    return n;
}
