/*
 * Whether this process may decide, and since when. To win the lease is not enough: what the leader
 * before had under way must have ended, and what it did must be read.
 *
 *     follows --won--> settles --(its Bindings have ended)--> reads --(a whole list)--> decides
 *        ^                                                                                |
 *        +--------------------------- lost, handed over ----------------------------------+
 *
 * A term is the time from one "decides" to the loss after it. Nothing that was begun in one term is
 * sent in another: somebody else may have given the same card away in between.
 */
#pragma once

#include "election.h"

struct leadership;

/* Since the start. */
struct leadership_counts {
    uint64_t terms;  /* begun */
    uint64_t losses; /* of the lease, wanted or not */
};

struct leadership_settings {
    struct loop *loop;
    struct kube_api *api;
    const struct election_settings *election; /* NULL: there is no other replica, ever */
    /* How long a Binding may still be under way at the API server when its sender is gone. */
    uint64_t settle_ms;
    void (*read)(void *ctx); /* begin to read the pods anew; leadership_read says when that is in */
    bool (*idle)(void *ctx); /* no Binding of ours is under way or in doubt */
    void *ctx;
    struct leadership_counts *counts; /* added to; outlives it. NULL: nobody counts */
};

enum errc leadership_new(const struct leadership_settings *s, struct leadership **ret,
                         struct err *reterr) _must_use_;
struct leadership *leadership_free(struct leadership *l); /* returns NULL */

/* The number of the term, from 1; 0: it may not decide. At this very moment, by a clock read anew.
 */
uint64_t leadership_term(const struct leadership *l);

/* Why not; borrowed until the next call. */
struct str leadership_why_not(struct leadership *l);

/* A list of pods is in whole, which was begun after settings.read was called. */
void leadership_read(struct leadership *l);

/* A scheduler has called a verb: see ELECTION_ASKED_FOR. */
void leadership_asked(struct leadership *l);

/* For good, and with nothing under way: done is called when who comes next can know. Once. */
void leadership_resign(struct leadership *l, void (*done)(void *ctx), void *ctx);

/* From the next term on: one that settles already does so for as long as it was told. */
void leadership_set_settle(struct leadership *l, uint64_t settle_ms);
