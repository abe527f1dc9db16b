/*
 * Shared by all benchmarks: a clock, medians, and a line for each figure. Each figure has a limit
 * that was measured in the same run, in turns with it, because the machine is shared and its speed
 * varies. The target applies to the ratio of the two.
 *
 * Standard output gets lines for people. If the environment variable BENCH_FIGURES names a file,
 * each figure is appended there as one JSON object, for scripts/bench.
 */
#pragma once

#include "base/macro.h"

#include <time.h>

enum bench_sense {
    BENCH_AT_MOST,
    BENCH_AT_LEAST,
};

struct figure {
    const char *table; /* groups the figures of one table or curve */
    const char *what;  /* the row, or the curve */
    const char *by;    /* the unit of x ("names", "nodes"); NULL: a single figure */
    uint64_t x;
    double value;
    const char *unit;
    const char *beside;     /* what the limit is; NULL: no limit */
    double limit;           /* in the same unit */
    double target;          /* of value / limit, or without a limit of value; 0: no target */
    enum bench_sense sense; /* how to compare with the target */
};

void bench_figure(const struct figure *f);

uint64_t bench_now_ns(void);

/* Reorders the values. n > 0 */
double bench_median(double *values, size_t n);
double bench_quantile(double *values, size_t n, double q);

/* One side of a comparison. Work of less than a few microseconds is repeated, and `once` returns
 * how often. */
struct bench_side {
    size_t (*once)(void *ctx); /* returns the number of repetitions */
    void *ctx;
    clockid_t asked; /* for bench_turns_together: clock of the process that gets the requests */
    double us;       /* result: median time of one repetition */
};

/*
 * Runs the sides in turn, for `rounds` rounds after a few that do not count. With BENCH_QUICK set
 * there are three rounds: that shows that the benchmark works; its figures mean nothing.
 */
void bench_turns(struct bench_side *sides, size_t n, size_t rounds);

/* The same in processor time of this thread: for sides that never wait. Time that other processes
 * use does not count. */
void bench_turns_alone(struct bench_side *sides, size_t n, size_t rounds);

/*
 * The same in processor time of this thread and of the process that a side calls. For two on one
 * core that never work at once: the sum is the time from request to answer, without other work on
 * that core.
 */
void bench_turns_together(struct bench_side *sides, size_t n, size_t rounds);

bool bench_is_quick(void);
