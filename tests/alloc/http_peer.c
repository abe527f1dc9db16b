/* HTTP/1.1 connections to the program; see http_peer.h. */
#include "http_peer.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int tcp(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert(fd >= 0);
    return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

void http_listen(struct http_listener *l)
{
    struct sockaddr_in a = loopback(0);
    socklen_t n = sizeof(a);
    l->fd = tcp();
    int bad = bind(l->fd, (struct sockaddr *)&a, n);
    bad += listen(l->fd, 64);
    bad += getsockname(l->fd, (struct sockaddr *)&a, &n);
    assert(bad == 0);
    l->port = ntohs(a.sin_port);
}

void http_unlisten(struct http_listener *l)
{
    (void)close(l->fd);
    l->fd = -1;
}

static void adopt(struct http_peer *p, int fd)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    int bad = setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    assert(bad == 0);
    p->fd = fd;
    p->open = true;
    p->ended = false;
    p->n_in = p->n_out = 0;
    p->in[0] = '\0';
}

bool http_accept(const struct http_listener *l, struct http_peer *p)
{
    /* cppcheck-suppress nullPointer; the address is not needed */
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return false;
    adopt(p, fd);
    return true;
}

bool http_connect(struct http_peer *p, uint16_t port)
{
    struct sockaddr_in a = loopback(port);
    int fd = tcp();
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0 && errno != EINPROGRESS) {
        (void)close(fd);
        return false;
    }
    adopt(p, fd);
    return true;
}

void http_close(struct http_peer *p)
{
    if (p->open)
        (void)close(p->fd);
    p->open = false;
}

bool http_move(struct http_peer *p)
{
    bool moved = false;
    while (p->n_out > 0 && !p->ended) {
        ssize_t n = send(p->fd, p->out, p->n_out, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        memmove(p->out, p->out + n, p->n_out - (size_t)n);
        p->n_out -= (size_t)n;
        moved = true;
    }
    while (!p->ended) {
        assert(p->n_in + 1 < sizeof(p->in));
        ssize_t n = recv(p->fd, p->in + p->n_in, sizeof(p->in) - 1 - p->n_in, 0);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            break;
        moved = true;
        p->ended = n <= 0;
        p->n_in += n > 0 ? (size_t)n : 0;
        p->in[p->n_in] = '\0';
    }
    return moved;
}

void http_say(struct http_peer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof(p->out) - p->n_out;
    int n = vsnprintf(p->out + p->n_out, room, format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < room);
    p->n_out += (size_t)n;
}

static const char *body_at(const struct http_peer *p)
{
    const char *end = strstr(p->in, "\r\n\r\n");
    return end == NULL ? NULL : end + 4;
}

static size_t announced(const struct http_peer *p, const char *body)
{
    static const char name[] = "\r\nContent-Length: ";
    const char *at = strcasestr(p->in, name);
    size_t n = 0;
    if (at == NULL || at > body)
        return 0;
    for (at += sizeof(name) - 1; *at >= '0' && *at <= '9'; at++)
        n = n * 10 + (size_t)(*at - '0');
    return n;
}

const char *http_body(const struct http_peer *p, size_t *ret_n)
{
    const char *body = body_at(p);
    if (body == NULL)
        return NULL;
    size_t there = p->n_in - (size_t)(body - p->in);
    *ret_n = announced(p, body);
    return there >= *ret_n ? body : NULL;
}

void http_next(struct http_peer *p)
{
    size_t n = 0;
    const char *body = http_body(p, &n);
    assert(body != NULL);
    size_t used = (size_t)(body - p->in) + n;
    memmove(p->in, p->in + used, p->n_in - used);
    p->n_in -= used;
    p->in[p->n_in] = '\0';
}
