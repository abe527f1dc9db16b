/*
 * An API server that is faster than its clients: what cardpack needs of Kubernetes without an
 * election. Lists in pages, rendered while they are sent; watches that show Bindings; Bindings with
 * delayed answers. GET /_bound returns the number of bound pods.
 *
 * bench_api NAME=NUMBER...
 *
 * The names are in `settings`. Prints its port; ends when its stdin does.
 */
#include "api_conn.h"

#include "api/store.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES   ((size_t)256 * 1024) /* of a list, rendered at a time */
#define CHUNKS_A_TURN 4
#define BINDS_MAX     4096

static struct api_world world = {
    .nodes = 10, .cards = 8, .card_mem = 80, .pod_mem = 8, .pods = 100, .gpu_pods = 20};
static uint64_t delay_ms;
static uint64_t with_tls;

static const struct {
    const char *name;
    uint64_t *value;
} settings[] = {
    {"nodes", &world.nodes},
    {"cards", &world.cards},
    {"pods", &world.pods},
    {"gpu-pods", &world.gpu_pods},
    {"pending", &world.pending},
    {"card-mem", &world.card_mem},
    {"pod-mem", &world.pod_mem},
    {"pod-bytes", &world.pod_bytes},
    {"node-bytes", &world.node_bytes},
    {"tables", &world.tables},
    {"slices", &world.slices},
    {"claims", &world.claims},
    {"delay-ms", &delay_ms},
    {"tls", &with_tls},
};

struct delayed {
    struct api_conn *conn; /* NULL: disconnected; the Binding counts nevertheless */
    uint64_t due_ns;
    bool done;
    uint64_t pod;
};

static int epoll_fd;
static int timer_fd;
static gnutls_certificate_credentials_t tls;
static struct api_conn *watches;
static struct delayed delays[BINDS_MAX]; /* a ring, sorted by due time */
static size_t delays_head;
static size_t delays_n;

void api_fail(const char *file, int line, const char *why)
{
    (void)fprintf(stderr, "%s:%d: %s\n", file, line, why);
    abort();
}

static uint64_t now_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        abort();
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* ---- answers ---- */

static void answer(struct api_conn *c, unsigned status, struct str body)
{
    buf_printf(
        &c->out,
        "HTTP/1.1 %u Answer\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
        status, body.n);
    buf_put(&c->out, body);
}

static void answer_text(struct api_conn *c, unsigned status, struct text *t)
{
    answer(c, status, text_str(t));
    text_done(t);
}

static void answer_status(struct api_conn *c, unsigned code, const char *reason)
{
    struct text t = {.p = NULL};
    status_write(&t, code, reason, "", "");
    answer_text(c, code, &t);
}

static void stream_begin(struct api_conn *c)
{
    buf_put(&c->out, STR("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n"));
}

/* The chunk's length is written after its data: always six digits. */
static size_t chunk_begin(struct api_conn *c)
{
    buf_put(&c->out, STR("000000\r\n"));
    return c->out.n;
}

static void chunk_end(struct api_conn *c, size_t begin)
{
    char digits[8];
    (void)snprintf(digits, sizeof(digits), "%06zx", c->out.n - begin);
    memcpy(c->out.p + begin - 8, digits, 6);
    buf_put(&c->out, STR("\r\n"));
}

/* ---- lists and watches ---- */

static void list_begin(struct api_conn *c, unsigned kind, struct str query)
{
    struct text t = {.p = NULL};
    uint64_t all = api_world_count(&world, kind);
    c->kind = kind;
    c->doing = CONN_LISTS;
    c->at = MIN_OF(query_number(query, "continue", 0), all);
    c->end = MIN_OF(all, c->at + query_number(query, "limit", all));
    stream_begin(c);
    size_t begin = chunk_begin(c);
    struct name token = name_of("", c->end);
    list_head_write(&t, kind, world.version, token.z, all - c->end);
    buf_put(&c->out, text_str(&t));
    text_done(&t);
    chunk_end(c, begin);
}

static void list_go_on(struct api_conn *c)
{
    size_t begin = chunk_begin(c);
    for (; c->at < c->end && c->out.n - begin < CHUNK_BYTES; c->at++) {
        api_render(&world, c->kind, c->at, &c->out);
        if (c->at + 1 < c->end)
            buf_putc(&c->out, ',');
    }
    if (c->at == c->end) {
        buf_put(&c->out, STR("]}\n"));
        c->doing = CONN_READS;
    }
    chunk_end(c, begin);
    if (c->doing == CONN_READS)
        buf_put(&c->out, STR("0\r\n\r\n"));
}

