/*
 * The server's side of TLS: a certificate and its key, and the CAs whose certificates clients must
 * have, from files that may be replaced while connections live.
 *
 * A connection keeps the identity that it began with. Whom it let in is looked at again when the
 * files have changed, when it has expired, and every minute: its CA may be gone.
 */
#pragma once

#include "err.h"

struct tls;
struct tls_identity;

/* Strings are borrowed for as long as the tls lives. */
struct tls_settings {
    struct str cert_file;      /* PEM: the server's, then what is between it and its CA */
    struct str key_file;       /* PEM, not encrypted */
    struct str client_ca_file; /* PEM; empty: clients are not asked for a certificate */
    struct str client_names;   /* "a,b": one is the client's common name or DNS name; empty: any */
    bool optional; /* a handshake succeeds without a good client's certificate as well */
    bool again;    /* others wait already: no pipe is read, which may be otherwise, once */
};

/* The error names the file and says why, and nothing of what a key holds. */
enum errc tls_new(const struct tls_settings *s, struct tls **ret, struct err *reterr) _must_use_;
struct tls *tls_free(struct tls *t); /* no peer is left; returns NULL */

/* t takes the files, names and identity of `fresh`, which is gone then: for connections from now
 * on, and for what is thought of those that there are. */
void tls_become(struct tls *t, struct tls *fresh);

enum tls_news {
    TLS_SAME,
    TLS_TAKEN,   /* the files' new content is used by new connections */
    TLS_REFUSED, /* it can't be; what was there stays. Told once, tried at each call */
};

/* Whether the files have changed. */
enum tls_news tls_refresh(struct tls *t, struct err *reterr);

/* Of the server's certificates in use, Unix time: the first ends; a tenth of its life is left. */
int64_t tls_expires_s(const struct tls *t);
int64_t tls_stale_s(const struct tls *t);
bool tls_has_names(const struct tls *t); /* a subjectAltName, without which Go trusts nobody */

/* For libmicrohttpd, which wants a certificate or this: a callback that has none. */
void *tls_no_certificate(void);

/* One connection's; all zero: plain HTTP. */
struct tls_peer {
    struct tls *tls;
    struct tls_identity *identity;
    void *session;
    bool connected;     /* the client has finished its handshake */
    uint64_t judged_by; /* the identity's number */
    uint64_t judged_ms;
    const char *fault; /* what is wrong with its certificate, NULL for nothing */
    int64_t until_s;   /* and so long nothing is */
    /* A handshake is refused; may be NULL. */
    void (*refused)(struct tls_peer *p, const char *fault);
};

/* session: GnuTLS's, before its handshake, with credentials that can do nothing. */
void tls_peer_begin(struct tls_peer *p, struct tls *t, void *session);
void tls_peer_end(struct tls_peer *p); /* the session is gone; also of one that is zero */

/*
 * What the peer's handshake waits for, EPOLLIN or EPOLLOUT on its socket; 0: it is over, and from
 * then on it is.
 */
uint32_t tls_peer_wants(struct tls_peer *p);

/* What speaks against the peer's certificate, a literal; NULL: it is good. After the handshake.
 * now_s is Unix time. */
const char *tls_peer_fault(struct tls_peer *p, uint64_t now_ms, int64_t now_s);
