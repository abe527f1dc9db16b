/*
 * Calls of a program that does one thing after the other: each runs the loop until it is answered.
 * One API server, or with --daemon-url the daemon itself.
 */
#pragma once

#include "kube_api.h"
#include "kubectl_args.h"

struct kubectl_client {
    const struct kubectl_args *args;
    struct loop *loop;
    struct kube_api *api;
    struct kube_call call; /* the last one: its status and its reply, until the next */
    enum errc (*take)(void *ctx, struct str chunk, struct err *e); /* of a stream */
    void *ctx;
};

enum errc kubectl_client_open(struct kubectl_client *c, const struct kubectl_args *a,
                              const struct kube_api_settings *s, struct err *reterr) _must_use_;
void kubectl_client_close(struct kubectl_client *c);

/* -n's namespace, else the context's, else "default". */
struct str kubectl_client_namespace(const struct kubectl_client *c);

/* OK: answered, with whatever status. `body` absent: none. */
enum errc kubectl_client_call(struct kubectl_client *c, const char *method, struct str path,
                              struct str body, struct err *reterr) _must_use_;

/* A GET whose 200 is handed over as it comes; what take returns other than OK ends it. */
enum errc kubectl_client_stream(struct kubectl_client *c, struct str path,
                                enum errc (*take)(void *ctx, struct str chunk, struct err *e),
                                void *ctx, struct err *reterr) _must_use_;

static inline unsigned kubectl_client_status(const struct kubectl_client *c)
{
    return c->call.http.status;
}

static inline struct str kubectl_client_reply(const struct kubectl_client *c)
{
    return buf_str(&c->call.http.reply);
}
