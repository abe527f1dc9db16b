/* Private to the HTTP server: connections in a TLS handshake, hidden from libmicrohttpd. */
#pragma once

#include "http_conn.h"

struct MHD_Connection;

/* For a new connection after tls_peer_begin. */
void handshake_begin(struct conn *c, struct MHD_Connection *mhd);
void handshake_end(struct conn *c); /* before its descriptor is closed; also without TLS */

/* Call it after each run of libmicrohttpd. Suspends the connections whose handshake waits. */
void handshakes_park(struct conns *t);
/* Resumes all of them: MHD_stop_daemon needs that. */
void handshakes_unpark(struct conns *t);
