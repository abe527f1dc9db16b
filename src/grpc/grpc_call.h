/* Private to the gRPC server: a call and its connection. */
#pragma once

#include "base/mem_budget.h"
#include "grpc/grpc_server.h"
#include "grpc_session.h"
#include "grpc_socket.h"
#include "grpc_text.h"

enum grpc_call_state {
    CALL_COMING, /* the request is not complete */
    CALL_READY,  /* complete; waits for handle */
    CALL_HELD,   /* handle has it, or the owner keeps it */
    CALL_LOST,   /* waits for gone */
    CALL_ENDED,  /* the owner knows nothing of it any more; its answer is being sent */
};

struct grpc_conn {
    struct grpc_session session;
    struct grpc_server *server;
    struct list calls;
    struct list_link link; /* in server->conns, the one that was used last at the end */
};

struct grpc_call {
    struct grpc_server *server;
    struct grpc_conn *conn; /* NULL: the stream is closed */
    int32_t stream;
    enum grpc_call_state state;

    /* the request */
    const struct grpc_method *method; /* NULL: unknown */
    size_t head_bytes;
    bool post;
    bool content_type;
    bool malformed;  /* a header that HTTP/2 does not allow */
    bool regular;    /* a header that is no pseudo header has come */
    const char *bad; /* why the headers are refused; NULL: they are good so far */
    enum grpc_status bad_status;
    uint64_t timeout_ms; /* UINT64_MAX: none */
    struct timer deadline;
    struct grpc_inbox in;

    /* the answer */
    struct buf out; /* framed messages; the first `sent` bytes are with nghttp2 */
    size_t sent;
    bool started;  /* its HEADERS are submitted */
    bool finished; /* trailers follow what is in out */
    bool waiting;  /* nghttp2 waits for grpc_call_go_on */
    bool cut;      /* the rest of the request is of no use: RST_STREAM follows. RFC 9113, 8.1 */
    enum grpc_status status;
    struct buf text; /* percent-encoded */

    void *data;
    struct list_link link;  /* in conn->calls */
    struct list_link queue; /* in server->ready or server->lost */
};

struct grpc_server {
    struct loop *loop;
    struct grpc_server_settings settings;
    struct grpc_socket_file file;
    struct loop_fd listener;
    struct timer retry; /* of accept, after a shortage of descriptors or memory */
    struct list conns;
    unsigned n_conns;
    struct list ready; /* calls for handle */
    struct list lost;  /* calls for gone */
    struct deferred work;
    bool calling; /* the owner's handle or gone runs */
    struct mem_budget received;
    struct mem_budget unsent;
    struct mem_account received_account;
    struct mem_account unsent_account;
};

/* A call of a new stream; NULL: no memory. */
struct grpc_call *grpc_call_new(struct grpc_conn *c, int32_t stream);

/* The request is complete: handle gets it. */
void grpc_call_is_ready(struct grpc_call *c);

/* Answers with an error before the owner has the call. */
void grpc_call_refuse(struct grpc_call *c, enum grpc_status status, struct str text);

/* The stream is closed, or its connection. The call is freed unless gone() must know. */
void grpc_call_closed(struct grpc_call *c);

/* Frees a call that ended and has no stream. */
void grpc_call_drop(struct grpc_call *c);
