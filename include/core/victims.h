/*
 * Which pods of a node have to go so that another one, of more weight, has its cards there. Pure,
 * and the same for the same state.
 *
 * Whoever weighs less than the pod may be taken, but for pods of its own affinity group, which it
 * wants to be beside, and those whose Binding is under way, which the scheduler may not know there.
 * Pods that are being deleted are gone already.
 *
 * Of all sets after which policy_place has a place for the pod, the one that costs least: fewest
 * violated budgets, then the lowest of its highest priorities, then fewest pods, then the smallest
 * sum of priorities; and of equals that with the lowest card, and on it the first by namespace,
 * name and UID. None of a set can be spared. Where there are too many sets to try them all, it is
 * the best of those that were tried: the first is what kube-scheduler would choose, who gives back
 * one pod after the other, the most important first.
 */
#pragma once

#include "arena.h"
#include "budget.h"
#include "draft.h"
#include "policy.h"

struct victims_question {
    const struct node *node;
    const struct request *request;  /* after cache_resolve */
    struct budgets *budgets;        /* NULL: none; only its counters change */
    const struct pod *const *given; /* of the node, and they go in any case */
    size_t n_given;
    const struct pod *const *spared; /* of any node, and they stay in any case */
    size_t n_spared;
    unsigned *steps; /* how many places may still be tried; what is left of it in the end */
};

struct victims_cost {
    uint32_t violations;
    int32_t highest; /* priority; INT32_MIN without pods */
    uint32_t n;
    uint64_t sum; /* of priorities, each above INT32_MIN */
};

struct victims {
    enum verdict verdict; /* what the pod finds without them; without anybody of less weight, where
                             that is not enough either */
    int32_t card;         /* FITS: the first that it would have then; -1: it needs none */
    struct placement there;   /* FITS: all that it would have then */
    struct victims_cost cost; /* of these, those given not counted */
    const struct pod **pods;  /* cost.n of them, by card and name; in the arena */
};

/* The arena's fault, or OK. */
enum errc victims_choose(const struct victims_question *q, struct arena *a, struct victims *ret)
    _must_use_;

/* Below 0: a is the better choice. */
int victims_cost_cmp(const struct victims_cost *a, const struct victims_cost *b);
