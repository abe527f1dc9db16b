/*
 * The servers to measure; see http_child.h.
 *
 * The echo is the best that libmicrohttpd can do: its own epoll loop, one thread, connection memory
 * as large as cardpack's, one growing buffer that is kept, and no copy of the answer. Bytes that
 * fill up an answer longer than its request are written once, not for each request.
 *
 * cardpack takes any free port and logs it; the log is a file, as mostly in a container. Both
 * children end with this process.
 */
#include "http_child.h"

#include "daemon/limit.h"
#include "io/http_server.h"
#include "io/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONN_MEMORY_BYTES (64 * KIB)
#define ECHO_BYTES        (256 * MIB)
#define TEMP_MAX          32
#define START_MS          120000
#define START_TURN        20

/* ---- files ---- */

static struct {
    char paths[TEMP_MAX][TEMP_PATH];
    size_t n;
    pid_t owner;
} temps;

static void temps_remove(void)
{
    for (size_t i = 0; i < temps.n && getpid() == temps.owner; i++)
        (void)unlink(temps.paths[i]);
}

int temp_open(char path[static TEMP_PATH])
{
    const char *folder = getenv("TMPDIR");
    if (temps.n == 0 && atexit(temps_remove) != 0)
        die("atexit");
    (void)snprintf(path, TEMP_PATH, "%.30s/cardpack-bench-XXXXXX",
                   folder == NULL ? "/tmp" : folder);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || temps.n == TEMP_MAX)
        die("no file %s: %s", path, strerror(errno));
    temps.owner = getpid();
    memcpy(temps.paths[temps.n++], path, TEMP_PATH);
    return fd;
}

/* ---- processes ---- */

static pid_t fork_child(void)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* ---- the echo ---- */

struct echo {
    struct buf body;
    size_t written; /* bytes of the buffer that were written, by a body or as filling */
};

/* Makes sure that the first n bytes of the buffer have been written. */
static bool echo_extend(struct echo *e, size_t n)
{
    e->written = MAX_OF(e->written, e->body.n);
    if (n <= e->written)
        return true;
    if (!buf_reserve(&e->body, n - e->body.n))
        return false;
    memset(e->body.p + e->written, ' ', n - e->written);
    e->written = n;
    return true;
}

static enum MHD_Result echo(void *cls, struct MHD_Connection *mhd, const char *path,
                            const char *method, const char *version, const char *upload,
                            size_t *upload_n, void **context)
{
    struct echo *e = cls;
    struct buf *body = &e->body;
    (void)method;
    (void)version;
    if (*context == NULL) {
        *context = body;
        buf_clear(body, SIZE_MAX);
        return MHD_YES;
    }
    if (*upload_n > 0) {
        buf_put(body, (struct str){upload, *upload_n});
        *upload_n = 0;
        return buf_failed(body) ? MHD_NO : MHD_YES;
    }
    size_t n = (size_t)number_at(path + 1);
    struct MHD_Response *r =
        echo_extend(e, n) ? MHD_create_response_from_buffer(n, body->p, MHD_RESPMEM_PERSISTENT)
                          : NULL;
    if (r == NULL)
        return MHD_NO;
    enum MHD_Result result =
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (result == MHD_YES)
        result = MHD_queue_response(mhd, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return result;
}

static void echo_run(int tell) __attribute__((noreturn));

static void echo_run(int tell)
{
    static struct echo e;
    buf_init(&e.body, ECHO_BYTES);
    struct MHD_Daemon *d = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, echo, &e,
                                            MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                            (size_t)CONN_MEMORY_BYTES, MHD_OPTION_END);
    if (d == NULL)
        die("libmicrohttpd does not start");
    uint16_t port = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
    if (write(tell, &port, sizeof(port)) != (ssize_t)sizeof(port))
        die("the echo can't tell its port");
    for (;;)
        (void)pause();
}

