/*
 * Time from the real program's start until it is ready. Compared with a download of the same lists
 * by libcurl, in the same pages, without using the data; plain and by TLS, as real API servers
 * speak. Both use the same API server, which runs on another core.
 *
 * bench_sync CARDPACK BENCH_API
 */
#include "daemon.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB_BYTES (1024.0 * 1024.0)
#define PAGE      500
#define ROUNDS    7
#define HEAD      512

struct download {
    CURL *easy;
    uint64_t bytes;
    char head[HEAD]; /* start of the page: the continue token is there */
    size_t n_head;
};

static size_t into_nothing(char *p, size_t size, size_t n, void *ctx)
{
    struct download *d = ctx;
    size_t take = MIN_OF(HEAD - 1 - d->n_head, n);
    if (take > 0)
        memcpy(d->head + d->n_head, p, take);
    d->n_head += take;
    d->bytes += n;
    return size * n;
}

static void page(struct download *d, const struct process *api, bool tls, const char *path,
                 const char *token)
{
    char url[256];
    (void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u%s?limit=%d%s%s", tls ? "https" : "http",
                   api->port, path, PAGE, token[0] == '\0' ? "" : "&continue=", token);
    d->n_head = 0;
    (void)curl_easy_setopt(d->easy, CURLOPT_URL, url);
    if (curl_easy_perform(d->easy) != CURLE_OK)
        bench_fail(url);
    d->head[d->n_head] = '\0';
}

static void whole_list(struct download *d, const struct process *api, bool tls, const char *path)
{
    static const char mark[] = "\"continue\":\"";
    char token[64] = "";
    do {
        page(d, api, tls, path, token);
        const char *at = strstr(d->head, mark);
        const char *from = at == NULL ? "" : at + sizeof(mark) - 1;
        (void)snprintf(token, sizeof(token), "%.*s", (int)strcspn(from, "\""), from);
    } while (token[0] != '\0');
}

/* Returns seconds; *ret_bytes: size of the lists. */
static double curl_alone(const struct process *api, bool tls, uint64_t *ret_bytes)
{
    struct download d = {.easy = curl_easy_init()};
    uint64_t began = bench_now_ns();
    (void)curl_easy_setopt(d.easy, CURLOPT_WRITEFUNCTION, into_nothing);
    (void)curl_easy_setopt(d.easy, CURLOPT_WRITEDATA, (void *)&d);
    (void)curl_easy_setopt(d.easy, CURLOPT_SSL_VERIFYPEER, 0L);
    (void)curl_easy_setopt(d.easy, CURLOPT_SSL_VERIFYHOST, 0L);
    whole_list(&d, api, tls, "/api/v1/nodes");
    whole_list(&d, api, tls, "/api/v1/pods");
    curl_easy_cleanup(d.easy);
    *ret_bytes = d.bytes;
    return (double)(bench_now_ns() - began) / 1e9;
}

static double own_cpu_s(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct trial {
    double curl_s[ROUNDS];
    double sync_s[ROUNDS];
    double curl_cpu[ROUNDS];
    double sync_cpu[ROUNDS];
    double api_cpu[ROUNDS]; /* while cardpack read */
    uint64_t bytes;
    struct memory memory;
};

static void one_round(struct trial *t, size_t i, const char *program, const struct process *api,
                      bool tls)
{
    struct daemon d;
    double before = own_cpu_s();
    t->curl_s[i] = curl_alone(api, tls, &t->bytes);
    t->curl_cpu[i] = own_cpu_s() - before;
    before = process_cpu_s(api->pid);
    daemon_start(&d, program, api, tls, NULL);
    t->sync_s[i] = d.ready_s;
    t->sync_cpu[i] = process_cpu_s(d.process.pid);
    t->api_cpu[i] = process_cpu_s(api->pid) - before;
    struct memory m = process_memory(d.process.pid);
    t->memory.peak_mib = MAX_OF(t->memory.peak_mib, m.peak_mib);
    t->memory.now_mib = MAX_OF(t->memory.now_mib, m.now_mib);
    daemon_stop(&d);
}

static void tell(struct trial *t, size_t rounds, uint64_t mib, bool tls)
{
    double bytes = (double)t->bytes / MIB_BYTES;
    double sync_s = bench_median(t->sync_s, rounds);
    const char *how = tls ? "TLS" : "plain";
    char what[64];
    (void)snprintf(what, sizeof(what), "start to ready, %s", how);
    bench_figure(&(struct figure){.table = "sync",
                                  .what = what,
                                  .by = "MiB of lists",
                                  .x = mib,
                                  .value = bytes / sync_s,
                                  .unit = "MiB/s",
                                  .beside = "libcurl alone, into nothing",
                                  .limit = bytes / bench_median(t->curl_s, rounds),
                                  .target = 0.5,
                                  .sense = BENCH_AT_LEAST});
    (void)snprintf(what, sizeof(what), "processor time, %s", how);
    bench_figure(&(struct figure){.table = "sync",
                                  .what = what,
                                  .by = "MiB of lists",
                                  .x = mib,
                                  .value = bench_median(t->sync_cpu, rounds),
                                  .unit = "s",
                                  .beside = "libcurl alone, into nothing",
                                  .limit = bench_median(t->curl_cpu, rounds)});
    (void)snprintf(what, sizeof(what), "processor time of the API server, %s", how);
    bench_figure(&(struct figure){.table = "sync",
                                  .what = what,
                                  .by = "MiB of lists",
                                  .x = mib,
                                  .value = bench_median(t->api_cpu, rounds),
                                  .unit = "s",
                                  .beside = "all of the time",
                                  .limit = sync_s});
    (void)snprintf(what, sizeof(what), "peak memory, %s", how);
    bench_figure(&(struct figure){.table = "sync",
                                  .what = what,
                                  .by = "MiB of lists",
                                  .x = mib,
                                  .value = t->memory.peak_mib,
                                  .unit = "MiB",
                                  .beside = "resident when ready",
                                  .limit = t->memory.now_mib});
}

/* Pods of 7.5 KB, like real ones. The share of pods with a card changes what is kept, not what is
 * read: one in five. */
static void measure(char *const *argv, uint64_t mib, size_t rounds, bool tls)
{
    char pods[64];
    char gpu_pods[64];
    struct process api;
    struct trial t = {.bytes = 0};
    uint64_t n = mib * 1024 * 1024 / 7500;
    (void)snprintf(pods, sizeof(pods), "pods=%llu", (unsigned long long)n);
    (void)snprintf(gpu_pods, sizeof(gpu_pods), "gpu-pods=%llu", (unsigned long long)n / 5);
    const char *const settings[] = {
        "nodes=1000", "cards=8", pods, gpu_pods, "pod-bytes=7500", tls ? "tls=1" : "tls=0", NULL};
    api_start(&api, argv[2], settings);
    if (bench_is_quick())
        rounds = 1;
    for (size_t i = 0; i < rounds; i++)
        one_round(&t, i, argv[1], &api, tls);
    process_stop(&api);
    if (t.bytes < n * 7500)
        bench_fail("the lists are too short");
    tell(&t, rounds, mib, tls);
}

int main(int argc, char *argv[])
{
    if (argc != 3)
        return 2;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return 1;
    for (int tls = 0; tls <= 1; tls++) {
        measure(argv, bench_is_quick() ? 2 : 60, ROUNDS, tls == 1);
        if (!bench_is_quick())
            measure(argv, 1024, 3, tls == 1);
    }
    curl_global_cleanup();
    return 0;
}
