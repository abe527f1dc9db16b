/*
 * Private to the HTTP server: request objects, their recycling, and answers.
 *
 * A request is held by up to three: libmicrohttpd until it reports the request completed, the
 * handler until it answers, and the response until its bytes have left. Each lets go on its own, in
 * any order; the last one recycles the object.
 */
#pragma once

#include "http_server.h"
#include "listener.h"

#include <microhttpd.h>

enum holder {
    HELD_BY_LIBRARY = 1,
    HELD_BY_HANDLER = 2,
    HELD_BY_RESPONSE = 4,
};

enum request_state {
    STARTED,  /* its first line is here */
    READING,  /* its headers are, the body is coming */
    HANDLING, /* the handler has it */
    ANSWERED, /* by the handler, not handed to libmicrohttpd yet */
    SENDING,
};

struct request {
    struct http_request pub;
    struct request_pool *pool;
    struct MHD_Connection *mhd; /* NULL once libmicrohttpd let go */
    struct arena arena;
    struct buf body;
    struct buf answer;
    struct buf headers; /* of the answer: name NUL value NUL ... */
    unsigned held;      /* enum holder */
    enum request_state state;
    bool suspended;
    bool nul_in_path;
    struct http_stream *stream; /* NULL: an answer that ends */
    unsigned refused;           /* the status that says so; 0: it is served */
    uint64_t received;          /* bytes of the body, dropped ones included */
    size_t max_body;            /* as it was when the request began */
    unsigned status;
    size_t unsent;            /* of its answer's bytes, as counted */
    const char *content_type; /* a literal */
    char peer[ADDRESS_TEXT_BYTES];
    struct request *next; /* in handling, streams or free */
    struct request *prev; /* in handling or streams */
};

struct request_pool {
    size_t max_body; /* of requests that begin from now on */
    uint64_t last_id;
    struct request handling; /* ring; only next and prev are used */
    struct request streams;  /* the same, from the answer until it is over */
    struct request *free;    /* at most LIMIT_KEEP_REQUESTS */
    size_t n_free;
    size_t live;   /* from the first line until the answer has left */
    size_t active; /* in handling */
    size_t unsent; /* answered, and libmicrohttpd is not done with it */
    bool run_soon; /* libmicrohttpd has to run, and will not say so itself */
    bool closing;  /* every answer is its connection's last */
    struct http_server_counts *counts;
    void (*answered)(void *ctx, const struct http_request *r, unsigned status); /* or NULL */
    void *ctx;
};

void request_pool_init(struct request_pool *p, size_t max_body);
void request_pool_done(struct request_pool *p); /* no request may live */

/* Held by the library; NULL without memory. */
struct request *request_new(struct request_pool *p, struct MHD_Connection *mhd);
void request_let_go(struct request *r, enum holder who);

/*
 * Whether its headers say in one way only where it ends. libmicrohttpd takes the first of several
 * Content-Lengths, and Content-Length beside Transfer-Encoding; a proxy in front that takes the
 * other one would let pass as a body what is a request here.
 */
bool request_ends_clearly(const struct request *r);

/*
 * Bytes beyond max_body are counted and dropped, and then so is what came before them. Those of a
 * refused request all are; false: there are so many that it has to be cut.
 */
bool request_add_body(struct request *r, struct str part) _must_use_;

/* From now on it is the handler's; false where there was no memory for all of it. */
bool request_hand_over(struct request *r, const char *method, const char *path);

void request_respond_text(struct request *r, unsigned status, const char *text);
void request_respond_refusal(struct request *r); /* by r->refused, and it is the last */

/* Of a stream: see http_stream.c. */
struct MHD_Response *stream_response(struct request *r);
void stream_gone(struct http_stream *st);
/* `these` NULL: all. */
void streams_end(struct request_pool *p, bool (*these)(void *ctx, struct request *r), void *ctx);
void request_response_gone(void *request); /* libmicrohttpd has let go of the answer */

/* Hands the answer to libmicrohttpd: only within its access handler, 1.x allows it nowhere else. */
enum MHD_Result request_send(struct request *r);
