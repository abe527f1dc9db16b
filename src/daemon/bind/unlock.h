/*
 * Releases the locks of nodes after their binds have ended (node_lock.h). While the API server does
 * not answer, it is tried again until the lock is too old to keep any pod waiting.
 */
#pragma once

#include "daemon/bind/bind_op.h"

struct unlocker {
    struct loop *loop;
    struct list ops;                   /* those whose lock is being released */
    void (*ended)(struct bind_op *op); /* the op is in no list, and has no timer */
};

/* op: in no list. `ended` comes later. */
void unlock_begin(struct unlocker *u, struct bind_op *op);

/* Frees the ops. */
void unlock_done(struct unlocker *u);
