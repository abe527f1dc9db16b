/*
 * The "exec" of a kubeconfig's user: the program that is run to learn who the user is (client-go's
 * credential plugins). It is read here and run by kubectl-cardpack alone; the daemon refuses it.
 */
#pragma once

#include "jread.h"

/* The two versions of its protocol that there are today. */
#define EXEC_VERSION_V1      STR("client.authentication.k8s.io/v1")
#define EXEC_VERSION_V1BETA1 STR("client.authentication.k8s.io/v1beta1")

enum exec_interactive {
    EXEC_NEVER,        /* it gets no standard input */
    EXEC_IF_AVAILABLE, /* ours, where that is a terminal */
    EXEC_ALWAYS,       /* and without one it can't be run */
};

struct kubeconfig_exec {
    struct str user;    /* whose it is; absent: the user has none, and nothing here is set */
    struct str version; /* one of the two */
    /* Without a slash it is looked for in PATH; else a file, relative to the working directory
     * where the kubeconfig is. */
    struct str command;
    struct str *args; /* n_args; these and the values may hold anything but NUL */
    size_t n_args;
    struct str *env_names; /* n_env pairs */
    struct str *env_values;
    size_t n_env;
    struct str hint; /* installHint */
    enum exec_interactive interactive;
    bool provide_cluster_info;
    /* What it may be told of the cluster beside what struct kubeconfig has. */
    struct str cluster_config; /* JSON as it stands; absent: none */
    bool disable_compression;
};

/* The value of "exec", an object; what is wrong with it fails the reader. */
void kubeconfig_exec_read(struct jread *r, struct kubeconfig_exec *ret);

/* The cluster's "extensions", of which one is for the program. */
void kubeconfig_exec_read_extensions(struct jread *r, struct kubeconfig_exec *ret);
