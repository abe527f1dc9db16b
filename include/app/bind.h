/*
 * The bind verb: check and reserve in memory, post one Binding, and answer when its outcome is
 * certain, or when the one who asked can't wait longer. Several binds are under way at a time, but
 * to one node only one Binding is: the order of ASSUME_TIME is then the order in which the node's
 * kubelet sees the pods, which is what the device plugin relies on (contract gpushare 2.5).
 *
 * Asking twice for the same pod and node joins the bind that is under way, or succeeds at once
 * where it is done. Asking for another node meanwhile is refused.
 */
#pragma once

#include "backend.h"
#include "cache.h"
#include "http_server.h"

struct binder;

struct binder_settings {
    struct loop *loop;
    struct cache *cache;
    struct backend *backend;
    uint64_t timeout_ms; /* from the request to its answer; below the scheduler's httpTimeout */
};

enum errc binder_new(const struct binder_settings *s, struct binder **ret, struct err *reterr)
    _must_use_;

/* Answers who still waits with an error and cancels all calls. Returns NULL. */
struct binder *binder_free(struct binder *b);

/* POST .../bind; always answers in the end, with status 200 and an ExtenderBindingResult. */
void binder_handle(struct binder *b, struct http_request *r);

/* Binds whose Binding may be under way or in doubt. */
size_t binder_active(const struct binder *b);
