/*
 * PodDisruptionBudgets: how many of which pods may be evicted now. They decide which victims a
 * preemption prefers; that they hold is the API server's to see to.
 */
#pragma once

#include "map.h"
#include "view.h"

enum requirement_op {
    REQUIREMENT_IN,
    REQUIREMENT_NOT_IN, /* also true of a pod that lacks the label */
    REQUIREMENT_EXISTS,
    REQUIREMENT_ABSENT,
};

struct requirement_view {
    struct str key;
    enum requirement_op op;
    const struct str *values;
    size_t n_values;
};

/* As struct pod_view: views into what it was read from. */
struct budget_view {
    struct str namespace;
    struct str name;
    bool selects; /* some pods; with no requirement: all of its namespace */
    const struct requirement_view *requirements; /* all of them must hold */
    size_t n_requirements;
    int64_t allowed;             /* status.disruptionsAllowed */
    const struct str *disrupted; /* names of pods whose eviction is counted in it already */
    size_t n_disrupted;
};

struct budget_space;

struct budget {
    struct str key; /* NAMESPACE/NAME */
    struct budget_view is;
    struct budget_space *space;
    struct budget *next; /* in its namespace */
    struct budget **link;
    uint64_t epoch; /* of the list that named it last */
    uint64_t round; /* in which `left` holds */
    int64_t left;
};

struct budgets {
    struct map all;    /* struct budget by key; owned */
    struct map spaces; /* struct budget_space by name; owned */
    uint64_t epoch;
    uint64_t round;
    bool torn;   /* a budget since the list was begun was lost */
    bool listed; /* a whole list has been in: what is not here is not there */
};

void budgets_init(struct budgets *b, struct map_seed seed);
void budgets_done(struct budgets *b);

/* ERR_NOMEM: it is as it was before, and the list under way is torn. */
enum errc budgets_set(struct budgets *b, const struct budget_view *view) _must_use_;

/* Whether it was there. */
bool budgets_gone(struct budgets *b, struct str namespace, struct str name);

void budgets_list_begin(struct budgets *b);

/* A budget of the list can't be known: it may be any of those that are. */
void budgets_list_tear(struct budgets *b);

/* What was not set since the list was begun is gone, but for a torn list. Returns how many. */
unsigned budgets_list_end(struct budgets *b);

const struct budget *budgets_get(const struct budgets *b, struct str namespace, struct str name);
const struct budget *budgets_next(const struct budgets *b, size_t *cursor);

/* A pod as a selector sees it. Of doubled labels the last counts. */
struct budget_pod {
    struct str namespace;
    struct str name;
    const struct label_view *labels;
    size_t n_labels;
};

/*
 * The budget behind `after` (NULL: the first) that an eviction of this pod would be charged to; one
 * that has counted its eviction already is left out.
 */
const struct budget *budgets_next_of(const struct budgets *b, const struct budget_pod *pod,
                                     const struct budget *after);

/*
 * Counts victims as kube-scheduler does: each takes one of what is left of all its budgets. Returns
 * whether that violates one of them. Begin again to count another set; nothing else changes.
 */
void budgets_count_begin(struct budgets *b);
bool budgets_count(struct budgets *b, const struct budget_pod *pod);

/* How many more this one allows, after those that were counted; below 0 it is violated. */
int64_t budgets_left(const struct budgets *b, const struct budget *d);

/* Asserts every invariant; for tests. */
void budgets_check(const struct budgets *b);
