/*
 * An HTTP/1.1 server on the loop, through libmicrohttpd in external-epoll mode. The server calls
 * the handler when the whole body is received. The handler answers at once or later; until then the
 * connection is suspended and uses no CPU time.
 *
 * Ownership: the request owns its body, its arena and its answer, and all its views point into
 * these. They live until http_request_respond was called and the answer was sent (or the peer has
 * closed). After http_request_respond the handler must not use the request.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "io/loop.h"

struct http_server;
struct tls;

struct http_request {
    struct str method; /* "GET" */
    struct str path;   /* percent-decoded, without the query */
    struct str rest;   /* for the handler: the path below its route */
    struct str body;   /* complete; read-only */
    struct str peer;   /* "127.0.0.1:51234" */
    uint64_t id;       /* 1, 2, 3, ...; each log line about a request carries it */
    uint64_t start_ms; /* loop time of the request line */
    uint64_t start_ns; /* loop_clock_ns at the same moment */
    struct arena *arena;
    struct buf *answer; /* empty at first; the handler writes the body of the answer here */
    unsigned char kind; /* this and outcome: for the handler and settings.answered */
    unsigned char outcome;
};

/* What the server knows about a client before it reads the body. */
struct http_caller {
    struct str peer;
    struct str authorization;      /* the Authorization header; absent: none */
    const char *certificate_fault; /* of the client's certificate, a literal; NULL: it is good */
};

/* Totals since the start, except where "now" is said. */
struct http_server_counts {
    uint64_t connections;  /* accepted */
    uint64_t handshakes;   /* failed because of the client's certificate */
    uint64_t not_admitted; /* requests refused before their body */
    size_t open;           /* connections now */
    size_t active;         /* requests that a handler has now */
    size_t unsent_bytes;   /* of answers that are not sent yet, now */
    uint64_t no_memory;    /* requests refused because memory-budget was spent */
};

struct http_server_settings {
    struct str address; /* "127.0.0.1", "0.0.0.0", "::" */
    uint16_t port;      /* 0: any free port */
    size_t max_body;    /* bytes; a larger body is read and dropped, then too_large is called */
    /*
     * Open at the same time. Further clients wait in the backlog. To make room the server closes
     * connections in this order: the oldest without any request, a stalled one, the oldest stream,
     * the oldest idle one between requests.
     */
    unsigned max_connections;

    /*
     * From the request line to the end of the body; then the server closes the connection. For the
     * first request of a connection the time starts at the accept. A pause between requests, and
     * the sending of an answer, may each be without a byte for idle_seconds, and take idle_seconds
     * + request_timeout_ms in total. A handler has no time limit. A stream has none either, but
     * each portion must be sent in the time of an answer.
     */
    uint64_t request_timeout_ms;
    unsigned idle_seconds;
    uint64_t stall_ms; /* a request or answer without progress for this long counts as stalled */

    /*
     * Counts the bodies, arenas and answers of all requests. Borrowed; two servers may share it.
     * NULL: only the limits of each request apply. When it is spent, the server answers a request
     * with 503, reads its body to the end and drops it, and closes stalled connections that hold
     * counted memory.
     */
    struct mem_budget *memory;

    struct tls *tls; /* for every connection; borrowed; NULL: plain HTTP */
    /*
     * Decides which clients are served; NULL: all. Called for each request before its body. Returns
     * 0 to serve the request, or the status of a refusal (401 or 403); the server drops the body
     * then. Called again for each stream every recheck_ms; a refusal ends the stream.
     */
    unsigned (*admit)(void *admit_ctx, const struct http_caller *c);
    /* A handshake failed because of the client's certificate; may be NULL. */
    void (*refused)(void *admit_ctx, struct str peer, const char *fault);
    void *admit_ctx;
    uint64_t recheck_ms; /* ms; must be positive if admit is set */