static void go_on(struct api_conn *c);

static void tell_watches(uint64_t pod)
{
    for (struct api_conn *c = watches; c != NULL; c = c->next_watch) {
        if (c->kind != CACHE_PODS)
            continue;
        size_t begin = chunk_begin(c);
        buf_put(&c->out, STR("{\"type\":\"MODIFIED\",\"object\":"));
        api_render(&world, CACHE_PODS, pod, &c->out);
        buf_put(&c->out, STR("}\n"));
        chunk_end(c, begin);
    }
}

static void watch_begin(struct api_conn *c, unsigned kind)
{
    c->kind = kind;
    c->doing = CONN_WATCHES;
    c->next_watch = watches;
    watches = c;
    stream_begin(c);
}

/* ---- Bindings ---- */

static void timer_set(void)
{
    struct itimerspec at = {.it_value = {.tv_sec = 0}};
    if (delays_n > 0) {
        at.it_value.tv_sec = (time_t)(delays[delays_head].due_ns / 1000000000U);
        at.it_value.tv_nsec = (long)(delays[delays_head].due_ns % 1000000000U);
    }
    if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL) != 0)
        abort();
}

static void bind_begin(struct api_conn *c, uint64_t pod, struct str body)
{
    if (delays_n == BINDS_MAX)
        abort();
    struct delayed *d = &delays[(delays_head + delays_n++) % BINDS_MAX];
    *d = (struct delayed){.conn = c,
                          .pod = pod,
                          .due_ns = now_ns() + delay_ms * 1000000U,
                          .done = api_world_bind(&world, pod, body)};
    c->doing = CONN_BINDS;
    if (delays_n == 1)
        timer_set();
}

static void binds_due(void)
{
    uint64_t now = now_ns();
    while (delays_n > 0 && delays[delays_head].due_ns <= now) {
        struct delayed *d = &delays[delays_head];
        delays_head = (delays_head + 1) % BINDS_MAX;
        delays_n--;
        if (d->conn != NULL) {
            d->conn->doing = CONN_READS;
            answer_status(d->conn, d->done ? 201 : 409, d->done ? "" : "Conflict");
            go_on(d->conn);
        }
        if (d->done)
            tell_watches(d->pod);
    }
    for (struct api_conn *c = watches, *next = NULL; c != NULL; c = next) {
        next = c->next_watch;
        go_on(c);
    }
    timer_set();
}

/* ---- requests ---- */

static void one_pod(struct api_conn *c, struct str name)
{
    uint64_t pod;
    struct buf text;
    if (!api_world_pod(&world, name, &pod)) {
        answer_status(c, 404, "NotFound");
        return;
    }
    buf_init(&text, (size_t)1 << 20);
    api_render(&world, CACHE_PODS, pod, &text);
    answer(c, 200, buf_str(&text));
    buf_done(&text);
}

static void bind_pod(struct api_conn *c, struct str name, struct str body)
{
    uint64_t pod;
    if (api_world_pod(&world, name, &pod))
        bind_begin(c, pod, body);
    else
        answer_status(c, 404, "NotFound");
}

static void handle(struct api_conn *c, struct str method, struct str target, struct str body)
{
    char text[64];
    if (str_eq(target, STR("/_bound"))) {
        int n = snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)world.n_bound,
                         (unsigned long long)world.n_twice);
        answer(c, 200, (struct str){text, (size_t)n});
        return;
    }
    struct api_request r = api_request_read(method, target);
    if (r.verb == API_WATCH)
        watch_begin(c, r.kind);
    else if (r.verb == API_LIST)
        list_begin(c, r.kind, r.query);
    else if (r.verb == API_GET)
        one_pod(c, r.name);
    else if (r.verb == API_BIND)
        bind_pod(c, r.name, body);
    else if (r.verb == API_GROUP)
        answer_status(c, 200, "");
    else
        answer_status(c, r.verb == API_EVENT ? 201 : 404, "");
}

