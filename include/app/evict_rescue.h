/* One pod that is being helped, for evictor.c and evict_tell.c. */
#pragma once

#include "evict_call.h"
#include "evict_plan.h"
#include "evictor.h"

struct spared {
    char uid[REFUSAL_UID_BYTES];
    size_t uid_n;
    uint64_t until_ms; /* past: unused */
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
    struct buf evicted; /* UIDs of all that were, each with a NUL behind */
    struct err why;     /* the last thing that went wrong */
    struct arena own;   /* as long as the rescue */
    struct arena plans;
};

struct evictor {
    struct evictor_settings set;
    struct evictor_counts own; /* where nobody wants them */
    struct evictor_counts *counts;
    struct refusals refusals;
    struct rescue rescue;
    struct evict_call call;
    struct timer tick;
    struct timer wake; /* of the rescue */
    uint64_t term;     /* in which the refusals were noted */
    uint64_t not_before_ms;
    bool beta;   /* the version of the Eviction API */
    bool denied; /* and that was said */
    struct spared spared[LIMIT_EVICT_SPARED];
};

/* For evictor_new and evictor_free. */
void evict_rescue_init(struct evictor *e);
void evict_rescue_done(struct evictor *e);

/* p, which is pending, was refused as f says. False without memory. */
bool evict_rescue_begin(struct evictor *e, const struct refusal *f, const struct pod *p);

/* It is over: when this pod may be helped again, and when any. */
void evictor_rest(struct evictor *e, enum evict_end why);

/* Pods are about to be evicted by the plan. */
void evict_tell_begin(struct evictor *e);

/* This one is. */
void evict_tell_victim(struct evictor *e, const struct evict_victim *v);

/* This one was refused to us. */
void evict_tell_spared(const struct evictor *e, const struct evict_victim *v);

/* The cards are free. */
void evict_tell_room(struct evictor *e);

void evict_tell_end(struct evictor *e, enum evict_end end);
