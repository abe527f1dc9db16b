/*
 * Makes our allocations fail on purpose. Every unit test is linked with --wrap, so calloc and
 * realloc of mem.c, which nobody else calls, come through here; libraries' own do not. Memory runs
 * out in two ways, and code must survive both: once (the next call has memory again), or from then
 * on.
 *
 *     static enum errc scenario(void *ctx) { ...ERR_NOMEM exactly where an allocation failed... }
 *     fail_alloc_each(scenario, &ctx);
 *
 * The count serves budgets as well: arm with FAIL_NEVER, do the work, compare fail_alloc_count().
 */
#pragma once

#include "err.h"

enum fail_alloc_mode {
    FAIL_NEVER, /* only count */
    FAIL_ONCE,
    FAIL_FROM_THEN_ON,
};

/* From here on the nth allocation fails, the first being 1. Counts from 0 again. */
void fail_alloc_arm(enum fail_alloc_mode mode, size_t nth);
void fail_alloc_disarm(void);

/* Allocations asked for since it was armed, those that failed included. */
size_t fail_alloc_count(void);

/* Whether an allocation has failed since it was armed. */
bool fail_alloc_hit(void);

/*
 * Runs the scenario with its 1st, 2nd, ... allocation failing, in both modes, until it comes
 * through without meeting the one that fails. It must give ERR_NOMEM if and only if one failed, and
 * free what it made: a leak is the sanitizer's to find. Returns how many allocations it makes.
 */
size_t fail_alloc_each(enum errc (*scenario)(void *ctx), void *ctx);
