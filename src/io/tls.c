/*
 * Certificates of the server, and TLS sessions that use them. libmicrohttpd has one set of
 * credentials for the daemon's whole life, and its option to request client certificates
 * (MEM_TRUST) verifies nothing. Its certificate callback could replace the certificate, but not the
 * CA. So this module gives each session its own credentials, after libmicrohttpd reports the
 * connection and before the handshake. The credentials hold certificate, key and CA. They are
 * reference-counted and freed with the last session that uses them. Rejected: a second daemon on
 * the same socket, which would double everything until the last old connection ends.
 *
 * GnuTLS requests the client's certificate and then calls tls_verify_in_handshake, also if the
 * client sent none. So such a client gets the reason in the TLS alert. There are no session
 * tickets, so no resumption can skip the check.
 */
#include "io/tls.h"

#include "base/file.h"
#include "base/mem.h"
#include "io/limit.h"
#include "tls_client.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <sys/epoll.h>

#define NAME_MAX_BYTES  256
#define VERIFY_AGAIN_MS 60000
#define PEM(text)       ((gnutls_datum_t){(unsigned char *)(text)->p, (unsigned)(text)->n})

/* TLS 1.2 and 1.3, forward secrecy, authenticated encryption; no RSA key exchange, no CBC. */
static const char priorities[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
                                 ":-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA"
                                 ":-CIPHER-ALL:+AES-256-GCM:+AES-128-GCM:+CHACHA20-POLY1305"
                                 ":-MAC-ALL:+AEAD:%SERVER_PRECEDENCE";

struct tls_identity {
    gnutls_certificate_credentials_t credentials;
    size_t users;    /* references: the sessions and the tls itself */
    uint64_t number; /* unique within a tls; an address may be reused */
    int64_t expires_s;
    int64_t stale_s;
    bool has_names;
};

struct stamps {
    struct file_stamp cert;
    struct file_stamp key;
    struct file_stamp ca;
};

struct tls {
    struct tls_settings settings;
    gnutls_priority_t priorities;
    struct tls_identity *identity;
    uint64_t identities;   /* created so far */
    struct stamps stamps;  /* of the files of identity */
    struct stamps refused; /* of the last files that were reported as unusable */
};

/* ---- files ---- */

static struct stamps tls_stamps_of(const struct tls_settings *s)
{
    return (struct stamps){
        .cert = file_stamp(s->cert_file),
        .key = file_stamp(s->key_file),
        .ca = file_stamp(s->client_ca_file),
    };
}

static bool tls_stamps_eq(const struct stamps *a, const struct stamps *b)
{
    return file_stamp_eq(a->cert, b->cert) && file_stamp_eq(a->key, b->key) &&
           file_stamp_eq(a->ca, b->ca);
}

static enum errc tls_fail(struct err *reterr, const char *what, struct str file, int code)
{
    if (code == GNUTLS_E_MEMORY_ERROR)
        return err_set(reterr, ERR_NOMEM, "%s %.*s: out of memory", what, STR_ARG(file));
    return err_set(reterr, ERR_SYNTAX, "%s %.*s: %s", what, STR_ARG(file), gnutls_strerror(code));
}

/* Reads a key in one piece, so that tls_forget() leaves no copy in freed memory. */
static enum errc tls_read_pem(const char *what, struct str file, bool again, struct buf *text,
                              struct err *reterr)
{
    buf_init(text, LIMIT_PEM_BYTES);
    if (!buf_reserve(text, LIMIT_PEM_BYTES))
        return err_set(reterr, ERR_NOMEM, "%s %.*s: out of memory", what, STR_ARG(file));
    enum errc code = again ? file_read_again(file, text, reterr) : file_read(file, text, reterr);
    if (code != OK)
        (void)err_wrap(reterr, "%s", what);
    else if (str_trim(buf_str(text)).n == 0)
        code = err_set(reterr, ERR_SYNTAX, "%s %.*s: empty", what, STR_ARG(file));
    return code;
}

static void tls_forget(struct buf *text)
{
    if (text->p != NULL)
        explicit_bzero(text->p, text->cap);
    buf_done(text);
}

/* ---- an identity ---- */

static void tls_note_facts(struct tls_identity *i, gnutls_x509_crt_t *chain, unsigned n)
{
    assert(n > 0 && n <= CHAIN_MAX);
    char name[NAME_MAX_BYTES];
    size_t size = sizeof(name);
    int code = gnutls_x509_crt_get_subject_alt_name(chain[0], 0, name, &size, NULL);
    i->has_names = code != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
    i->expires_s = INT64_MAX;
    for (unsigned at = 0; at < n; at++) {
        int64_t begins_s = gnutls_x509_crt_get_activation_time(chain[at]);
        int64_t expires_s = gnutls_x509_crt_get_expiration_time(chain[at]);
        if (expires_s < i->expires_s) {
            i->expires_s = expires_s;
            i->stale_s = expires_s - (expires_s - begins_s) / 10;
        }
    }
}

static enum errc tls_take_pair(struct tls_identity *i, const struct tls_settings *s,
                               const struct buf *cert, const struct buf *key, struct err *reterr)
{
    gnutls_x509_crt_t chain[CHAIN_MAX];
    gnutls_x509_privkey_t private;
    unsigned n = CHAIN_MAX;
    gnutls_datum_t pem = PEM(cert);
    int code = gnutls_x509_crt_list_import(chain, &n, &pem, GNUTLS_X509_FMT_PEM,
                                           GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED |
                                               GNUTLS_X509_CRT_LIST_SORT);
    if (code < 0)
        return tls_fail(reterr, "tls-cert-file", s->cert_file, code);
    code = gnutls_x509_privkey_init(&private);
    if (code >= 0) {
        pem = PEM(key);
        code = gnutls_x509_privkey_import2(private, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
        if (code >= 0) {
            code = gnutls_certificate_set_x509_key(i->credentials, chain, (int)n, private);
            tls_note_facts(i, chain, n);
        }
        gnutls_x509_privkey_deinit(private);
    }
    while (n > 0)
        gnutls_x509_crt_deinit(chain[--n]);
    return code < 0 ? tls_fail(reterr, "tls-key-file", s->key_file, code) : OK;
}

static enum errc tls_take_clients(struct tls_identity *i, const struct tls_settings *s,
                                  const struct buf *ca, struct err *reterr)
{
    gnutls_datum_t pem = PEM(ca);
    int n = gnutls_certificate_set_x509_trust_mem(i->credentials, &pem, GNUTLS_X509_FMT_PEM);
    return n > 0 ? OK
                 : tls_fail(reterr, "client-ca-file", s->client_ca_file,
                            n == 0 ? GNUTLS_E_NO_CERTIFICATE_FOUND : n);
}

static void tls_identity_let_go(struct tls_identity *i)
{
    if (i == NULL)
        return;
    assert(i->users > 0);
    if (--i->users > 0)
        return;
    gnutls_certificate_free_credentials(i->credentials);
    mem_free(i);
}

/* Replaces the identity. */
static void tls_identity_set(struct tls *t, struct tls_identity *i)
{
    assert(i != NULL && i != t->identity);
    tls_identity_let_go(t->identity);
    t->identity = i;
    i->number = ++t->identities;
}

static int tls_verify_in_handshake(gnutls_session_t session);

static enum errc tls_identity_take(struct tls_identity *i, const struct tls_settings *s,
                                   struct err *reterr)
{
    struct buf cert = {.p = NULL};
    struct buf key = {.p = NULL};
    struct buf ca = {.p = NULL};
    enum errc code = tls_read_pem("tls-cert-file", s->cert_file, s->again, &cert, reterr);
    if (code == OK)
        code = tls_read_pem("tls-key-file", s->key_file, s->again, &key, reterr);
    if (code == OK && s->client_ca_file.n > 0)
        code = tls_read_pem("client-ca-file", s->client_ca_file, s->again, &ca, reterr);
    if (code == OK)
        code = tls_take_pair(i, s, &cert, &key, reterr);
    if (code == OK && s->client_ca_file.n > 0) {
        code = tls_take_clients(i, s, &ca, reterr);
        gnutls_certificate_set_verify_function(i->credentials, tls_verify_in_handshake);
    }
    tls_forget(&key);
    buf_done(&cert);
    buf_done(&ca);
    return code;
}

static enum errc tls_identity_load(const struct tls_settings *s, struct tls_identity **ret,
                                   struct err *reterr)
{
    struct tls_identity *i = mem_alloc(sizeof(*i));
    if (i == NULL || gnutls_certificate_allocate_credentials(&i->credentials) < 0) {
        mem_free(i);
        (void)err_set(reterr, ERR_NOMEM, "no memory for a certificate");
        return ERR_NOMEM;
    }
    i->users = 1;
    enum errc code = tls_identity_take(i, s, reterr);
    if (code == OK)
        *ret = i;
    else
        tls_identity_let_go(i);
    return code;
}

/* ---- a client's certificate ---- */

static void tls_verify(struct tls_peer *p, const struct tls_identity *by, gnutls_session_t session)
{
    p->fault =
        tls_client_fault(session, by->credentials, p->tls->settings.client_names, &p->until_s);
}

static int tls_verify_in_handshake(gnutls_session_t session)
{
    struct tls_peer *p = gnutls_session_get_ptr(session);
    assert(p->session == session && p->identity != NULL);
    tls_verify(p, p->identity, session);
    if (p->fault == NULL || p->tls->settings.optional)
        return 0;
    if (p->refused != NULL)
        p->refused(p, p->fault);
    /*
     * The alert does not say which fault it is: our log does, and an unknown client need not know.
     */
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL,
                            gnutls_certificate_get_peers(session, NULL) == NULL
                                ? GNUTLS_A_CERTIFICATE_REQUIRED
                                : GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* ---- peers ---- */

/* The client's Finished message ends the handshake for the server. */
static int tls_on_finished(gnutls_session_t session, unsigned type, unsigned when,
                           unsigned incoming, const gnutls_datum_t *message)
{
    struct tls_peer *p = gnutls_session_get_ptr(session);
    (void)type;
    (void)when;
    (void)message;
    if (incoming != 0)
        p->connected = true;
    return 0;
}

void tls_peer_begin(struct tls_peer *p, struct tls *t, void *session)
{
    assert(p->identity == NULL && t->identity != NULL && session != NULL);
    p->tls = t;
    p->identity = t->identity;
    p->identity->users++;
    p->session = session;
    /* libmicrohttpd stores its connection there, but uses it for pre-shared keys only. */
    gnutls_session_set_ptr(session, p);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
                                       tls_on_finished);
    int code = gnutls_priority_set(session, t->priorities);
    if (code == 0)
        code = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, p->identity->credentials);
    if (code != 0) /* no memory: the handshake will fail */
        return;
    if (t->settings.client_ca_file.n > 0)
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
}

void tls_peer_end(struct tls_peer *p)
{
    tls_identity_let_go(p->identity);
    *p = (struct tls_peer){.tls = NULL};
}

uint32_t tls_peer_wants(struct tls_peer *p)
{
    if (p->connected)
        return 0;
    assert(p->session != NULL);
    return gnutls_record_get_direction(p->session) == 0 ? EPOLLIN : EPOLLOUT;
}

const char *tls_peer_fault(struct tls_peer *p, uint64_t now_ms, int64_t now_s)
{
    if (p->tls == NULL || p->tls->settings.client_ca_file.n == 0)
        return "certificates are not asked for";
    const struct tls_identity *by = p->tls->identity;
    assert(p->session != NULL && p->verified_by <= p->tls->identities);
    bool over = p->fault == NULL && now_s > p->until_s;
    if (p->verified_by != by->number || now_ms - p->verified_ms >= VERIFY_AGAIN_MS || over) {
        tls_verify(p, by, p->session);
        p->verified_by = by->number;
        p->verified_ms = now_ms;
    }
    return p->fault;
}

/* ---- life ---- */

enum errc tls_new(const struct tls_settings *s, struct tls **ret, struct err *reterr)
{
    struct tls *t = mem_alloc(sizeof(*t));
    if (t == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for a certificate");
    t->settings = *s;
    t->stamps = tls_stamps_of(s);
    enum errc code = OK;
    struct tls_identity *i = NULL;
    if (gnutls_priority_init(&t->priorities, priorities, NULL) != 0)
        code = err_set(reterr, ERR_INTERNAL, "GnuTLS cannot do TLS 1.2 as it is wanted");
    if (code == OK)
        code = tls_identity_load(s, &i, reterr);
    if (code != OK) {
        gnutls_priority_deinit(t->priorities);
        mem_free(t);
        return code;
    }
    t->settings.again = true;
    tls_identity_set(t, i);
    *ret = t;
    return OK;
}

struct tls *tls_free(struct tls *t)
{
    if (t == NULL)
        return NULL;
    assert(t->identity->users == 1);
    tls_identity_let_go(t->identity);
    gnutls_priority_deinit(t->priorities);
    mem_free(t);
    return NULL;
}

void tls_become(struct tls *t, struct tls *fresh)
{
    assert(fresh->identity->users == 1 && fresh != t);
    tls_identity_set(t, fresh->identity);
    fresh->identity = NULL;
    t->settings = fresh->settings;
    t->stamps = fresh->stamps;
    t->refused = fresh->refused;
    gnutls_priority_deinit(fresh->priorities);
    mem_free(fresh);
}

static int tls_lacks_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                                 int n_authorities, const gnutls_pk_algorithm_t *algorithms,
                                 int n_algorithms, gnutls_pcert_st **ret, unsigned *ret_n,
                                 gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)authorities;
    (void)n_authorities;
    (void)algorithms;
    (void)n_algorithms;
    (void)ret;
    (void)ret_key;
    *ret_n = 0;
    return -1;
}

void *tls_no_certificate(void)
{
    gnutls_certificate_retrieve_function2 *callback = tls_lacks_certificate;
    return (void *)callback;
}

enum tls_news tls_refresh(struct tls *t, struct err *reterr)
{
    assert(t->identity != NULL && t->settings.again);
    struct tls_identity *fresh = NULL;
    struct stamps now = tls_stamps_of(
        &t->settings); /* read before the content: a change in between is detected next time */
    if (tls_stamps_eq(&now, &t->stamps))
        return TLS_SAME;
    if (tls_identity_load(&t->settings, &fresh, reterr) == OK) {
        tls_identity_set(t, fresh);
        t->stamps = now;
        return TLS_TAKEN;
    }
    bool logged = tls_stamps_eq(&now, &t->refused);
    t->refused = now;
    return logged ? TLS_SAME : TLS_REFUSED;
}

int64_t tls_expires_s(const struct tls *t)
{
    return t->identity->expires_s;
}

int64_t tls_stale_s(const struct tls *t)
{
    return t->identity->stale_s;
}

bool tls_has_names(const struct tls *t)
{
    return t->identity->has_names;
}