/* Takes one request off `in` if it is complete. */
static bool take_request(struct api_conn *c)
{
    static const char length[] = "Content-Length: ";
    struct str method;
    struct str rest;
    struct str target;
    const char *head_end = strstr(c->in, "\r\n\r\n");
    if (head_end == NULL)
        return false;
    size_t head = (size_t)(head_end - c->in) + 4;
    uint64_t body = 0;
    const char *at = memmem(c->in, head, length, sizeof(length) - 1);
    if (at != NULL) {
        struct str line = {at + sizeof(length) - 1, 0};
        while (line.p[line.n] >= '0' && line.p[line.n] <= '9')
            line.n++;
        if (!str_to_u64(line, API_IN_BYTES, &body))
            abort();
    }
    if (c->n_in < head + body)
        return false;
    (void)str_cut((struct str){c->in, head}, ' ', &method, &rest);
    (void)str_cut(rest, ' ', &target, &rest);
    handle(c, method, target, (struct str){c->in + head, body});
    c->n_in -= head + body;
    memmove(c->in, c->in + head + body, c->n_in + 1);
    return true;
}

/* ---- the loop ---- */

static void conn_end(struct api_conn *c)
{
    for (struct api_conn **link = &watches; *link != NULL; link = &(*link)->next_watch) {
        if (*link == c) {
            *link = c->next_watch;
            break;
        }
    }
    for (size_t i = 0; i < delays_n; i++) {
        struct delayed *d = &delays[(delays_head + i) % BINDS_MAX];
        if (d->conn == c)
            d->conn = NULL;
    }
    api_conn_free(c);
}

/* Does all that needs no more input from the client; then sets the events to wait for. */
static void go_on(struct api_conn *c)
{
    unsigned chunks = 0;
    bool alive = api_conn_write(c);
    while (alive && c->out.n == 0) {
        if (c->doing == CONN_LISTS && chunks++ < CHUNKS_A_TURN)
            list_go_on(c);
        else if (c->doing != CONN_READS || !take_request(c))
            break;
        alive = api_conn_write(c);
    }
    if (!alive) {
        conn_end(c);
        return;
    }
    bool writing = c->out.n > 0 || c->doing == CONN_LISTS;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    if (writing)
        ev.events |= EPOLLOUT;
    if (writing != c->writing && epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) != 0)
        abort();
    c->writing = writing;
}

static void conn_begin(int listener)
{
    int one = 1;
    struct sockaddr_storage from;
    socklen_t size = sizeof(from);
    int fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = api_conn_new(fd, tls)};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
        abort();
}

static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 1024) != 0 || getsockname(fd, (struct sockaddr *)&address, &n) != 0)
        abort();
    printf("%u\n", ntohs(address.sin_port));
    (void)fflush(stdout);
    return fd;
}

/* The event's data is the pointer to the variable. */
static void watch_fd(const int *fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uintptr_t)fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, *fd, &ev) != 0)
        abort();
}

static void serve(int listener)
{
    static int parent = STDIN_FILENO;
    struct epoll_event ready[256];
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watch_fd(&listener);
    watch_fd(&timer_fd);
    watch_fd(&parent);
    for (;;) {
        int n = epoll_wait(epoll_fd, ready, COUNT_OF(ready), -1);
        for (int i = 0; i < n; i++) {
            void *of = ready[i].data.ptr;
            if (of == &parent)
                return;
            if (of == &listener)
                conn_begin(listener);
            if (of == &listener || of == &timer_fd)
                continue;
            struct api_conn *c = of;
            if ((ready[i].events & ~(uint32_t)EPOLLOUT) == 0 || api_conn_read(c))
                go_on(c);
            else
                conn_end(c);
        }
        /* Last, because it may close connections that are in the list of events. */
        if (delays_n > 0 && delays[delays_head].due_ns <= now_ns())
            binds_due();
    }
}

static bool setting(struct str argument)
{
    struct str name;
    struct str value;
    if (!str_cut(argument, '=', &name, &value))
        return false;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        if (str_eq(name, str_of(settings[i].name)))
            return str_to_u64(value, UINT32_MAX, settings[i].value);
    }
    return false;
}

int main(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        if (!setting(str_of(argv[i]))) {
            (void)fprintf(stderr, "bench_api: not a setting: %s\n", argv[i]);
            return 2;
        }
    }
    (void)signal(SIGPIPE, SIG_IGN);
    store.serves_dra = world.slices != 0;
    api_world_init(&world);
    if (with_tls != 0)
        tls = api_tls_new();
    serve(listen_anywhere());
    return 0;
}
