/*
 * Gives a test control over the allocator, the clock, random numbers and the wait for descriptors
 * of the whole program. The functions are defined in the executable, so calls by libraries come
 * here as well as the program's own.
 *
 * An allocation counts as cardpack's if an object of the executable makes it (the linker's --wrap
 * separates these), and as a library's if it comes through the symbol. Between
 * interpose_outside(true) and (false) the test itself is at work: nothing is counted and nothing
 * fails.
 *
 * Time advances only when the test moves it, and random numbers have a fixed seed. So a run
 * repeats: the nth allocation is the same one each time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum alloc_owner {
    ALLOC_OURS,
    ALLOC_LIBRARIES,
};

/* Allocations `first` to `last` of the owner fail, counted from 1; first 0: none. */
struct alloc_plan {
    enum alloc_owner owner;
    size_t first;
    size_t last;
};

/* The stack of the first allocation that failed: return addresses, innermost first. */
struct alloc_trace {
    size_t n;
    void *frames[48];
};

/* Resets the counts. Another process may read the trace after a crash. */
void interpose_arm(const struct alloc_plan *plan, struct alloc_trace *trace);
void interpose_disarm(void);

size_t interpose_count(enum alloc_owner owner); /* since interpose_arm */
bool interpose_hit(void);                       /* whether one has failed since then */
ptrdiff_t interpose_live(void);                 /* cardpack's blocks that are not freed */
ptrdiff_t interpose_held(void);                 /* the bytes of these */

void interpose_outside(bool outside);

/* Resets the clock and the random numbers. */
void interpose_reset(void);
uint64_t interpose_now_ms(void);

/*
 * Called instead of a wait: lets the outside world act, and returns false if it had nothing to do.
 * *wait_ms is the longest wait of the program, -1 without a limit; the function shortens it to what
 * the outside world waits for.
 */
typedef bool interpose_world_fn(int *wait_ms);

/* A run with more waits than `max` hangs; `hang` does not return. NULL: waits are real. */
void interpose_waits(interpose_world_fn *act, size_t max, void (*hang)(const char *why));
