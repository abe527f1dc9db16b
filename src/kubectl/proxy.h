/*
 * The way to the API server: `kubectl proxy` as a child process, on a Unix socket that only this
 * user can reach. So kubectl finds the kubeconfig, the context and the credentials by its own
 * rules, and the answers keep their HTTP status and arrive as a stream.
 */
#pragma once

#include "base/arena.h"
#include "kubectl/args.h"
#include "kubectl/child.h"

struct kubectl_proxy {
    struct kubectl_child child;
    char socket[108]; /* its path; as long as a Unix socket's path may be */
};

/* Returns when kubectl serves on the socket. Its standard error is shown while the loop runs. */
enum errc kubectl_proxy_start(struct kubectl_proxy *p, struct loop *l, const struct kubectl_args *a,
                              struct err *reterr) _must_use_;

/* Ends kubectl and removes the socket and its folder. Does nothing if it was not started. */
void kubectl_proxy_stop(struct kubectl_proxy *p);

/* Asks kubectl for the namespace of the context, by client-go's rules. The answer is in the arena.
 */
enum errc kubectl_context_namespace(struct loop *l, const struct kubectl_args *a,
                                    uint64_t timeout_ms, struct arena *arena, struct str *ret,
                                    struct err *reterr) _must_use_;
