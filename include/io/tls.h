/*
 * The server side of TLS: a certificate with its key, and the CAs that sign client certificates.
 * All come from files, which may be replaced while connections live.
 *
 * A connection keeps the identity with which it began. The certificate of a connected client is
 * verified again after the files change, after the certificate expires, and every minute, because
 * its CA may be removed.
 */
#pragma once

#include "base/err.h"

struct tls;
struct tls_identity;

/* Strings are borrowed as long as the tls lives. */
struct tls_settings {
    struct str cert_file; /* PEM: the server's certificate, then the intermediate certificates */
    struct str key_file;  /* PEM, not encrypted */
    struct str client_ca_file; /* PEM; empty: clients are not asked for certificates */
    struct str client_names;   /* "a,b": allowed common names or DNS names of clients; empty: any */
    bool optional;             /* the handshake succeeds also without a good client certificate */
    bool again; /* clients wait already, so do not read from a pipe (the first load may) */
};

/* The error names the file and the reason, and contains nothing of the key. */
enum errc tls_new(const struct tls_settings *s, struct tls **ret, struct err *reterr) _must_use_;
struct tls *tls_free(struct tls *t); /* no peer may be left; returns NULL */

/*
 * Moves the files, names and identity of `fresh` into t and frees `fresh`. New connections use
 * them; existing connections are verified with them.
 */
void tls_become(struct tls *t, struct tls *fresh);

enum tls_news {
    TLS_SAME,
    TLS_TAKEN,   /* new connections use the new content */
    TLS_REFUSED, /* new content is unusable; t keeps the old. Reported once, retried at each call */
};

/* Reloads the files if they have changed. */
enum tls_news tls_refresh(struct tls *t, struct err *reterr);

/*
 * Unix time, for the server's certificate chain: when the first certificate expires, and when only
 * a tenth of that certificate's lifetime is left.
 */
int64_t tls_expires_s(const struct tls *t);
int64_t tls_stale_s(const struct tls *t);
bool tls_has_names(
    const struct tls *t); /* has a subjectAltName; Go clients reject a certificate without one */

/* libmicrohttpd requires a certificate or a callback: this callback provides no certificate. */
void *tls_no_certificate(void);

/* The TLS state of one connection; all zero: plain HTTP. */
struct tls_peer {
    struct tls *tls;
    struct tls_identity *identity;
    void *session;
    bool connected;       /* the client has finished its handshake */
    uint64_t verified_by; /* number of the identity that verified the certificate */
    uint64_t verified_ms;
    const char *fault; /* what is wrong with the client's certificate; NULL: nothing */
    int64_t until_s;   /* Unix time until which fault == NULL is valid */
    /* The server refuses a handshake; may be NULL. */
    void (*refused)(struct tls_peer *p, const char *fault);
};

/* session: a GnuTLS session before its handshake. Its credentials are replaced. */
void tls_peer_begin(struct tls_peer *p, struct tls *t, void *session);
void tls_peer_end(struct tls_peer *p); /* the session is gone; a zero peer is allowed */

/*
 * The event that the handshake waits for on its socket, EPOLLIN or EPOLLOUT; 0: it is complete, and
 * the result stays 0.
 */
uint32_t tls_peer_wants(struct tls_peer *p);

/*
 * What is wrong with the peer's certificate, a literal; NULL: it is good. Call it after the
 * handshake. now_s is Unix time.
 */
const char *tls_peer_fault(struct tls_peer *p, uint64_t now_ms, int64_t now_s);
