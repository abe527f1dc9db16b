/*
 * Reads traces in the format of Alibaba's cluster-trace-gpu-v2023: a file of nodes (sn, cpu_milli,
 * memory_mib, gpu, model) and one of pods (name, cpu_milli, memory_mib, num_gpu, gpu_milli and
 * perhaps gpu_spec). Columns are found by their names; others are ignored. A card is 1000 units of
 * memory. A row that can't be simulated is an error: left out, it would change the result unseen.
 */
#pragma once

#include "sim/workload.h"

/* The nodes in the file's order. The texts may be freed afterwards. */
enum errc trace_read_nodes(struct str path, struct str text, struct arena *a,
                           struct sim_workload *ret, struct err *reterr) _must_use_;

/* The pods, sorted by name. */
enum errc trace_read_pods(struct str path, struct str text, struct arena *a,
                          struct sim_workload *ret, struct err *reterr) _must_use_;
