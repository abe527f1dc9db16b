/*
 * Reports the state of the process to its supervisor with the protocol of sd_notify(3): a datagram
 * to the socket in NOTIFY_SOCKET, one variable a line. Without that variable the module sends
 * nothing. A failed send is only logged, because the process can run without a supervisor.
 */
#pragma once

#include "base/err.h"
#include "io/loop.h"

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    struct loop *loop;
    struct timer beat;
    uint64_t beat_ms;
    int fd; /* -1: no supervisor to notify */
    struct sockaddr_un to;
    socklen_t to_bytes;
};

#define NOTIFY_INIT ((struct notify){.fd = -1})

/*
 * The address is a path or, with @, an abstract socket name. Absent or empty: nothing is sent. Any
 * other or too long address is ERR_SYNTAX.
 */
enum errc notify_open(struct notify *n, struct loop *loop, struct str address, struct err *reterr)
    _must_use_;

/* What systemd and compatible supervisors set in the environment; each may be absent. */
struct notify_environment {
    struct str socket;        /* NOTIFY_SOCKET */
    struct str watchdog_usec; /* WATCHDOG_USEC, for the process WATCHDOG_PID or, without it, any */
    struct str watchdog_pid;
};

/* notify_open and notify_watchdog with these variables. */
enum errc notify_open_environment(struct notify *n, struct loop *loop,
                                  const struct notify_environment *e, struct err *reterr)
    _must_use_;
void notify_close(struct notify *n); /* allowed if not open */

/* "READY=1", or several such lines. Never waits. */
void notify_send(struct notify *n, struct str state);

/* From now on sends "the loop runs" twice in each period. 0: never. */
void notify_watchdog(struct notify *n, uint64_t period_ms);
