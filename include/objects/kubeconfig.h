/*
 * The current context of a kubeconfig file, resolved to what a connection needs. Rules and
 * precedence are those of client-go (tools/clientcmd). Data and file for the same thing are an
 * error. Relative paths start at the file's own directory. A certificate needs its key. Token and
 * basic authentication exclude each other. Impersonation is supported. exec and auth-provider are
 * refused with the names of the user and the plugin, because ignoring them would connect as
 * anonymous. A server without https is refused, unless it is on the loopback. Unknown fields are
 * ignored, because other programs use the file too.
 */
#pragma once

#include "base/arena.h"
#include "json/base64.h"

struct kubeconfig {
    /* All views point into the arena; absent: not in the file. */
    struct str server;  /* https://host:port/path, no trailing slash; http only for loopback */
    struct str ca_file; /* absolute, or relative to the working directory */
    struct str ca_data; /* PEM, decoded from base64 */
    bool insecure_skip_tls_verify;
    struct str tls_server_name; /* sent (SNI) and verified instead of the host */
    struct str proxy_url;
    struct str client_cert_file;
    struct str client_cert_data;
    struct str client_key_file;
    struct str client_key_data;
    struct str token;
    struct str token_file; /* wins over token; re-read, because the token may change */
    struct str username;
    struct str password;
    struct str as_user;
    struct str as_uid;
    struct str *as_groups; /* n_as_groups of them */
    size_t n_as_groups;
    struct str *as_extra_keys; /* n_as_extra pairs */
    struct str *as_extra_values;
    size_t n_as_extra;
    struct str namespace; /* of the context */
};

/*
 * `text` is the file's content (YAML or JSON). `path` is its name, for relative paths and errors.
 * An error names the file, the entry and the field: kubeconfig "/etc/k.conf": user "admin": exec
 * ...
 */
enum errc kubeconfig_read(struct str text, struct str path, struct arena *arena,
                          struct kubeconfig *ret, struct err *reterr) _must_use_;
