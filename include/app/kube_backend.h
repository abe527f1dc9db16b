/*
 * The backend that is a Kubernetes cluster: Bindings and reads through its API server, and the
 * cache fed by watches of nodes, pods and the unhealthy ConfigMaps of kube-system.
 */
#pragma once

#include "backend.h"
#include "cache.h"
#include "election.h"
#include "leadership.h"
#include "reflector.h"

/*
 * kube-scheduler's own selection of pods: one that ends leaves it, and comes as deleted with its
 * old content.
 */
#define KUBE_BACKEND_POD_SELECTOR \
    STR("fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed")

struct kube_backend;

/* Since the start; and now. */
struct kube_backend_counts {
    struct reflector_counts feeds[CACHE_KINDS];
    struct leadership_counts leadership;
};

struct kube_backend_settings {
    struct loop *loop;
    struct cache *cache;
    struct kube_api *api;
    unsigned page_size;
    const struct election_settings *election; /* NULL: this is the only replica; not kept */
    uint64_t start_settle_ms; /* how long Bindings of a process before may still be under way */
    struct kube_backend_counts *counts; /* kept up to date, outlives it; NULL: nobody counts */
};

enum errc kube_backend_new(const struct kube_backend_settings *s, struct kube_backend **ret,
                           struct err *reterr) _must_use_;
struct kube_backend *kube_backend_free(struct kube_backend *b); /* returns NULL */

struct backend *kube_backend_interface(struct kube_backend *b);

/* Gives the lease up, for good; nothing may be under way. done comes once, later. */
void kube_backend_resign(struct kube_backend *b, void (*done)(void *ctx), void *ctx);

/* Of the next lists, and of the next leadership. */
void kube_backend_tune(struct kube_backend *b, unsigned page_size, uint64_t start_settle_ms);
