/* A connection of the benchmarks' API server: nonblocking input and output, plain or by TLS. */
#pragma once

#include "api_world.h"

#include <gnutls/gnutls.h>

#define API_IN_BYTES ((size_t)64 * 1024)

enum api_doing {
    CONN_READS,   /* it waits for a request */
    CONN_LISTS,   /* the rest of a list must be rendered */
    CONN_WATCHES, /* a watch, without an end */
    CONN_BINDS,   /* the answer comes later */
};

struct api_conn {
    int fd;
    bool writing;         /* it waits for EPOLLOUT */
    gnutls_session_t tls; /* NULL: plain */
    bool shaken;
    char in[API_IN_BYTES + 1];
    size_t n_in;
    struct buf out;
    size_t sent; /* bytes of `out` */

    enum api_doing doing;
    unsigned kind;
    uint64_t at, end; /* in the list's page */
    struct api_conn *next_watch;
};

/* Makes a certificate for no name: the clients do not verify it. */
gnutls_certificate_credentials_t api_tls_new(void);

struct api_conn *api_conn_new(int fd, gnutls_certificate_credentials_t tls);
void api_conn_free(struct api_conn *c);

/* Both return false when the connection has ended. */
bool api_conn_read(struct api_conn *c);
bool api_conn_write(struct api_conn *c); /* sends `out` until it is empty or the socket is full */
