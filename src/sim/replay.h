/*
 * One run of the reference simulation: pods arrive one after another and stay; a pod that fits
 * nowhere is dropped. The seed shuffles the workload's pods. If they ask for less than the wanted
 * part of the cluster, copies of pods drawn from them follow, until the next one would pass it; if
 * they ask for more, the last ones of the shuffled order are left out. For this sum a pod counts
 * with its memory on one card, as in the published runs.
 */
#pragma once

#include "sim/limit.h"
#include "sim/world.h"

struct replay_settings {
    struct world_settings world;
    uint32_t fill;      /* arrivals, in percent of the capacity; 1 to LIMIT_SIM_FILL */
    bool in_order;      /* the pods arrive as the file has them, or by creation */
    bool once;          /* no copies follow, and no pod is left out */
    struct buf *places; /* a line "POLICY,NUMBER,NODE" for each arrival is appended; or NULL */
};

struct replay_result {
    uint64_t arrived; /* pods */
    uint64_t rejected;
    double arrived_percent; /* card memory, of the capacity, at the end */
    double allocated_percent;
    double broken_percent; /* free on cards of which another part is in use */
    uint32_t n_series;
    /* By whole percent that had arrived: the mean share that was allocated, in percent, after each
     * arrival which brought the sum to this number, rounded. Below 0: there was none. */
    double series[LIMIT_SIM_FILL + 1];
};

enum errc replay_run(const struct replay_settings *s, struct replay_result *ret, struct err *reterr)
    _must_use_;
