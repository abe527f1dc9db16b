/*
 * Shell completion. The scripts know nothing of the commands. At each TAB they run
 * "kubectl-cardpack __complete WORDS...", whose last word is the incomplete one, and offer the
 * output: a line "word<TAB>description" for each word, then ":4", or ":0" to complete file names.
 * kubectl expects the same format from a kubectl_complete-cardpack.
 */
#pragma once

#include "kubectl/args.h"

/* Names of objects in the cluster: the caller has to look them up (see names.h). */
enum kubectl_names {
    KUBECTL_NO_NAMES,
    KUBECTL_NODE_NAMES, /* with cards */
    KUBECTL_POD_NAMES,
    KUBECTL_NAMESPACE_NAMES,
};

struct kubectl_wish {
    enum kubectl_names names;
    struct str current;       /* the part of the name that is typed already */
    struct str prefix;        /* "--namespace=" if the name is in the same word; never absent */
    struct kubectl_args args; /* the flags on the line that choose server and namespace */
};

/* If ret->names is set nothing is printed: the caller prints the names and then
 * kubectl_complete_end. */
void kubectl_complete(char *const *words, int n, struct kubectl_wish *ret, struct buf *out);
void kubectl_complete_end(struct buf *out);

/* The completion script for bash, zsh or fish. ERR_SYNTAX: another shell. */
enum errc kubectl_completion(struct str shell, struct buf *out, struct err *reterr) _must_use_;
