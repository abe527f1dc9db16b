/*
 * Gets the answer to the command line's question: from the daemon, through the API server's proxy
 * to its Service, or computed here from the API server's nodes and pods. Both are the same JSON,
 * made by the same code.
 */
#pragma once

#include "kubectl/direct.h"

/*
 * If the daemon is not available and the API server is read instead, a line on standard error says
 * so, with the reason. The answer is in the arena; for VERSION it is plain text.
 */
enum errc kubectl_ask(struct kubectl_client *c, const struct kubectl_question *q, struct arena *a,
                      struct str *ret, struct err *reterr) _must_use_;

/* The daemon's answer for kubectl_ask. ERR_UNAVAILABLE: the daemon is not available. */
enum errc kubectl_ask_daemon(struct kubectl_client *c, const struct kubectl_question *q,
                             struct arena *a, struct str *ret, struct err *reterr) _must_use_;