    void (*handle)(void *ctx, struct http_request *r);
    /* Whether such a request may wait while a turn of the loop takes long; NULL: none may. */
    bool (*may_wait)(void *ctx, const char *method, const char *path);
    /*
     * Called instead of handle for a body over max_body. Must respond at once. r->body is absent.
     */
    void (*too_large)(void *ctx, struct http_request *r, uint64_t body_bytes);
    /* A request is refused because the budget is spent; may be NULL. Must not respond. */
    void (*no_memory)(void *ctx, const struct http_request *r);
    /*
     * A request got its answer, from the handler or from the server; may be NULL. Must not respond.
     */
    void (*answered)(void *ctx, const struct http_request *r, unsigned status);
    void *ctx;

    struct http_server_counts *counts; /* updated by the server; must outlive it; may be NULL */
};

enum errc http_server_new(struct loop *l, const struct http_server_settings *s,
                          struct http_server **ret, struct err *reterr) _must_use_;

/* The port that the server listens on. */
uint16_t http_server_port(const struct http_server *s);

/*
 * Sends r->answer with a Content-Length. If the answer's buf failed (memory, limit), the server
 * sends 503 with a plain text. content_type is a literal. Call it exactly once for each request,
 * also if the peer has closed: the server does not notice that before it sends.
 */
void http_request_respond(struct http_request *r, unsigned status, const char *content_type);

/*
 * Adds one header to the answer; call it before http_request_respond. name and value are copied. If
 * one of them contains a control character, the server closes the connection without an answer.
 */
void http_request_header(struct http_request *r, const char *name, const char *value);

/*
 * An answer without a known end. fill appends one portion at a time. If it appends nothing, the
 * stream sleeps until http_stream_wake. The server calls fill in its own turn or in
 * http_request_stream; fill must not free the stream. If a portion does not fit into memory, the
 * stream ends.
 *
 * The caller owns the stream, embeds it, and keeps it until gone is called. The server calls gone
 * once: after the stream was ended and its rest was sent, after the peer closed or was closed, or
 * after the server drains or is freed. gone may free the stream and must not call the server.
 */
struct http_stream {
    void (*fill)(struct http_stream *st, struct buf *out);
    void (*gone)(struct http_stream *st);

    struct exchange *request; /* from here on: set by the server */
    struct buf out;           /* the portion that is being sent */
    size_t sent;              /* bytes of out that were sent */
    bool ended;
};

/* Call it instead of http_request_respond; r->answer stays empty. */
void http_request_stream(struct http_request *r, unsigned status, const char *content_type,
                         struct http_stream *st);

/* More data is ready: the server calls fill after it sent the portion before. */
void http_stream_wake(struct http_stream *st);

/* fill is not called again; gone comes later. */
void http_stream_end(struct http_stream *st);

/* A request header by its name; absent if there is none. Only inside the handler. */
struct str http_request_value(struct http_request *r, const char *name);

/* A parameter of the query by its name, percent-decoded; absent if there is none, empty without a
 * value. Only inside the handler. */
struct str http_request_parameter(struct http_request *r, const char *name);

/* Ends all streams after their current portion, because a client's admission may have changed. */
void http_server_end_streams(struct http_server *s);

/*
 * Accepts the connections in the backlog, then stops accepting. Calls done, from deferred work,
 * when all requests that have begun are answered and the answers are sent. Streams end at once. A
 * connection that has sent nothing is closed at once. A connection that sends half a request, or
 * does not read its answer, is closed after stall_ms without progress. A request that has arrived
 * on a kept-alive connection is served as its last. done may free the server. Do not call this in a
 * handler.
 */
void http_server_drain(struct http_server *s, void (*done)(void *ctx), void *ctx);

/*
 * First answers 503 to each request that its handler has not answered; those requests are gone
 * after the call. Answers have one second to be sent. Do not call this in a handler. Returns NULL.
 */
struct http_server *http_server_free(struct http_server *s);

/* Requests that a handler has and has not answered. */
size_t http_server_active(const struct http_server *s);
