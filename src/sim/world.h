/*
 * A simulated cluster: the daemon's cache. Nodes and pods enter and leave by cache_apply, and a pod
 * is placed as filter, prioritize and bind place it: of the feasible nodes the one with the best
 * score, there the cards of fit_place. A node without enough CPU or memory is not feasible: that
 * check stands for kube-scheduler's own.
 */
#pragma once

#include "core/cache/cache.h"
#include "sim/rng.h"
#include "sim/sim_policy.h"

/* Which of the nodes with the best score gets the pod. */
enum sim_ties {
    SIM_TIES_RUN,  /* the first in an order that is drawn once a run */
    SIM_TIES_POD,  /* drawn for each pod, as kube-scheduler does */
    SIM_TIES_NAME, /* the first by name */
};

/* Which pods of a cluster are on their nodes before the first one arrives. */
enum sim_held_pods {
    SIM_HELD_NONE,
    SIM_HELD_OTHERS, /* those that ask for no card */
    SIM_HELD_ALL,
};

struct world_settings {
    const struct sim_workload *workload; /* borrowed, as the policy */
    const struct sim_policy *policy;
    enum sim_ties ties;
    enum sim_held_pods held;
    uint64_t seed;
    bool checked; /* all invariants are asserted after each event: for tests */
};

struct world_place {
    const struct node *node; /* stays where it is: nodes do not change in a simulation */
    struct host left;        /* as node_host_left */
    uint64_t version;        /* of the node */
};

/* What a shape's evaluation of a place said. */
struct world_memo {
    uint64_t score;   /* SCORE_NONE: not feasible */
    uint64_t version; /* of the place; 0: not evaluated */
    uint64_t lesson;  /* of the world */
};

struct world {
    struct world_settings settings;
    struct cache cache;
    struct rng rng;
    struct world_place *places; /* in the order that breaks ties */
    uint32_t n_places;
    uint32_t *place_of;       /* by the number of a workload's node */
    struct world_memo *memos; /* by shape and place; NULL: they would be too many */
    struct score score;       /* of the pod that arrives now */
    uint64_t lesson;          /* how often the policies have learned */
    uint64_t serial;          /* of the last pod */
    int64_t capacity;         /* card memory */
    int64_t allocated;
    struct grant_view grants[REQUEST_GRANTS_MAX]; /* of the pod that is bound now */
    char index[24];
};

/* A pod that runs. */
struct world_pod {
    uint64_t serial;
    uint32_t shape;
    uint32_t place;
};

enum errc world_init(struct world *w, const struct world_settings *settings, struct err *reterr)
    _must_use_;
void world_done(struct world *w);

/* Lets a pod arrive. *ret_placed false: it fits nowhere, and is gone again. */
enum errc world_arrive(struct world *w, uint32_t shape, bool *ret_placed, struct world_pod *ret,
                       struct err *reterr) _must_use_;

enum errc world_leave(struct world *w, const struct world_pod *p, struct err *reterr) _must_use_;

/* Why the pod does not fit on a place; VERDICT_FITS with *ret_host: it has too little CPU or
 * memory. */
enum verdict world_refusal(const struct world *w, uint32_t shape, uint32_t place, bool *ret_host);

/* Card memory that is free on cards of which another part is in use. */
int64_t world_broken(const struct world *w);
