/*
 * Releases the locks of nodes after their binds have ended (node_lock.h), where the device plugin
 * does not: if the pod is not bound, or if the pod was served before the last Binding took the lock
 * again. A lock that names no pod is also released when the pod is gone before it was served: only
 * the process that has set the lock knows for which pod it is. While the API server does not
 * answer, it is tried again until the lock is too old to keep any pod waiting.
 */
#pragma once

#include "daemon/bind/bind_op.h"

struct unlocker {
    struct loop *loop;
    const struct cache *cache;
    struct list ops;                   /* those whose lock is, or may have to be, released */
    void (*ended)(struct bind_op *op); /* the op is in no list, and has no timer */
};

/* op: it has tried to take the lock, and is in no list. failed: its pod is not bound. `ended` comes
 * now or later. */
void unlock_begin(struct unlocker *u, struct bind_op *op, bool failed);

/* Frees the ops. */
void unlock_done(struct unlocker *u);
