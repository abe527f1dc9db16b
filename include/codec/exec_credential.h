/*
 * What a credential plugin is told, and what it answers: client-go's ExecCredential
 * (client.authentication.k8s.io). No error holds a byte of the credential.
 */
#pragma once

#include "kubeconfig.h"

/*
 * The value of KUBERNETES_EXEC_INFO. `ca` is the cluster's CA in base64, wherever it came
 * from; the cluster is there only where the user's exec asks for it.
 */
void exec_credential_write(const struct kubeconfig_exec *e, const struct kubeconfig *k,
                           struct str ca, bool interactive, struct buf *out);

struct exec_credential {
    struct str token; /* these are the arena's; absent: none */
    struct str cert;  /* PEM, with its key or not at all */
    struct str key;
    uint32_t expires_s; /* Unix time; 0: it does not say */
};

/* `version` is the one that was asked for. The error names the field. */
enum errc exec_credential_read(struct str text, struct str version, struct arena *arena,
                               struct exec_credential *ret, struct err *reterr) _must_use_;
