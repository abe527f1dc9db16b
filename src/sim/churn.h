/*
 * One run with pods that come and go. Pods drawn uniformly from the workload arrive at random
 * (Poisson) and live for an exponentially distributed time with one mean for all; that mean is the
 * unit of time. The rate of arrivals is such that all pods together would hold `load` of the card
 * memory. A pod that fits nowhere is lost. After a warm-up of 3 lifetimes, 4 lifetimes are
 * measured.
 */
#pragma once

#include "sim/world.h"

struct churn_settings {
    struct world_settings world;
    double load; /* 1: the whole capacity */
};

struct churn_result {
    uint64_t arrived; /* pods, while it is measured */
    uint64_t rejected;
    double rejected_percent;  /* card memory, of what arrived */
    double allocated_percent; /* of the capacity: mean over the time */
};

enum errc churn_run(const struct churn_settings *s, struct churn_result *ret, struct err *reterr)
    _must_use_;
