/*
 * Memory and start of the real program by number of nodes and pods: resident memory when it is
 * ready, and its peak until then.
 *
 * bench_memory CARDPACK BENCH_API
 */
#include "daemon.h"

#include "base/str.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#define TARGET_MIB 32
#define POD_MEM    4

struct embedded {
    uint64_t nodes, pods, gpu_pods;
    bool by_nodes; /* a point of the curve by nodes, of the one by pods, or of both */
    bool by_pods;
    bool real;   /* objects of real size, with the target; else as small as possible */
    bool tables; /* nodes have a table of cards with UUIDs */
    bool dra;    /* beside them a ResourceSlice of each node, and 2,000 claims */
};

static void tell(const struct embedded *c, const char *table, const char *what, const char *unit,
                 double value, double target)
{
    char name[128];
    struct figure f = {.table = table,
                       .what = name,
                       .value = value,
                       .unit = unit,
                       .target = target,
                       .sense = BENCH_AT_MOST};
    f.by = "nodes";
    f.x = c->nodes;
    (void)snprintf(name, sizeof(name), "%s, %llu pods%s%s%s", what, (unsigned long long)c->pods,
                   c->real ? " of 7.5 KB" : "", c->tables ? ", UUIDs" : "", c->dra ? ", DRA" : "");
    if (c->by_nodes)
        bench_figure(&f);
    char by_pods[64];
    (void)snprintf(by_pods, sizeof(by_pods), "%s-pods", table);
    f.table = by_pods;
    f.by = "pods";
    f.x = c->pods;
    (void)snprintf(name, sizeof(name), "%s, %llu nodes", what, (unsigned long long)c->nodes);
    if (c->by_pods)
        bench_figure(&f);
}

/* Every pod with a card must be charged: checks the last node's cards. */
static void check(const struct embedded *c, const struct daemon *d)
{
    static char text[1 << 20];
    char path[128];
    char used[64];
    uint64_t holds = 0;
    for (uint64_t i = 0; i < c->gpu_pods; i++)
        holds += i % c->nodes == c->nodes - 1 ? POD_MEM : 0;
    (void)snprintf(path, sizeof(path), "/gpushare-scheduler/inspect/node-%07llu",
                   (unsigned long long)c->nodes - 1);
    (void)snprintf(used, sizeof(used), "\"usedGPU\":%llu,", (unsigned long long)holds);
    if (local_get(d->process.port, path, text, sizeof(text)) != 200 || strstr(text, used) == NULL)
        bench_fail("a node does not hold what it should");
}

static void measure(char *const *argv, const struct embedded *c)
{
    char nodes[64];
    char pods[64];
    char gpu_pods[64];
    struct process api;
    struct daemon d;
    (void)snprintf(nodes, sizeof(nodes), "nodes=%llu", (unsigned long long)c->nodes);
    (void)snprintf(pods, sizeof(pods), "pods=%llu", (unsigned long long)c->pods);
    (void)snprintf(gpu_pods, sizeof(gpu_pods), "gpu-pods=%llu", (unsigned long long)c->gpu_pods);
    const char *const settings[] = {nodes,
                                    "cards=8",
                                    "pod-mem=4", /* POD_MEM */
                                    pods,
                                    gpu_pods,
                                    c->real ? "pod-bytes=7500" : "pod-bytes=0",
                                    c->real ? "node-bytes=7500" : "node-bytes=0",
                                    c->tables ? "tables=1" : "tables=0",
                                    c->dra ? "slices=1" : "slices=0",
                                    c->dra ? "claims=2000" : "claims=0",
                                    NULL};
    api_start(&api, argv[2], settings);
    daemon_start(&d, argv[1], &api, false, NULL);
    struct memory m = process_memory(d.process.pid);
    check(c, &d);
    daemon_stop(&d);
    process_stop(&api);
    tell(c, "memory", "resident", "MiB", m.now_mib, c->real ? TARGET_MIB : 0);
    tell(c, "memory-peak", "peak", "MiB", m.peak_mib, 0);
    tell(c, "start", "start to ready", "s", d.ready_s, 0);
}

int main(int argc, char *argv[])
{
    static const struct embedded clusters[] = {
        {5000, 100000, 20000, .by_nodes = true, .real = true},
        {5000, 100000, 20000, .by_nodes = true, .real = true, .dra = true},
        {5000, 100000, 20000, .by_nodes = true, .real = true, .tables = true},
        {5000, 100000, 20000, .by_nodes = true, .real = true, .tables = true, .dra = true},
        {1000, 100000, 20000, .by_nodes = true},
        {5000, 100000, 20000, .by_nodes = true, .by_pods = true},
        {50000, 100000, 20000, .by_nodes = true, .by_pods = true},
        {5000, 10000, 2000, .by_pods = true},
        {5000, 300000, 60000, .by_pods = true},
        {50000, 300000, 60000, .by_pods = true},
        {50000, 1000000, 200000, .by_pods = true},
    };
    static const struct embedded small = {
        100, 1000, 200, .by_nodes = true, .by_pods = true, .tables = true, .dra = true};
    if (argc != 3)
        return 2;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return 1;
    if (bench_is_quick())
        measure(argv, &small);
    for (size_t i = 0; !bench_is_quick() && i < COUNT_OF(clusters); i++)
        measure(argv, &clusters[i]);
    curl_global_cleanup();
    return 0;
}
