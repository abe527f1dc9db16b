/* Connections of the benchmarks' API server; see api_conn.h. */
#include "api_conn.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OUT_MAX ((size_t)64 << 20)

/* The cipher that Go's servers choose on a processor with AES. */
#define PRIORITY "NORMAL:-CIPHER-ALL:+AES-128-GCM"

static void must(int code)
{
    if (code < 0)
        abort();
}

gnutls_certificate_credentials_t api_tls_new(void)
{
    gnutls_certificate_credentials_t tls;
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;
    time_t now = time(NULL);
    must(gnutls_certificate_allocate_credentials(&tls));
    must(gnutls_x509_privkey_init(&key));
    must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                      GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    must(gnutls_x509_crt_init(&crt));
    must(gnutls_x509_crt_set_version(crt, 3));
    must(gnutls_x509_crt_set_serial(crt, "\1", 1));
    must(gnutls_x509_crt_set_dn(crt, "CN=bench", NULL));
    must(gnutls_x509_crt_set_activation_time(crt, now - 3600));
    must(gnutls_x509_crt_set_expiration_time(crt, now + 86400));
    must(gnutls_x509_crt_set_key(crt, key));
    must(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0));
    must(gnutls_certificate_set_x509_key(tls, &crt, 1, key));
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
    return tls;
}

struct api_conn *api_conn_new(int fd, gnutls_certificate_credentials_t tls)
{
    struct api_conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->fd = fd;
    buf_init(&c->out, OUT_MAX);
    if (tls != NULL) {
        must(gnutls_init(&c->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK));
        must(gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, tls));
        must(gnutls_priority_set_direct(c->tls, PRIORITY, NULL));
        gnutls_transport_set_int(c->tls, fd);
    }
    return c;
}

void api_conn_free(struct api_conn *c)
{
    if (c->tls != NULL)
        gnutls_deinit(c->tls);
    (void)close(c->fd);
    buf_done(&c->out);
    free(c);
}

/* The number of bytes; 0: none now, -1: the end. */
static ssize_t outcome(const struct api_conn *c, ssize_t n)
{
    if (n > 0)
        return n;
    if (c->tls != NULL)
        return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? 0 : -1;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

bool api_conn_read(struct api_conn *c)
{
    if (c->tls != NULL && !c->shaken) {
        int code = gnutls_handshake(c->tls);
        c->shaken = code == 0;
        if (!c->shaken)
            return gnutls_error_is_fatal(code) == 0;
    }
    while (c->n_in < API_IN_BYTES) {
        char *at = c->in + c->n_in;
        size_t room = API_IN_BYTES - c->n_in;
        ssize_t n = outcome(c, c->tls != NULL ? gnutls_record_recv(c->tls, at, room)
                                              : recv(c->fd, at, room, 0));
        if (n < 0)
            return false;
        if (n == 0)
            break;
        c->n_in += (size_t)n;
        /* The rest comes with another event. */
        if ((size_t)n < room && c->tls == NULL)
            break;
    }
    c->in[c->n_in] = '\0';
    return c->n_in < API_IN_BYTES;
}

bool api_conn_write(struct api_conn *c)
{
    while (c->sent < c->out.n) {
        const char *at = c->out.p + c->sent;
        size_t left = c->out.n - c->sent;
        ssize_t n = outcome(c, c->tls != NULL ? gnutls_record_send(c->tls, at, left)
                                              : send(c->fd, at, left, MSG_NOSIGNAL));
        if (n < 0)
            return false;
        if (n == 0)
            return true;
        c->sent += (size_t)n;
    }
    c->sent = 0;
    buf_clear(&c->out, SIZE_MAX);
    return true;
}
