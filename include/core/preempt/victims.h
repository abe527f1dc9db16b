/*
 * Which pods of a node must be evicted so that a pod of higher priority gets its cards there. A
 * pure function: the same state gives the same victims.
 *
 * A pod of lower priority may be chosen, except:
 *   - a pod of the affinity group that the new pod must share a card with;
 *   - a pod whose Binding is in flight: kube-scheduler may not know yet that it is on the node;
 *   - under swap-guard require (VERDICT_SWAP), a waiting pod that the device plugin may confuse
 *     with the new pod: its containers start soon, and after that it rules out no cards any more.
 * Pods that are being deleted count as gone.
 *
 * On a node of gpu-manager the pod has a place if the plugin's own order gives it a card that it
 * may have (plugin_choice.h). There more evictions may leave less room.
 *
 * Of all sets of victims after which fit_place has a place for the pod, the cheapest is chosen:
 * fewest violated PodDisruptionBudgets; then the set whose most important victim has the lowest
 * priority; then fewest pods; then the smallest sum of priorities; among equals the set with the
 * lowest card, and on it the first by namespace, name and UID. Every pod of a set is needed. If
 * there are too many sets to try all, the best of the tried ones is chosen. The first that is tried
 * is kube-scheduler's choice: it returns pod after pod to the node, the most important first, while
 * the new pod still fits.
 */
#pragma once

#include "base/arena.h"
#include "core/place/fit.h"
#include "core/preempt/budget.h"
#include "core/state/overlay.h"

struct victims_question {
    const struct node *node;
    const struct evaluation *evaluation; /* of the pod that wants the room */
    struct budgets *budgets;        /* PodDisruptionBudgets; NULL: none; only its counters change */
    const struct pod *const *given; /* pods of the node that go in any case */
    size_t n_given;
    const struct pod *const *spared; /* pods of any node that must stay */
    size_t n_spared;
    unsigned *steps; /* how many placements may still be tried; the call subtracts those it tried */
};

struct victims_cost {
    uint32_t violations;
    int32_t highest; /* highest priority; INT32_MIN without pods */
    uint32_t n;
    uint64_t sum; /* of (priority - INT32_MIN) */
};

struct victims {
    enum verdict verdict;   /* FITS: the pod fits without the victims; else why it does not fit even
                               if all pods of lower priority go */
    int32_t card;           /* FITS: the first card that it gets; -1: it needs no card */
    struct placement there; /* FITS: all cards that it gets */
    struct victims_cost cost; /* of `pods`, without the given ones */
    const struct pod **pods;  /* the victims: cost.n of them, by card and name; in the arena */
};

/* Returns OK or the arena's fault. */
enum errc victims_choose(const struct victims_question *q, struct arena *a, struct victims *ret)
    _must_use_;

/* Below 0: a is cheaper. */
int victims_cost_cmp(const struct victims_cost *a, const struct victims_cost *b);
