/*
 * Shell completion. The scripts know nothing of the commands: at each TAB they run
 * "kubectl-cardpack __complete WORDS...", whose last word is the one that is being written, and
 * offer what it prints: a line "word<TAB>what it is" for each, and ":4" at last, or ":0" where a
 * file's name is wanted. That is what kubectl itself expects of a kubectl_complete-cardpack.
 */
#pragma once

#include "kubectl_args.h"

/* Names that the cluster has, and are not for this module to find. */
enum kubectl_names {
    KUBECTL_NO_NAMES,
    KUBECTL_NODES, /* with cards */
    KUBECTL_PODS,
    KUBECTL_NAMESPACES,
};

struct kubectl_wish {
    enum kubectl_names names;
    struct str current;       /* what is written of the name */
    struct str prefix;        /* "--namespace=" where the name is of the same word; never absent */
    struct kubectl_args args; /* as far as the line says where to ask, and in which namespace */
};

/* Where names are wished nothing is printed: whoever finds them prints the end as well. */
void kubectl_complete(char *const *words, int n, struct kubectl_wish *ret, struct buf *out);
void kubectl_complete_end(struct buf *out);

/* ERR_SYNTAX: it is none of bash, zsh and fish. */
enum errc kubectl_completion(struct str shell, struct buf *out, struct err *reterr) _must_use_;
