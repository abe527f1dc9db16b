/*
 * What the process says of itself to who supervises it, as sd_notify(3) has it: a datagram to the
 * socket that NOTIFY_SOCKET names, a variable a line. Nobody who does not ask is told anything, and
 * what is told to nobody's ear is lost: no failure here is one of the process.
 */
#pragma once

#include "err.h"
#include "loop.h"

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    struct loop *loop;
    struct timer beat;
    uint64_t beat_ms;
    int fd; /* -1: there is nobody to tell */
    struct sockaddr_un to;
    socklen_t to_bytes;
};

#define NOTIFY_INIT ((struct notify){.fd = -1})

/* The address is a path or, with @, a name in the kernel's own space; absent or empty: nobody is
 * told. An address that is neither, or that is too long, is ERR_SYNTAX. */
enum errc notify_open(struct notify *n, struct loop *loop, struct str address, struct err *reterr)
    _must_use_;
void notify_close(struct notify *n); /* also when not open */

/* "READY=1", or several such lines. Never waits. */
void notify_send(struct notify *n, struct str state);

/* That the loop turns is told twice in a period, from now on. 0: never. */
void notify_watchdog(struct notify *n, uint64_t period_ms);
