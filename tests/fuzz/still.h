/*
 * A loop whose clock only moves when it is told to, and whose random numbers are the same each
 * time: the linker's --wrap leads its calls to the kernel here.
 */
#pragma once

#include "loop.h"

/* A new loop, with clock and random numbers from the start. */
struct loop *still_loop(void);

/* Turns until it would wait; then moves the clock by ms, and turns until it would wait again. */
void still_run(struct loop *l);
void still_pass(struct loop *l, uint64_t ms);

/* To the next thing that it waits for, within max_ms; false where that is nothing. */
bool still_next(struct loop *l, uint64_t max_ms);
