/*
 * The bind verb: evaluate and reserve in memory, post one Binding, and answer when its outcome is
 * certain, or when kube-scheduler cannot wait longer. Binds to different nodes run at the same
 * time, but only one Binding to a node is under way. So the order of ASSUME_TIME is the order in
 * which the node's kubelet sees the pods; the device plugin relies on that.
 *
 * A repeated request for the same pod and node joins the bind that is under way, or succeeds at
 * once if the pod is bound. A request for another node is refused while the bind is under way.
 */
#pragma once

#include "core/cache/cache.h"
#include "daemon/bind/bind_step.h"
#include "io/http_server.h"
#include "kube/events.h"
#include "report/expo.h"

struct binder;
struct kube_api;

#define POST_RESULTS ((size_t)POST_UNKNOWN + 1)
#define BIND_SEENS   ((size_t)SEEN_NOTHING + 1)

/* Since the start. */
struct bind_counts {
    uint64_t posts[POST_RESULTS]; /* Bindings by result */
    uint64_t reads[BIND_SEENS];   /* reads after a Binding, by result */
    uint64_t lookups;             /* reads of pods that the watch had not shown yet */
    uint64_t doubts;              /* binds that were answered while in doubt */
    struct expo_histogram post;   /* duration of the API server's answers to Bindings */
};

/* Now. */
struct bind_load {
    size_t ops;         /* as bind_active */
    size_t waiting;     /* of these, waiting for their turn on the node */
    size_t reserved;    /* of these, with a reserved card */
    size_t in_doubt;    /* of the reserved, whose Binding may still commit */
    uint64_t oldest_ms; /* loop time at which the oldest reserved one began; the present if none */
};

struct bind_settings {
    struct loop *loop;
    struct cache *cache;
    struct backend *backend;
    struct events *events;      /* gets an event for each failed bind; may be NULL */
    bool placed_events;         /* also one for each pod that is bound */
    uint64_t timeout_ms;        /* from request to answer; below kube-scheduler's httpTimeout */
    struct bind_counts *counts; /* outlives the binder, which adds to it. NULL: none */
    struct kube_api *api;       /* for the locks of nodes; NULL: none are taken */
    struct step_budget *step_budget; /* of reservations; it outlives the binder, or is NULL */
};

enum errc bind_new(const struct bind_settings *s, struct binder **ret, struct err *reterr)
    _must_use_;

/* Answers all open requests with an error and cancels all calls. Returns NULL. */
struct binder *bind_free(struct binder *b);

/* POST .../bind; always answers, with status 200 and an ExtenderBindingResult. */
void bind_handle(struct binder *b, struct http_request *r);

/* The number of ops: binds that have not ended, those in doubt included. */
size_t bind_active(const struct binder *b);
void bind_look(const struct binder *b, struct bind_load *ret);

/* The ops, of struct bind_op, those that wait for a node in order of reservation. The simulation
 * looks at them. */
const struct list *bind_ops(const struct binder *b);
