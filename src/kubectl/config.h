/*
 * Finds the API server and the credentials by kubectl's rules: --kubeconfig; otherwise the existing
 * files of $KUBECONFIG, merged; otherwise ~/.kube/config; otherwise the service account of the pod
 * that kubectl-cardpack runs in. --context chooses a context in the files.
 *
 * --server and --daemon-url replace all of this: they give an address, with the token file and the
 * CA of other flags.
 */
#pragma once

#include "base/arena.h"
#include "kube/kube_credentials.h"
#include "kubectl/args.h"

struct kubectl_env {
    struct str kubeconfig; /* KUBECONFIG */
    struct str home;
    struct str service_host;
    struct str service_port;
    struct str service_account;
};

/* The views in *ret point into the arena, a and env. */
enum errc kubectl_config_find(const struct kubectl_args *a, const struct kubectl_env *env,
                              struct arena *arena, struct kube_api_settings *ret,
                              struct err *reterr) _must_use_;
