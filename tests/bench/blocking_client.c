/* A blocking HTTP client for benchmarks; see blocking_client.h. */
#include "blocking_client.h"

#include "base/limit.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (256 * KIB)

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

uint64_t number_at(const char *s)
{
    uint64_t n = 0;
    if (!str_to_u64((struct str){s, strspn(s, "0123456789")}, UINT64_MAX, &n))
        die("no number: %.20s", s);
    return n;
}

void client_open(struct blocking_client *c, uint16_t port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const int on = 1;
    *c = (struct blocking_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    buf_init(&c->in, 256 * MIB);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&to, sizeof(to)) != 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
        die("no connection to port %u: %s", port, strerror(errno));
}

void client_close(struct blocking_client *c)
{
    (void)close(c->fd);
    buf_done(&c->in);
}

void client_request(struct buf *out, const char *path, struct str body)
{
    buf_printf(out,
               "POST %s HTTP/1.1\r\nHost: 127.0.0.1:39999\r\nUser-Agent: Go-http-client/1.1\r\n"
               "Content-Length: %zu\r\nContent-Type: application/json\r\n"
               "Accept-Encoding: gzip\r\n\r\n",
               path, body.n);
    buf_put(out, body);
    if (buf_failed(out))
        die("no memory for a request");
}

static void send_all(int fd, struct str s)
{
    while (s.n > 0) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (n < 0)
            die("a request can't be sent: %s", strerror(errno));
        s = str_skip(s, (size_t)n);
    }
}

static void receive(struct blocking_client *c)
{
    if (!buf_reserve(&c->in, READ_BYTES))
        die("no memory for an answer");
    ssize_t n = recv(c->fd, c->in.p + c->in.n, READ_BYTES, 0);
    if (n <= 0)
        die("an answer ends early: %s", n == 0 ? "the connection is closed" : strerror(errno));
    c->in.n += (size_t)n;
}

/* The length of the head; 0: not complete yet. */
static size_t head_of(const struct blocking_client *c)
{
    const char *end = memmem(c->in.p, c->in.n, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - c->in.p) + 4;
}

static size_t length_of(struct str head)
{
    static const char name[] = "\r\nContent-Length: ";
    const char *text = memmem(head.p, head.n, name, sizeof(name) - 1);
    if (text == NULL)
        die("an answer without a length");
    return (size_t)number_at(text + sizeof(name) - 1);
}

void client_do(struct blocking_client *c, struct str request)
{
    size_t head = 0;
    send_all(c->fd, request);
    buf_clear(&c->in, SIZE_MAX);
    while (head == 0) {
        receive(c);
        head = head_of(c);
    }
    struct str h = {c->in.p, head};
    if (!str_starts(h, STR("HTTP/1.1 ")))
        die("no HTTP/1.1: %.*s", STR_ARG(h));
    c->status = (unsigned)number_at(c->in.p + 9);
    size_t n = length_of(h);
    while (c->in.n < head + n)
        receive(c);
    if (c->in.n != head + n)
        die("more than an answer came");
    c->body = (struct str){c->in.p + head, n};
}
