/* The commands fit and grow: how many more pods a cluster takes, and how many nodes to add. */
#pragma once

#include "sim/source.h"

struct sim_fit_stop {
    uint32_t nodes;
    struct str reason;
};

struct sim_fit_answer {
    uint64_t fit;
    uint32_t nodes;             /* on which one of them is */
    struct sim_fit_stop *stops; /* why the next one fits nowhere; the most nodes first */
    size_t n_stops;
    bool limited; /* stopped at LIMIT_SIM_FIT; more may fit */
};

/* How many pods of the workload's last shape fit beside the pods that are there. */
enum errc sim_fit_run(const struct sim_workload *w, uint32_t shape, const struct sim_args *a,
                      struct arena *arena, struct sim_fit_answer *ret, struct err *reterr)
    _must_use_;

struct grow_answer {
    uint32_t pending;
    uint32_t run_now; /* of them, without another node */
    uint32_t run;     /* with the nodes that are added */
    uint32_t nodes;   /* how many to add; 0 if none is needed, or if none helps */
};

/* "cpu=64,memory=256Gi,cards=8,card-memory=80,model=A100" */
enum errc grow_read_node(struct str text, struct arena *arena, struct sim_node *ret,
                         struct err *reterr) _must_use_;

enum errc grow_run(const struct sim_workload *w, const struct sim_node *add,
                   const struct sim_args *a, struct arena *arena, struct grow_answer *ret,
                   struct err *reterr) _must_use_;
