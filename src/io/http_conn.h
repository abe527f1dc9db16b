/*
 * Private to the HTTP server: its connections by state, their deadlines, and which of them is cut
 * when there is no room for another or the server drains. To cut a connection is to shut its socket
 * down.
 */
#pragma once

#include "io/loop.h"
#include "io/tls.h"

struct MHD_Connection;
struct mem_account;
struct exchange;

enum conn_state {
    CONN_FRESH,   /* no request line yet */
    CONN_KEPT,    /* between requests */
    CONN_READING, /* the request line was received, the body is not complete */
    CONN_BUSY,    /* a handler has the request */
    CONN_SENDING, /* the answer is being sent */
    CONN_STREAM,  /* an answer without a known end */
    CONN_CUT,     /* shut down; libmicrohttpd has not noticed yet */
    CONN_STATES,
};

struct conn {
    struct conns *table;
    struct list_link link; /* in the list of its state */
    enum conn_state state;
    uint64_t since_ms; /* when it entered the state */
    uint64_t due_ms;   /* the request must be received, or the answer sent, by then */
    const struct mem_account *account; /* of its request; NULL: no request */
    uint64_t served_in;                /* the server's turn that last handled a request of it */
    uint64_t moved_ms;                 /* within a request: when bytes moved last */
    uint64_t moved;                    /* bytes of the answer acknowledged at that moment */
    uint64_t acked; /* bytes acknowledged by the peer in total, when last measured */
    struct timer deadline;
    int fd; /* owned by libmicrohttpd */
    struct tls_peer tls;

    struct loop_fd gone;     /* its socket, watched for the peer's end by http_conn_watch_end and
                              * conn_streams */
    struct list_link ended;  /* in the table's `ended`: the peer has sent its last byte */
    bool watch;              /* watch for that end: see conns_end_cut_off */
    struct exchange *stream; /* the sleeping stream */

    struct MHD_Connection *mhd; /* set during a handshake */
    struct loop_fd parked;      /* its socket, while libmicrohttpd does not watch it */
    struct list_link awake;     /* in the table's `awake` */
};

struct conns {
    struct loop *loop;
    uint64_t request_ms; /* for a whole request */
    uint64_t idle_ms;    /* between requests, and to send an answer */
    uint64_t stall_ms;   /* see http_server.h */
    size_t n;
    bool draining;
    struct list in[CONN_STATES]; /* the connections in each state, the oldest first */
    struct list awake;           /* handshakes that libmicrohttpd watches */
    struct list ended;
};

void conns_init(struct conns *t, struct loop *l);

/* NULL: no memory. watch: see conns_end_cut_off. */
struct conn *conn_open(struct conns *t, int fd, bool watch);
void conn_close(struct conn *c); /* NULL: does nothing */

/* The request line was received; the account is borrowed until conn_rests. */
void conn_reads(struct conn *c, const struct mem_account *a);
void conn_heard(struct conn *c);  /* a part of the body was received */
void conn_handed(struct conn *c); /* to the handler */
void conn_sends(struct conn *c);
/*
 * A stream. rests: it sleeps and libmicrohttpd does not watch it; otherwise a portion is being
 * sent.
 */
void conn_streams(struct conn *c, bool rests);
void conn_ends(struct conn *c);  /* cut at once */
void conn_rests(struct conn *c); /* the request is complete */

bool conns_any(const struct conns *t, enum conn_state state);

/*
 * When a connection may be cut to make room: now, or the time at which the oldest one can count as
 * stalled, or UINT64_MAX if no connection can.
 */
uint64_t conns_room_ms(const struct conns *t);
/* Cuts one connection; false: none can be cut, for example because each has unread bytes. */
bool conns_make_room(struct conns *t);

/*
 * Cuts each watched connection whose peer has sent its last byte and that has no complete request.
 * Call it after MHD_run: only then all received bytes have been read.
 */
void conns_end_cut_off(struct conns *t);

/* Cuts stalled connections whose request or answer holds memory of the budget. */
void conns_end_stalled(struct conns *t);

/* Shutdown: cuts connections without a request now, and stalled ones after stall_ms. */
void conns_drain(struct conns *t);
/*
 * Call it in each turn of a shutdown. Cuts idle connections whose last answer did not say
 * "Connection: close", because it began before the shutdown.
 */
void conns_end_kept(struct conns *t);
