/*
 * --evict-for-cards: evicts pods of lower priority for a pod that needs their cards. If a node has
 * enough free memory in total but not on one card, kube-scheduler (up to 1.36) does not preempt. So
 * if filter has refused a pod only because of the cards for after_ms, and the pod may preempt, the
 * evictor evicts the cheapest set of victims. It uses the Eviction API, which respects
 * PodDisruptionBudgets. The room is kept for the pod until the pod is bound or gone, or for
 * keep_ms. Each step posts an Event on the pods concerned.
 *
 * The evictor helps one pod at a time, with a pause after evictions. It works only in a leadership
 * term and sends nothing outside of that term.
 */
#pragma once

#include "core/cache/cache.h"
#include "core/preempt/budget.h"
#include "daemon/backend/backend.h"
#include "daemon/evict/evict_step.h"
#include "kube/events.h"
#include "report/evaluate.h"

struct evictor;

struct evictor_settings {
    struct loop *loop;
    struct cache *cache;
    struct budgets *budgets;
    struct backend *backend;
    struct kube_api *api;
    struct events *events;
    uint64_t after_ms; /* a pod must have been refused for this long */
    uint64_t keep_ms;  /* how long free room is kept for the pod */
    uint64_t tick_ms;  /* these four: 0 for the default; tests use shorter times */
    uint64_t pause_ms;
    uint64_t look_ms;
    uint64_t retry_ms;
    struct evictor_counts *counts; /* borrowed; added to. NULL: the caller wants none */
};

enum errc evictor_new(const struct evictor_settings *s, struct evictor **ret, struct err *reterr)
    _must_use_;

/* Ends the rescue; an eviction under way may still take effect. Returns NULL. */
struct evictor *evictor_free(struct evictor *e);

/*
 * Takes the result of filter for a pod. With e NULL it does nothing. Allocates only until its
 * buffers have their final size.
 *
 * Returns absent, or a text that filter returns to kube-scheduler as an error: the victims for this
 * pod are ending. After a refusal kube-scheduler tries the pod again only when an object changes.
 * It may see the end of a victim before cardpack does: then cardpack refuses the pod once more, and
 * no change follows. After an error kube-scheduler tries the pod again by itself.
 */
struct str evictor_filtered(struct evictor *e, const struct filter_args *args,
                            const struct candidates *j);
