/* Small files, read whole: configuration and credentials. */
#pragma once

#include "buf.h"

/*
 * Appends the file's bytes to `out`; over its ceiling: ERR_LIMIT. The error names the path and
 * never the content.
 */
enum errc file_read(struct str path, struct buf *out, struct err *reterr) _must_use_;

/* The same of a regular file alone: a pipe, whose bytes come once, and whose writer may never come,
 * is ERR_RANGE. For what is read while others wait. */
enum errc file_read_again(struct str path, struct buf *out, struct err *reterr) _must_use_;

/* To open it may take for ever: a pipe, or a device. Not of one that is not there. */
bool file_may_block(struct str path);

/* What tells one version of a file from the next without reading it. All zero: no such file. */
struct file_stamp {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t mtime_ns;
    bool regular; /* a file as others, that can be read again */
};

struct file_stamp file_stamp(struct str path);
bool file_stamp_eq(struct file_stamp a, struct file_stamp b);
