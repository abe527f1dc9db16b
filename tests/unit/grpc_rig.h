/* A gRPC server with methods that do what their name says, and a client of it, on one loop. */
#pragma once

#include "fail_alloc.h"
#include "grpc/grpc_client.h"
#include "grpc/grpc_server.h"
#include "grpc/limit.h"
#include "on_loop.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_NAME "grpc.sock"

struct rig {
    struct loop *loop;
    struct grpc_server *server;
    struct grpc_client *client;
    char folder[64];
    char socket[96];
    struct grpc_call *kept[256]; /* calls of /t/Keep and /t/Stream that have not ended */
    unsigned n_kept;
    unsigned handled;
    unsigned gone;
    size_t bytes; /* of the last message */
    size_t max_message;
    size_t max_unsent;
};

static inline void rig_echo(void *ctx, struct grpc_call *c, struct str message)
{
    struct rig *r = ctx;
    r->handled++;
    r->bytes = message.n;
    grpc_call_reply(c, message);
}

static inline void rig_keep(void *ctx, struct grpc_call *c, struct str message)
{
    struct rig *r = ctx;
    ck_assert_uint_lt(r->n_kept, COUNT_OF(r->kept));
    r->handled++;
    r->bytes = message.n;
    grpc_call_set_data(c, r);
    r->kept[r->n_kept++] = c;
}

static inline void rig_fail(void *ctx, struct grpc_call *c, struct str message)
{
    (void)ctx;
    grpc_call_fail(c, GRPC_FAILED_PRECONDITION, message);
}

static inline void rig_twice(void *ctx, struct grpc_call *c, struct str message)
{
    (void)ctx;
    grpc_call_send(c, message);
    grpc_call_send(c, message);
    grpc_call_end(c);
}

static inline void rig_nothing(void *ctx, struct grpc_call *c, struct str message)
{
    (void)ctx;
    (void)message;
    grpc_call_end(c);
}

static inline void rig_gone(void *ctx, struct grpc_call *c)
{
    struct rig *r = ctx;
    ck_assert_ptr_eq(grpc_call_data(c), r);
    r->gone++;
    for (unsigned i = 0; i < r->n_kept; i++) {
        if (r->kept[i] == c) {
            r->kept[i] = r->kept[--r->n_kept];
            grpc_call_reply(c, STR("too late")); /* does nothing */
            return;
        }
    }
    ck_abort_msg("gone of a call that is not kept");
}

static inline enum errc rig_serve(struct rig *r, struct err *e)
{
    static const struct grpc_method methods[] = {
        {"/t/Echo", rig_echo},   {"/t/Keep", rig_keep},       {"/t/Fail", rig_fail},
        {"/t/Twice", rig_twice}, {"/t/Nothing", rig_nothing},
    };
    struct grpc_server_settings s = {.socket = r->socket,
                                     .methods = methods,
                                     .n_methods = COUNT_OF(methods),
                                     .ctx = r,
                                     .max_message = r->max_message,
                                     .max_unsent = r->max_unsent,
                                     .gone = rig_gone};
    return grpc_server_new(r->loop, &s, &r->server, e);
}

static inline void rig_make(struct rig *r)
{
    struct err e = ERR_INIT;
    *r = (struct rig){.loop = loop_make()};
    (void)snprintf(r->folder, sizeof(r->folder), "grpc-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(r->folder));
    (void)snprintf(r->socket, sizeof(r->socket), "%s/" SOCKET_NAME, r->folder);
    ck_assert_ok(rig_serve(r, &e), &e);
    ck_assert_ok(grpc_client_new(r->loop, r->socket, &r->client, &e), &e);
}

static inline void rig_done(struct rig *r)
{
    r->client = grpc_client_free(r->client);
    r->server = grpc_server_free(r->server);
    r->loop = loop_free(r->loop);
    (void)unlink(r->socket);
    ck_assert_int_eq(rmdir(r->folder), 0);
}

struct ask {
    struct grpc_request request;
    bool done;
};

static inline void ask_done(struct grpc_request *r)
{
    CONTAINER_OF(r, struct ask, request)->done = true;
}

static inline void ask_start(struct rig *r, struct ask *a, const char *path, struct str message)
{
    *a = (struct ask){.request = {.path = path, .message = message, .on_done = ask_done}};
    grpc_request_start(r->client, &a->request);
}

static inline void ask_now(struct rig *r, struct ask *a, const char *path, struct str message)
{
    ask_start(r, a, path, message);
    run_while(r->loop, !a->done);
}
