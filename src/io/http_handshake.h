/* Private to the HTTP server: connections amid a TLS handshake, kept away from libmicrohttpd. */
#pragma once

#include "http_conn.h"

struct MHD_Connection;

/* A new connection, which has its tls_peer. */
void handshake_begin(struct conn *c, struct MHD_Connection *mhd);
void handshake_end(struct conn *c); /* before its descriptor is closed; also of one without TLS */

/* After each run of libmicrohttpd: it sees those that still wait no more. */
void handshakes_park(struct conns *t);
/* Hands all of them back: libmicrohttpd must not be stopped without. */
void handshakes_unpark(struct conns *t);
