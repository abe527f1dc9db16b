/*
 * How long the API server may work on a Binding. A leader that is stopped, cut off or killed leaves
 * its last Binding behind. That Binding must have ended when the next leader reads the pods:
 *
 *     unacknowledged + deadline + commit  <=  time from the last byte to the next leader's read
 *
 * - The last byte of the Binding leaves at most renew_deadline after the last renewal of the Lease.
 *   Within LIMIT_UNACKNOWLEDGED_MS of that, the request has reached the API server or never will.
 * - The API server drops the request `deadline` after its arrival: ?timeout= of the request.
 * - LIMIT_COMMIT_MS is for what the API server has passed on to etcd by then.
 * - The next leader takes the Lease when it was not renewed for its whole duration. It reads the
 *   pods at the later of that time, and two thirds of the duration plus start-settle after the last
 *   renewal (leadership.c). Without a Lease it is a process that has just started, and waits
 *   start-settle.
 */
#pragma once

#include "kube/election_step.h"

/*
 * The least deadline: a shorter one is too short for a webhook and a busy API server. It is used
 * where start-settle is too short for the rule above.
 */
#define POST_DEADLINE_LEAST_MS UINT64_C(2000)

/* The deadline in ms. election: NULL without a Lease. */
uint64_t post_deadline_ms(const struct election_times *election, uint64_t settle_ms);

/* The shortest start-settle, in ms, for which the rule above allows POST_DEADLINE_LEAST_MS. */
uint64_t post_deadline_settle_ms(const struct election_times *election);
