/*
 * Synchronous calls: each call runs the loop until the answer has arrived. The server is one API
 * server, or with --daemon-url the daemon itself.
 */
#pragma once

#include "kube/kube_api.h"
#include "kubectl/args.h"

struct kubectl_client {
    const struct kubectl_args *args;
    struct loop *loop;
    struct kube_api *api;
    struct kube_call call; /* the last call, with its status and reply until the next call */
    enum errc (*take)(void *ctx, struct str chunk, struct err *e); /* for a stream */
    void *ctx;
};

enum errc kubectl_client_open(struct kubectl_client *c, const struct kubectl_args *a,
                              const struct kube_api_settings *s, struct err *reterr) _must_use_;
void kubectl_client_close(struct kubectl_client *c);

/* The namespace of -n, otherwise of the context, otherwise "default". */
struct str kubectl_client_namespace(const struct kubectl_client *c);

/* OK: there is an answer, with any status. `body` absent: none. */
enum errc kubectl_client_call(struct kubectl_client *c, const char *method, struct str path,
                              struct str body, struct err *reterr) _must_use_;

/* A GET that passes the body of a 200 to take in chunks; an error from take ends the call. */
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

/* Prints a line on standard error. */
void kubectl_say(const char *fmt, ...) _printf_(1, 2);