static void start(struct http_child *c, void (*run)(int tell))
{
    int ends[2];
    *c = (struct http_child){.pid = 0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("pipe: %s", strerror(errno));
    c->pid = fork_child();
    if (c->pid == 0)
        run(ends[1]);
    if (read(ends[0], &c->port, sizeof(c->port)) != (ssize_t)sizeof(c->port))
        die("an echo does not start");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

void echo_start(struct http_child *c)
{
    start(c, echo_run);
}

static void own_echo(void *ctx, struct http_request *r)
{
    (void)ctx;
    buf_put(r->answer, r->body);
    http_request_respond(r, 200, "application/json");
}

static void own_too_large(void *ctx, struct http_request *r, uint64_t body_bytes)
{
    (void)ctx;
    (void)body_bytes;
    http_request_respond(r, 413, "text/plain");
}

static void own_echo_run(int tell)
{
    struct loop *l = NULL;
    struct http_server *s = NULL;
    struct err e = ERR_INIT;
    const struct http_server_settings settings = {.address = STR("127.0.0.1"),
                                                  .max_body = ECHO_BYTES,
                                                  .max_connections = LIMIT_CONNECTIONS,
                                                  .request_timeout_ms = 30000,
                                                  .idle_seconds = LIMIT_IDLE_SECONDS,
                                                  .stall_ms = LIMIT_STALL_MS,
                                                  .handle = own_echo,
                                                  .too_large = own_too_large};
    if (loop_new(&l, &e) != OK || http_server_new(l, &settings, &s, &e) != OK)
        die("%s", e.text);
    uint16_t port = http_server_port(s);
    if (write(tell, &port, sizeof(port)) != (ssize_t)sizeof(port))
        die("the echo can't tell its port");
    if (loop_run(l, &e) != OK)
        die("%s", e.text);
}

void own_echo_start(struct http_child *c)
{
    start(c, own_echo_run);
}

/* ---- cardpack ---- */

static void cardpack_run(const char *log, const char *program, const char *cluster,
                         const char *shortlist) __attribute__((noreturn));

static void cardpack_run(const char *log, const char *program, const char *cluster,
                         const char *shortlist)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        die("%s: %s", log, strerror(errno));
    (void)unsetenv("PORT");
    (void)unsetenv("LOG_LEVEL");
    (void)unsetenv("KUBECONFIG");
    (void)execl(program, program, "--cluster", cluster, "--port", "0", "--log-format", "json",
                "--shortlist", shortlist, (char *)NULL);
    die("%s: %s", program, strerror(errno));
}

/* 0: not in the log yet. */
static uint16_t port_in(const char *log)
{
    char line[4096];
    uint64_t port = 0;
    FILE *f = fopen(log, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        const char *at = strstr(line, "\"port\":");
        if (strstr(line, "\"listening\"") != NULL && at != NULL)
            port = number_at(at + strlen("\"port\":"));
    }
    if (f != NULL)
        (void)fclose(f);
    return (uint16_t)port;
}

void cardpack_start(struct http_child *c, const char *program, const char *cluster,
                    const char *shortlist)
{
    *c = (struct http_child){.pid = 0};
    (void)close(temp_open(c->log));
    c->pid = fork_child();
    if (c->pid == 0)
        cardpack_run(c->log, program, cluster, shortlist);
    for (int ms = 0; c->port == 0; ms += START_TURN) {
        if (ms >= START_MS || waitpid(c->pid, NULL, WNOHANG) != 0)
            die("cardpack does not start");
        (void)usleep(START_TURN * 1000);
        c->port = port_in(c->log);
    }
}

clockid_t http_child_clock(const struct http_child *c)
{
    clockid_t clock = 0;
    int fault = clock_getcpuclockid(c->pid, &clock);
    if (fault != 0)
        die("no clock of process %d: %s", (int)c->pid, strerror(fault));
    return clock;
}

size_t http_child_resident(const struct http_child *c)
{
    char path[64];
    char text[128] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)c->pid);
    FILE *f = fopen(path, "re");
    if (f == NULL || fgets(text, sizeof(text), f) == NULL)
        die("%s can't be read", path);
    (void)fclose(f);
    const char *resident = strchr(text, ' '); /* the virtual size comes first */
    if (resident == NULL)
        die("%s can't be read", path);
    return (size_t)number_at(resident + 1) * (size_t)sysconf(_SC_PAGESIZE);
}

void http_child_stop(struct http_child *c)
{
    (void)kill(c->pid, SIGKILL);
    (void)waitpid(c->pid, NULL, 0);
}
