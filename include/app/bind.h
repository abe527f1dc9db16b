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

#include "bind_step.h"
#include "cache.h"
#include "events.h"
#include "expo.h"
#include "http_server.h"

struct binder;

#define POST_RESULTS ((size_t)POST_UNKNOWN + 1)
#define BIND_SEENS   ((size_t)SEEN_NOTHING + 1)

/* Since the start. */
struct binder_counts {
    uint64_t posts[POST_RESULTS]; /* Bindings by their answers */
    uint64_t reads[BIND_SEENS];   /* read back, by what was seen */
    uint64_t lookups;             /* reads of pods that the watch had not shown */
    uint64_t doubts;              /* binds that were in doubt when they had to be answered */
    struct expo_histogram post;   /* how long the API server took for a Binding */
};

/* Now. */
struct binder_load {
    size_t ops;         /* as binder_active */
    size_t waiting;     /* of these, for their node's turn */
    size_t reserved;    /* those that hold a card */
    size_t in_doubt;    /* and whose Binding may still commit */
    uint64_t oldest_ms; /* since when the oldest of the reserved is there; now without one */
};

struct binder_settings {
    struct loop *loop;
    struct cache *cache;
    struct backend *backend;
    struct events *events; /* where the pods of failed binds are told; may be NULL */
    uint64_t timeout_ms;   /* from the request to its answer; below the scheduler's httpTimeout */
    struct binder_counts *counts; /* added to; outlives the binder. NULL: nobody counts */
};

enum errc binder_new(const struct binder_settings *s, struct binder **ret, struct err *reterr)
    _must_use_;

/* Answers who still waits with an error and cancels all calls. Returns NULL. */
struct binder *binder_free(struct binder *b);

/* POST .../bind; always answers in the end, with status 200 and an ExtenderBindingResult. */
void binder_handle(struct binder *b, struct http_request *r);

/* Binds whose Binding may be under way or in doubt. */
size_t binder_active(const struct binder *b);
void binder_look(const struct binder *b, struct binder_load *ret);

/* Of binds that begin from now on. */
void binder_set_timeout(struct binder *b, uint64_t timeout_ms);
