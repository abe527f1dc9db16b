/*
 * HTTP/1.1 requests on the loop, through libcurl's multi-socket interface with kept-alive
 * connections. A client is one server's address, credentials and TLS settings; a call is one
 * request with its own deadline, reply and completion.
 */
#pragma once

#include "base/buf.h"
#include "io/loop.h"

struct http_client;

/* Views are copied. With a CA the client trusts only that CA; without one, the system's CAs. */
struct http_client_settings {
    struct str user_agent;
    struct str ca_file; /* re-read on every new connection, so a rotated CA is picked up */
    struct str ca_data; /* PEM */
    bool insecure;      /* no verification of the server's certificate */
    struct str tls_server_name;
    struct str proxy_url; /* absent: libcurl uses the proxies of the environment */
    struct str socket;    /* a Unix socket to connect to, without a proxy; absent: the URL's host */
    struct str cert_file; /* re-read on every new connection */
    struct str cert_data; /* PEM */
    struct str key_file;
    struct str key_data; /* PEM */
    bool allow_http;     /* plain http:// URLs too */
};

enum errc http_client_new(struct loop *l, const struct http_client_settings *s,
                          struct http_client **ret, struct err *reterr) _must_use_;

/* Cancels the calls under way. Do not call it in on_done or on_chunk. Returns NULL. */
struct http_client *http_client_free(struct http_client *c);

/*
 * Calls that start after this make new connections with the current credentials. Calls under way
 * continue; idle connections are closed.
 */
void http_client_forget_connections(struct http_client *c);

/*
 * libcurl repeats a request by itself if a kept-alive connection ends before the first byte of the
 * answer. The client prevents this for a POST: its outcome is HTTP_UNKNOWN then.
 */
enum http_outcome {
    HTTP_ANSWERED, /* a complete answer; status is valid, also for an error status */
    HTTP_NOT_SENT, /* no byte of the request reached a server: name, connect or TLS failed */
    HTTP_UNKNOWN,  /* perhaps sent, without a complete answer: the request may have taken effect */
    HTTP_REFUSED,  /* on_chunk returned an error, which is in err */
};

struct http_call {
    /* The caller sets these; views must stay valid until on_done. */
    const char *method; /* "GET", "POST", ... */
    struct str url;
    struct str body;         /* absent: no body */
    struct str content_type; /* absent with a body: application/json */
    struct str bearer;       /* absent: no Authorization header; copied */
    struct str username;     /* basic authentication */
    struct str password;
    const struct str *headers; /* n_headers further "Name: value" lines */
    size_t n_headers;
    uint64_t timeout_ms; /* for the whole call; 0: no limit */
    uint64_t quiet_ms;   /* ends the call after this long without a byte; 0: never */
    size_t max_reply;    /* maximum size of reply; 0: LIMIT_REPLY_BYTES */

    /*
     * If set, it gets the body of an answer with status 200 in pieces, which the client does not
     * keep. The body of any other status goes to reply. A result other than OK ends the call with
     * HTTP_REFUSED. on_chunk must not cancel or free this call; it may start and cancel others.
     */
    enum errc (*on_chunk)(struct http_call *c, struct str chunk, struct err *reterr);
    bool bulk; /* the body may be large: reads more at once, with a buffer of 128 KiB until the call
                  ends; not for a call that lasts and is mostly quiet */

    /*
     * Called when the connection is ready, before the first byte of each copy that libcurl sends.
     * false ends the call, with HTTP_NOT_SENT if no copy was sent before. NULL: always true. Must
     * have no side effect.
     */
    bool (*may_send)(struct http_call *c);

    /*
     * The loop calls it exactly once, unless the call was canceled. It may free or restart the
     * call.
     */
    void (*on_done)(struct http_call *c);

    /* The client sets these before on_done. */
    enum http_outcome outcome;
    unsigned status;         /* 0 unless HTTP_ANSWERED */
    uint64_t retry_after_ms; /* from a Retry-After header in seconds; 0: none */
    struct err err;          /* if not HTTP_ANSWERED: why; names the URL without its query */
    struct buf reply;        /* owned by the call: http_call_done frees it */

    struct http_client *client; /* NULL unless under way */
    void *transfer;             /* private */
    struct list_link link;      /* private */
};

/*
 * on_done comes later, even if the call cannot start. Before the first start, fields that the
 * caller does not set must be zero.
 */
void http_call_start(struct http_client *c, struct http_call *call);

/*
 * After this on_done is not called. The request may have been sent. Does nothing if the call is not
 * under way. The caller may free the call and all its views at once.
 */
void http_call_cancel(struct http_call *call);

/* Frees what the call owns, but not the call. The call must not be under way. */
void http_call_done(struct http_call *call);
