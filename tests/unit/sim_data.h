/* Workloads for tests of the simulator, from the text of a trace. */
#pragma once

#include "sim/limit.h"
#include "sim/trace.h"
#include "sim/world.h"
#include "unit.h"

#define NODE_HEADS "sn,cpu_milli,memory_mib,gpu,model\n"
#define POD_HEADS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

/* arena_done frees it. */
static inline void sim_data_read(struct arena *a, const char *nodes, const char *pods,
                                 struct sim_workload *ret)
{
    struct err e = ERR_INIT;
    arena_init(a, 64 * MIB);
    *ret = (struct sim_workload){.name = STR("test")};
    ck_assert_ok(trace_read_nodes(STR("nodes.csv"), str_of(nodes), a, ret, &e), &e);
    ck_assert_ok(sim_workload_measure(ret, &e), &e);
    ck_assert_ok(trace_read_pods(STR("pods.csv"), str_of(pods), a, ret, &e), &e);
}

static inline struct sim_policy sim_data_policy(const char *name)
{
    struct sim_policy p;
    ck_assert(sim_policy_parse(str_of(name), &p));
    return p;
}
