/*
 * Keeps a store of PodDisruptionBudgets in step with the API server. No decision waits for it.
 * Where cardpack lacks the right to list them, or the API server does not serve them, the feed logs
 * that once and the store stays empty.
 *
 * The feed asks for policy/v1, and for policy/v1beta1 where that is not served (before 1.21). It
 * stays with the version that served the last list until that version answers 404, as v1beta1 does
 * after an upgrade to 1.25.
 */
#pragma once

#include "core/preempt/budget.h"
#include "kube/kube_api.h"
#include "kube/reflector.h"

struct budget_feed;

struct budget_feed_settings {
    struct loop *loop;
    struct kube_api *api;
    struct budgets *budgets;
    unsigned page_size;
    struct reflector_backoff backoff; /* zero: the reflector's default; tests set shorter times */
    uint64_t again_ms; /* ms until the other version is tried once more, and until a list is
                          repeated of which an object was lost for lack of memory; 0: 10 s */
    struct reflector_counts *counts; /* see reflector.h; NULL: not counted */
};

/* Begins to list in the loop's next turn. All that `s` points to must outlive the feed. */
enum errc budget_feed_new(const struct budget_feed_settings *s, struct budget_feed **ret,
                          struct err *reterr) _must_use_;
struct budget_feed *budget_feed_free(struct budget_feed *f); /* returns NULL */
