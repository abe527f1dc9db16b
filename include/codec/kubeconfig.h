/*
 * A kubeconfig file's current context, resolved to what a connection needs. Rules and precedence
 * are client-go's (tools/clientcmd): inline data and file of the same thing together are an error,
 * relative paths resolve against the file's own directory, a certificate needs its key, token and
 * basic authentication exclude each other, impersonation is honoured. exec and auth-provider are
 * refused with the user's and the plugin's name: ignoring them would run as anonymous
 * (kubeconfig_read_merged takes an exec, where it is asked to). So is a server without https,
 * unless it is on this machine's loopback. Unknown fields are ignored: the file is other programs'
 * too.
 */
#pragma once

#include "arena.h"
#include "base64.h"
#include "kubeconfig_exec.h"

struct kubeconfig {
    /* All views live in the arena; absent where the file has none. */
    struct str server;  /* https://host:port/path, no trailing slash; http only for loopback */
    struct str ca_file; /* absolute, or relative to the working directory as the file's was */
    struct str ca_data; /* PEM, decoded from base64 */
    bool insecure_skip_tls_verify;
    struct str tls_server_name; /* the name to send and to verify instead of the host */
    struct str proxy_url;
    struct str client_cert_file;
    struct str client_cert_data;
    struct str client_key_file;
    struct str client_key_data;
    struct str token;
    struct str token_file; /* re-read: beats token */
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
 * `text` is the file's content (YAML or JSON), `path` its name, for relative paths and errors. An
 * error names the file, the entry and the field: kubeconfig "/etc/k.conf": user "admin": exec ...
 */
enum errc kubeconfig_read(struct str text, struct str path, struct arena *arena,
                          struct kubeconfig *ret, struct err *reterr) _must_use_;

/*
 * The same of what kubeconfig_merge has made: relative paths are the working directory's, and
 * `name` is for errors alone. ret_exec NULL: a user with an exec is refused.
 */
enum errc kubeconfig_read_merged(struct str text, struct str name, struct arena *arena,
                                 struct kubeconfig *ret, struct kubeconfig_exec *ret_exec,
                                 struct err *reterr) _must_use_;
