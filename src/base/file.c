/* Blocking reads: the files are small and local, and a mounted Secret is on tmpfs. A stamp contains
 * the inode because the kubelet replaces a symbolic link: the new file may have the same size and,
 * within the clock's resolution, the same time. */
#include "base/file.h"

#include "base/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP ((size_t)4096)

static bool file_path_z(struct str path, char out[PATH_MAX])
{
    if (path.n == 0 || path.n >= PATH_MAX || memchr(path.p, '\0', path.n) != NULL)
        return false;
    memcpy(out, path.p, path.n);
    out[path.n] = '\0';
    return true;
}

static enum errc file_fail(struct err *reterr, struct str path, int error)
{
    enum errc code = ERR_UNAVAILABLE;
    if (error == ENOENT || error == ENOTDIR)
        code = ERR_NOTFOUND;
    else if (error == EACCES || error == EPERM)
        code = ERR_DENIED;
    return err_set(reterr, code, "%.*s: %s", STR_ARG(path), strerror(error));
}

static enum errc file_read_all(int fd, struct str path, struct buf *out, struct err *reterr)
{
    for (;;) {
        /* At the ceiling one more byte is read, to distinguish a full file from a file that is too
         * long. */
        char extra;
        bool full = out->n == out->max;
        size_t room = MIN_OF(READ_STEP, out->max - out->n);
        if (!full && !buf_reserve(out, room))
            return err_set(reterr, ERR_NOMEM, "%.*s: out of memory", STR_ARG(path));
        ssize_t n = full ? read(fd, &extra, 1) : read(fd, out->p + out->n, room);
        if (n == 0)
            return OK;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_fail(reterr, path, errno);
        if (full)
            return err_set(reterr, ERR_LIMIT, "%.*s: larger than %zu bytes", STR_ARG(path),
                           out->max);
        out->n += (size_t)n;
    }
}

/* Waits until a writer opens the pipe and sends a byte or closes it. After LIMIT_PIPE_WRITER_MS it
 * only checks that a writer is there; that writer may take its time. */
static enum errc file_await_writer(int fd, struct str path, struct buf *out, struct err *reterr)
{
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    char first;
    if (poll(&waits, 1, LIMIT_PIPE_WRITER_MS) > 0)
        return OK;
    ssize_t n = read(fd, &first, 1); /* no byte: EAGAIN if a writer is there, else 0 */
    if (n == 1)
        buf_putc(out, first);
    else if (n == 0 || errno != EAGAIN)
        return err_set(reterr, ERR_UNAVAILABLE, "%.*s: a pipe that no process writes to",
                       STR_ARG(path));
    return OK;
}

/* O_NONBLOCK, because opening a pipe would wait for its writer. */
static enum errc file_open_and_read(struct str path, bool regular, struct buf *out,
                                    struct err *reterr)
{
    char z[PATH_MAX];
    struct stat st = {0};
    if (!file_path_z(path, z))
        return err_set(reterr, ERR_RANGE, "not the path of a file: \"%.*s\"", STR_ARG(path));
    int fd = open(z, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return file_fail(reterr, path, errno);
    enum errc code = OK;
    if (fstat(fd, &st) != 0)
        code = file_fail(reterr, path, errno);
    else if (regular && !S_ISREG(st.st_mode))
        code = err_set(reterr, ERR_RANGE, "%.*s: no regular file, so it can't be read again",
                       STR_ARG(path));
    else if (S_ISFIFO(st.st_mode))
        code = file_await_writer(fd, path, out, reterr);
    if (code == OK && !S_ISREG(st.st_mode) && fcntl(fd, F_SETFL, O_RDONLY) != 0)
        code = file_fail(reterr, path, errno);
    if (code == OK)
        code = file_read_all(fd, path, out, reterr);
    (void)close(fd);
    return code;
}

enum errc file_read(struct str path, struct buf *out, struct err *reterr)
{
    return file_open_and_read(path, false, out, reterr);
}

enum errc file_read_again(struct str path, struct buf *out, struct err *reterr)
{
    return file_open_and_read(path, true, out, reterr);
}

static bool file_write_all(int fd, struct str content)
{
    while (content.n > 0) {
        ssize_t n = write(fd, content.p, content.n);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            content = str_skip(content, (size_t)n);
    }
    return fsync(fd) == 0;
}

/* The rename lasts over a crash only when the folder has been written, too. */
static bool file_sync_folder(char path[PATH_MAX])
{
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        slash[slash == path ? 1 : 0] = '\0';
    int fd = open(slash == NULL ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool synced = fsync(fd) == 0;
    int error = errno;
    (void)close(fd);
    errno = error;
    return synced;
}

enum errc file_replace(struct str path, struct str content, struct err *reterr)
{
    char z[PATH_MAX];
    char fresh[PATH_MAX];
    if (!file_path_z(path, z) || path.n + sizeof(".new") > sizeof(fresh))
        return err_set(reterr, ERR_RANGE, "not the path of a file: \"%.*s\"", STR_ARG(path));
    struct buf name = BUF_ON(fresh);
    buf_put(&name, path);
    buf_put(&name, STR(".new"));
    /* What lies there is left from a crash, or it is a link or a pipe: it is not opened. */
    (void)unlink(fresh);
    int fd = open(buf_cstr(&name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return file_fail(reterr, buf_str(&name), errno);
    bool written = file_write_all(fd, content);
    int error = errno;
    (void)close(fd);
    if (!written || rename(fresh, z) != 0) {
        error = written ? errno : error;
        (void)unlink(fresh);
        return file_fail(reterr, path, error);
    }
    return file_sync_folder(z) ? OK : file_fail(reterr, path, errno);
}

bool file_print(const struct buf *text)
{
    struct str s = buf_str(text); /* without bytes it points to a literal, as fwrite wants it */
    return !buf_failed(text) && fwrite(s.p, 1, s.n, stdout) == s.n && fflush(stdout) == 0;
}

bool file_may_block(struct str path)
{
    char z[PATH_MAX];
    struct stat st;
    return file_path_z(path, z) && stat(z, &st) == 0 && !S_ISREG(st.st_mode) &&
           !S_ISDIR(st.st_mode);
}

bool file_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* open returns the lowest free descriptor: fd. It stays open over exec, as the three
         * must. */
        /* cppcheck-suppress leakReturnValNotUsed; the descriptor that is opened is fd */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    }
    return true;
}

static int64_t file_ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct file_stamp file_stamp(struct str path)
{
    char z[PATH_MAX];
    struct stat st;
    if (!file_path_z(path, z) || stat(z, &st) != 0)
        return (struct file_stamp){0};
    return (struct file_stamp){
        .device = st.st_dev,
        .inode = st.st_ino,
        .size = st.st_size,
        .mtime_ns = file_ns_of(st.st_mtim),
        .ctime_ns = file_ns_of(st.st_ctim),
        .regular = S_ISREG(st.st_mode),
    };
}

bool file_stamp_eq(struct file_stamp a, struct file_stamp b)
{
    return a.device == b.device && a.inode == b.inode && a.size == b.size &&
           a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns;
}
