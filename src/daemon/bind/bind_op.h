/*
 * One bind, from its first request to a certain end: the requests that wait for it, and the card
 * that the cache holds for its pod. bind.c decides when each of these functions is called.
 *
 * An op outlives the requests that wait for it: a reservation in doubt is followed up without any
 * request. The ops are at most as many as connections, plus those in doubt, so a list is enough.
 */
#pragma once

#include "base/list.h"
#include "core/cache/cache.h"
#include "daemon/backend/backend.h"
#include "daemon/bind/bind_step.h"
#include "daemon/bind/node_lock.h"
#include "extender/extender.h"
#include "io/http_server.h"
#include "kube/events.h"

struct bind_load;
struct unlocker;

struct bind_waiter {
    struct http_request *request;
    struct bind_waiter *next; /* singly linked: the waiters are answered all at once */
};

struct bind_op {
    struct binder *binder;
    struct list_link link; /* in the binder's `ops` or `ended`, or the unlocker's */
    struct str uid;        /* the strings are stored behind the struct */
    struct str namespace;
    struct str name;
    struct str node;
    struct binding binding;
    struct buf texts; /* text of the binding's annotations */
    struct binding_seat seats[REQUEST_DEMANDS_MAX];
    struct bind_machine machine;
    struct backend_call call;
    struct node_lock lock; /* of the node, in a dialect that has one */
    struct timer wake;
    struct timer deadline;
    struct bind_waiter *waiters; /* each one is in the arena of its request */
    struct err why;              /* the last error */
    uint64_t start_ms;
    uint64_t sent_ns; /* when the last Binding was sent, by loop_clock_ns */
    unsigned writes;
    unsigned char outcome; /* enum request_outcome, of the waiting requests */
    bool reserved;         /* the cache holds a card for the pod */
    struct former former;  /* what the Binding overwrites */
    bool started;          /* its look-up is done: queued for the node, or further */
    bool reread;           /* the look-up was repeated after a 401 */
    bool met;              /* the watch or a read has shown the pod */
    bool locking;          /* the next Binding waits for the lock */
    /* For unlock.c. */
    struct unlocker *unlocker;
    uint64_t unlock_until_ms;
    uint64_t unlock_pause_ms;
};

/* The caller sets binder, start_ms, the callbacks and the timeout. NULL: allocation failed. */
struct bind_op *bind_op_new(const struct bind_args *args, struct backend *backend);

/* The op must be in no list, and have no timer and no waiting request. Cancels its call. */
void bind_op_free(struct bind_op *op);

/*
 * Answers r with status 200, because kube-scheduler reads no other answer; "" is success. An error
 * counts as OUTCOME_ERROR, unless r->outcome is set.
 */
void bind_op_respond(struct http_request *r, struct str error);

/* Posts a Normal event with the node and the cards. p: the bound pod; NULL: it holds no card. */
void bind_op_tell_place(const struct bind_op *op, struct events *events, const struct pod *p);

/* Answers all waiting requests. */
void bind_op_answer(struct bind_op *op, struct str error);

/*
 * What the pod of the last GET asks for. Fails if it is not the requested pod, or can't be bound to
 * the node any more.
 */
enum errc bind_op_check(const struct bind_op *op, struct request *ret, struct err *reterr)
    _must_use_;

/*
 * Reserves a card in the cache, so that no other pod gets it, and writes the annotations for the
 * Binding. On failure nothing is reserved, and `why` says why; ERR_UNAVAILABLE: the node is not
 * feasible.
 */
enum errc bind_op_reserve(struct bind_op *op, struct cache *cache, const struct request *request,
                          struct step_budget *step_budget, uint64_t now_ns, struct buf *why)
    _must_use_;

/*
 * Evaluates the reservation again before each send: the node may have changed while the op waited
 * for its turn or for a retry. Also renews ASSUME_TIME, so that a resent Binding is younger than
 * those that the node got meanwhile. If an earlier copy takes effect after all, it names the same
 * card. ERR_UNAVAILABLE: the node is not feasible any more, or the pod's request was changed;
 * op->why says which. ERR_NOTFOUND: the pod holds no card for this bind any more.
 */
enum errc bind_op_renew(struct bind_op *op, struct cache *cache, uint64_t now_ns) _must_use_;

/*
 * Whether the last GET, which shows the pod unbound, shows another request than the reserved one:
 * op->why says so then. Otherwise the next Binding is for the version that the GET shows.
 */
bool bind_op_is_edited(struct bind_op *op, const struct cache *cache);

/* What the last GET shows of the pod, beside what the Binding asks for. */
enum bind_seen bind_op_compare(const struct bind_op *op);

/*
 * The pod is bound as asked: confirms the reservation. read_back: the last GET has shown it. False:
 * that is no proof for this pod, and a read must show that.
 */
bool bind_op_confirm(struct bind_op *op, struct cache *cache, bool read_back) _must_use_;

/*
 * This bind did not bind the pod: releases the card. If a read has shown that another client bound
 * the pod, the cards of the pod's annotations are held instead. False: that read may be older than
 * what the watch showed of the pod, and contradicts it.
 */
bool bind_op_release(struct bind_op *op, struct cache *cache, uint64_t now_ns) _must_use_;

/* Whether the cache's pod of this UID is the requested one and may be, or is, bound to the node. */
enum errc bind_op_check_known(const struct pod *p, const struct bind_args *args, struct err *reterr)
    _must_use_;

/* Whether the annotations depend on the pod's containers, which the cache does not keep:
 * elastic-gpu's have their names, those of HAMi's family have a part for each. */
bool bind_op_needs_pod(const struct request *r);

/* Answers the waiting requests that the outcome is not known yet. */
void bind_op_answer_in_doubt(struct bind_op *op);

void bind_op_log_bound(const struct bind_op *op, uint64_t now_ms);

/* The error of a request for another node. */
enum errc bind_op_say_busy(const struct bind_op *op, struct err *reterr);

/* Adds the op to a load. */
void bind_op_count(const struct bind_op *op, struct bind_load *ret);

/* Sets op->why where the watch shows the pod on another node. */
void bind_op_say_elsewhere(struct bind_op *op);

/* Completes op->why for a bind that did not bind the pod. */
void bind_op_say_canceled(struct bind_op *op, enum bind_seen seen);

/* Whether the device plugin looks for a lock. A pod without a card has no dialect's annotations. */
bool bind_op_needs_lock(const struct bind_op *op);

/* Cancels the take of the lock. No Binding is under way, so no doubt about one begins. */
void bind_op_stop_locking(struct bind_op *op, uint64_t now_ms);
