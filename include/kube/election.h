/*
 * Leader election by a coordination.k8s.io/v1 Lease: makes the API calls that election_step orders
 * and reports the results to a sink. The rules are in election_step.h.
 */
#pragma once

#include "kube/election_step.h"
#include "kube/kube_api.h"

struct election;

struct election_settings {
    struct str namespace; /* of the Lease; election_new copies all strings */
    struct str name;
    struct str identity; /* unique in the cluster, without white space */
    struct election_times times;
};

/* Called from the loop; the election must not be freed inside. */
struct election_sink {
    /*
     * This replica leads from now on. handed_over: the leader before it released the Lease, and no
     * request of that leader is under way. Otherwise that leader may have sent requests up to
     * ended_ms (loop time), and these may still be under way now.
     */
    void (*won)(void *ctx, bool handed_over, uint64_t ended_ms);
    void (*lost)(void *ctx);   /* this replica no longer leads; after election_stop: it has ended */
    void (*wanted)(void *ctx); /* another replica asks this leader to hand over */
    /* For a log. err: why a call failed; NULL: the calls succeed again. */
    void (*note)(void *ctx, const char *what, const struct err *err);
    void *ctx;
};

enum errc election_new(struct loop *l, struct kube_api *api, const struct election_settings *s,
                       const struct election_sink *sink, struct election **ret, struct err *reterr)
    _must_use_;
struct election *election_free(struct election *e); /* returns NULL; does not change the Lease */

/* Whether this replica leads now. Reads the clock: the loop's cached time may be old. */
bool election_leading(const struct election *e);

/* Whether another replica holds the Lease, and it has not expired. Reads the clock. */
bool election_following(const struct election *e);

/* The holder of the Lease at the last read; empty: no holder, or unknown. */
struct str election_holder(const struct election *e);

/*
 * Whether the Lease showed a leader before this one. If not, no replica ever led, or the Lease was
 * deleted or edited. Valid from sink.won on, as long as this replica leads.
 */
bool election_had_leader(const struct election *e);

/* kube-scheduler called this replica. A follower then reports it to the leader, by an annotation.
 */
void election_asked(struct election *e);

/*
 * Releases the Lease for another replica. This replica no longer leads from now on, and may lead
 * again later. A release says to the next leader that no request is under way, neither from this
 * replica nor from an earlier leader that this replica would still have to wait for: call it only
 * when that is true.
 */
void election_hand_over(struct election *e);

/* Hands over and never leads again; sink.lost reports the end. Call it once only. */
void election_stop(struct election *e);
