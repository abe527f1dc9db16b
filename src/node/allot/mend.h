/*
 * Carries out the steps of exchange.h: PATCHes of pods, a few at a time, repeated until they have
 * succeeded or are not needed any more. A pod whose PATCHes the API server refuses by itself (its
 * annotations are full, an admission webhook denies it) is left alone after some tries, and tried
 * again every MEND_RETRY_MS; an event and the log name it and the reason. So is one whose PATCHes
 * have failed with a status of 5xx for MEND_FAILING_MS, as when an admission webhook is down.
 */
#pragma once

#include "base/arena.h"
#include "kube/events.h"
#include "kube/kube_api.h"
#include "node/allot/exchange.h"

#define MEND_CALLS      8
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
    void (*changed)(void *ctx); /* the roster has changed by an answer, or the pause has ended */
    void *ctx;
    struct mend_call calls[MEND_CALLS];
    struct arena arena;
    struct timer again;
    struct timer retry; /* of the pods that are left alone */
    uint64_t pause_ms;  /* 0: the last call succeeded */
    struct err last;    /* why the last call failed; OK: it did not */
    struct mend_counts counts;
};

/* Borrows all but the ctx, which it passes on. */
void mend_init(struct mend *m, struct loop *l, struct kube_api *api, struct events *events,
               struct roster *r, void (*changed)(void *ctx), void *ctx);
void mend_done(struct mend *m);

/* Sends what is due. Call it after each change of the roster, when exchange_plan has been called.
 */
void mend_step(struct mend *m);
