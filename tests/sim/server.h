/*
 * The simulated API server: the real one's semantics for the requests that cardpack sends, in
 * bytes, with network faults. bindings.h and lists.h of tests/api name their sources in Kubernetes.
 *
 * When a Binding commits late. A request with ?timeout=Ns expires N seconds after its arrival; one
 * without expires after 60 s, the API server's --request-timeout. What its handler gave to etcd by
 * then commits within one more second. Until then the Binding may commit at any time, even if its
 * sender has died: the server does not know the timeouts of cardpack.
 *
 * A request takes at most 4 s on the way, also if a proxy sends it a second time. A proxy repeats
 * only a request that was answered the first time, or whose second answer says no more than the
 * first.
 *
 * A proxy that sends a Binding twice may deliver either copy within these 4 s, whatever the answer
 * to the other copy was. If the API server refused the answered copy (4xx), nothing is promised of
 * the other one: cardpack reads the pod once and releases the card. These commits are counted by
 * kind, too.
 *
 * A rogue history breaks these rules, rarely: the API server commits a Binding after its deadline,
 * or a proxy delivers a copy minutes later. Then nothing can be promised. The over-commits that
 * follow are counted by kind; see struct world.
 */
#pragma once

#include "net.h"

#define SIM_SERVER STR("https://api.sim:6443")

struct pending;

void server_reset(void);

/* A request has arrived. */
void server_arrive(struct flight *f);

/* How far watch caches that lag are behind, in ms. They serve watches, and sometimes reads with
 * resourceVersion=0. All other reads are quorum reads. */
uint64_t server_lag_ms(void);

/* Objects of this kind have changed: sends events to the watches. */
void server_tell(unsigned kind);

/* Breaks all connections; the server is down for `away_ms`. */
void server_restart(uint64_t away_ms);
bool server_is_up(void);

/* Forgets the history of changes: older watches get 410. */
void server_compact(void);

void server_rotate_token(void);
struct name server_token(void);

/* The number of Bindings that may still commit. */
size_t server_pending(void);

/* Whether a Binding of another process, or of this one before its restart, may still bind its pod
 * by the rules above. */
bool server_may_bind_for_others(const struct proc *p);

/* Whether each of the process' watches has sent all changes. */
bool server_told_all(const struct proc *p);

/* ---- within the server ---- */

/* Replies with this Status. */
void reply_status(struct flight *f, unsigned code, const char *reason, const char *message,
                  const char *more);

void serve_binding(struct flight *f, const struct api_request *r);
/* Makes a copy, which arrives later, as from a proxy that sends a Binding twice. The original gets
 * the answer. */
struct pending *copy_binding(const struct flight *f, const struct api_request *r);
void copy_answered(struct pending *copy, unsigned status);
void serve_node(struct flight *f, const struct api_request *r);
/* The API server has refused the request for lack of a right. */
void locks_refused(const struct flight *f, const struct api_request *r);
void serve_eviction(struct flight *f, const struct api_request *r);
void serve_list(struct flight *f, unsigned kind, struct str query);
void serve_watch(struct flight *f, unsigned kind, struct str query);
void serve_lease(struct flight *f, const struct api_request *r);
void lease_writes_reset(void);
void leases_deny(unsigned sender); /* toggles: a denied process may use the Lease again */
/* When the process sent the last write with which it holds a Lease, in ms. */
uint64_t leases_renewed_ms(unsigned sender);
/* The sender of a late write may end or pause soon: it no longer follows the write. */
void server_orphan(unsigned sender);
void bindings_reset(void);
void bindings_end_with_server(void);
