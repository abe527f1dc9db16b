/*
 * Unix sockets. bind() gives the file the mode of the socket's inode, less the umask; so fchmod
 * before bind leaves no moment in which another user could connect.
 */
#include "grpc_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 64

static int grpc_socket_open(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static const struct sockaddr *grpc_socket_any(const struct sockaddr_un *a)
{
    return (const struct sockaddr *)(const void *)a;
}

enum errc grpc_socket_address(const char *path, struct sockaddr_un *ret, struct err *reterr)
{
    struct str s = str_of(path);
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (s.n == 0 || s.n >= sizeof(ret->sun_path))
        return err_set(reterr, ERR_RANGE, "the path of a socket has 1 to %zu bytes: \"%s\"",
                       sizeof(ret->sun_path) - 1, path);
    memcpy(ret->sun_path, s.p, s.n);
    return OK;
}

enum errc grpc_socket_connect(const struct sockaddr_un *a, int *ret_fd, struct err *reterr)
{
    int fd = grpc_socket_open();
    if (fd >= 0 && connect(fd, grpc_socket_any(a), sizeof(*a)) == 0) {
        *ret_fd = fd;
        return OK;
    }
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    return err_set(reterr, why == EACCES ? ERR_DENIED : ERR_UNAVAILABLE, "cannot connect to %s: %s",
                   a->sun_path, why == EAGAIN ? "too many clients wait there" : strerror(why));
}

/* Removes a socket that no process listens on. */
static enum errc grpc_socket_clear(const struct sockaddr_un *a, struct err *reterr)
{
    struct stat st;
    if (lstat(a->sun_path, &st) != 0)
        return OK; /* bind reports any other reason than a missing file */
    if (!S_ISSOCK(st.st_mode))
        return err_set(reterr, ERR_CONFLICT, "%s exists and is not a socket", a->sun_path);
    int fd = grpc_socket_open();
    if (fd < 0)
        return err_set(reterr, ERR_UNAVAILABLE, "no socket: %s", strerror(errno));
    int r = connect(fd, grpc_socket_any(a), sizeof(*a));
    int why = errno;
    (void)close(fd);
    if (r == 0 || why != ECONNREFUSED)
        return err_set(reterr, ERR_CONFLICT, "another process listens on %s", a->sun_path);
    if (unlink(a->sun_path) != 0 && errno != ENOENT)
        return err_set(reterr, ERR_DENIED, "cannot remove the unused socket %s: %s", a->sun_path,
                       strerror(errno));
    return OK;
}

static bool grpc_socket_bind(int fd, struct grpc_socket_file *f)
{
    struct stat st;
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
        bind(fd, grpc_socket_any(&f->address), sizeof(f->address)) != 0)
        return false;
    if (lstat(f->address.sun_path, &st) != 0)
        return false;
    f->device = st.st_dev;
    f->inode = st.st_ino;
    if (listen(fd, BACKLOG) == 0)
        return true;
    int why = errno;
    grpc_socket_remove(f);
    errno = why;
    return false;
}

enum errc grpc_socket_listen(const char *path, struct grpc_socket_file *ret_file, int *ret_fd,
                             struct err *reterr)
{
    struct grpc_socket_file f = {.inode = 0};
    enum errc code = grpc_socket_address(path, &f.address, reterr);
    if (code == OK)
        code = grpc_socket_clear(&f.address, reterr);
    if (code != OK)
        return code;
    int fd = grpc_socket_open();
    if (fd >= 0 && grpc_socket_bind(fd, &f)) {
        *ret_file = f;
        *ret_fd = fd;
        return OK;
    }
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    return err_set(reterr, why == EACCES ? ERR_DENIED : ERR_UNAVAILABLE, "cannot listen on %s: %s",
                   path, strerror(why));
}

bool grpc_socket_is_there(const struct grpc_socket_file *f)
{
    struct stat st;
    return lstat(f->address.sun_path, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode;
}

void grpc_socket_remove(const struct grpc_socket_file *f)
{
    if (grpc_socket_is_there(f))
        (void)unlink(f->address.sun_path);
}
