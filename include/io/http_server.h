/*
 * An HTTP/1.1 server on the loop, through libmicrohttpd in external-epoll mode. A request is handed
 * to its handler when its body is whole; the handler answers now, or later: the connection is
 * suspended meanwhile and costs nothing.
 *
 * Ownership: the request owns its body, its arena and its answer, and all views of it point into
 * these; they live until http_request_respond was called and the answer has left (or the peer has
 * gone). After http_request_respond the handler must not touch the request again.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "loop.h"

struct http_server;
struct tls;

struct http_request {
    struct str method; /* "GET" */
    struct str path;   /* decoded, without the query */
    struct str body;   /* whole; may be rewritten in place by nobody */
    struct str peer;   /* "127.0.0.1:51234" */
    uint64_t id;       /* 1, 2, 3, ...: every log line of a request carries it */
    uint64_t start_ms; /* loop time of its first line */
    uint64_t start_ns; /* loop_clock_ns then */
    struct arena *arena;
    struct buf *answer; /* empty; the handler writes the answer's body here */
    void *handler_data; /* the handler's own, for a late answer */
    unsigned char kind; /* these two: the handler's own too, for settings.answered */
    unsigned char outcome;
};

/* Who asks, as far as is known before the body. */
struct http_caller {
    struct str peer;
    struct str authorization;      /* the header; absent: there is none */
    const char *certificate_fault; /* of his certificate, a literal; NULL: it is good */
};

/* Since the start, or now. */
struct http_server_counts {
    uint64_t connections;  /* accepted */
    uint64_t handshakes;   /* of these, that failed for the client's certificate */
    uint64_t not_admitted; /* requests that were refused before their body */
    size_t open;           /* connections, now */
    size_t active;         /* requests that a handler has, now */
    size_t unsent_bytes;   /* of answers that have not left, now */
};

struct http_server_settings {
    struct str address; /* "127.0.0.1", "0.0.0.0", "::" */
    uint16_t port;      /* 0: any free one */
    size_t max_body; /* bytes; a larger body is read to its end, dropped, and handed to too_large */
    /*
     * At the same time. More wait, but for no connection that only takes up room: the longest of
     * those that never had a request is cut, then who stalls, then the oldest stream, then who
     * rests between requests.
     */
    unsigned max_connections;

    /*
     * From a request's first line to its whole body, then the peer is cut off; a connection's first
     * request counts from the accept. Between requests, and for the answer to leave, there is
     * idle_seconds, with that on top for one whose bytes drip. A handler's time is not limited,
     * nor is that of a stream, as long as each portion leaves in the time of an answer.
     */
    uint64_t request_timeout_ms;
    unsigned idle_seconds;
    uint64_t stall_ms; /* from when on one within a request, or sent its answer, may be cut early */

    struct tls *tls; /* for every connection; borrowed. NULL: plain HTTP */
    /*
     * Who is served; NULL: everybody. Asked for each request before its body, which is dropped
     * where the answer is not 0 but the status of a refusal: 401 or 403. And again, every judge_ms,
     * for each stream, which ends then.
     */
    unsigned (*admit)(void *admit_ctx, const struct http_caller *c);
    /* A handshake has failed because of the client's certificate; may be NULL. */
    void (*refused)(void *admit_ctx, struct str peer, const char *fault);
    void *admit_ctx;
    uint64_t judge_ms; /* with admit */

    void (*handle)(void *ctx, struct http_request *r);
    /* Instead of handle, for a body over max_body: must respond at once. r->body is absent. */
    void (*too_large)(void *ctx, struct http_request *r, uint64_t body_bytes);
    /* A request has its answer, whoever gave it; may be NULL. Must not answer. */
    void (*answered)(void *ctx, const struct http_request *r, unsigned status);
    void *ctx;

    struct http_server_counts *counts; /* kept up to date, and outlives the server; may be NULL */
};

enum errc http_server_new(struct loop *l, const struct http_server_settings *s,
                          struct http_server **ret, struct err *reterr) _must_use_;

/* Other ones for what begins from now on: a request, an answer, a connection's rest. */
void http_server_limit(struct http_server *s, size_t max_body, uint64_t request_timeout_ms);

/* The port it listens on. */
uint16_t http_server_port(const struct http_server *s);

/*
 * Answers with r->answer's bytes and a Content-Length. If the answer buf failed (memory, ceiling)
 * it answers 503 with a plain text. content_type is a literal. Once a request; also when its peer
 * has gone, which nobody knows before.
 */
void http_request_respond(struct http_request *r, unsigned status, const char *content_type);

/*
 * One header more on the answer; call before http_request_respond; name and value are copied. With
 * a control character in it there is no answer: the connection is closed.
 */
void http_request_header(struct http_request *r, const char *name, const char *value);

/*
 * An answer that goes on: each portion is what fill appends, one at a time; where it appends
 * nothing the stream rests until http_stream_wake. fill is called within the server's turn, or
 * within http_request_stream's, and must not free the stream. A portion that does not fit into
 * memory ends it.
 *
 * The stream is the caller's, who embeds it, and must live until gone is called: once, when it has
 * been ended and the rest of it has left, when the peer has gone or was cut, when the server drains
 * or is freed. gone may free it, and must not call the server.
 */
struct http_stream {
    void (*fill)(struct http_stream *st, struct buf *out);
    void (*gone)(struct http_stream *st);

    struct request *request; /* these are the server's */
    struct buf out;          /* the portion that is leaving */
    size_t sent;             /* of it */
    bool ended;
};

/* Instead of http_request_respond; r->answer stays empty. */
void http_request_stream(struct http_request *r, unsigned status, const char *content_type,
                         struct http_stream *st);

/* There is something to send: fill is called once the portion before has left. */
void http_stream_wake(struct http_stream *st);

/* fill is not called any more; gone comes later. */
void http_stream_end(struct http_stream *st);

/* A header of the request, by its first line; absent where there is none. Within the handler only.
 */
struct str http_request_value(struct http_request *r, const char *name);

/* Streams end, as soon as what they are sending has left: for who was let in and may not be now. */
void http_server_end_streams(struct http_server *s);

/*
 * Stops accepting, once those are in who stand in line; calls done, from deferred work, when all
 * that has been begun is answered and the answers have left; streams end at once. Who has not sent
 * anything is cut at once, and who sends half a request, or does not take his answer, once nothing
 * has moved for stall_ms; what has come on a kept connection is served as its last. done may free
 * the server. Not within a handler.
 */
void http_server_drain(struct http_server *s, void (*done)(void *ctx), void *ctx);

/*
 * Requests whose handler has not answered are answered 503 first, and are gone then. Answers have a
 * second to leave. Not within a handler. Returns NULL.
 */
struct http_server *http_server_free(struct http_server *s);

/* Requests that are under way: handed to a handler and not yet answered. */
size_t http_server_active(const struct http_server *s);
