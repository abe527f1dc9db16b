/*
 * Private to the HTTP server: its connections by what they are about, their deadlines, and which of
 * them is cut where there is no room for another or the server is on its way out.
 */
#pragma once

#include "loop.h"
#include "tls.h"

struct MHD_Connection;
struct request;

enum conn_state {
    CONN_FRESH,   /* no request's first line yet */
    CONN_KEPT,    /* between requests */
    CONN_READING, /* a request's first line is here, its body is not whole */
    CONN_BUSY,    /* a handler has its request */
    CONN_SENDING, /* the answer is leaving */
    CONN_STREAM,  /* an answer that goes on */
    CONN_CUT,     /* shut down, and libmicrohttpd has not found out yet */
    CONN_STATES,
};

struct conn_link {
    struct conn_link *next; /* NULL: in no ring */
    struct conn_link *prev;
};

static inline void link_add(struct conn_link *ring, struct conn_link *l)
{
    l->next = ring;
    l->prev = ring->prev;
    ring->prev->next = l;
    ring->prev = l;
}

static inline void link_del(struct conn_link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    l->next = l->prev = NULL;
}

struct conn {
    struct conns *table;
    struct conn_link link; /* in its state's ring */
    enum conn_state state;
    uint64_t since_ms; /* in that state */
    uint64_t due_ms;   /* its request must be whole, or its answer have left */
    uint64_t acked;    /* bytes in all that its peer had taken when it was looked at last */
    struct timer deadline;
    int fd; /* libmicrohttpd's */
    struct tls_peer tls;

    struct loop_fd gone;    /* its socket, while a stream rests */
    struct request *stream; /* that rests */

    struct MHD_Connection *mhd; /* amid a handshake */
    struct loop_fd parked;      /* its socket, while libmicrohttpd does not look at it */
    struct conn_link awake;     /* a handshake that libmicrohttpd looks at */
};

struct conns {
    struct loop *loop;
    uint64_t request_ms; /* for a whole request */
    uint64_t idle_ms;    /* between requests, and for an answer to leave */
    uint64_t stall_ms;   /* http_server.h */
    size_t n;
    bool draining;
    struct conn_link rings[CONN_STATES]; /* the longest in it first */
    struct conn_link awake;
};

void conns_init(struct conns *t, struct loop *l);

/* NULL without memory. */
struct conn *conn_open(struct conns *t, int fd);
void conn_close(struct conn *c); /* NULL: nothing */

void conn_reads(struct conn *c);  /* the first line is here */
void conn_heard(struct conn *c);  /* some of the body */
void conn_handed(struct conn *c); /* to the handler */
void conn_sends(struct conn *c);
/* A stream: it rests, and libmicrohttpd does not look at it, or a part of it is leaving. */
void conn_streams(struct conn *c, bool rests);
void conn_ends(struct conn *c);  /* cut at once */
void conn_rests(struct conn *c); /* the request is over */

bool conns_any(const struct conns *t, enum conn_state state);

/*
 * When one may be cut to make room: now, UINT64_MAX for as long as nothing changes, or a time at
 * which one of them will have stalled.
 */
uint64_t conns_room_ms(const struct conns *t);
/* Cuts one of them; false: what there was to cut has sent something meanwhile. */
bool conns_make_room(struct conns *t);

/* From now on nobody holds the end up: who has no request under way is cut, and who stalls. */
void conns_drain(struct conns *t);
/* Those whose answer had begun before, and did not say that it is the last: in each turn. */
void conns_end_kept(struct conns *t);
