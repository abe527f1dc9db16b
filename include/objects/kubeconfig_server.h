/*
 * Which addresses of a kubeconfig's cluster are accepted. No error quotes a part that may be a
 * secret.
 */
#pragma once

#include "base/err.h"

/* Checks a server's URL and removes the slashes at its end. */
enum errc kubeconfig_server_check(struct str *server, struct err *reterr) _must_use_;

/* Absent or empty: no proxy, which is accepted. */
enum errc kubeconfig_proxy_check(struct str url, struct err *reterr) _must_use_;
