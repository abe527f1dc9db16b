/*
 * Several kubeconfig files as one, by kubectl's rules: of clusters, contexts and users of one name
 * the first file's counts, and the first current-context that is set. Paths in a file that are
 * relative to it become relative to nothing: what comes of a merge is read as if it were one file,
 * by kubeconfig_read.
 */
#pragma once

#include "arena.h"
#include "buf.h"

struct kubeconfig_file {
    struct str path;
    struct str text;
};

/*
 * JSON into out. `context` is the one that is current whatever the files say; absent: theirs. An
 * error names the file.
 */
enum errc kubeconfig_merge(const struct kubeconfig_file *files, size_t n, struct str context,
                           struct arena *arena, struct buf *out, struct err *reterr) _must_use_;
