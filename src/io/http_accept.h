/*
 * Private to the HTTP server: what it does while libmicrohttpd accepts no connection and a client
 * waits in the backlog.
 */
#pragma once

#include "http_conn.h"

struct acceptor {
    struct conns *conns;
    unsigned max_connections;
    bool *run_soon; /* set to true: libmicrohttpd must run again at once */

    struct loop_fd set;      /* libmicrohttpd's epoll set */
    struct loop_fd waiting;  /* the listening socket, while there is no room */
    struct timer look_again; /* when a connection can be closed */
    struct timer retry;      /* of accept, while the set is not watched */
    bool starved;            /* accept found no descriptor, and no connection has ended since */
    bool stopped;            /* the server does not listen any more */
};

/* The loop watches set_fd after this call. */
enum errc acceptor_start(struct acceptor *a, int listen_fd, int set_fd, struct err *reterr)
    _must_use_;

/* Takes the format of each libmicrohttpd log line: its only report of a failed accept. */
void acceptor_heard(struct acceptor *a, const char *fmt);

/* A connection has ended: libmicrohttpd retries accept when it runs next. */
void acceptor_room(struct acceptor *a);

/* Call it after each run of libmicrohttpd. */
void acceptor_turn(struct acceptor *a, uint64_t now_ms);

void acceptor_stop(struct acceptor *a); /* stops watching the listening socket */
void acceptor_end(struct acceptor *a);  /* stops watching the set */
