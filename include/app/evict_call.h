/* One call to the Eviction API, and what its answer means. */
#pragma once

#include "evict_step.h"
#include "eviction.h"
#include "kube_api.h"

struct evict_call {
    /* Set by the caller once. */
    struct loop *loop;
    struct kube_api *api;
    bool (*may_send)(struct evict_call *c); /* at the very last moment */
    void (*done)(struct evict_call *c);     /* from the loop, once for each start */

    /* Results. */
    enum evict_answer answer;
    struct err err; /* why it is not GRANTED, for people */

    /* Private. */
    struct kube_call kube;
    struct arena arena;
    struct buf body;
    struct buf path;
    struct deferred later;
};

void evict_call_init(struct evict_call *c);
void evict_call_done(struct evict_call *c);

/* dry: ask, and change nothing. */
void evict_call_start(struct evict_call *c, const struct eviction *e, bool dry);

/* done will not come; it may have been sent. */
void evict_call_cancel(struct evict_call *c);
