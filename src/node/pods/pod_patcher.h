/*
 * Carries out the steps of exchange.h: PATCHes of pods, a few at a time, repeated until they have
 * succeeded or are not needed any more. A pod whose PATCHes the API server refuses by itself (its
 * annotations are full, an admission webhook denies it) is left alone after some tries, and tried
 * again every POD_PATCHER_RETRY_MS; an event and the log name it and the reason. So is one whose
 * PATCHes have failed with a status of 5xx for POD_PATCHER_FAILING_MS, as when an admission webhook
 * is down, or POD_PATCHER_CONFLICTS times in a row and for POD_PATCHER_CONTENDED_MS because the pod
 * had changed.
 *
 * A PATCH that was sent POD_PATCHER_LATE_MS ago has been applied by now, or never will be: within
 * LIMIT_UNACKNOWLEDGED_MS it has reached the API server, which drops it LIMIT_PATCH_MS later
 * (?timeout= of the request), and LIMIT_PATCH_COMMIT_MS is for what has gone on to etcd by then. A
 * list that begins after that ends all doubts (exchange.h).
 */
#pragma once

#include "base/arena.h"
#include "io/limit.h"
#include "kube/events.h"
#include "kube/kube_api.h"
#include "node/limit.h"
#include "node/roster/exchange.h"

#define POD_PATCHER_CALLS        8
#define POD_PATCHER_LATE_MS      (LIMIT_UNACKNOWLEDGED_MS + LIMIT_PATCH_MS + LIMIT_PATCH_COMMIT_MS)
#define POD_PATCHER_RETRY_MS     UINT64_C(60000)
#define POD_PATCHER_FAILING_MS   UINT64_C(300000)
#define POD_PATCHER_CONTENDED_MS UINT64_C(10000)
#define POD_PATCHER_CONFLICTS    20
#define POD_PATCHER_CALM_MS      UINT64_C(300000) /* without an edit: then at once again */

struct pod_patcher;

struct pod_patcher_call {
    struct pod_patcher *owner; /* NULL: free */
    struct kube_call call;
    struct buf body;
    char *uid; /* of the pod; owned */
    enum exchange_action action;
};

struct pod_patcher_counts {
    uint64_t sent;
    uint64_t failures;
    uint64_t moved; /* pods whose cards were written anew */
};

struct pod_patcher {
    struct loop *loop;
    struct kube_api *api;
    struct events *events; /* NULL: no events */
    struct roster *roster;
    void (*changed)(void *ctx); /* the roster has changed by an answer, the pause has ended, or
                                   `passed` is true */
    void *ctx;
    struct pod_patcher_call calls[POD_PATCHER_CALLS];
    struct arena arena;
    struct timer again;
    struct timer retry;  /* of the pods that are left alone, or whose new version does not come */
    struct timer rested; /* of the first of the pods that are edited again and again */
    struct timer late;
    bool passed; /* POD_PATCHER_LATE_MS have passed since the start and since the last PATCH without
                    an outcome */
    uint64_t pause_ms; /* 0: the last call succeeded */
    struct err last;   /* why the last call failed; OK: it did not */
    struct pod_patcher_counts counts;
};

/* Borrows all but the ctx, which it passes on. */
void pod_patcher_init(struct pod_patcher *m, struct loop *l, struct kube_api *api,
                      struct events *events, struct roster *r, void (*changed)(void *ctx),
                      void *ctx);
void pod_patcher_done(struct pod_patcher *m);

/* Sends what is due. Call it after each change of the roster, when exchange_plan has been called.
 */
void pod_patcher_step(struct pod_patcher *m);
