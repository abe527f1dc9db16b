#include "node/isolation/mps_daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool mps_daemon_connects(const struct sockaddr_un *address, int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool done = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
    int error = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = error;
    return done;
}

bool mps_daemon_serves(struct str dir, const struct gpu_card *c, char why[GPU_REASON_BYTES])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (c->compute_mode != NVML_COMPUTE_EXCLUSIVE_PROCESS) {
        (void)snprintf(why, GPU_REASON_BYTES,
                       "MPS: the card's compute mode is not EXCLUSIVE_PROCESS");
        return false;
    }
    int n = snprintf(address.sun_path, sizeof(address.sun_path), "%.*s/%.*s/control", STR_ARG(dir),
                     STR_ARG(c->uuid));
    if (n < 0 || (size_t)n >= sizeof(address.sun_path)) {
        (void)snprintf(why, GPU_REASON_BYTES, "MPS: the path of the pipe directory is too long");
        return false;
    }
    /* EAGAIN: a daemon has not accepted all that wait, as when many containers start. */
    if (mps_daemon_connects(&address, SOCK_SEQPACKET) || errno == EAGAIN ||
        (errno == EPROTOTYPE && (mps_daemon_connects(&address, SOCK_STREAM) || errno == EAGAIN)))
        return true;
    (void)snprintf(why, GPU_REASON_BYTES, "MPS: no control daemon answers at %s: %s",
                   address.sun_path, strerror(errno));
    return false;
}
