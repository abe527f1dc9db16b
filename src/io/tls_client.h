/* Private to TLS: verification of a client's certificate. */
#pragma once

#include "base/str.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#define CHAIN_MAX 8

/*
 * What is wrong with the peer's certificate, verified with the CAs of `by`; a literal. NULL: it is
 * good until *ret_until_s, when the first certificate of its chain expires (Unix time). names: as
 * in struct tls_settings.
 */
const char *tls_client_fault(gnutls_session_t session, gnutls_certificate_credentials_t by,
                             struct str names, int64_t *ret_until_s);
