/*
 * One pod on its way to one node, from the reservation of its card to the certain end. bind.c makes
 * ops, bind_step.h says what comes next, this does it.
 *
 * An op outlives the requests that wait for it: a reservation in doubt is followed up with nobody
 * waiting. There are as many ops as connections at most, plus those in doubt, so a list is enough.
 */
#pragma once

#include "bind.h"
#include "bind_step.h"
#include "extender.h"
#include "metrics.h"

struct bind_waiter {
    struct http_request *request;
    struct bind_waiter *next;
};

struct bind_op {
    struct binder *binder;
    struct bind_op *next; /* in order of reservation, or in ended */
    struct bind_op **link;
    struct str uid; /* these are stored behind the struct */
    struct str namespace;
    struct str name;
    struct str node;
    struct binding binding;
    struct buf texts; /* of the binding's annotations */
    struct bind_machine machine;
    struct backend_call call;
    struct timer wake;
    struct timer deadline;
    struct bind_waiter *waiters; /* each in its own request's arena */
    struct err why;              /* the last thing that went wrong */
    uint64_t start_ms;
    uint64_t sent_ns; /* the last Binding, by loop_clock_ns */
    unsigned writes;
    unsigned char outcome; /* enum metrics_outcome for who waits */
    bool reserved;         /* the cache holds a card for it */
    bool started;          /* past its look-up: queued for its node, or further */
    bool met;              /* the pod surely was there: the watch, or a read, has shown it */
};

struct binder {
    struct loop *loop;
    struct cache *cache;
    struct backend *backend;
    struct events *events;
    uint64_t timeout_ms;
    struct bind_op *ops;
    struct bind_op **tail;
    size_t n_ops;
    struct binder_counts own; /* where nobody wants them */
    struct binder_counts *counts;
    struct bind_op *ended;
    struct deferred reap; /* frees them */
};

/* In the list, with its deadline running; not started. NULL without memory. */
struct bind_op *bind_op_new(struct binder *b, const struct bind_args *args);

/* r is answered when the op ends, or at the deadline, which starts anew. ERR_NOMEM: it is not. */
enum errc bind_op_join(struct bind_op *op, struct http_request *r) _must_use_;

/* Completes op->binding for the cards that p holds. False without memory. */
bool bind_op_hold(struct bind_op *op, const struct pod *p, int64_t card_total, uint64_t assume_ns);

/* Queues it for its node; op->binding is complete. */
void bind_op_start(struct bind_op *op);

/* Answers who waits, "" for success, and ends the op, which must not hold a reservation any more.
 */
void bind_op_finish(struct bind_op *op, struct str error);

/* A Warning on the pod, which surely is there, for people who ask why it is not bound. */
void bind_tell(struct binder *b, const struct event_subject *pod, struct str error);

/* The binder's reap.run. */
void bind_op_reap(struct deferred *d);

/* For binder_free: answers, cancels its call, frees at once. */
void bind_op_abandon(struct bind_op *op);

/*
 * Every answer of the verb: status 200, without which the scheduler reads nothing; "" is success.
 * An error counts as one, unless the request's outcome says otherwise.
 */
void bind_respond(struct http_request *r, struct str error);
