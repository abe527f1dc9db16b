/* What the HTTP client allocates, and what happens to a call without memory. */
#include "client_fixture.h"
#include "fail_alloc.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/un.h>

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* A server that answers every request, and allocates nothing. */
struct parrot {
    struct loop_fd fd;
    const char *request;        /* each request begins with it; NULL: any */
    struct parrot *connections; /* of the listener */
    size_t n;
};

static void parrot_answer(struct loop_fd *f, uint32_t events)
{
    const struct parrot *p = CONTAINER_OF(f, struct parrot, fd);
    char request[4096];
    (void)events;
    ssize_t n = read(f->fd, request, sizeof(request));
    if (n > 0 && p->request != NULL)
        ck_assert_msg(str_starts((struct str){request, (size_t)n}, str_of(p->request)), "%.*s",
                      (int)n, request);
    if (n > 0)
        ck_assert_int_gt(send(f->fd, OK_ANSWER, sizeof(OK_ANSWER) - 1, MSG_NOSIGNAL), 0);
    else
        loop_fd_del(f);
}

static void parrot_accept(struct loop_fd *f, uint32_t events)
{
    struct parrot *p = CONTAINER_OF(f, struct parrot, fd);
    (void)events;
    /* cppcheck-suppress nullPointer; the address is not needed */
    int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert(fd >= 0 && p->n < 8);
    struct parrot *c = &p->connections[p->n++];
    c->fd = (struct loop_fd){.fd = fd, .events = EPOLLIN, .ready = parrot_answer};
    c->request = p->request;
    ck_assert_int_eq(loop_fd_add(f->loop, &c->fd, NULL), OK);
}

static bool both_done(void *ctx)
{
    const struct recorded_call *c = ctx;
    return c[0].done && c[1].done;
}

/* All of cardpack's allocations for a client and two calls. */
static enum errc two_calls(struct loop *l)
{
    struct http_client *client = NULL;
    struct http_client_settings s = {
        .user_agent = STR("unit/1"), .ca_data = STR("none"), .allow_http = true};
    enum errc code = http_client_new(l, &s, &client, NULL);
    if (code != OK)
        return code;
    struct raw_server o;
    struct parrot connections[8];
    raw_server_open(&o, l);
    struct parrot listener = {
        .fd = {.fd = o.listener.fd, .events = EPOLLIN, .ready = parrot_accept},
        .connections = connections};
    loop_fd_del(&o.listener);
    ck_assert_int_eq(loop_fd_add(l, &listener.fd, NULL), OK);
    struct recorded_call c[2];
    for (int i = 0; i < 2; i++) {
        recorded_call_init(&c[i], "POST", o.url, "/");
        c[i].call.body = STR("{}");
        c[i].call.bearer = STR("token");
        http_call_start(client, &c[i].call);
    }
    run_until(l, both_done, c);
    for (int i = 0; i < 2; i++) {
        if (c[i].call.outcome != HTTP_ANSWERED)
            code = c[i].call.err.code;
        recorded_call_end(&c[i]);
    }
    http_client_forget_connections(client);
    run_turns(l, 1);
    client = http_client_free(client);
    for (size_t i = 0; i < listener.n; i++) {
        loop_fd_del(&connections[i].fd);
        (void)close(connections[i].fd.fd);
    }
    loop_fd_del(&listener.fd);
    raw_server_close(&o);
    return code;
}

TEST(a_call_fails_alone_without_memory)
{
    struct loop *l = loop_make();
    for (size_t nth = 1;; nth++) {
        fail_alloc_arm(FAIL_ONCE, nth);
        enum errc code = two_calls(l);
        bool hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert(code == OK || code == ERR_NOMEM);
        if (!hit) {
            ck_assert_int_eq(code, OK);
            ck_assert_uint_gt(nth, 8);
            break;
        }
    }
    loop_free(l);
}

