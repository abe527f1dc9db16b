/*
 * A gRPC server on a Unix socket: HTTP/2 without TLS, through nghttp2, on the event loop. It serves
 * methods with one request message, and one reply message (unary) or a stream of them. No function
 * here blocks, and none but grpc_server_hang_up calls the owner back before it returns: handle and
 * gone are called as deferred work of the loop.
 */
#pragma once

#include "grpc/grpc_status.h"
#include "io/loop.h"

struct grpc_server;

/*
 * One call of a client. It is valid until the owner ends it with reply, end or fail, or until
 * gone() returns. Between the fault of its connection and gone() the functions below do nothing
 * with it.
 */
struct grpc_call;

struct grpc_method {
    const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
    /*
     * Called once for each call, with the whole request message, which is valid until handle
     * returns. May end the call, or keep it and end it later.
     */
    void (*handle)(void *ctx, struct grpc_call *call, struct str message);
};

struct grpc_server_settings {
    const char *socket;                /* path of the socket; copied */
    const struct grpc_method *methods; /* must outlive the server */
    size_t n_methods;
    void *ctx;          /* passed to handle and gone */
    size_t max_message; /* bytes of a request message; 0: LIMIT_GRPC_MESSAGE. Above: status 8 */
    size_t max_unsent;  /* bytes that a call may hold unsent; 0: LIMIT_GRPC_UNSENT. See
                           grpc_call_send */
    /*
     * A call that handle got has ended without the owner: the client canceled it, its deadline has
     * passed, its connection ended, or it held more than max_unsent bytes. Not called for a call
     * that the owner has ended. NULL: the owner does not keep calls.
     */
    void (*gone)(void *ctx, struct grpc_call *call);
};

/*
 * Creates the socket with mode 0600, whatever the umask is, and listens. A socket that is there and
 * that no process listens on is replaced. ERR_CONFLICT: a process listens on it, or the path is not
 * a socket. ERR_RANGE: the path is longer than a socket's path may be. ERR_UNAVAILABLE: its folder
 * is missing, and the like.
 */
enum errc grpc_server_new(struct loop *l, const struct grpc_server_settings *s,
                          struct grpc_server **ret, struct err *reterr) _must_use_;

/*
 * Ends all connections and calls without gone(), and removes the socket's file if it is still the
 * one that this server created. Do not call it in handle or gone. NULL is allowed. Returns NULL.
 */
struct grpc_server *grpc_server_free(struct grpc_server *s);

/*
 * Ends all connections, and calls gone() for each call that the owner holds before it returns; the
 * server goes on. For an owner that holds calls and is about to free the server. Do not call it in
 * handle or gone.
 */
void grpc_server_hang_up(struct grpc_server *s);

/* False: the socket's file is missing, or is another file: no new client reaches this server. */
bool grpc_server_is_reachable(const struct grpc_server *s);

/* One message and status 0; ends the call. The bytes are copied. Unary calls end with it. */
void grpc_call_reply(struct grpc_call *c, struct str message);

/*
 * One message of a stream; the bytes are copied, and the call goes on. If the client does not read,
 * and more than max_unsent bytes would wait, the call is reset, and gone() is called.
 */
void grpc_call_send(struct grpc_call *c, struct str message);

/* Bytes that wait for the client. A stream of whole states can skip one while the last one waits.
 */
size_t grpc_call_unsent(const struct grpc_call *c);

void grpc_call_end(struct grpc_call *c); /* ends a stream with status 0, after what was sent */

/* Ends the call with an error. text is for people, in UTF-8; it is cut after LIMIT_GRPC_TEXT. */
void grpc_call_fail(struct grpc_call *c, enum grpc_status status, struct str text);

/* A pointer of the owner; NULL at first. */
void *grpc_call_data(const struct grpc_call *c);
void grpc_call_set_data(struct grpc_call *c, void *data);

/* The path of the call's method, for logs. */
const char *grpc_call_path(const struct grpc_call *c);
