/*
 * Feeds the cache with what Dynamic Resource Allocation gives away: ResourceSlices, ResourceClaims
 * and DeviceClasses of resource.k8s.io/v1, which API servers serve from 1.34 on.
 *
 * With CONFIG_DRA_AUTO, an API server that does not serve them (404), or does not allow to read
 * them (403), counts as one without: cardpack decides without them, and looks again from time to
 * time. The log and a metric say so. Until the API server has answered at all, and with
 * CONFIG_DRA_ON until all lists are in, nothing is decided.
 */
#pragma once

#include "daemon/config/config_value.h"
#include "kube/ingest.h"
#include "kube/kube_api.h"
#include "kube/reflector.h"

struct dra_feed;

enum dra_feed_kind {
    DRA_FEED_CLAIMS,
    DRA_FEED_SLICES,
    DRA_FEED_CLASSES,
    DRA_FEED_KINDS
};

/* The name of the resource, as in a path and in a rule of RBAC: "resourceclaims". */
struct str dra_feed_resource(enum dra_feed_kind kind);

enum dra_feed_state {
    DRA_FEED_WAITS, /* no answer yet that says more */
    DRA_FEED_SYNCED,
    DRA_FEED_ABSENT,
    DRA_FEED_DENIED,
    DRA_FEED_STATES
};

struct dra_feed_counts {
    struct reflector_counts feeds[DRA_FEED_KINDS];
    enum dra_feed_state states[DRA_FEED_KINDS];
};

struct dra_feed_settings {
    struct loop *loop;
    struct kube_api *api;
    struct ingest *ingest;
    unsigned page_size;
    enum config_dra dra;              /* not CONFIG_DRA_OFF */
    struct reflector_backoff backoff; /* zero: the reflector's default; tests set shorter times */
    uint64_t again_ms;                /* until an API server without DRA is asked again; 0: 60 s */
    struct dra_feed_counts *counts;
};

/* Begins to list in the loop's next turn. All that `s` points to must outlive the feed. */
enum errc dra_feed_new(const struct dra_feed_settings *s, struct dra_feed **ret, struct err *reterr)
    _must_use_;
struct dra_feed *dra_feed_free(struct dra_feed *f); /* accepts NULL; returns NULL */

/* What must come before anything is decided; empty: nothing. NULL: no feed is wanted. */
struct str dra_feed_missing(const struct dra_feed *f);

/* The same for an object that was lost for lack of memory. */
struct str dra_feed_lost(const struct dra_feed *f);
