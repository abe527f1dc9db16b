/* PodDisruptionBudgets: how many of which pods may be evicted now. They decide which victims a
 * preemption prefers. The API server enforces them, not this module. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "core/request/object_views.h"

enum requirement_op {
    REQUIREMENT_IN,
    REQUIREMENT_NOT_IN, /* also true for a pod without the label */
    REQUIREMENT_EXISTS,
    REQUIREMENT_ABSENT,
};

struct requirement_view {
    struct str key;
    enum requirement_op op;
    const struct str *values;
    size_t n_values;
};

/* As struct pod_view: views into the bytes that it was read from. */
struct budget_view {
    struct str namespace;
    struct str name;
    bool selects; /* selects some pods; without requirements all pods of the namespace */
    const struct requirement_view *requirements; /* all of them must hold */
    size_t n_requirements;
    int64_t allowed;             /* status.disruptionsAllowed */
    const struct str *disrupted; /* pods whose eviction `allowed` already contains */
    size_t n_disrupted;
};

struct budget_space;

struct budget {
    struct str key; /* NAMESPACE/NAME */
    struct budget_view is;
    struct budget_space *space;
    struct list_link link; /* in the list of its namespace */
    uint64_t epoch;        /* of the last list that contained it */
    uint64_t round;        /* the round that `left` is for */
    int64_t left;
    uint64_t terms; /* number of values in all requirements, and of `disrupted` pods */
    size_t bytes;
};

struct budgets {
    struct map all;    /* struct budget by key; owned */
    struct map spaces; /* struct budget_space by name; owned */
    size_t bytes;      /* of all budgets */
    uint64_t epoch;
    uint64_t round;
    uint64_t looks; /* steps taken, for the caller, which limits them */
    bool torn;      /* a budget was lost since the list began */
};

void budgets_init(struct budgets *b, struct map_seed seed);
void budgets_done(struct budgets *b);

/*
 * A tenant may write as many budgets as etcd holds. One for which there is no room, as one that is
 * too long to be read, selects all pods of its namespace: a preemption then rather takes the pods
 * of others. ERR_NOMEM: the budget has not changed, and the current list is torn.
 */
enum errc budgets_set(struct budgets *b, const struct budget_view *view) _must_use_;

/* Returns whether the budget was there. */
bool budgets_gone(struct budgets *b, struct str namespace, struct str name);

void budgets_list_begin(struct budgets *b);

/* A budget of the list cannot be read and its name is unknown: budgets_list_end must remove
 * none. */
void budgets_list_tear(struct budgets *b);

/* Removes the budgets that were not set since budgets_list_begin, unless the list is torn. Returns
 * how many. */
unsigned budgets_list_end(struct budgets *b);

/* For tests: the budget as the last budgets_set left it; NULL: there is none. */
const struct budget *budgets_get(const struct budgets *b, struct str namespace, struct str name);

/* A pod as a selector sees it. If a label key occurs twice, the last one counts. */
struct budget_pod {
    struct str namespace;
    struct str name;
    const struct label_view *labels;
    size_t n_labels;
};

/* The next budget after `after` (NULL: the first one) that an eviction of this pod is charged to. A
 * budget that has already counted the pod's eviction is left out. */
const struct budget *budgets_next_of(struct budgets *b, const struct budget_pod *pod,
                                     const struct budget *after);

/* Counts victims as kube-scheduler does: each victim takes one disruption of each of its budgets.
 * Returns whether that violates one of them. budgets_count_begin starts another set of victims;
 * nothing else changes. */
void budgets_count_begin(struct budgets *b);
bool budgets_count(struct budgets *b, const struct budget_pod *pod);

/* How many more evictions the budget allows after those that were counted. Below 0: it is
 * violated. */
int64_t budgets_left(const struct budgets *b, const struct budget *d);

/* Asserts every invariant; for tests. */
void budgets_check(const struct budgets *b);
