/* The command churn: all runs of all workloads, policies and loads, and their means. */
#pragma once

#include "sim/source.h"

struct churns_row {
    const struct sim_workload *workload;
    const struct sim_policy *policy;
    double load;
    uint32_t runs;
    double rejected;  /* mean over the runs: card memory, in percent of what arrived */
    double error;     /* standard error of that mean; 0 for one run */
    double allocated; /* mean, in percent of the capacity */
    double squares;   /* of `rejected` of each run */
};

struct churns {
    struct churns_row *rows; /* in the arena */
    size_t n;
};

enum errc churns_run(const struct source *s, const struct sim_args *a, struct arena *arena,
                     bool progress, struct churns *ret, struct err *reterr) _must_use_;
