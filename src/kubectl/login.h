/*
 * Runs the credential plugin that a kubeconfig names as "exec" (EKS, GKE, AKS, OIDC), once, and
 * puts its answer into the settings. By client-go's rules a token, a certificate or a user name in
 * the kubeconfig takes precedence over the plugin. Over plain HTTP the plugin is not run, because
 * no credentials are sent.
 */
#pragma once

#include "base/arena.h"
#include "kube/kube_credentials.h"

struct kubectl_login {
    char *const *environment; /* for the plugin */
    struct str path;          /* PATH */
    const char *input_taken;  /* why the plugin can't have standard input; NULL: it can */
    bool quiet;               /* hide the plugin's standard error */
    uint64_t timeout_ms;
};

/*
 * *ret_hint: the kubeconfig's text on how to install a missing plugin, if it has one. The results
 * in settings point into the arena.
 */
enum errc kubectl_login(const struct kubectl_login *l, struct arena *a,
                        struct kube_api_settings *settings, struct str *ret_hint,
                        struct err *reterr) _must_use_;
