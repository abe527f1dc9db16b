/*
 * Where Bindings go: a Kubernetes API server, or the embedded cluster. One interface, so that
 * everything that decides is the same code in both, and in the simulation.
 */
#pragma once

#include "kube.h"
#include "kube_api.h"

enum post_result {
    POST_CREATED,      /* it is bound */
    POST_REFUSED,      /* it surely is not, by this request */
    POST_UNAUTHORIZED, /* refused for credentials that may just have rotated */
    POST_THROTTLED,    /* turned away unread; try later */
    POST_NOT_SENT,     /* never reached a server */
    POST_ASSIGNED,     /* refused, because the pod is bound: by whom and where, a read says */
    POST_UNKNOWN,      /* may have taken effect, or may still: only reading back can tell */
};

enum get_result {
    GET_FOUND,
    GET_GONE,
    GET_FAILED, /* nothing is known */
};

struct backend_call {
    /* Set by the caller once. Called from the loop, exactly once for each post or get. */
    void (*done)(struct backend_call *c);
    uint64_t timeout_ms;
    uint64_t term; /* of the decision behind a post: in another one it is POST_REFUSED */

    /* Results, valid until the next post or get. */
    enum post_result post;
    enum get_result get;
    uint64_t retry_after_ms;
    struct err err;      /* why not CREATED or FOUND, for people */
    struct pod_view pod; /* FOUND */

    /* The backend's. */
    struct backend *backend;
    struct kube_call kube;
    struct deferred later;
    struct arena arena;
    struct buf body;
};

struct backend {
    void (*post)(struct backend *b, struct backend_call *c, const struct binding *binding);
    void (*get)(struct backend *b, struct backend_call *c, struct str namespace, struct str name);
    void (*cancel)(struct backend_call *c); /* done will not come; the request may have been sent */
    /* Whether it may decide now; if not, what is missing. */
    bool (*ready)(struct backend *b, struct str *ret_missing);
    /* Of the leadership, from 1; 0: it may not decide now. */
    uint64_t (*term)(struct backend *b);
    /* A scheduler has called a verb. */
    void (*asked)(struct backend *b);
    /* Credentials anew, after POST_UNAUTHORIZED. */
    void (*refresh)(struct backend *b);
};

void backend_call_init(struct backend_call *c, struct backend *b);
void backend_call_done(struct backend_call *c);
