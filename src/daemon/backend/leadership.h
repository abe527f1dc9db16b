/*
 * Whether this replica may decide, and since when. Holding the Lease is not enough: the Bindings
 * that the last leader had under way must have ended, and their results must be read.
 *
 *     follows --won--> settles --(its Bindings have ended)--> reads --(a whole list)--> decides
 *        ^                                                                                |
 *        +--------------------------- lost, handed over ----------------------------------+
 *
 * A term is the time from one "decides" to the loss of the Lease after it. A Binding that was
 * decided in one term is never sent in another: another replica may have given the same card to
 * another pod in between.
 */
#pragma once

#include "kube/election.h"

struct leadership;

/* Since the start. */
struct leadership_counts {
    uint64_t terms;
    uint64_t losses; /* of the Lease, voluntary or not */
};

struct leadership_settings {
    struct loop *loop;
    struct kube_api *api;
    const struct election_settings *election; /* NULL: this is the only replica */
    /* How long a Binding may still be under way at the API server after its sender has ended. */
    uint64_t settle_ms;
    void (*read)(void *ctx); /* list the pods again; then call leadership_read */
    bool (*idle)(void *ctx); /* no Binding of this replica is under way or in doubt */
    /* leadership_term may give another result from now on. Called within other calls; NULL: not
     * called. */
    void (*changed)(void *ctx);
    void *ctx;
    struct leadership_counts *counts; /* updated; must outlive it. NULL: not counted */
};

enum errc leadership_new(const struct leadership_settings *s, struct leadership **ret,
                         struct err *reterr) _must_use_;
struct leadership *leadership_free(struct leadership *l); /* returns NULL */

/*
 * The present term, from 1; 0: this replica may not decide. Reads the clock itself, so that it is
 * correct in the middle of a long turn of the loop.
 */
uint64_t leadership_term(const struct leadership *l);

/*
 * Whether this replica decides, follows another one whose Lease has not expired, or takes part in
 * an election without an error of its own. False: leadership_why_not has the reason.
 */
bool leadership_takes_part(const struct leadership *l);

/* Why leadership_term is 0, for people; valid until the next call. */
struct str leadership_why_not(struct leadership *l);

/* Reports a complete list of pods that was begun after the call of settings.read. */
void leadership_read(struct leadership *l);

/* Reports that kube-scheduler has called a verb; see ELECTION_ASKED_FOR. */
void leadership_asked(struct leadership *l);

/*
 * Gives up the leadership for good; no Binding may be under way. Calls `done` once: after the Lease
 * is released or, where it may not be released, in the next turn of the loop. Call it once.
 */
void leadership_resign(struct leadership *l, void (*done)(void *ctx), void *ctx);
