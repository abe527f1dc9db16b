/* What the API server's answer to a Binding proves about its outcome. */
#pragma once

#include "daemon/backend/backend.h"
#include "io/http_client.h"
#include "objects/watch.h"

/*
 * Whether the API server itself has refused a request that writes, and so has changed nothing; *ret
 * is then its Status. False: the outcome is unknown.
 */
bool proof_refused(const struct http_call *http, struct arena *arena, struct kube_status *ret);

/* Whether the Status is a 404 NotFound about pods: there is no pod of that name. */
bool proof_status_no_pod(const struct kube_status *s);

/* The call must have ended; the arena holds the parsed Status. */
enum post_result proof_of_post(const struct http_call *http, struct arena *arena);

/* Whether the answer is the API server's own 404 for a pod: there is no pod of that name. */
bool proof_no_pod(const struct http_call *http, struct arena *arena);
