/*
 * Synchronous calls: each call runs the loop until the answer has arrived. The server is the API
 * server of kubectl's context, which `kubectl proxy` leads to, or the one of --server, or with
 * --daemon-url the daemon itself.
 */
#pragma once

#include "kube/kube_api.h"
#include "kubectl/proxy.h"

struct kubectl_client {
    const struct kubectl_args *args;
    struct loop *loop;
    struct kubectl_proxy proxy; /* not started with --server and --daemon-url */
    struct kube_api *api;
    struct kube_call call; /* the last call, with its status and reply until the next call */
    bool is_answered; /* whether the server answered; an error text of kubectl proxy is no answer */
    bool is_asked;    /* a call was made already */
    enum errc (*take)(void *ctx, struct str chunk, struct err *e); /* for a stream */
    void *ctx;
};

/* On every path kubectl_client_close must follow. */
enum errc kubectl_client_open(struct kubectl_client *c, const struct kubectl_args *a,
                              struct err *reterr) _must_use_;
void kubectl_client_close(struct kubectl_client *c);

/* The namespace of -n, otherwise of the context, otherwise "default". May run kubectl. */
enum errc kubectl_client_namespace(const struct kubectl_client *c, struct arena *a, struct str *ret,
                                   struct err *reterr) _must_use_;

/* OK: there is an answer, with any status. `body` absent: none. */
enum errc kubectl_client_call(struct kubectl_client *c, const char *method, struct str path,
                              struct str body, struct err *reterr) _must_use_;

/* Whether the API server serves resource.k8s.io/v1, which each user may ask. One without it denies
 * the lists of DRA to a user who may not read them, so that their answer proves nothing. */
enum errc kubectl_client_has_dra(struct kubectl_client *c, bool *ret, struct err *reterr)
    _must_use_;

/* A GET that passes the body of a 200 to take in chunks; an error from take ends the call. */
enum errc kubectl_client_stream(struct kubectl_client *c, struct str path,
                                enum errc (*take)(void *ctx, struct str chunk, struct err *e),
                                void *ctx, struct err *reterr) _must_use_;

/* As kube_call_result() of the last call. Through kubectl the error names the path without a
 * server. */
enum errc kubectl_client_result(const struct kubectl_client *c, struct err *reterr);

static inline unsigned kubectl_client_status(const struct kubectl_client *c)
{
    return c->call.http.status;
}

static inline struct str kubectl_client_reply(const struct kubectl_client *c)
{
    return buf_str(&c->call.http.reply);
}
