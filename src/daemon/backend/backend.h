/*
 * The destination of Bindings: a Kubernetes API server or the embedded cluster. One interface for
 * both, so that the code that decides is the same in both and in the simulation.
 */
#pragma once

#include "base/arena.h"
#include "io/limit.h"
#include "io/loop.h"
#include "objects/kube.h"

enum post_result {
    POST_CREATED,      /* the pod is bound */
    POST_REFUSED,      /* this request has not bound the pod */
    POST_UNAUTHORIZED, /* refused; the credentials may have been rotated */
    POST_THROTTLED,    /* refused by a rate limit before it was read; try later */
    POST_NOT_SENT,     /* did not reach a server */
    POST_ASSIGNED, /* refused because the pod is bound: a read shows where, and by which client */
    POST_OUTDATED, /* refused because the pod has changed since it was judged */
    POST_UNKNOWN,  /* it may have taken effect or may still do so: a read must show that */
};

enum get_result {
    GET_FOUND,
    GET_GONE,
    GET_FAILED, /* the read gave no information */
};

struct backend_call {
    /* The caller sets these before a post or get. The loop calls done exactly once for each. */
    void (*done)(struct backend_call *c);
    uint64_t timeout_ms;
    uint64_t term; /* leader term of the decision to post; in another term: POST_REFUSED */
    bool unsent;   /* with POST_REFUSED: cardpack itself refused, no byte was sent */

    /* Results, valid until the next post or get. */
    enum post_result post;
    enum get_result get;
    bool unauthorized; /* GET_FAILED by a 401; the credentials were read again since */
    uint64_t retry_after_ms;
    struct err err;      /* why not POST_CREATED or GET_FOUND, for people */
    struct pod_view pod; /* with GET_FOUND */

    /* For the backend only. */
    struct backend *backend;
    struct backend_task *task; /* from `open` */
    struct deferred later;
    struct arena arena;
};

struct backend {
    /* What this backend keeps for a call beyond the fields above; `close` frees it. Returns NULL
     * if an allocation fails. Both are NULL if the backend needs nothing more. */
    struct backend_task *(*open)(struct backend_call *c);
    void (*close)(struct backend_task *t);
    void (*post)(struct backend *b, struct backend_call *c, const struct binding *binding);
    void (*get)(struct backend *b, struct backend_call *c, struct str namespace, struct str name);
    void (*cancel)(struct backend_call *c); /* done is not called; the request may have been sent */
    /* Whether cardpack may decide now; if not, *ret_missing says what is missing. */
    bool (*ready)(struct backend *b, struct str *ret_missing);
    /*
     * Whether cardpack decides, or follows another replica and could take over: its cache is
     * complete. *ret_text: "" if it decides, else which replica leads, or what is missing.
     */
    bool (*stands_by)(struct backend *b, struct str *ret_text);
    /* The present leader term, from 1; 0: cardpack may not decide now. */
    uint64_t (*term)(struct backend *b);
    /* Reports that kube-scheduler has called a verb. */
    void (*asked)(struct backend *b);
    /* Reads the credentials again, after POST_UNAUTHORIZED. */
    void (*refresh)(struct backend *b);
};

/* ERR_NOMEM: the call must not be used, and needs no backend_call_done. */
static inline enum errc _must_use_ backend_call_init(struct backend_call *c, struct backend *b)
{
    *c = (struct backend_call){.backend = b, .get = GET_FAILED}; /* nothing has been read */
    arena_init(&c->arena, LIMIT_OBJECT_ARENA);
    if (b->open == NULL)
        return OK;
    c->task = b->open(c);
    return c->task == NULL ? ERR_NOMEM : OK;
}

static inline void backend_call_done(struct backend_call *c)
{
    c->backend->cancel(c);
    if (c->task != NULL)
        c->backend->close(c->task);
    arena_done(&c->arena);
}
