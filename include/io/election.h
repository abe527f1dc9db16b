/*
 * Leader election by a coordination.k8s.io/v1 Lease: the calls that election_step asks for, and who
 * is told of what came of them. The rules are in election_step.h.
 */
#pragma once

#include "election_step.h"
#include "kube_api.h"

struct election;

struct election_settings {
    struct str namespace; /* of the lease; views are copied */
    struct str name;
    struct str identity; /* unique in the cluster, without white space */
    struct election_times times;
};

/* Called from the loop; the election must not be freed inside. */
struct election_sink {
    /*
     * We lead from now on. handed_over: the one before us has ended in good order. Else it may have
     * sent what is still under way, until ended_ms of our clock.
     */
    void (*won)(void *ctx, bool handed_over, uint64_t ended_ms);
    void (*lost)(void *ctx);   /* we lead no more; after election_stop: all is over */
    void (*wanted)(void *ctx); /* another one asks us to hand over */
    void (*alone)(void *ctx, uint64_t since_ms,
                  const struct err *why);                             /* as won, without a lease */
    void (*note)(void *ctx, const char *what, const struct err *err); /* for a log */
    void *ctx;
};

enum errc election_new(struct loop *l, struct kube_api *api, const struct election_settings *s,
                       const struct election_sink *sink, struct election **ret, struct err *reterr)
    _must_use_;
struct election *election_free(struct election *e); /* returns NULL; the lease is left as it is */

/* Whether we lead at this very moment: the clock is read anew. */
bool election_leading(const struct election *e);

/* Who holds the lease, as it was read last; empty: nobody, or it is not known. */
struct str election_holder(const struct election *e);

/* A scheduler asks us: if we follow, the leader is told. */
void election_asked(struct election *e);

/*
 * Give the lease to whoever wants it; we lead no more from now on, and may lead again later. A
 * release says to who comes next that nothing is under way: neither of ours, nor of a leader before
 * us whose end we would still have had to wait for.
 */
void election_hand_over(struct election *e);

/* The same for good; sink.lost says when. Not twice. */
void election_stop(struct election *e);
