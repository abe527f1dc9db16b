/*
 * Who the user is where the kubeconfig names a program to ask (exec: EKS, GKE, AKS, OIDC): it is
 * run once, and its answer stands in the settings. By client-go's rules: a token, a certificate or
 * a name in the kubeconfig comes before the program, and over plain HTTP nobody is asked, as no
 * identity is sent.
 */
#pragma once

#include "arena.h"
#include "kube_credentials.h"

struct kubectl_login {
    char *const *environment; /* what it inherits */
    struct str path;          /* PATH */
    const char *input_taken;  /* why standard input is not for it; NULL: it is */
    bool quiet;               /* nobody is to see what it says */
    uint64_t timeout_ms;
};

/*
 * `ret_hint`: how to install the program that is missing, in the kubeconfig's own words, where
 * there are any. What settings then point to is the arena's.
 */
enum errc kubectl_login(const struct kubectl_login *l, struct arena *a,
                        struct kube_api_settings *settings, struct str *ret_hint,
                        struct err *reterr) _must_use_;
