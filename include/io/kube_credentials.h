/*
 * Where the API server is and who we are there: found once, with the token re-read for ever. No
 * error and no origin holds a secret.
 */
#pragma once

#include "file.h"
#include "kubeconfig.h"

/* What a program that the kubeconfig names has said of who the user is; absent: nothing. */
struct kube_login {
    struct str token;
    struct str cert; /* PEM, with its key */
    struct str key;
};

/*
 * Where the credentials come from, first that applies: `kubeconfig` (a path, or only the name of
 * `kubeconfig_text`, whose relative paths are the working directory's); else the in-cluster
 * environment (KUBERNETES_SERVICE_HOST and _PORT with the mounted token and CA, both required);
 * else ~/.kube/config. The choice is logged by the caller through kube_api_origin.
 */
struct kube_api_settings {
    struct str kubeconfig;      /* absent: see above */
    struct str kubeconfig_text; /* absent: it is read from the file */
    /* Of kubeconfig_text: in place of its "exec"; NULL: a user with one is refused. */
    const struct kube_login *login;
    struct str service_host; /* KUBERNETES_SERVICE_HOST; absent outside of a cluster */
    struct str service_port;
    struct str service_account; /* directory with token, ca.crt and namespace */
    struct str home;            /* for ~/.kube/config; absent: not tried */
    struct str user_agent;
};

struct kube_credentials {
    struct kubeconfig config; /* in a cluster the same fields, filled from there */
    struct str origin;
    struct str *headers; /* "Impersonate-User: ..." and the like, n_headers of them */
    size_t n_headers;
    bool tls; /* without it nothing that identifies us is left in config or headers */
};

/* All views live in the arena. */
enum errc kube_credentials_find(const struct kube_api_settings *s, struct arena *arena,
                                struct kube_credentials *ret, struct err *reterr) _must_use_;

/*
 * A bearer token. One from a file is read again when that was done 50 s ago or more; a file that
 * cannot be read, is empty or holds no token leaves the old one in force. A pipe is read once.
 */
struct kube_token {
    struct str file; /* absent: the token never changes */
    struct buf value;
    uint64_t read_ms;
};

/* Fails only where there is to be a token and none can be had. */
enum errc kube_token_init(struct kube_token *t, const struct kubeconfig *config, uint64_t now_ms,
                          struct err *reterr) _must_use_;
void kube_token_done(struct kube_token *t);

/* The token as of now; absent: none is used. Valid until the next call. */
struct str kube_token_get(struct kube_token *t, uint64_t now_ms);

/* Reads the file at once; the error is for a debug log. */
enum errc kube_token_refresh(struct kube_token *t, uint64_t now_ms, struct err *reterr);
