/*
 * The "exec" of a kubeconfig's user: the program that returns the user's credentials (client-go's
 * credential plugins). This module only reads the settings. Only kubectl-cardpack runs the program;
 * the daemon refuses an exec.
 */
#pragma once

#include "codec/jread.h"

/* The two existing versions of the protocol. */
#define EXEC_VERSION_V1      STR("client.authentication.k8s.io/v1")
#define EXEC_VERSION_V1BETA1 STR("client.authentication.k8s.io/v1beta1")

enum exec_interactive {
    EXEC_NEVER,        /* the program gets no standard input */
    EXEC_IF_AVAILABLE, /* it gets our standard input if that is a terminal */
    EXEC_ALWAYS,       /* it needs a terminal and cannot run without one */
};

struct kubeconfig_exec {
    struct str user; /* name of the user; absent: the user has no exec, and no other field is set */
    struct str version; /* one of the two versions */
    /*
     * Without a slash: looked up in PATH. With one: a file; relative to the working directory if
     * the kubeconfig's path was.
     */
    struct str command;
    struct str *args; /* n_args; arguments and values may contain any byte except NUL */
    size_t n_args;
    struct str *env_names; /* n_env pairs */
    struct str *env_values;
    size_t n_env;
    struct str hint; /* installHint */
    enum exec_interactive interactive;
    bool provide_cluster_info;
    /* For the program, in addition to struct kubeconfig's fields about the cluster. */
    struct str cluster_config; /* JSON, unchanged; absent: none */
    bool disable_compression;
};

/* Reads the value of "exec", an object; an error fails the reader. */
void kubeconfig_exec_read(struct jread *r, struct kubeconfig_exec *ret);

/* Reads the cluster's "extensions"; one of them is for the program. */
void kubeconfig_exec_read_extensions(struct jread *r, struct kubeconfig_exec *ret);
