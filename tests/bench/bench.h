/*
 * What every benchmark shares: a clock, medians, and a line for each figure. A figure stands beside
 * a limit that was measured in the same run, by turns with it, since the machine is shared and its
 * speed of this minute says little; the target is one for the ratio of the two.
 *
 * Lines for a person go to standard output. Where the environment names a file in BENCH_FIGURES,
 * each figure is appended there as one JSON object, for scripts/bench.
 */
#pragma once

#include "macro.h"

enum bench_sense {
    BENCH_AT_MOST,
    BENCH_AT_LEAST,
};

struct figure {
    const char *table; /* figures of one table or curve belong together */
    const char *what;  /* the row, or the curve */
    const char *by;    /* what x counts ("names", "nodes"); NULL: it is one figure */
    uint64_t x;
    double value;
    const char *unit;
    const char *beside;     /* what the limit is; NULL: there is none */
    double limit;           /* in the same unit */
    double target;          /* of value / limit, or without a limit of value; 0: none */
    enum bench_sense sense; /* of the target */
};

void bench_figure(const struct figure *f);

uint64_t bench_now_ns(void);

/* Changes their order. n > 0 */
double bench_median(double *values, size_t n);
double bench_quantile(double *values, size_t n, double q);

/* One side of a comparison: does it once. What takes less than a few microseconds does it often and
 * says how often. */
struct bench_side {
    size_t (*once)(void *ctx); /* returns how often it was done */
    void *ctx;
    double us; /* set: the median of one */
};

/*
 * The sides by turns, for `rounds` rounds after a few that don't count. With BENCH_QUICK set the
 * rounds are three: it shows that the benchmark works, and its figures mean nothing.
 */
void bench_turns(struct bench_side *sides, size_t n, size_t rounds);

/* The same by this thread's processor time: for sides that wait for nobody and share the machine
 * with others, whose turns don't count then. */
void bench_turns_alone(struct bench_side *sides, size_t n, size_t rounds);

bool bench_is_quick(void);
