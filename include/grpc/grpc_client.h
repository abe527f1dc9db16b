/*
 * A gRPC client of one Unix socket: unary requests over HTTP/2 without TLS, through nghttp2, on the
 * event loop. It connects when a request needs it, keeps the connection, and connects again at the
 * next request after the connection was lost. It never sends a PING: grpc-go ends the connection of
 * a client that pings too often.
 */
#pragma once

#include "base/buf.h"
#include "grpc/grpc_status.h"
#include "io/loop.h"

struct grpc_client;

/* The path is copied; nothing is connected yet. ERR_RANGE: longer than a socket's path may be. */
enum errc grpc_client_new(struct loop *l, const char *socket, struct grpc_client **ret,
                          struct err *reterr) _must_use_;

/* Cancels the requests under way. Do not call it in on_done. NULL is allowed. Returns NULL. */
struct grpc_client *grpc_client_free(struct grpc_client *c);

/* Before the first start, fields that the caller does not set must be zero. */
struct grpc_request {
    /* The caller sets these. */
    const char *path;    /* "/v1beta1.Registration/Register"; must stay valid until on_done */
    struct str message;  /* copied by start */
    uint64_t timeout_ms; /* for the whole request; 0: LIMIT_GRPC_REQUEST_MS */
    size_t max_reply;    /* bytes of the reply message; 0: LIMIT_GRPC_REPLY */

    /* Called exactly once as deferred work, unless canceled. May free or start the request again.
     */
    void (*on_done)(struct grpc_request *r);

    /*
     * Set before on_done. OK: status 0, and reply has the message. ERR_TIMEOUT: the deadline.
     * ERR_LIMIT: the reply is too large. ERR_UNAVAILABLE: not connected, or the connection was
     * lost; the server may have done what was asked. ERR_SYNTAX: not a gRPC answer.
     */
    enum errc result;
    bool answered;           /* the server sent a status; result is grpc_status_errc of it */
    enum grpc_status status; /* if answered; a number without a name is GRPC_UNKNOWN */
    struct buf reply;        /* owned by the request: grpc_request_done frees it */
    struct err err;          /* if not OK: names the socket and the path, with the server's text */

    struct grpc_client *client; /* NULL unless under way */
    void *stream;               /* private */
    struct list_link link;      /* private */
};

void grpc_request_start(struct grpc_client *c, struct grpc_request *r);

/* After this on_done is not called. Does nothing if the request is not under way. */
void grpc_request_cancel(struct grpc_request *r);

/* Frees what the request owns, but not the request. It must not be under way. */
void grpc_request_done(struct grpc_request *r);
