/* Small files, read and written whole: configuration, credentials, state. */
#pragma once

#include "base/buf.h"

/* Appends the file's bytes to `out`. ERR_LIMIT: the file is larger than the ceiling of `out`. The
 * error text names the path, never the content. Reading a pipe blocks until its writer closes it.
 * ERR_UNAVAILABLE: no process opens the pipe for writing within LIMIT_PIPE_WRITER_MS. */
enum errc file_read(struct str path, struct buf *out, struct err *reterr) _must_use_;

/* The same for a regular file only. A pipe is ERR_RANGE: it delivers its bytes only once, and may
 * have no writer. Use this for a read during which other work waits. */
enum errc file_read_again(struct str path, struct buf *out, struct err *reterr) _must_use_;

/* Writes the file anew: readers, and a machine that crashes, see the old content or the new one.
 * Blocks until the disk has it. The folder must allow a file NAME.new beside it, whatever is there
 * under that name; a new file has mode 0600. On failure the old content stays. */
enum errc file_replace(struct str path, struct str content, struct err *reterr) _must_use_;

/* Writes the bytes to standard output. False: it can't be written, or the buf has failed. */
bool file_print(const struct buf *text) _must_use_;

/* Whether opening the path may block for ever: it is a pipe or a device. False if it does not
 * exist. */
bool file_may_block(struct str path);

/* Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise a socket could
 * become descriptor 2, and the log would be written to its peer. Call it before anything else opens
 * a file. */
bool file_fill_standard(void) _must_use_;

/* Identifies a version of a file without reading the file. All zero: no such file. */
struct file_stamp {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns; /* unlike mtime, no program can set it back */
    bool regular;     /* a regular file: it can be read again */
};

struct file_stamp file_stamp(struct str path);
bool file_stamp_eq(struct file_stamp a, struct file_stamp b);
