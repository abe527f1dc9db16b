/*
 * Pods that gpushare's device plugin may confuse (docs/policy.md): both wait on one node, and a
 * container of one asks for the sum of the other's containers.
 */
#pragma once

#include "oracle.h"
#include "slices.h"

#define SWAP_GUARDS 3 /* size of enum swap_guard */

/* The value in the configuration file. */
const char *swap_guard_text(unsigned guard);

/* Checks a decision: with "require", no pod that surely waits, and could be swapped with this one,
 * is on another card of the node. */
void swaps_check(const struct decision *d, const struct proc *p);

/* At rest: the cards on which pods wait that could be swapped with the pod. */
struct waiters {
    uint64_t cards; /* a bit for each card */
    bool unplaced;  /* the card of one of them is unknown, or has no meaning for the plugin */
    bool several;   /* one of them holds several cards */
    bool perhaps;   /* whether there are others is not certain */
};

/* Finds nothing on a node with one card, unless it is gpu-manager's. */
void swaps_find(unsigned node, const struct pod_object *p, struct waiters *ret);
