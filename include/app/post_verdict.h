/* What the API server's answer to a Binding proves. */
#pragma once

#include "backend.h"

/* The call is over; the arena is for the answer's Status. */
enum post_result post_verdict(const struct http_call *http, struct arena *arena);

/* A 404 of the API server itself, for a pod: it has none of that name. */
bool pod_not_found(const struct http_call *http, struct arena *arena);
