/* Private to grpc: one connection, an nghttp2 session on a Unix socket and the loop. */
#pragma once

#include "io/loop.h"

#include <nghttp2/nghttp2.h>

struct grpc_session {
    struct loop *loop;
    struct loop_fd fd;
    nghttp2_session *h2; /* NULL: not started, or stopped */
    const uint8_t *out;  /* what is left of the last piece of nghttp2, until its next call */
    size_t out_n;
    size_t unsent;   /* bytes of messages that wait in the owner's streams; the owner counts */
    size_t consumed; /* bytes of messages that nghttp2 has taken; the owner counts */
    size_t written;
    const char *fault;     /* of a submit; ends the connection soon */
    struct deferred flush; /* what was submitted outside of nghttp2's callbacks */
    struct timer stall;    /* while something waits for the peer */
    size_t consumed_at_stall;
    size_t written_at_stall;

    /* The connection has ended. The owner calls grpc_session_stop, and may free the session. */
    void (*lost)(struct grpc_session *s, const char *why);
};

/*
 * Makes the session and sends its SETTINGS. It owns the descriptor from now on, also on failure.
 * The callbacks get `ctx`; the owner has set lost.
 */
enum errc grpc_session_start(struct grpc_session *s, struct loop *l, int fd, bool server,
                             void (*set)(nghttp2_session_callbacks *cbs), void *ctx,
                             struct err *reterr) _must_use_;

/* Closes the descriptor. nghttp2 calls nothing any more. */
void grpc_session_stop(struct grpc_session *s);

/* Something was submitted, or a stream has bytes again: they are sent at the end of this turn. */
void grpc_session_wake(struct grpc_session *s);

/* Takes the result of a submit: a failure ends the connection at the end of this turn. */
void grpc_session_submitted(struct grpc_session *s, int result);
