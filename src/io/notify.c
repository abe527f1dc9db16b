/*
 * Sends the datagrams without libsystemd: they are simple, and a library is one more thing to
 * trust. The descriptor stays open, because later the process may have none left. Each send looks
 * the address up again, because the supervisor may have restarted.
 *
 * A heartbeat is late exactly if the loop hangs; it checks nothing else.
 */
#include "io/notify.h"

#include "base/log.h"

#include <errno.h>
#include <unistd.h>

static bool notify_address_set(struct notify *n, struct str address)
{
    assert(address.n > 0 && n->fd < 0);
    if (address.n >= sizeof(n->to.sun_path) || (address.p[0] != '/' && address.p[0] != '@'))
        return false;
    n->to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(n->to.sun_path, address.p, address.n);
    if (address.p[0] == '@')
        n->to.sun_path[0] = '\0';
    /* An abstract name has no final NUL; a path has one. */
    n->to_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + address.n +
                              (address.p[0] == '/' ? 1 : 0));
    return true;
}

static void notify_beat_fire(struct timer *t)
{
    struct notify *n = CONTAINER_OF(t, struct notify, beat);
    assert(n->fd >= 0 && n->beat_ms > 0);
    notify_send(n, STR("WATCHDOG=1"));
    timer_arm(n->loop, t, n->beat_ms);
}

enum errc notify_open(struct notify *n, struct loop *loop, struct str address, struct err *reterr)
{
    *n = NOTIFY_INIT;
    n->loop = loop;
    n->beat.fire = notify_beat_fire;
    if (address.n == 0)
        return OK;
    if (!notify_address_set(n, address))
        return err_set(reterr, ERR_SYNTAX,
                       "must be an absolute path or @NAME, of %zu bytes at most, and is \"%.*s\"",
                       sizeof(n->to.sun_path) - 1, STR_ARG(address));
    n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return n->fd >= 0 ? OK : err_set(reterr, ERR_UNAVAILABLE, "socket: %s", strerror(errno));
}

enum errc notify_open_environment(struct notify *n, struct loop *loop,
                                  const struct notify_environment *e, struct err *reterr)
{
    uint64_t pid = 0;
    uint64_t usec = 0;
    bool ours = !str_to_u64(e->watchdog_pid, UINT64_MAX, &pid) || pid == (uint64_t)getpid();
    if (notify_open(n, loop, e->socket, reterr) != OK)
        return err_wrap(reterr, "environment NOTIFY_SOCKET");
    if (ours && str_to_u64(e->watchdog_usec, UINT64_MAX, &usec))
        notify_watchdog(n, usec / 1000);
    return OK;
}

void notify_close(struct notify *n)
{
    timer_cancel(&n->beat);
    if (n->fd >= 0)
        (void)close(n->fd);
    n->fd = -1;
}

void notify_send(struct notify *n, struct str state)
{
    assert(state.n > 0);
    if (n->fd < 0)
        return;
    if (sendto(n->fd, state.p, state.n, MSG_NOSIGNAL, (const struct sockaddr *)&n->to,
               n->to_bytes) < 0)
        log_debug("NOTIFY_SOCKET did not get the state", kv_str("state", state),
                  kv_cstr("why", strerror(errno)));
}

void notify_watchdog(struct notify *n, uint64_t period_ms)
{
    timer_cancel(&n->beat);
    n->beat_ms = MAX_OF(period_ms / 2, (uint64_t)1);
    if (n->fd >= 0 && period_ms > 0)
        timer_arm(n->loop, &n->beat, n->beat_ms);
}
