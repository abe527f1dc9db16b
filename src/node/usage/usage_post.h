/*
 * Writes what pods use into the ConfigMap kube-system/cardpack-usage-NODE, for cardpack: when the
 * figures have changed, at most every write_ms, and every USAGE_POST_ALIVE_MS at least, so that a
 * reader sees that they are kept up to date. In the background; a write that fails is repeated. At
 * the end the ConfigMap stays as it is, and its time shows how old it is.
 */
#pragma once

#include "io/loop.h"
#include "kube/kube_api.h"
#include "node/usage/usage_tally.h"

#define USAGE_POST_ALIVE_MS UINT64_C(300000)

struct usage_post;

/* Since the start. */
struct usage_post_counts {
    uint64_t written;
    uint64_t failures;
};

/* Borrowed until usage_post_free, but for the node's name, which is copied. */
struct usage_post_settings {
    struct loop *loop;
    struct kube_api *api;
    struct str node;
    struct usage_tally *tally;
    uint64_t write_ms;
    uint64_t round_ms;                                 /* how often usage_post_weigh is called */
    void (*compared)(void *ctx, struct usage_view *v); /* as in usage_meter_settings */
    void *ctx;
};

enum errc usage_post_new(const struct usage_post_settings *s, struct usage_post **ret,
                         struct err *reterr) _must_use_;
struct usage_post *usage_post_free(struct usage_post *p); /* returns NULL */

/* The tally has new figures: writes them if they are due. */
void usage_post_weigh(struct usage_post *p);

/* What `compared` sets has changed: the next usage_post_weigh writes it, when write_ms is over. */
void usage_post_urge(struct usage_post *p);

struct usage_post_counts usage_post_counts(const struct usage_post *p);
