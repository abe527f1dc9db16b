/*
 * The backend for a Kubernetes cluster: sends Bindings and reads to the API server, and feeds the
 * cache by watches of nodes, pods, the unhealthy ConfigMaps of kube-system, and the objects of DRA.
 */
#pragma once

#include "core/cache/cache.h"
#include "core/state/measured.h"
#include "daemon/backend/backend.h"
#include "daemon/backend/dra_feed.h"
#include "daemon/backend/leadership.h"
#include "kube/election.h"
#include "kube/reflector.h"

struct kube_backend;

/* Since the start. */
struct kube_backend_counts {
    struct reflector_counts feeds[CACHE_KINDS];
    struct leadership_counts leadership;
    struct dra_feed_counts dra;
};

struct kube_backend_settings {
    struct loop *loop;
    struct cache *cache;
    struct measured *measured; /* NULL: not wanted */
    struct kube_api *api;
    unsigned page_size;
    enum config_dra dra;
    const struct election_settings *election; /* NULL: the only replica. Not stored */
    uint64_t start_settle_ms; /* how long Bindings of an earlier process may still be under way */
    struct kube_backend_counts *counts; /* updated; outlives the backend. NULL: none */
    /* Shows each pod of a list or a watch while this replica may decide, with the fault of its
     * request (code OK: none). NULL: not wanted. */
    void (*show)(void *ctx, const struct pod_view *pod, const struct err *fault);
    void *show_ctx;
    /* Another result of `ready` may follow from now on. Called within other calls; may be NULL. */
    void (*changed)(void *ctx);
    void *changed_ctx;
};

enum errc kube_backend_new(const struct kube_backend_settings *s, struct kube_backend **ret,
                           struct err *reterr) _must_use_;
struct kube_backend *kube_backend_free(struct kube_backend *b); /* returns NULL */

struct backend *kube_backend_interface(struct kube_backend *b);

/* Releases the Lease for good; no Binding may be under way. Calls `done` once, later. */
void kube_backend_resign(struct kube_backend *b, void (*done)(void *ctx), void *ctx);

/* The request that carries out a call of this backend. The simulation recognizes Bindings by it. */
const struct http_call *kube_backend_request(const struct backend_task *t);
