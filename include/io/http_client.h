/*
 * HTTP/1.1 requests on the loop, through libcurl's multi-socket interface with kept-alive
 * connections. A client is one server's address, credentials and TLS settings; a call is one
 * request with its own deadline, reply and completion.
 */
#pragma once

#include "buf.h"
#include "loop.h"

struct http_client;

/* Views are copied. */
struct http_client_settings {
    struct str user_agent;
    struct str ca_file; /* re-read on every new connection, so a rotated CA is picked up */
    struct str ca_data; /* PEM */
    bool insecure;      /* no verification of the server's certificate */
    struct str tls_server_name;
    struct str proxy_url; /* absent: none; the environment's proxies are honoured as libcurl does */
    struct str cert_file; /* re-read on every new connection */
    struct str cert_data; /* PEM */
    struct str key_file;
    struct str key_data; /* PEM */
    bool allow_http;     /* plain http:// URLs too */
};

enum errc http_client_new(struct loop *l, const struct http_client_settings *s,
                          struct http_client **ret, struct err *reterr) _must_use_;

/* Cancels what is under way. Not within on_done or on_chunk. Returns NULL. */
struct http_client *http_client_free(struct http_client *c);

/*
 * Calls that start from now on make new connections, with credentials as they are now. What is
 * under way goes on; idle connections are closed.
 */
void http_client_forget_connections(struct http_client *c);

/*
 * libcurl sends a request again by itself when a kept connection dies before a byte of the answer.
 * A POST is kept from that: its outcome is HTTP_UNKNOWN then.
 */
enum http_outcome {
    HTTP_ANSWERED, /* a whole answer: status is valid, whatever it is */
    HTTP_NOT_SENT, /* surely no byte of the request reached a server: name, connect or TLS failed */
    HTTP_UNKNOWN,  /* perhaps sent, and no whole answer: it may have taken effect */
    HTTP_REFUSED,  /* on_chunk said no: its error is in err */
};

struct http_call {
    /* Set by the caller; views must stay valid until on_done. */
    const char *method; /* "GET", "POST", ... */
    struct str url;
    struct str body;         /* absent: none */
    struct str content_type; /* absent with a body: application/json */
    struct str bearer;       /* absent: no Authorization header; copied */
    struct str username;     /* basic authentication */
    struct str password;
    const struct str *headers; /* n_headers further "Name: value" lines */
    size_t n_headers;
    uint64_t timeout_ms; /* of the whole call; 0: none */
    uint64_t quiet_ms;   /* give up after so long without a byte; 0: never */
    size_t max_reply;    /* ceiling of reply; 0: LIMIT_REPLY_BYTES */

    /*
     * With on_chunk, a 200's body is handed over as it comes and never held; any other status' body
     * is collected in reply. Not OK ends the call with HTTP_REFUSED. The call must not be canceled
     * or freed inside; others may be started and canceled.
     */
    enum errc (*on_chunk)(struct http_call *c, struct str chunk, struct err *reterr);

    /*
     * Asked when the connection is there and the first byte is about to leave, for each copy that
     * libcurl sends; false ends the call, with HTTP_NOT_SENT if none has left. NULL: always. Must
     * change nothing.
     */
    bool (*may_send)(struct http_call *c);

    /* Exactly once, from the loop, unless canceled before. May free the call or start it again. */
    void (*on_done)(struct http_call *c);

    /* Set when done. */
    enum http_outcome outcome;
    unsigned status;         /* 0 unless HTTP_ANSWERED */
    uint64_t retry_after_ms; /* of a Retry-After header in seconds; 0: none */
    struct err err;          /* why not HTTP_ANSWERED, naming the URL without its query */
    struct buf reply;        /* owned by the call: http_call_done frees it */

    struct http_client *client; /* while under way */
    void *transfer;             /* private */
    struct http_call *next;     /* private */
};

/* on_done comes later, even when the call cannot be started. The first time all unset is zero. */
void http_call_start(struct http_client *c, struct http_call *call);

/*
 * on_done will not come. The request may have been sent. Nothing if it is not under way. The call
 * and all its views may be freed at once.
 */
void http_call_cancel(struct http_call *call);

/* Frees what the call owns (not the call). Not while under way. */
void http_call_done(struct http_call *call);
