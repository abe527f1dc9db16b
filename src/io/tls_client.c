/* Verifies a client's certificate chain: signature and purpose with GnuTLS, then the names. */
#include "tls_client.h"

#define NAME_MAX_BYTES 256
#define VERIFY_FLAGS   GNUTLS_PROFILE_TO_VFLAGS(GNUTLS_PROFILE_MEDIUM)

static const char *tls_client_fault_of(unsigned status)
{
    static const struct {
        unsigned bit;
        const char *fault;
    } faults[] = {
        {GNUTLS_CERT_EXPIRED, "the certificate has expired"},
        {GNUTLS_CERT_NOT_ACTIVATED, "the certificate is not valid yet"},
        {GNUTLS_CERT_PURPOSE_MISMATCH, "the certificate is not one for client authentication"},
        {GNUTLS_CERT_INSECURE_ALGORITHM, "the certificate's algorithm or key is too weak"},
        {GNUTLS_CERT_SIGNER_NOT_FOUND, "the certificate is of no CA in client-ca-file"},
        {GNUTLS_CERT_SIGNER_NOT_CA, "the certificate is of no CA in client-ca-file"},
    };

    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        if ((status & faults[i].bit) != 0)
            return faults[i].fault;
    }
    return "the certificate cannot be verified";
}

static bool tls_client_is_listed(struct str names, const char *name, size_t n)
{
    struct str wanted;
    while (names.p != NULL) {
        (void)str_cut(names, ',', &wanted, &names);
        if (n > 0 && str_eq(str_trim(wanted), (struct str){name, n}))
            return true;
    }
    return false;
}

static bool tls_client_has_listed_name(struct str names, gnutls_x509_crt_t crt)
{
    char name[NAME_MAX_BYTES];
    size_t n = sizeof(name);
    /* With several common names, none of them counts. */
    if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 1, 0, name, &n) ==
        GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
        n = sizeof(name);
        if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &n) == 0 &&
            tls_client_is_listed(names, name, n))
            return true;
    }
    for (unsigned at = 0;; at++) {
        n = sizeof(name);
        int type = gnutls_x509_crt_get_subject_alt_name(crt, at, name, &n, NULL);
        if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return false;
        if (type == GNUTLS_SAN_DNSNAME && tls_client_is_listed(names, name, n))
            return true;
    }
}

static int64_t tls_client_first_end_s(gnutls_x509_crt_t *chain, unsigned n)
{
    int64_t first = INT64_MAX;
    for (unsigned at = 0; at < n; at++)
        first = MIN_OF(first, (int64_t)gnutls_x509_crt_get_expiration_time(chain[at]));
    return first;
}

static const char *tls_client_verify_chain(gnutls_certificate_credentials_t by, struct str names,
                                           gnutls_x509_crt_t *chain, unsigned n)
{
    static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st wanted = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                    .data = (unsigned char *)purpose};
    gnutls_x509_trust_list_t trust = NULL;
    unsigned status = 0;
    gnutls_certificate_get_trust_list(by, &trust);
    int code = gnutls_x509_trust_list_verify_crt2(trust, chain, n, &wanted, 1, VERIFY_FLAGS,
                                                  &status, NULL);
    if (code < 0)
        return "the certificate cannot be verified";
    if (status != 0)
        return tls_client_fault_of(status);
    if (names.n > 0 && !tls_client_has_listed_name(names, chain[0]))
        return "the certificate's name is not in client-names";
    return NULL;
}

const char *tls_client_fault(gnutls_session_t session, gnutls_certificate_credentials_t by,
                             struct str names, int64_t *ret_until_s)
{
    gnutls_x509_crt_t chain[CHAIN_MAX];
    unsigned n = 0;
    unsigned n_raw = 0;
    const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &n_raw);
    const char *fault = "the certificate cannot be read";
    if (raw == NULL || n_raw == 0)
        return "there is no certificate";
    if (n_raw > CHAIN_MAX)
        return "the chain of certificates is too long";
    while (n < n_raw && gnutls_x509_crt_init(&chain[n]) == 0) {
        n++;
        if (gnutls_x509_crt_import(chain[n - 1], &raw[n - 1], GNUTLS_X509_FMT_DER) < 0)
            goto out;
    }
    if (n == n_raw) {
        fault = tls_client_verify_chain(by, names, chain, n);
        *ret_until_s = tls_client_first_end_s(chain, n);
    }
out:
    while (n > 0)
        gnutls_x509_crt_deinit(chain[--n]);
    return fault;
}
