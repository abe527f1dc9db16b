/*
 * Keeps a store of PodDisruptionBudgets in step with the API server. Nothing waits for it: where
 * there are none to be had, by right or by release, that is logged once and none are known.
 *
 * policy/v1 is asked for, and policy/v1beta1 where that is not served (before 1.21). Whatever
 * served a list last is kept until it says 404 in its turn, as v1beta1 does after an upgrade to
 * 1.25.
 */
#pragma once

#include "budget.h"
#include "kube_api.h"
#include "reflector.h"

struct budget_feed;

struct budget_feed_settings {
    struct loop *loop;
    struct kube_api *api;
    struct budgets *budgets;
    unsigned page_size;
    struct reflector_backoff backoff; /* zero: the reflector's own; tests want it shorter */
    uint64_t again_ms; /* until the other version is tried once more, and until a list is read again
                          that memory was short for; 0: 10 s */
    struct reflector_counts *counts; /* see reflector.h; NULL: nobody counts */
};

/* Lists from the loop's next turn on; what it borrows must outlive it. */
enum errc budget_feed_new(const struct budget_feed_settings *s, struct budget_feed **ret,
                          struct err *reterr) _must_use_;
struct budget_feed *budget_feed_free(struct budget_feed *f); /* returns NULL */

void budget_feed_set_page_size(struct budget_feed *f, unsigned page_size);
