/*
 * The policies that a simulation compares: those of core/request/policy.h, under which a node has
 * the score that the daemon gives it, and two that only the simulator has: `bestfit`, the paper's
 * reference, and `fgd-paper`, which is fgd that knows all pods of the workload before the first one
 * comes, as in the paper.
 */
#pragma once

#include "core/place/score.h"
#include "sim/workload.h"

struct sim_policy {
    struct str name;
    enum policy policy; /* of nodes and of cards */
    bool bestfit;
    bool foresees;
};

bool sim_policy_parse(struct str name, struct sim_policy *ret);

/* The names of all policies. */
#define SIM_POLICY_WORDS POLICY_WORDS "|bestfit|fgd-paper"

/* How good a feasible node is, as score_node; `left` is its CPU and memory. score is
 * that of the request, begun. A pod that asks for no card has the same score on every node under
 * binpack and spread. Pure: equal arguments have equal scores. */
uint64_t sim_policy_score(const struct sim_policy *p, const struct node *n, struct host left,
                          const struct sim_shape *s, struct score *score);
