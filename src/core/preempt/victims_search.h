/* The search for the pods of a subset of the candidates that can stay. For victims.c. */
#pragma once

#include "core/preempt/victims.h"

/* A pod that may be evicted. */
struct victim {
    const struct pod *pod; /* borrowed from the cache */
    struct pod *copy;      /* in the overlay's list while the pod stays */
    struct budget_pod budget;
    uint32_t rank; /* its place in the order by card and name */
    bool guarded;  /* a PodDisruptionBudget selects it */
    bool violates; /* evicting it alone violates a budget */
    bool twin;     /* equivalent to the pod before it */
    bool goes;     /* in the set that is being tried */
    bool best;     /* in the best set so far */
    bool cheap;    /* its card is one of the cheapest cards */
};

struct search {
    const struct victims_question *q;
    struct overlay overlay;
    const struct pod **gone; /* q->given without duplicates, sorted by address */
    uint32_t n_gone;
    struct budget_pod *given; /* the same with their labels, if there are budgets */
    uint32_t n_given;
    struct victim *all; /* candidates, the most important first */
    uint32_t *by_rank;  /* indices in `all`, by rank */
    uint32_t n_all;
    struct victim **subset; /* part of `all`, in the same order: room for all */
    uint32_t n;
    bool uneven;      /* a set may make room that a larger one does not make: plugin_choice.h */
    int64_t card;     /* search room on this card; -1: on the node, as fit_place does */
    uint32_t level;   /* the first `level` pods are decided; the others are out of the overlay */
    unsigned tries;   /* left for this subset */
    uint64_t charged; /* steps of victims_search_looks_of that tries were taken for */
    bool found;
    struct victims_cost best;
    uint64_t looks; /* step_budget.looks at first */
    uint64_t spent; /* of them, before the last victims_refill */
};

/* Starts to count the charges of budgets, with the given pods first. */
void search_count_given(const struct search *s);

void search_take(struct search *s, struct victim *v);
void search_give_back(struct search *s, struct victim *v);
bool search_fits(const struct search *s);

/* Marks the subset's cheapest set as `best`, if it is cheaper than the best so far. Restores the
 * overlay. */
void search_run(struct search *s);

/* Returns to the node each pod of the best set that is not needed. */
void search_trim(struct search *s);
