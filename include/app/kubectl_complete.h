/*
 * Shell completion. The scripts know nothing of the commands: at each TAB they run
 * "kubectl-cardpack __complete WORDS...", whose last word is the one that is being written, and
 * offer what it prints: a line "word<TAB>what it is" for each, and ":4" at last, or ":0" where a
 * file's name is wanted. That is what kubectl itself expects of a kubectl_complete-cardpack.
 */
#pragma once

#include "kubectl_args.h"

void kubectl_complete(char *const *words, int n, struct buf *out);

/* ERR_SYNTAX: it is none of bash, zsh and fish. */
enum errc kubectl_completion(struct str shell, struct buf *out, struct err *reterr) _must_use_;
