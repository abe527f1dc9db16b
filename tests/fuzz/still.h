/*
 * A loop whose clock advances only when told to, with random numbers that are equal in each run:
 * the linker's --wrap redirects its system calls here.
 */
#pragma once

#include "io/loop.h"

/* Makes a new loop, and resets the clock and the random numbers. */
struct loop *still_loop(void);

/* Both turn until the loop would wait; still_pass then advances the clock by ms, and does so
 * again. */
void still_run(struct loop *l);
void still_pass(struct loop *l, uint64_t ms);

/* Advances to the next timer within max_ms; false: there is none. */
bool still_next(struct loop *l, uint64_t max_ms);
