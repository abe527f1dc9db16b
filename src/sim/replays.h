/* The command replay: all runs of all workloads and policies, and their means. */
#pragma once

#include "sim/source.h"

/* The runs of one workload under one policy. */
struct replays_row {
    const struct sim_workload *workload;
    const struct sim_policy *policy;
    bool in_order; /* one run in the order of creation or of the file; else one for each seed */
    uint32_t first_job;
    uint32_t runs;
    double at_full; /* means over the runs, in percent of the capacity; below 0: none */
    double at_fill;
    double arrived; /* at the end, as all that follow */
    double allocated;
    double broken;
    double rejected; /* pods a run */
    /* As replay_result has it. Where no arrival of a run came to a percent, which happens in small
     * clusters, the run's figure before it counts. */
    double series[LIMIT_SIM_FILL + 1];
    uint32_t counts[LIMIT_SIM_FILL + 1]; /* runs in which as much arrived */
};

struct replays {
    struct replays_row *rows; /* in the arena */
    size_t n;
    uint32_t fill;
    bool once; /* the workload's own pods arrive, without copies */
    bool of_cluster;
    struct buf *places; /* as in replay_settings, with the workload's name before each line */
};

/* places may be NULL. */
enum errc replays_run(const struct source *s, const struct sim_args *a, struct arena *arena,
                      bool progress, struct buf *places, struct replays *ret, struct err *reterr)
    _must_use_;
