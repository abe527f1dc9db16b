/*
 * The bind of one pod to one node, from the reservation of its card to a certain end. bind.c
 * creates ops, bind_step.h decides the next action, and bind_op.c carries it out.
 *
 * An op outlives the requests that wait for it: a reservation in doubt is followed up without any
 * request. The ops are at most as many as connections, plus those in doubt, so a list is enough.
 */
#pragma once

#include "base/list.h"
#include "codec/extender.h"
#include "daemon/bind/bind.h"
#include "daemon/bind/bind_step.h"
#include "daemon/metrics/metrics.h"

struct bind_waiter {
    struct http_request *request;
    struct bind_waiter *next; /* singly linked: the waiters are answered all at once */
};

struct bind_op {
    struct binder *binder;
    struct list_link link; /* in the binder's `ops` or `ended` */
    struct str uid;        /* the strings are stored behind the struct */
    struct str namespace;
    struct str name;
    struct str node;
    struct binding binding;
    struct buf texts; /* text of the binding's annotations */
    struct bind_machine machine;
    struct backend_call call;
    struct timer wake;
    struct timer deadline;
    struct bind_waiter *waiters; /* each one is in the arena of its request */
    struct err why;              /* the last error */
    uint64_t start_ms;
    uint64_t sent_ns; /* when the last Binding was sent, by loop_clock_ns */
    unsigned writes;
    unsigned char outcome; /* enum metrics_outcome, of the waiting requests */
    bool reserved;         /* the cache holds a card for the pod */
    bool said_allocation; /* the pod has this annotation from an earlier Binding; ours overwrites it
                           */
    bool said_cores;
    bool started; /* its look-up is done: queued for the node, or further */
    bool reread;  /* the look-up was repeated after a 401 */
    bool met;     /* the watch or a read has shown the pod */
};

struct binder {
    struct loop *loop;
    struct cache *cache;
    struct backend *backend;
    struct events *events;
    uint64_t timeout_ms;
    struct list ops; /* in order of reservation */
    size_t n_ops;
    struct bind_counts own; /* used if the settings have no counts */
    struct bind_counts *counts;
    struct work own_work;
    struct work *work;
    struct list ended;
    struct deferred reap; /* frees the ops in `ended` */
};

/*
 * Adds a new op to the list; does not start it. bind_op_join arms its deadline. NULL:
 * allocation failed.
 */
struct bind_op *bind_op_new(struct binder *b, const struct bind_args *args);

/*
 * Answers r when the op ends, or at the deadline, which this call sets again. ERR_NOMEM: r is not
 * answered.
 */
enum errc bind_op_join(struct bind_op *op, struct http_request *r) _must_use_;

/* Completes op->binding for the cards that p holds. False: allocation failed. */
bool bind_op_hold(struct bind_op *op, const struct pod *p, int64_t card_total, uint64_t assume_ns);

/* Queues the op for its node; op->binding must be complete. */
void bind_op_start(struct bind_op *op);

/*
 * Answers all waiting requests with `error`, "" for success, and ends the op. The op must not hold
 * a reservation any more.
 */
void bind_op_finish(struct bind_op *op, struct str error);

/* Posts a Warning event that says why the pod is not bound. The pod must exist. */
void bind_op_tell(struct binder *b, const struct event_subject *pod, struct str error);

/* Frees the ended ops; for binder.reap.run. */
void bind_op_reap(struct deferred *d);

/* For bind_free: answers the requests, cancels the call and frees the op at once. */
void bind_op_abandon(struct bind_op *op);

/*
 * Answers r with status 200, because kube-scheduler reads no other answer; "" is success. An error
 * counts as OUTCOME_ERROR, unless r->outcome is set.
 */
void bind_op_respond(struct http_request *r, struct str error);
