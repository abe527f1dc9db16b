/*
 * Lets the policies with costs learn: when enough pods came, or some time after the cluster has
 * changed, and in small steps, so that no request waits for it. Not before the first lists are in:
 * a part of a cluster teaches nothing, and a lesson's memory of a megabyte would leave a hole
 * between the objects that come meanwhile.
 */
#pragma once

#include "core/cache/cache.h"
#include "daemon/backend/backend.h"
#include "io/loop.h"

struct learn {
    struct loop *loop;
    struct cache *cache;
    struct backend *backend;
    struct timer tick;
    uint64_t learned_ms; /* loop time at which the latest lesson began */
    uint64_t version;    /* of the cache's changes then */

    /* Sums over the nodes, after each lesson; in cards. */
    bool known;
    double waste; /* idle cards that the expected pods cannot use: see fgd_waste */
    double value; /* of what is idle: see market_value */

    /* The sums in progress. */
    bool summing;
    size_t cursor;
    uint64_t moves; /* of the cache's map of nodes, when they began */
    double waste_so_far;
    double value_so_far;
};

/* The loop, the cache and the backend outlive it. */
void learn_start(struct learn *l, struct loop *loop, struct cache *cache, struct backend *backend);
void learn_stop(struct learn *l);
