/*
 * A rescue: the evictions for one pod. Internal to evictor.c, evict_rescue.c and evict_tell.c.
 */
#pragma once

#include "daemon/evict/evict_call.h"
#include "daemon/evict/evict_plan.h"
#include "daemon/evict/evictor.h"
#include "daemon/limit.h"

struct spared {
    char uid[REFUSAL_UID_BYTES];
    size_t uid_n;
    uint64_t until_ms; /* in the past: entry unused */
};

struct rescue {
    bool active;
    struct evict_machine machine;
    struct event_subject pod; /* in `own` */
    struct request *request;  /* owned */
    uint64_t term;
    struct str nodes; /* as in struct refusal; in `own` */
    uint32_t n_nodes;
    struct evict_plan plan;
    struct buf evicted; /* UIDs of all evicted pods, each followed by a NUL */
    struct err why;     /* the last error */
    struct arena own;   /* for the whole rescue */
    struct arena plans;
};

struct evictor {
    struct evictor_settings set;
    struct evictor_counts own; /* used if the caller wants no counts */
    struct evictor_counts *counts;
    struct refusals refusals;
    struct rescue rescue;
    struct evict_call call;
    struct timer tick;
    struct timer wake; /* of the rescue */
    uint64_t term;     /* the leadership term in which the refusals were noted */
    uint64_t not_before_ms;
    bool beta;   /* use policy/v1beta1 of the Eviction API */
    bool denied; /* the right to evict is missing, and that was logged */
    struct spared spared[LIMIT_EVICT_SPARED];
};

/* For evictor_new and evictor_free. */
void evict_rescue_init(struct evictor *e);
void evict_rescue_done(struct evictor *e);

/* Starts a rescue for the pending pod p, which was refused as f says. False: no memory. */
bool evict_rescue_begin(struct evictor *e, const struct refusal *f, const struct pod *p);

/* Events and log lines (evict_tell.c). The evictions of the plan begin. */
void evict_tell_begin(struct evictor *e);

/* Pod v was evicted. */
void evict_tell_victim(struct evictor *e, const struct evict_victim *v);

/* The eviction of pod v was refused. */
void evict_tell_spared(const struct evictor *e, const struct evict_victim *v);

/* The cards are free and kept for the pod. */
void evict_tell_room(struct evictor *e);

void evict_tell_end(struct evictor *e, enum evict_end end);
