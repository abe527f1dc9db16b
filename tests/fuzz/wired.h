/*
 * One connection of a Unix socket on a loop, for fuzz targets of a protocol: the input is what one
 * end writes. The clock stands still, so only timers without a delay fire.
 */
#pragma once

#include "io/loop.h"
#include "rules.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    (void)clock;
    *ret = (struct timespec){.tv_sec = 100000};
    return 0;
}

struct wired {
    struct loop_hook hook;
    struct loop *loop;
    unsigned left; /* turns */
    char path[96];
};

static inline uint64_t wired_prepare(struct loop_hook *h, uint64_t now_ms)
{
    struct wired *w = CONTAINER_OF(h, struct wired, hook);
    if (--w->left == 0)
        loop_stop(w->loop);
    return now_ms; /* never waits */
}

static inline void wired_check(struct loop_hook *h, uint64_t now_ms)
{
    (void)h;
    (void)now_ms;
}

static inline void wired_make(struct wired *w)
{
    *w = (struct wired){.hook = {.prepare = wired_prepare, .check = wired_check}};
    (void)snprintf(w->path, sizeof(w->path), "/tmp/cardpack-fuzz-%d.sock", (int)getpid());
    check(loop_new(&w->loop, NULL) == OK, "a loop");
    loop_hook_add(w->loop, &w->hook);
}

static inline void wired_done(struct wired *w)
{
    loop_hook_del(w->loop, &w->hook);
    w->loop = loop_free(w->loop);
}

static inline void wired_turns(struct wired *w, unsigned n)
{
    w->left = n;
    check(loop_run(w->loop, NULL) == OK, "the loop runs");
}

static inline int wired_socket(const struct wired *w, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", w->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(fd >= 0, "a socket");
    return fd;
}

/* Writes the input; the other end may have closed. */
static inline void wired_write(int fd, struct str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            return;
        bytes = str_skip(bytes, (size_t)n);
    }
}

/* Reads what has come; whole frames of HTTP/2, each of a length that any peer takes. */
static inline void wired_read(int fd, size_t preface)
{
    static uint8_t bytes[1 << 20];
    size_t n = 0;
    ssize_t more = 1;
    while (n < sizeof(bytes) && more > 0) {
        more = recv(fd, bytes + n, sizeof(bytes) - n, MSG_DONTWAIT);
        n += more > 0 ? (size_t)more : 0;
    }
    for (size_t at = preface; at + 9 <= n;) {
        size_t length = (size_t)bytes[at] << 16 | (size_t)bytes[at + 1] << 8 | bytes[at + 2];
        check(length <= 16384 && bytes[at + 3] <= 9, "a frame of HTTP/2");
        at += 9 + length;
    }
}
