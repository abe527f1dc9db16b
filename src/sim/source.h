/* What a command runs on, from the files that its flags name. */
#pragma once

#include "sim/sim_args.h"

struct source {
    struct arena arena; /* of all workloads */
    struct sim_workload workloads[LIMIT_SIM_WORKLOADS];
    size_t n;
};

/* The cluster of --cluster, or the nodes of --nodes with the pods of each --pods. source_done also
 * after an error. */
enum errc source_open(struct source *s, const struct sim_args *a, struct err *reterr) _must_use_;

/* Reads a Pod, and adds its shape to the first workload. */
enum errc source_add_pod(struct source *s, struct str path, uint32_t *ret, struct err *reterr)
    _must_use_;
void source_done(struct source *s);
