/*
 * Carries out the steps of exchange.h: PATCHes of pods, a few at a time, repeated until they have
 * succeeded or are not needed any more. A pod whose PATCHes the API server refuses by itself (its
 * annotations are full, an admission webhook denies it) is left alone after some tries, and tried
 * again every MEND_RETRY_MS; an event and the log name it and the reason. So is one whose PATCHes
 * have failed with a status of 5xx for MEND_FAILING_MS, as when an admission webhook is down.
 *
 * A PATCH that was sent MEND_LATE_MS ago has been applied by now, or never will be: within
 * LIMIT_UNACKNOWLEDGED_MS it has reached the API server, which drops it LIMIT_PATCH_MS later
 * (?timeout= of the request), and LIMIT_PATCH_COMMIT_MS is for what has gone on to etcd by then. A
 * list that begins after that ends all doubts (exchange.h).
 */
#pragma once

#include "base/arena.h"
#include "io/limit.h"
#include "kube/events.h"
#include "kube/kube_api.h"
#include "node/allot/exchange.h"
#include "node/limit.h"

#define MEND_CALLS      8
#define MEND_LATE_MS    (LIMIT_UNACKNOWLEDGED_MS + LIMIT_PATCH_MS + LIMIT_PATCH_COMMIT_MS)
#define MEND_RETRY_MS   UINT64_C(60000)
#define MEND_FAILING_MS UINT64_C(300000)

struct mend;

struct mend_call {
    struct mend *owner; /* NULL: free */
    struct kube_call call;
    struct buf body;
    char *uid; /* of the pod; owned */
    enum exchange_action action;
};

struct mend_counts {
    uint64_t sent;
    uint64_t failures;
    uint64_t moved; /* pods whose cards were written anew */
};

struct mend {
    struct loop *loop;
    struct kube_api *api;
    struct events *events; /* NULL: no events */
    struct roster *roster;
    void (*changed)(void *ctx); /* the roster has changed by an answer, the pause has ended, or
                                   `passed` is true */
    void *ctx;
    struct mend_call calls[MEND_CALLS];
    struct arena arena;
    struct timer again;
    struct timer retry; /* of the pods that are left alone, or whose new version does not come */
    struct timer late;
    bool passed;       /* MEND_LATE_MS have passed since the start and since the last PATCH without
                          an outcome */
    uint64_t pause_ms; /* 0: the last call succeeded */
    struct err last;   /* why the last call failed; OK: it did not */
    struct mend_counts counts;
};

/* Borrows all but the ctx, which it passes on. */
void mend_init(struct mend *m, struct loop *l, struct kube_api *api, struct events *events,
               struct roster *r, void (*changed)(void *ctx), void *ctx);
void mend_done(struct mend *m);

/* Sends what is due. Call it after each change of the roster, when exchange_plan has been called.
 */
void mend_step(struct mend *m);
