/* A connection with the program that the test drives byte by byte: it can send what no correct
 * library would send. */
#pragma once

#include "base/buf.h"
#include "on_loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct raw_conn {
    struct loop_fd fd;
    struct loop *loop;
    struct buf in;
    struct buf out;
    bool closed; /* by the other end */
    bool deaf;   /* it does not read */
};

/* Drops the first n bytes. */
static inline void raw_conn_consume(struct buf *b, size_t n)
{
    ck_assert_uint_le(n, b->n);
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

static inline void raw_conn_watch(struct raw_conn *p)
{
    uint32_t events = (p->deaf || p->closed ? 0 : EPOLLIN) | (p->out.n > 0 ? EPOLLOUT : 0);
    ck_assert_int_eq(loop_fd_set(&p->fd, events), OK);
}

static inline void raw_conn_ready(struct loop_fd *f, uint32_t events)
{
    struct raw_conn *p = CONTAINER_OF(f, struct raw_conn, fd);
    (void)events;
    while (p->out.n > 0) {
        ssize_t n = write(f->fd, p->out.p, p->out.n);
        if (n <= 0)
            break;
        raw_conn_consume(&p->out, (size_t)n);
    }
    while (!p->deaf && !p->closed) {
        ck_assert(buf_reserve(&p->in, 65536));
        ssize_t n = read(f->fd, p->in.p + p->in.n, 65536);
        if (n < 0 && errno == EAGAIN)
            break;
        p->closed = n <= 0;
        p->in.n += n > 0 ? (size_t)n : 0;
    }
    if (p->closed)
        p->out.n = 0;
    if (p->closed) /* else epoll would report the hang-up forever */
        loop_fd_del(&p->fd);
    else
        raw_conn_watch(p);
}

static inline void raw_conn_adopt(struct raw_conn *p, struct loop *l, int fd)
{
    struct err e = ERR_INIT;
    *p = (struct raw_conn){.fd = {.fd = fd, .events = EPOLLIN, .ready = raw_conn_ready}, .loop = l};
    buf_init(&p->in, 256U << 20);
    buf_init(&p->out, 256U << 20);
    ck_assert_ok(loop_fd_add(l, &p->fd, &e), &e);
}

static inline struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

static inline void raw_conn_connect(struct raw_conn *p, struct loop *l, uint16_t port)
{
    struct sockaddr_in a = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno == EINPROGRESS);
    raw_conn_adopt(p, l, fd);
}

static inline void raw_conn_send(struct raw_conn *p, struct str s)
{
    buf_put(&p->out, s);
    ck_assert(!buf_failed(&p->out));
    if (!p->closed)
        raw_conn_watch(p);
}

static inline void raw_conn_close(struct raw_conn *p)
{
    loop_fd_del(&p->fd);
    if (p->fd.fd >= 0)
        ck_assert_int_eq(close(p->fd.fd), 0);
    p->fd.fd = -1;
    buf_done(&p->in);
    buf_done(&p->out);
}

static inline size_t raw_conn_count(const struct raw_conn *p, const char *text)
{
    size_t n = 0;
    struct str rest = buf_str(&p->in);
    while (rest.n > 0) {
        const char *at = memmem(rest.p, rest.n, text, strlen(text));
        if (at == NULL)
            break;
        n++;
        rest = str_skip(rest, (size_t)(at - rest.p) + strlen(text));
    }
    return n;
}

struct raw_conn_wants {
    const struct raw_conn *peer;
    const char *text;
    size_t n;
};

static inline bool raw_conn_got(void *ctx)
{
    const struct raw_conn_wants *w = ctx;
    return raw_conn_count(w->peer, w->text) >= w->n;
}

static inline bool raw_conn_cut(void *ctx)
{
    const struct raw_conn_wants *w = ctx;
    return w->peer->closed;
}

/* Waits until the text has come n times. */
static inline void raw_conn_await_here(struct raw_conn *p, const char *text, size_t n,
                                       struct here here)
{
    struct raw_conn_wants w = {p, text, n};
    run_until_here(p->loop, raw_conn_got, &w, here);
}

#define raw_conn_await(p, text, n) \
    raw_conn_await_here(p, text, n, HERE("raw_conn_await(" #p ", " #text ", " #n ")"))

static inline void raw_conn_await_end_here(struct raw_conn *p, struct here here)
{
    struct raw_conn_wants w = {p, "", 0};
    run_until_here(p->loop, raw_conn_cut, &w, here);
}

#define raw_conn_await_end(p) raw_conn_await_end_here(p, HERE("raw_conn_await_end(" #p ")"))
