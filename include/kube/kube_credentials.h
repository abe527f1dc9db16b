/*
 * Finds the address of the API server and the client's credentials. This is done once; only a token
 * file is read again later. No error text and no origin contains a secret.
 */
#pragma once

#include "base/file.h"
#include "objects/kubeconfig.h"

/*
 * Source of the credentials, the first that applies:
 *   - `config`: as it is, without a file.
 *   - `kubeconfig`: a path.
 *   - the in-cluster environment: KUBERNETES_SERVICE_HOST and _PORT with the mounted token and CA,
 *     both required.
 *   - ~/.kube/config.
 *
 * The caller logs the choice with kube_api_origin.
 */
struct kube_api_settings {
    const struct kubeconfig *config; /* NULL: see above; its strings must outlive the kube_api */
    struct str socket;               /* a Unix socket that leads to the server; absent: none */
    struct str kubeconfig;           /* absent: see above */
    struct str service_host;         /* KUBERNETES_SERVICE_HOST; absent outside of a cluster */
    struct str service_port;
    struct str service_account; /* directory with token, ca.crt and namespace */
    struct str home;            /* for ~/.kube/config; absent: not tried */
    struct str user_agent;
};

struct kube_credentials {
    struct kubeconfig config; /* in a cluster: filled from the mounted files */
    struct str origin;
    struct str *headers; /* "Impersonate-User: ..." and the like, n_headers of them */
    size_t n_headers;
    bool tls; /* false: config and headers contain no credentials */
};

/* All views live in the arena. */
enum errc kube_credentials_find(const struct kube_api_settings *s, struct arena *arena,
                                struct kube_credentials *ret, struct err *reterr) _must_use_;

/*
 * A bearer token. A token file is read again if the last read was 50 s ago or more. If the file
 * cannot be read, is empty or holds no token, the old token stays in use. A pipe is read once only.
 */
struct kube_token {
    struct str file; /* absent: the token never changes */
    struct buf value;
    uint64_t read_ms;
};

/* Fails only if the config names a token and none can be read. */
enum errc kube_token_init(struct kube_token *t, const struct kubeconfig *config, uint64_t now_ms,
                          struct err *reterr) _must_use_;
void kube_token_done(struct kube_token *t);

/* The current token; absent: the config has none. Valid until the next call. */
struct str kube_token_get(struct kube_token *t, uint64_t now_ms);

/* Reads the file at once; the error is for a debug log. */
enum errc kube_token_refresh(struct kube_token *t, uint64_t now_ms, struct err *reterr);
