/* Private to TLS: what is thought of a client's certificate. */
#pragma once

#include "str.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#define CHAIN_MAX 8

/*
 * What speaks against the peer's certificate, by the CAs of `by`, a literal; NULL: it is good,
 * until the first of its chain ends, in Unix time. names: as in struct tls_settings.
 */
const char *tls_client_fault(gnutls_session_t session, gnutls_certificate_credentials_t by,
                             struct str names, int64_t *ret_until_s);