TEST(a_steady_load_allocates_nothing_of_ours)
{
    struct client_fixture f;
    struct recorded_call c;
    client_fixture_open(&f);
    recorded_call_init(&c, "POST", f.server.url, "/");
    c.call.body = STR("{}");
    struct raw_conn *p = NULL;
    for (int i = 0; i < 10; i++) {
        c.done = false;
        c.times = 0;
        http_call_start(f.client, &c.call);
        p = raw_server_peer(&f.server, 0);
        raw_conn_await(p, "{}", 1);
        buf_clear(&p->in, SIZE_MAX);
        raw_conn_send(p, STR(OK_ANSWER));
        recorded_call_await(f.loop, &c);
        if (i == 3)
            fail_alloc_arm(FAIL_NEVER, 0);
    }
    ck_assert_uint_eq(fail_alloc_count(), 0);
    fail_alloc_disarm();
    recorded_call_end(&c);
    client_fixture_close(&f);
}

/* ---- allocations of libcurl ---- */

static size_t starving; /* the nth allocation from now on fails; 0: none */

static bool starve(void)
{
    return starving > 0 && --starving == 0;
}

static void *starve_malloc(size_t n)
{
    return starve() ? NULL : malloc(n);
}

static void *starve_calloc(size_t n, size_t size)
{
    return starve() ? NULL : calloc(n, size);
}

static void *starve_realloc(void *p, size_t n)
{
    return starve() ? NULL : realloc(p, n);
}

static char *starve_strdup(const char *s)
{
    return starve() ? NULL : strdup(s);
}

/* A Binding on a Unix socket; libcurl's nth allocation for it fails. */
static enum http_outcome call_starved(struct loop *l, const char *path, size_t nth)
{
    struct http_client *client = NULL;
    struct http_client_settings s = {
        .user_agent = STR("unit/1"), .socket = str_of(path), .allow_http = true};
    struct parrot connections[8];
    struct parrot listener = {.fd = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                     .events = EPOLLIN,
                                     .ready = parrot_accept},
                              .request = "POST /bind?timeout=8ms HTTP/1.1\r\n",
                              .connections = connections};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    ck_assert_int_eq(bind(listener.fd.fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(listener.fd.fd, SOMAXCONN), 0);
    ck_assert_int_eq(loop_fd_add(l, &listener.fd, NULL), OK);
    ck_assert_int_eq(http_client_new(l, &s, &client, NULL), OK);
    struct recorded_call c;
    recorded_call_init(&c, "POST", "http://localhost", "/bind?timeout=8ms");
    c.call.body = STR("{}");
    starving = nth;
    http_call_start(client, &c.call);
    recorded_call_await(l, &c);
    client = http_client_free(client);
    for (size_t i = 0; i < listener.n; i++) {
        loop_fd_del(&connections[i].fd);
        (void)close(connections[i].fd.fd);
    }
    loop_fd_del(&listener.fd);
    (void)close(listener.fd.fd);
    ck_assert_int_eq(unlink(path), 0);
    recorded_call_end(&c);
    return c.call.outcome;
}

TEST(a_request_is_never_sent_without_its_query)
{
    char path[64] = "/tmp/cardpack-http-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    size_t folder = strlen(path);
    (void)snprintf(path + folder, sizeof(path) - folder, "/socket");
    ck_assert_int_eq(curl_global_init_mem(CURL_GLOBAL_DEFAULT, starve_malloc, free, starve_realloc,
                                          starve_strdup, starve_calloc),
                     CURLE_OK);
    struct loop *l = loop_make();
    unsigned unsent = 0;
    for (size_t nth = 1, hit = 1; hit > 0; nth++) {
        enum http_outcome outcome = call_starved(l, path, nth);
        hit = starving == 0;
        ck_assert(hit > 0 || outcome == HTTP_ANSWERED);
        unsent += outcome == HTTP_NOT_SENT ? 1 : 0;
    }
    ck_assert_uint_gt(unsent, 8);
    starving = 0;
    loop_free(l);
    curl_global_cleanup();
    path[folder] = '\0';
    ck_assert_int_eq(rmdir(path), 0);
}

int main(void)
{
    no_proxies();
    return unit_run();
}
