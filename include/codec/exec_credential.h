/*
 * The input and output of a credential plugin: client-go's ExecCredential
 * (client.authentication.k8s.io). No error contains a byte of the credential.
 */
#pragma once

#include "codec/kubeconfig.h"

/*
 * The value of KUBERNETES_EXEC_INFO. `ca` is the cluster's CA in base64, from inline data or from a
 * file. The cluster is included only if the user's exec sets provideClusterInfo.
 */
void exec_credential_write(const struct kubeconfig_exec *e, const struct kubeconfig *k,
                           struct str ca, bool interactive, struct buf *out);

struct exec_credential {
    struct str token; /* from here on: in the arena; absent: none */
    struct str cert;  /* PEM; present exactly if key is */
    struct str key;
    uint32_t expires_s; /* Unix time; 0: unknown */
};

/*
 * `version` is the version in the kubeconfig; the answer must have the same. The error names the
 * field.
 */
enum errc exec_credential_read(struct str text, struct str version, struct arena *arena,
                               struct exec_credential *ret, struct err *reterr) _must_use_;
