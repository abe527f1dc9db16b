/* Keeps a number of Bindings under way; see bind_load.h. */
#include "bind_load.h"

#include "base/str.h"
#include "daemon.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT_BYTES 2048
#define BINDS_MAX  100000

struct line {
    int fd;
    uint64_t sent_ns;
    char in[TEXT_BYTES];
    size_t n;
};

static struct line lines[LOAD_MAX];
static double took_ms[BINDS_MAX];

static size_t body_of(const struct load *l, uint64_t pod, char *text, size_t size)
{
    unsigned long long i = pod;
    unsigned long long node = pod % l->nodes;
    int n = l->direct
                ? snprintf(text, size,
                           "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":"
                           "\"load-5d9f8c7b6d-%07llu\",\"namespace\":\"team-%07llu\"},\"target\":"
                           "{\"kind\":\"Node\",\"name\":\"node-%07llu\"}}",
                           i, i / 1000, node)
                : snprintf(text, size,
                           "{\"PodName\":\"load-5d9f8c7b6d-%07llu\",\"PodNamespace\":"
                           "\"team-%07llu\",\"PodUID\":\"6f1d2c3b-4a59-4687-8790-00000%07llu\","
                           "\"Node\":\"node-%07llu\"}",
                           i, i / 1000, i, node);
    return (size_t)n;
}

static void send_bind(const struct load *l, struct line *line, uint64_t pod)
{
    char body[TEXT_BYTES];
    char text[2 * TEXT_BYTES];
    char path[128] = "/gpushare-scheduler/bind";
    size_t n = body_of(l, pod, body, sizeof(body));
    if (l->direct)
        (void)snprintf(path, sizeof(path),
                       "/api/v1/namespaces/team-%07llu/pods/load-5d9f8c7b6d-%07llu/binding",
                       (unsigned long long)pod / 1000, (unsigned long long)pod);
    int all = snprintf(text, sizeof(text),
                       "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       path, n, body);
    line->n = 0;
    line->sent_ns = bench_now_ns();
    if (send(line->fd, text, (size_t)all, MSG_NOSIGNAL) != all)
        bench_fail("send");
}

/* Whether the answer is complete; then it must say that the pod is bound. */
static bool answered(const struct load *l, struct line *line)
{
    static const char mark[] = "Content-Length: ";
    uint64_t length = 0;
    ssize_t n = recv(line->fd, line->in + line->n, sizeof(line->in) - 1 - line->n, 0);
    if (n <= 0)
        bench_fail("recv");
    line->n += (size_t)n;
    line->in[line->n] = '\0';
    const char *body = strstr(line->in, "\r\n\r\n");
    const char *at = strstr(line->in, mark);
    if (body == NULL)
        return false;
    body += 4;
    bool told = at != NULL && at < body;
    const char *digits = told ? at + sizeof(mark) - 1 : "";
    if (!str_to_u64((struct str){digits, strspn(digits, "0123456789")}, TEXT_BYTES, &length))
        bench_fail("an answer without a length");
    if (strlen(body) < length)
        return false;
    bool bound = l->direct ? str_starts(str_of(line->in), STR("HTTP/1.1 201"))
                           : str_starts(str_of(line->in), STR("HTTP/1.1 200")) &&
                                 strstr(body, "\"Error\":\"\"") != NULL;
    if (!bound)
        bench_fail(line->in);
    return true;
}

static int connect_to(uint16_t port)
{
    int one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        bench_fail("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void exchange(struct load *l, int epoll)
{
    uint64_t sent = 0;
    uint64_t done = 0;
    for (; sent < l->in_flight && sent < l->n; sent++)
        send_bind(l, &lines[sent], l->first_pod + sent);
    while (done < l->n) {
        struct epoll_event ready[64];
        int n = epoll_wait(epoll, ready, COUNT_OF(ready), 60000);
        if (n <= 0)
            bench_fail("no answer for a minute");
        for (int i = 0; i < n; i++) {
            struct line *line = ready[i].data.ptr;
            if (!answered(l, line))
                continue;
            took_ms[done++] = (double)(bench_now_ns() - line->sent_ns) / 1e6;
            if (sent < l->n)
                send_bind(l, line, l->first_pod + sent++);
        }
    }
}

void load_run(struct load *l)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->in_flight > LOAD_MAX || l->n > BINDS_MAX || l->n == 0 || epoll < 0)
        bench_fail("not a load");
    for (unsigned i = 0; i < l->in_flight; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &lines[i]};
        lines[i].fd = connect_to(l->port);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, lines[i].fd, &ev) != 0)
            bench_fail("epoll_ctl");
    }
    uint64_t began = bench_now_ns();
    exchange(l, epoll);
    l->took_s = (double)(bench_now_ns() - began) / 1e9;
    l->p50_ms = bench_quantile(took_ms, l->n, 0.5);
    l->p99_ms = bench_quantile(took_ms, l->n, 0.99);
    for (unsigned i = 0; i < l->in_flight; i++)
        (void)close(lines[i].fd);
    (void)close(epoll);
}
