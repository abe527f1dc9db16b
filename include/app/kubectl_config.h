/*
 * Where kubectl-cardpack finds the API server and who it is there, as kubectl does: --kubeconfig;
 * else all files of $KUBECONFIG that there are, as one; else ~/.kube/config; else the service
 * account of the pod that it runs in. --context chooses within the files.
 *
 * --server and --daemon-url stand for all of that: an address, and a token where there is one.
 */
#pragma once

#include "arena.h"
#include "kube_credentials.h"
#include "kubectl_args.h"

struct kubectl_env {
    struct str kubeconfig; /* KUBECONFIG */
    struct str home;
    struct str service_host;
    struct str service_port;
    struct str service_account;
};

/* The views are the arena's, and those of a and env. */
enum errc kubectl_config_find(const struct kubectl_args *a, const struct kubectl_env *env,
                              struct arena *arena, struct kube_api_settings *ret,
                              struct err *reterr) _must_use_;
