/* The addresses of a kubeconfig's cluster: which are taken. No error quotes what may be a secret.
 */
#pragma once

#include "err.h"

/* A server's URL, made as it is used: without slashes at its end. */
enum errc kubeconfig_server_check(struct str *server, struct err *reterr) _must_use_;

/* Absent or empty: none, which is good. */
enum errc kubeconfig_proxy_check(struct str url, struct err *reterr) _must_use_;
