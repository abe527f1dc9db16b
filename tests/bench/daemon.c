/* Starts and stops the real programs; see daemon.h. */
#include "daemon.h"

#include "base/str.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_LIMIT_NS (UINT64_C(300) * 1000000000U)
#define POLL_US        2000
#define FLAGS_MAX      24

void bench_fail(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

/* Redirects standard output to `out` and standard error to `err`, unless -1. */
static void start(struct process *p, const char *const *argv, int out, int err)
{
    /* execv changes none of the strings; its type says so only for the pointers. */
    char *const *theirs;
    memcpy(&theirs, &argv, sizeof(theirs));
    int in[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        bench_fail("pipe");
    p->pid = fork();
    if (p->pid < 0)
        bench_fail("fork");
    if (p->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(in[0], STDIN_FILENO) < 0 || (out >= 0 && dup2(out, STDOUT_FILENO) < 0) ||
            (err >= 0 && dup2(err, STDERR_FILENO) < 0))
            _exit(127);
        (void)execv(argv[0], theirs);
        _exit(127);
    }
    (void)close(in[0]);
    p->in = in[1];
}

void api_start(struct process *p, const char *program, const char *const *settings)
{
    const char *argv[API_SETTINGS + 2];
    char text[16];
    uint64_t port = 0;
    size_t n = 0;
    int out[2];
    argv[n++] = program;
    for (; *settings != NULL && n <= API_SETTINGS; settings++)
        argv[n++] = *settings;
    argv[n] = NULL;
    if (pipe2(out, O_CLOEXEC) != 0)
        bench_fail("pipe");
    start(p, argv, out[1], -1);
    (void)close(out[1]);
    ssize_t got = read(out[0], text, sizeof(text));
    (void)close(out[0]);
    if (got < 2 || !str_to_u64((struct str){text, (size_t)got - 1}, UINT16_MAX, &port))
        bench_fail(program);
    p->port = (uint16_t)port;
}

struct kept {
    char *text;
    size_t n, size;
};

static size_t keep(char *p, size_t size, size_t n, void *ctx)
{
    struct kept *k = ctx;
    size_t take = MIN_OF(size * n, k->size - 1 - k->n);
    memcpy(k->text + k->n, p, take);
    k->n += take;
    return size * n;
}

unsigned local_get(uint16_t port, const char *path, char *text, size_t size)
{
    char url[256];
    long status = 0;
    struct kept kept = {.text = text, .size = size};
    CURL *easy = curl_easy_init();
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", port, path);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, (void *)&kept);
    if (curl_easy_perform(easy) == CURLE_OK)
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    text[kept.n] = '\0';
    return (unsigned)status;
}

static void write_kubeconfig(const char *path, uint16_t port, bool tls)
{
    FILE *f = fopen(path, "we");
    if (f == NULL)
        bench_fail(path);
    (void)fprintf(f,
                  "apiVersion: v1\nkind: Config\ncurrent-context: bench\n"
                  "contexts: [{name: bench, context: {cluster: bench, user: bench}}]\n"
                  "users: [{name: bench, user: {}}]\n"
                  "clusters: [{name: bench, cluster: {server: \"%s://127.0.0.1:%u\"%s}}]\n",
                  tls ? "https" : "http", port, tls ? ", insecure-skip-tls-verify: true" : "");
    if (fclose(f) != 0)
        bench_fail(path);
}

/* The port in the log's line about listening; 0: no such line yet. */
static uint16_t port_of_log(const char *path)
{
    static const char mark[] = "\"port\":";
    char text[8192];
    uint64_t port = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        bench_fail(path);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[MAX_OF(n, (ssize_t)0)] = '\0';
    const char *at = strstr(text, mark);
    if (at == NULL || strchr(at, '}') == NULL)
        return 0;
    struct str digits = {at + sizeof(mark) - 1, strspn(at + sizeof(mark) - 1, "0123456789")};
    return str_to_u64(digits, UINT16_MAX, &port) ? (uint16_t)port : 0;
}

static void await_ready(struct daemon *d, const char *log, uint64_t began)
{
    char why[256] = "it has not said its port";
    struct process *p = &d->process;
    for (;;) {
        int status;
        if (p->port == 0)
            p->port = port_of_log(log);
        if (p->port != 0 && local_get(p->port, "/readyz", why, sizeof(why)) == 200)
            return;
        if (bench_now_ns() - began > START_LIMIT_NS || waitpid(p->pid, &status, WNOHANG) != 0)
            break;
        (void)usleep(POLL_US);
    }
    (void)fprintf(stderr, "not ready: %s; see %s\n", why, log);
    exit(1);
}

void daemon_start(struct daemon *d, const char *program, const struct process *api, bool tls,
                  const char *const *extra)
{
    char kubeconfig[128];
    char log[128];
    const char *argv[FLAGS_MAX + 1] = {program};
    size_t n = 1;
    static const char *const usual[] = {"--port=0",          "--leader-elect=false",
                                        "--start-settle=0s", "--log-format=json",
                                        "--kubeconfig",      NULL};
    *d = (struct daemon){.process = {.in = -1}, .folder = "/tmp/bench.XXXXXX"};
    if (mkdtemp(d->folder) == NULL)
        bench_fail(d->folder);
    (void)snprintf(kubeconfig, sizeof(kubeconfig), "%s/kubeconfig", d->folder);
    (void)snprintf(log, sizeof(log), "%s/log", d->folder);
    write_kubeconfig(kubeconfig, api->port, tls);
    for (size_t i = 0; usual[i] != NULL; i++)
        argv[n++] = usual[i];
    argv[n++] = kubeconfig;
    for (; extra != NULL && *extra != NULL && n < FLAGS_MAX; extra++)
        argv[n++] = *extra;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_fail(log);
    uint64_t began = bench_now_ns();
    start(&d->process, argv, -1, fd);
    (void)close(fd);
    await_ready(d, log, began);
    d->ready_s = (double)(bench_now_ns() - began) / 1e9;
}

void process_stop(struct process *p)
{
    int status;
    (void)close(p->in);
    if (kill(p->pid, SIGKILL) != 0 || waitpid(p->pid, &status, 0) != p->pid)
        bench_fail("kill");
}

void daemon_stop(struct daemon *d)
{
    static const char *const files[] = {"kubeconfig", "log"};
    char path[128];
    process_stop(&d->process);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", d->folder, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(d->folder);
}

static double status_mib(const char *text, const char *mark)
{
    uint64_t kib = 0;
    const char *at = strstr(text, mark);
    if (at == NULL)
        return 0;
    at += strlen(mark);
    at += strspn(at, " \t");
    (void)str_to_u64((struct str){at, strspn(at, "0123456789")}, UINT64_MAX, &kib);
    return (double)kib / 1024;
}

struct memory process_memory(pid_t pid)
{
    char path[64];
    char text[8192];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        bench_fail(path);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    (void)fclose(f);
    return (struct memory){.now_mib = status_mib(text, "VmRSS:"),
                           .peak_mib = status_mib(text, "VmHWM:")};
}

double process_cpu_s(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        bench_fail("processor time");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
