/* The command replay: all runs of all workloads, policies and seeds, and their means. */
#pragma once

#include "sim/source.h"

struct replays_row {
    struct str workload;
    struct str policy;
    uint32_t runs;
    double at_full; /* means over the runs, in percent of the capacity */
    double at_fill;
    double arrived;
    double allocated; /* at the end */
    double broken;
    double rejected_pods; /* a run */
    double series[LIMIT_SIM_FILL + 1];
    uint32_t counts[LIMIT_SIM_FILL + 1]; /* runs that have a figure there */
};

struct replays {
    struct replays_row *rows; /* in the arena */
    size_t n;
    uint32_t fill;
};

enum errc replays_run(const struct source *s, const struct sim_args *a, struct arena *arena,
                      bool progress, struct replays *ret, struct err *reterr) _must_use_;
