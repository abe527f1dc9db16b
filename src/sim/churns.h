/* The command churn: all runs of all workloads, policies and loads, and their means. */
#pragma once

#include "sim/source.h"

struct churns_row {
    const struct sim_workload *workload;
    const struct sim_policy *policy;
    double load;
    uint32_t runs;
    double rejected; /* means over the runs: card memory, in percent of what arrived */
    double allocated; /* in percent of the capacity */
};

struct churns {
    struct churns_row *rows; /* in the arena */
    size_t n;
};

enum errc churns_run(const struct source *s, const struct sim_args *a, struct arena *arena,
                     bool progress, struct churns *ret, struct err *reterr) _must_use_;
