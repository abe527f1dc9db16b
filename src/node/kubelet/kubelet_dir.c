/* inotify: many events of one turn become one call. */
#include "node/kubelet/kubelet_dir.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#define EVENTS_BYTES 4096

static bool kubelet_dir_is_kubelet(const struct inotify_event *e)
{
    bool appears = (e->mask & (IN_CREATE | IN_MOVED_TO)) != 0;
    return (e->mask & IN_Q_OVERFLOW) != 0 ||
           (appears && e->len > 0 && str_eq(str_of(e->name), STR(KUBELET_DIR_SOCKET)));
}

static void kubelet_dir_ready(struct loop_fd *f, uint32_t events)
{
    struct kubelet_dir *d = CONTAINER_OF(f, struct kubelet_dir, inotify);
    _Alignas(struct inotify_event) char bytes[EVENTS_BYTES];
    bool kubelet = false;
    bool gone = false;
    (void)events;
    ssize_t n = read(f->fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const void *)(bytes + at);
        kubelet = kubelet || kubelet_dir_is_kubelet(e);
        gone = gone || (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0;
        at += (ssize_t)(sizeof(*e) + e->len);
    }
    if (n < 0 || gone)
        kubelet_dir_close(d);
    d->changed(d, kubelet, n < 0 || gone);
}

enum errc kubelet_dir_open(struct kubelet_dir *d, struct loop *l, const char *path,
                           struct err *reterr)
{
    assert(!kubelet_dir_is_open(d));
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0)
        return err_set(reterr, ERR_UNAVAILABLE, "cannot watch %s: %s", path, strerror(errno));
    uint32_t mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
                    IN_MOVE_SELF | IN_ONLYDIR;
    if (inotify_add_watch(fd, path, mask) < 0) {
        int why = errno;
        (void)close(fd);
        return err_set(reterr, why == ENOENT ? ERR_NOTFOUND : ERR_UNAVAILABLE,
                       "cannot watch %s: %s", path, strerror(why));
    }
    d->inotify = (struct loop_fd){.fd = fd, .events = EPOLLIN, .ready = kubelet_dir_ready};
    enum errc code = loop_fd_add(l, &d->inotify, reterr);
    if (code != OK)
        (void)close(fd);
    return code;
}

bool kubelet_dir_is_open(const struct kubelet_dir *d)
{
    return d->inotify.loop != NULL;
}

void kubelet_dir_close(struct kubelet_dir *d)
{
    if (!kubelet_dir_is_open(d))
        return;
    int fd = d->inotify.fd;
    loop_fd_del(&d->inotify);
    (void)close(fd);
}
