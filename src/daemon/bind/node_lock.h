/*
 * The lock of a node whose device plugin takes the pod that waits there (dialect_facts.lock): an
 * annotation of the Node, with the time and, in HAMi's dialect, the pod. The scheduler sets it
 * before the Binding, and the plugin removes it when it has served the pod. HAMi's plugin finds the
 * pod by it.
 *
 *     take: GET the node -- free, ours, or too old -------> PATCH -> taken
 *              ^   |  \---- its pod is gone, has ended,
 *              |   |        or is not of this node ---------> PATCH
 *              |   \------- held ----------------------------> held
 *              +------------ the PATCH met a change, or its outcome is unknown
 *
 * Each PATCH names the resourceVersion of the GET, so it never replaces a lock that the GET did not
 * show. The value has nanoseconds, so a GET after a PATCH of unknown outcome shows whether it was
 * carried out.
 *
 * Such a PATCH may also arrive later, as long as the node does not change. So a release that does
 * not find the lock, on a node that has not changed since, first sets it and then removes it: from
 * then on the late PATCH names an old resourceVersion, and the API server refuses it.
 */
#pragma once

#include "core/state/lock.h"
#include "kube/kube_api.h"

enum node_lock_result {
    NODE_LOCK_TAKEN, /* it is ours; for a release: it is not ours any more */
    NODE_LOCK_HELD,  /* another pod's: try later */
    NODE_LOCK_FAILED /* not known; try again, or release it */
};

/* The time, and two names of Kubernetes. */
#define NODE_LOCK_BYTES 600

struct node_lock {
    /* The caller sets these. */
    struct kube_api *api;
    struct str node;
    enum dialect dialect;
    struct str namespace; /* of the pod */
    struct str name;
    bool (*may)(struct node_lock *l); /* whether a PATCH may be sent now; NULL: always */
    void (*done)(struct node_lock *l);

    enum node_lock_result result;
    struct err err; /* why it is not taken */
    char text[NODE_LOCK_BYTES];
    size_t text_n; /* the value that we write; 0: none yet */
    bool tried;    /* a PATCH may have been sent: the lock may be ours, or become ours */

    /* Private. */
    struct kube_call call;
    struct arena arena;
    struct buf body;
    struct buf version; /* resourceVersion of the last GET */
    struct buf late;    /* that of a PATCH to set the lock that may still arrive; empty: none */
    bool later;         /* an earlier PATCH than the present one may arrive, too */
    uint64_t now_ns;
    uint32_t since_s; /* of the lock of the pod that is read */
    unsigned tries;
    bool releases;
    bool fences; /* it releases, and sets the lock before */
};

void node_lock_init(struct node_lock *l);

/* Cancels the call. */
void node_lock_done(struct node_lock *l);

/* done comes later. A second take after a failed one writes the same value. */
void node_lock_take(struct node_lock *l, uint64_t now_ns);

/* Removes the lock, if its value is ours. */
void node_lock_release(struct node_lock *l);

/* Without done. A PATCH may have been sent. */
void node_lock_cancel(struct node_lock *l);

/* What a lock of this value is for a pod. */
enum node_lock_state {
    NODE_LOCK_IS_FREE, /* there is none, it is too old, can't be true (lock.h), or is this pod's
                          from an earlier try */
    NODE_LOCK_IS_OURS, /* exactly ours */
    NODE_LOCK_OF_POD,  /* of another pod, which may not exist any more */
    NODE_LOCK_OF_ANY,  /* of another pod that it does not name */
};

/* value: absent if the node has no lock. *ret: the pod that it names. */
enum node_lock_state node_lock_judge(const struct node_lock *l, struct str value, uint64_t now_ns,
                                     struct lock_view *ret);
