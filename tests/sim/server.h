/*
 * The simulated API server: the real one's semantics (contract kubernetes 2 and 3) for the requests
 * that cardpack sends, in bytes, with everything that may go wrong on the way.
 *
 * When a Binding commits late. The product documents two assumptions on time, and the simulation
 * stays within them, with no time shortened since the clock is fake:
 *   - LIMIT_SETTLE_MS (75 s): a Binding whose answer did not come, or was a 504 or a Conflict of
 *     etcd's, commits within that time of the moment when its process gave up on it, or never;
 *   - start-settle (8 s): what a process had sent that was killed, or that has lost its lease,
 *     commits within that time of its end, or never. (A leader ends renew-deadline after it sent
 *     the last renewal that took effect.)
 * One more: a request that a proxy on the way sends a second time was done by then with the first
 * copy, or never will be.
 */
#pragma once

#include "net.h"

#define SIM_SERVER STR("https://api.sim:6443")

void server_reset(void);

/* A request has arrived. */
void server_arrive(struct flight *f);

/* Objects of this kind have changed: watches say so. */
void server_tell(enum cache_kind kind);

/* All connections die, it is away for a while. */
void server_restart(uint64_t away_ms);
bool server_is_up(void);

/* What is older is forgotten. */
void server_compact(void);

void server_rotate_token(void);
struct name server_token(void);

/* What this process has sent commits soon, or never: it was killed. */
void server_orphan(const struct proc *p, uint64_t incarnation);

/* Bindings that may still commit. */
size_t server_pending(void);

/* Whether each of the process' watches has said all there is to say. */
bool server_told_all(const struct proc *p);

/* ---- within the server ---- */

/* A Status as the reply. */
void reply_status(struct flight *f, unsigned code, const char *reason, const char *message,
                  const char *more);

void serve_get(struct flight *f, struct str path);     /* "NS/pods/NAME" */
void serve_binding(struct flight *f, struct str path); /* "NS/pods/NAME/binding" */
void serve_eviction(struct flight *f, struct str path, struct str query); /* ".../eviction" */
void serve_list(struct flight *f, enum cache_kind kind, struct str query);
void serve_watch(struct flight *f, enum cache_kind kind, struct str query);
void serve_lease(struct flight *f, struct str path); /* "NS/leases" or "NS/leases/NAME" */
void lists_reset(void);
void lists_expire(void); /* continue tokens are good no more */
void leases_reset(void);
void leases_delete(void);
/* When the last write was sent by which this process holds a lease. */
uint64_t leases_renewed_ms(unsigned sender);
void bindings_reset(void);
void bindings_end_with_server(void);

/* The value of a query's parameter, decoded. */
bool query_get(struct str query, const char *key, struct text *ret);
