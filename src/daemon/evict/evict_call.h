/* One call to the Eviction API, and what its answer means. */
#pragma once

#include "daemon/evict/evict_step.h"
#include "kube/kube_api.h"
#include "objects/eviction.h"

struct evict_call {
    /* Set by the caller once. */
    struct loop *loop;
    struct kube_api *api;
    bool (*may_send)(struct evict_call *c); /* asked just before the request is sent */
    void (*done)(struct evict_call *c);     /* from the loop, once for each start */

    /* Results. */
    enum evict_answer answer;
    struct err err; /* why the answer is not EVICT_GRANTED, for a log or an Event */

    /* Private. */
    struct kube_call kube;
    struct arena arena;
    struct buf body;
    struct buf path;
    struct deferred later;
};

void evict_call_init(struct evict_call *c);
void evict_call_done(struct evict_call *c);

/* dry: a dry run, which changes nothing. */
void evict_call_start(struct evict_call *c, const struct eviction *e, bool dry);

/* done will not be called. The request may have been sent already. */
void evict_call_cancel(struct evict_call *c);
