/*
 * Merges several kubeconfig files by kubectl's rules. Of clusters, contexts and users with the same
 * name, the one in the first file counts. The first current-context that is set counts. Relative
 * paths in a file are joined with the directory of that file. kubeconfig_read_merged reads the
 * result as one file.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

struct kubeconfig_file {
    struct str path;
    struct str text;
};

/*
 * Writes JSON into out. `context` becomes the current context; absent: the files' own. An error
 * names the file.
 */
enum errc kubeconfig_merge(const struct kubeconfig_file *files, size_t n, struct str context,
                           struct arena *arena, struct buf *out, struct err *reterr) _must_use_;
