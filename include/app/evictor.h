/*
 * --evict-for-cards: where a node has the memory for a pod, but no card of it has, no release of
 * Kubernetes up to 1.36 preempts anybody. A pod that would preempt, and that filter has refused for
 * the cards alone for a while, gets the cheapest set of pods of lower priority evicted, through the
 * Eviction API, which sees to budgets. Its cards are kept for it until it is bound, gone, or a time
 * is over. Every step is an event on the pods concerned.
 *
 * One pod at a time, and a pause after each; in a term of the leadership, and nothing is sent
 * outside of it.
 */
#pragma once

#include "backend.h"
#include "budget.h"
#include "cache.h"
#include "events.h"
#include "evict_step.h"
#include "judge.h"

struct evictor;

struct evictor_settings {
    struct loop *loop;
    struct cache *cache;
    struct budgets *budgets;
    struct backend *backend;
    struct kube_api *api;
    struct events *events;
    uint64_t after_ms; /* so long a pod is refused */
    uint64_t keep_ms;  /* so long room is kept, from when it is free */
    uint64_t tick_ms;  /* these: zero for the evictor's own; tests want less */
    uint64_t pause_ms;
    uint64_t look_ms;
    uint64_t retry_ms;
    struct evictor_counts *counts; /* added to; outlives the evictor. NULL: nobody counts */
};

enum errc evictor_new(const struct evictor_settings *s, struct evictor **ret, struct err *reterr)
    _must_use_;

/* What is under way may take effect. Returns NULL. */
struct evictor *evictor_free(struct evictor *e);

/*
 * What filter has found for a pod. e may be NULL: nothing is done. Allocates nothing in the long
 * run.
 *
 * Absent, or what the scheduler is to be told as an error: those who are in the way are ending. A
 * pod that was refused it tries again when something has changed, and it may see that somebody has
 * ended before we do; after an error it tries again by itself.
 */
struct str evictor_filtered(struct evictor *e, const struct filter_args *args,
                            const struct judgement *j);

/* Whether it is about to help a pod. */
bool evictor_active(const struct evictor *e);

/* after_ms at once; keep_ms from the next pod on that is helped. e may be NULL. */
void evictor_set_times(struct evictor *e, uint64_t after_ms, uint64_t keep_ms);
