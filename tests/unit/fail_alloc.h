/*
 * Makes cardpack's allocations fail on purpose. Every unit test is linked with --wrap, so the
 * calloc and realloc calls of mem.c come here; only mem.c makes such calls, and those of libraries
 * do not come here. Only allocations of the thread that arms it are counted and fail. Code must
 * survive two modes: one allocation fails (the next one succeeds), or all from then on fail.
 *
 * static enum errc scenario(void *ctx) { ...ERR_NOMEM exactly where an allocation failed... }
 * fail_alloc_each(scenario, &ctx);
 *
 * To check a budget of allocations: arm with FAIL_NEVER, do the work, compare fail_alloc_count().
 */
#pragma once

#include "base/err.h"

enum fail_alloc_mode {
    FAIL_NEVER, /* only counts */
    FAIL_ONCE,
    FAIL_FROM_THEN_ON,
};

/* From now on the nth allocation fails, counted from 1. Resets the count to 0. */
void fail_alloc_arm(enum fail_alloc_mode mode, size_t nth);
void fail_alloc_disarm(void);

/* Allocations since it was armed, failed ones included. */
size_t fail_alloc_count(void);

/* Whether an allocation has failed since it was armed. */
bool fail_alloc_hit(void);

/*
 * Runs the scenario with its 1st, 2nd, ... allocation failing, in both modes, until a run does not
 * reach the failing allocation. The scenario must return ERR_NOMEM if and only if an allocation
 * failed, and free what it allocated (the sanitizer finds leaks). Returns how many allocations it
 * makes.
 */
size_t fail_alloc_each(enum errc (*scenario)(void *ctx), void *ctx);

/* The next n allocations of other threads than the test's fail. */
void fail_alloc_elsewhere(size_t n);
size_t fail_alloc_elsewhere_left(void);
