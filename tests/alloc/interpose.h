/*
 * What the whole program stands on, in the hands of a test: the allocator, the clock, randomness
 * and the wait for descriptors. They are defined in the executable, so every library's calls come
 * here as well as the program's own.
 *
 * An allocation is ours where the executable's own objects ask for it, which the linker's --wrap
 * tells apart, and a library's where it comes through the symbol. Between interpose_outside(true)
 * and (false), while the test itself is at work, none is counted and none fails.
 *
 * Time stands still but where the test moves it, and random numbers are those of a fixed seed, so a
 * run repeats: the nth allocation is the same one each time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum alloc_owner {
    ALLOC_OURS,
    ALLOC_LIBRARIES,
};

/* Allocations first to last of the owner fail, counted from 1; first 0: none. */
struct alloc_plan {
    enum alloc_owner owner;
    size_t first;
    size_t last;
};

/* Who asked for the first block that failed: return addresses, innermost first. */
struct alloc_trace {
    size_t n;
    void *frames[48];
};

/* Counts from 0 again. The trace may be looked at by another process, after a crash. */
void interpose_arm(const struct alloc_plan *plan, struct alloc_trace *trace);
void interpose_disarm(void);

size_t interpose_count(enum alloc_owner owner); /* since it was armed */
bool interpose_hit(void);                       /* whether one has failed since */
ptrdiff_t interpose_live(void);                 /* our own blocks that are not freed */
ptrdiff_t interpose_held(void);                 /* bytes of these */

void interpose_outside(bool outside);

/* The clock and the random numbers from the start again. */
void interpose_reset(void);
uint64_t interpose_now_ms(void);

/*
 * Called instead of a wait: does what the outside world does, and says whether that was anything.
 * *wait_ms is how long the program would wait at most, -1 for ever; it is shortened to what the
 * outside world waits for.
 */
typedef bool interpose_world_fn(int *wait_ms);

/* A run whose waits are more than this many hangs; `hang` does not return. NULL: waits are real. */
void interpose_waits(interpose_world_fn *act, size_t max, void (*hang)(const char *why));
