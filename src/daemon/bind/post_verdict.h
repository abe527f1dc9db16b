/* What the API server's answer to a Binding proves about its outcome. */
#pragma once

#include "codec/watch.h"
#include "daemon/backend/backend.h"

/*
 * Whether the API server itself has refused a request that writes, and so has changed nothing; *ret
 * is then its Status. False: the outcome is unknown.
 */
bool answer_is_refusal(const struct http_call *http, struct arena *arena, struct kube_status *ret);

/* Whether the Status is a 404 NotFound about pods: there is no pod of that name. */
bool status_is_absent_pod(const struct kube_status *s);

/* The call must have ended; the arena holds the parsed Status. */
enum post_result post_verdict(const struct http_call *http, struct arena *arena);

/* Whether the answer is the API server's own 404 for a pod: there is no pod of that name. */
bool pod_not_found(const struct http_call *http, struct arena *arena);
