/*
 * Private to the HTTP server: request objects, their reuse, and answers.
 *
 * A request has up to three holders: libmicrohttpd until it reports the request completed, the
 * handler until it answers, and the response until its bytes are sent. They release it in any
 * order. The last release recycles the object.
 */
#pragma once

#include "http_head.h"
#include "io/http_server.h"
#include "listener.h"

#include <microhttpd.h>

enum holder {
    HELD_BY_LIBRARY = 1,
    HELD_BY_HANDLER = 2,
    HELD_BY_RESPONSE = 4,
};

enum request_state {
    STARTED,  /* the request line is received */
    READING,  /* the headers are received, the body is arriving */
    HANDLING, /* the handler has it */
    ANSWERED, /* by the handler; libmicrohttpd does not have the answer yet */
    SENDING,
};

struct exchange {
    struct http_request pub;
    struct exchange_set *set;
    struct MHD_Connection *mhd; /* NULL after libmicrohttpd has released the request */
    struct mem_account account; /* for arena, body, answer and a stream's portion */
    struct arena arena;
    struct buf body;
    struct buf answer;
    struct buf headers; /* of the answer: name NUL value NUL ... */
    unsigned held;      /* a set of enum holder */
    enum request_state state;
    bool suspended;
    bool waits;  /* in the set's list `waiting`, until a later turn */
    bool waited; /* has waited once and must not wait again */
    struct http_head head;
    bool nul_in_path;
    bool dropped;               /* the body was dropped for want of memory */
    struct http_stream *stream; /* NULL: a plain answer */
    unsigned refused;           /* status of the refusal; 0: the request is served */
    uint64_t received;          /* bytes of the body, including dropped ones */
    unsigned status;
    size_t unsent;            /* bytes of the answer that are counted in unsent_bytes */
    const char *content_type; /* a literal */
    char peer[ADDRESS_TEXT_BYTES];
    struct list_link link; /* in waiting, handling, streams or free */
};

struct exchange_set {
    size_t max_body;
    uint64_t last_id;
    struct list waiting; /* oldest first */
    struct list handling;
    struct list streams; /* from the answer to the end of the stream */
    struct list free;    /* at most LIMIT_KEEP_REQUESTS; the last used first */
    size_t n_free;
    size_t live;   /* from the request line until the answer is sent */
    size_t active; /* in handling */
    size_t unsent; /* answered, and not yet completed by libmicrohttpd */
    bool run_soon; /* libmicrohttpd must run, and MHD_get_timeout does not say so */
    bool closing;  /* each answer is the last of its connection */
    struct http_server_counts *counts;
    struct mem_budget *memory; /* NULL: no common limit */
    bool refuses;              /* a request was refused for the budget since the last check */
    void (*no_memory)(void *ctx, const struct http_request *r);                 /* or NULL */
    void (*answered)(void *ctx, const struct http_request *r, unsigned status); /* or NULL */
    void *ctx;
};

void exchange_set_init(struct exchange_set *s, size_t max_body);
void exchange_set_done(struct exchange_set *s); /* no request may be left */

/* Held by libmicrohttpd; NULL: no memory. */
struct exchange *exchange_new(struct exchange_set *s, struct MHD_Connection *mhd);
void exchange_let_go(struct exchange *r, enum holder who);

/*
 * If the body is larger than max_body, or its memory is refused, all of its bytes are dropped and
 * only counted. All bytes of a refused request are dropped. Returns false if a refused body is so
 * large that the connection must be closed.
 */
bool exchange_add_body(struct exchange *r, struct str part) _must_use_;

/* Suspends the connection until exchange_resume_first takes this request. */
void exchange_wait(struct exchange *r);
bool exchange_resume_first(struct exchange_set *s); /* false: none waits */

/* Gives the request to the handler; false: no memory for a part of it. */
bool exchange_hand_over(struct exchange *r, const char *method, const char *path);

void exchange_respond_text(struct exchange *r, unsigned status, const char *text);
void exchange_respond_refusal(
    struct exchange *r); /* with status r->refused; closes the connection */
void exchange_respond_bad(struct exchange *r, const char *fault); /* 400; closes the connection */

/* For streams: see http_stream.c. */
struct MHD_Response *stream_response(struct exchange *r);
void stream_gone(struct http_stream *st);
/* Ends the streams for which `these` returns true; NULL: all. */
void streams_end(struct exchange_set *s, bool (*these)(void *ctx, struct exchange *r), void *ctx);
void exchange_response_gone(void *request); /* libmicrohttpd has freed the response */

/* Gives the answer to libmicrohttpd. Only inside its access handler: 1.x allows it nowhere else. */
enum MHD_Result exchange_send(struct exchange *r);
