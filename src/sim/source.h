/* What a command runs on, from the files that its flags name. */
#pragma once

#include "sim/args.h"

struct source {
    struct arena arena; /* of all workloads */
    struct sim_workload workloads[LIMIT_SIM_WORKLOADS];
    size_t n;
};

/* The nodes of --nodes, with the pods of each --pods. */
enum errc source_open(struct source *s, const struct sim_args *a, struct err *reterr) _must_use_;
void source_done(struct source *s);
