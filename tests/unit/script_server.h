/*
 * An HTTP server that sends exactly the bytes of a script, one step for each request in order of
 * arrival. A real server would not cut a message or send nonsense. A request after the script's end
 * gets no answer.
 */
#pragma once

#include "base/buf.h"
#include "io/loop.h"
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRIPT_CONNECTIONS 32

enum script_how {
    SCRIPT_BODY,   /* a whole answer with a Content-Length; keeps the connection */
    SCRIPT_STREAM, /* a chunked 200 without end */
    SCRIPT_END,    /* a chunked 200 that ends in good order */
    SCRIPT_CUT,    /* a chunked 200; closes the connection in the middle */
    SCRIPT_CLOSE,  /* closes the connection without an answer */
};

struct script_step {
    const char *expect; /* text that the request must contain */
    enum script_how how;
    const char *body;
    unsigned status;     /* 0: 200 */
    const char *headers; /* more header lines, each with \r\n; or NULL */
};

struct script_connection {
    struct loop_fd fd; /* fd.fd -1: free */
    struct buf head;
    struct script_server *server;
};

struct script_server {
    struct loop *loop;
    struct loop_fd listener;
    uint16_t port;
    const struct script_step *steps;
    size_t n_steps;
    size_t n_requests; /* so far */
    struct buf heads;  /* of all requests */
    struct script_connection connections[SCRIPT_CONNECTIONS];
};

static inline void script_close(struct script_connection *c)
{
    if (c->fd.fd < 0)
        return;
    loop_fd_del(&c->fd);
    (void)close(c->fd.fd);
    c->fd.fd = -1;
    buf_done(&c->head);
}

static inline void script_say(struct script_connection *c, const struct script_step *step)
{
    const char *body = step->body == NULL ? "" : step->body;
    size_t n = strlen(body);
    struct buf out;
    buf_init(&out, (size_t)1 << 24);
    buf_printf(&out, "HTTP/1.1 %u Whatever\r\nContent-Type: application/json\r\n%s",
               step->status == 0 ? 200 : step->status, step->headers == NULL ? "" : step->headers);
    if (step->how == SCRIPT_BODY)
        buf_printf(&out, "Content-Length: %zu\r\n\r\n%s", n, body);
    else
        buf_printf(&out, "Transfer-Encoding: chunked\r\n\r\n");
    if (step->how != SCRIPT_BODY && n > 0)
        buf_printf(&out, "%zx\r\n%s\r\n", n, body);
    if (step->how == SCRIPT_END)
        buf_printf(&out, "0\r\n\r\n");
    ck_assert(!buf_failed(&out));
    if (step->how != SCRIPT_CLOSE)
        ck_assert_int_eq(send(c->fd.fd, out.p, out.n, MSG_NOSIGNAL), (ssize_t)out.n);
    buf_done(&out);
    if (step->how == SCRIPT_CLOSE || step->how == SCRIPT_CUT)
        script_close(c);
}

static inline void script_request(struct script_connection *c)
{
    struct script_server *s = c->server;
    const char *head = buf_cstr(&c->head);
    const struct script_step *step = s->n_requests < s->n_steps ? &s->steps[s->n_requests] : NULL;
    s->n_requests++;
    buf_put(&s->heads, buf_str(&c->head));
    if (step == NULL)
        return;
    ck_assert_msg(strstr(head, step->expect) != NULL, "request %zu: expected \"%s\" in\n%s",
                  s->n_requests, step->expect, head);
    buf_clear(&c->head, 0);
    script_say(c, step);
}

/* Whether the request is complete: its head, and the body of its Content-Length. */
static inline bool script_whole(const char *request, size_t n)
{
    const char *body = strstr(request, "\r\n\r\n");
    const char *length = strstr(request, "Content-Length: ");
    if (body == NULL)
        return false;
    uint64_t want = 0;
    if (length != NULL && length < body)
        ck_assert(str_to_u64((struct str){length + 16, strcspn(length + 16, "\r")}, 4096, &want));
    return (size_t)(request + n - body) >= want + 4;
}

static inline void script_readable(struct loop_fd *f, uint32_t events)
{
    struct script_connection *c = CONTAINER_OF(f, struct script_connection, fd);
    char bytes[4096];
    (void)events;
    ssize_t n = recv(f->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n <= 0) {
        script_close(c);
        return;
    }
    buf_put(&c->head, (struct str){bytes, (size_t)n});
    if (script_whole(buf_cstr(&c->head), c->head.n))
        script_request(c);
}

static inline void script_accept(struct loop_fd *f, uint32_t events)
{
    struct script_server *s = CONTAINER_OF(f, struct script_server, listener);
    struct err e = ERR_INIT;
    (void)events;
    for (size_t i = 0; i < SCRIPT_CONNECTIONS; i++) {
        struct script_connection *c = &s->connections[i];
        if (c->fd.fd >= 0)
            continue;
        /* cppcheck-suppress nullPointer; the address is not needed */
        int fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC);
        c->fd = (struct loop_fd){.fd = fd, .events = EPOLLIN, .ready = script_readable};
        ck_assert_int_ge(c->fd.fd, 0);
        c->server = s;
        buf_init(&c->head, 65536);
        ck_assert_ok(loop_fd_add(s->loop, &c->fd, &e), &e);
        return;
    }
    ck_abort_msg("more connections than a test can want");
}

static inline void script_start(struct script_server *s, struct loop *l,
                                const struct script_step *steps, size_t n_steps)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(a);
    struct err e = ERR_INIT;
    *s = (struct script_server){.loop = l, .steps = steps, .n_steps = n_steps};
    for (size_t i = 0; i < SCRIPT_CONNECTIONS; i++)
        s->connections[i].fd.fd = -1;
    buf_init(&s->heads, (size_t)1 << 24);
    s->listener = (struct loop_fd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                   .events = EPOLLIN,
                                   .ready = script_accept};
    ck_assert_int_ge(s->listener.fd, 0);
    ck_assert_int_eq(bind(s->listener.fd, (const struct sockaddr *)&a, size), 0);
    ck_assert_int_eq(listen(s->listener.fd, 16), 0);
    ck_assert_int_eq(getsockname(s->listener.fd, (struct sockaddr *)&a, &size), 0);
    s->port = ntohs(a.sin_port);
    ck_assert_ok(loop_fd_add(l, &s->listener, &e), &e);
}

static inline void script_stop(struct script_server *s)
{
    loop_fd_del(&s->listener);
    (void)close(s->listener.fd);
    for (size_t i = 0; i < SCRIPT_CONNECTIONS; i++)
        script_close(&s->connections[i]);
    buf_done(&s->heads);
}

/* Writes a kubeconfig with this server and without a user. */
static inline void script_kubeconfig(const struct script_server *s, const char *path)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fprintf(f,
                  "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                  "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u/base\"}}]\n"
                  "contexts: [{name: c, context: {cluster: k, user: u, namespace: ns}}]\n"
                  "users: [{name: u, user: {token: s3cret}}]\n",
                  s->port);
    ck_assert_int_eq(fclose(f), 0);
}
