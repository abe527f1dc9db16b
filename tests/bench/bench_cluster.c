/* Builds the benchmarks' cluster and its JSON; see bench_cluster.h. */
#include "bench_cluster.h"
#include "core/limit.h"
#include "objects/limit.h"

#include <stdio.h>
#include <stdlib.h>

#define GROUPS 4

static void apply(struct cache *c, const struct cache_event *e)
{
    struct effect effect;
    if (cache_apply(c, e, UINT64_C(1700000000000000000), &effect) != OK || effect.err.code != OK)
        abort();
}

struct str bench_node_name(size_t node, struct bench_name *out)
{
    *out = (struct bench_name){.bytes = ""}; /* otherwise cppcheck takes it for read */
    int n = snprintf(out->bytes, sizeof(out->bytes), "gpu-node-%06zu.eu-central-1.compute.internal",
                     node);
    return (struct str){out->bytes, (size_t)n};
}

static struct str print_int(char out[24], int64_t v)
{
    int n = snprintf(out, 24, "%lld", (long long)v);
    return (struct str){out, (size_t)n};
}

struct card_name {
    char bytes[LIMIT_CARD_NAME + 1];
};

/* "aaaa...0000000c": as a hostile kubelet names its cards. */
static struct str print_long_name(struct card_name *out, size_t bytes, size_t node, uint32_t card)
{
    size_t tail = sizeof("00000000") - 1;
    memset(out->bytes, 'a', bytes - tail);
    (void)snprintf(out->bytes + bytes - tail, tail + 1, "%08zx", node * LIMIT_CARDS + card);
    return (struct str){out->bytes, bytes};
}

static void build_node(struct cache *c, const struct bench_cluster *g, size_t node)
{
    struct bench_name name;
    char mem[24];
    char count[24];
    static struct card_name names[LIMIT_CARDS];
    struct card_view cards[LIMIT_CARDS];
    for (uint32_t i = 0; i < g->cards && g->tables; i++) {
        int n = snprintf(names[i].bytes, sizeof(names[i].bytes), "GPU-%u", i);
        cards[i] = (struct card_view){.index = i,
                                      .mem = BENCH_CARD_MEM,
                                      .numa = i < g->cards / 2 ? 0 : 1,
                                      .model = STR("NVIDIA-A100-SXM4-80GB"),
                                      .uuid = {names[i].bytes, (size_t)n}};
        if (g->name_bytes > 0)
            cards[i].model = cards[i].uuid = print_long_name(&names[i], g->name_bytes, node, i);
    }
    struct cache_event e = {.type = CACHE_NODE_SET};
    e.node.name = bench_node_name(node, &name);
    e.node.mem = print_int(mem, (int64_t)g->cards * BENCH_CARD_MEM);
    e.node.mem_allocatable = e.node.mem;
    e.node.count = print_int(count, g->cards);
    e.node.pool = STR("training");
    e.node.has_cards = g->tables;
    e.node.cards = cards;
    e.node.n_cards = g->tables ? g->cards : 0;
    apply(c, &e);
}

/* A pod that runs on this node. */
static void build_pod(struct cache *c, const struct bench_cluster *g, size_t node, uint32_t i)
{
    struct bench_name on;
    char uid[40];
    char name[40];
    char namespace[16];
    char group[16];
    char mem[24];
    char idx[24];
    struct container_view container = {.name = STR("main"), .mem = print_int(mem, g->pod_mem)};
    struct cache_event e = {.type = CACHE_POD_SET};
    int n = snprintf(uid, sizeof(uid), "6f1d2c3b-%04x-4a5b-8c6d-%012zx", i, node);
    e.pod.uid = (struct str){uid, (size_t)n};
    n = snprintf(name, sizeof(name), "train-%zu-%u", node, i);
    e.pod.name = (struct str){name, (size_t)n};
    n = snprintf(namespace, sizeof(namespace), "team-%02zu", node % 50);
    e.pod.namespace = (struct str){namespace, (size_t)n};
    n = snprintf(group, sizeof(group), "group-%u", i / 2 % GROUPS);
    if (g->tables && i % 2 == 0)
        e.pod.anti_affinity = (struct str){group, (size_t)n};
    e.pod.node = bench_node_name(node, &on);
    e.pod.phase = STR("Running");
    e.pod.idx = print_int(idx, i % g->cards);
    e.pod.assigned = STR("true");
    e.pod.assume_time = STR("1690000000000000000");
    e.pod.containers = &container;
    e.pod.n_containers = e.pod.n_mains = 1;
    apply(c, &e);
}

void bench_cluster_build_nodes(struct cache *c, const struct bench_cluster *g)
{
    for (size_t i = 0; i < g->nodes; i++)
        build_node(c, g, g->first + i);
}

void bench_cluster_build_pods(struct cache *c, const struct bench_cluster *g)
{
    for (size_t i = 0; i < g->nodes; i += MAX_OF(g->pods_every, (size_t)1)) {
        for (uint32_t p = 0; p < g->pods; p++)
            build_pod(c, g, g->first + i, p);
    }
}

void bench_cluster_build(struct cache *c, const struct bench_cluster *g)
{
    bench_cluster_build_nodes(c, g);
    bench_cluster_build_pods(c, g);
}

void bench_cluster_limit(struct cache *c)
{
    const int64_t most = INT64_C(1) << 40;
    const struct quota_limit limits[] = {
        {.scope = QUOTA_TOTAL, .most = {most, most, most}},
        {.scope = QUOTA_POOL, .name = STR("training"), .most = {most, most, most}},
        {.scope = QUOTA_MODEL, .name = STR("NVIDIA-A100*"), .most = {most, most, most}},
    };
    const struct quota_entry entry = {
        .namespace = BENCH_LIMITED, .limits = limits, .n_limits = COUNT_OF(limits)};
    struct cache_event e = {.type = CACHE_QUOTA_SET};
    e.quota = (struct quota_view){&entry, 1};
    apply(c, &e);
}

/* managedFields, in which the kubelet and controllers record which fields they set: most of an
 * object's bytes. */
static void write_managed(struct buf *out, const char *manager, unsigned fields)
{
    buf_printf(out,
               "{\"manager\":\"%s\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
               "\"time\":\"2026-01-02T03:04:05Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{"
               "\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},\"f:app\":{}}}",
               manager);
    for (unsigned i = 0; i < fields; i++)
        buf_printf(out,
                   ",\"k:{\\\"name\\\":\\\"FIELD_%02u\\\"}\":{\".\":{},\"f:name\":{},"
                   "\"f:value\":{}}",
                   i);
    buf_printf(out, "}}");
}

static void write_metadata(struct buf *out, const struct pod_text *p)
{
    buf_printf(out,
               "\"metadata\":{\"name\":\"%.*s\",\"generateName\":\"train-7c5ddbdf54-\","
               "\"namespace\":\"%s\",\"uid\":\"%.*s\",\"resourceVersion\":\"%u\","
               "\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"labels\":{\"app\":\"train\","
               "\"pod-template-hash\":\"7c5ddbdf54\"%s},\"annotations\":{"
               "\"kubernetes.io/limit-ranger\":\"LimitRanger plugin set: cpu request\"%s},"
               "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
               "\"name\":\"train-7c5ddbdf54\",\"uid\":\"0d6a4b1e-3f57-4a7d-9f0a-2b6c8e5d1f43\","
               "\"controller\":true,\"blockOwnerDeletion\":true}],\"managedFields\":[",
               STR_ARG(p->name), p->wish.namespace, STR_ARG(p->uid), p->version, p->wish.labels,
               p->wish.annotations);
    write_managed(out, "kube-controller-manager", 36);
    buf_putc(out, ',');
    write_managed(out, "kubelet", 10);
    buf_printf(out, "]}");
}

static void write_container(struct buf *out, const struct pod_text *p, unsigned i)
{
    buf_printf(out,
               "%s{\"name\":\"c%u\",\"image\":\"registry.example/team/train:v1.2.3\",\"env\":[",
               i == 0 ? "" : ",", i);
    for (unsigned k = 0; k < 28; k++)
        buf_printf(out, "%s{\"name\":\"FIELD_%02u\",\"value\":\"some value of number %u\"}",
                   k == 0 ? "" : ",", k, k);
    buf_printf(out,
               "],\"resources\":{\"limits\":{\"cpu\":\"4\"%s},\"requests\":{\"cpu\":\"4\"%s}},"
               "\"volumeMounts\":[{\"name\":\"data\",\"mountPath\":\"/data\"},{\"name\":\"token\","
               "\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io\"}],"
               "\"terminationMessagePath\":\"/dev/termination-log\","
               "\"imagePullPolicy\":\"IfNotPresent\"}",
               p->wish.limits, p->wish.limits);
}

static void write_spec(struct buf *out, const struct pod_text *p)
{
    buf_printf(out, "\"spec\":{\"volumes\":[{\"name\":\"data\",\"persistentVolumeClaim\":{"
                    "\"claimName\":\"data\"}},{\"name\":\"token\",\"projected\":{\"sources\":[{"
                    "\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}}],"
                    "\"defaultMode\":420}}],\"containers\":[");
    for (unsigned i = 0; i < p->wish.containers; i++)
        write_container(out, p, i);
    buf_printf(out, "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
                    "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\"");
    if (p->node.p != NULL)
        buf_printf(out, ",\"nodeName\":\"%.*s\"", STR_ARG(p->node));
    buf_printf(out,
               ",\"securityContext\":{},\"schedulerName\":\"default-scheduler\",\"tolerations\":[{"
               "\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\","
               "\"effect\":\"NoExecute\",\"tolerationSeconds\":300},{\"key\":"
               "\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":"
               "\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":"
               "true,\"preemptionPolicy\":\"PreemptLowerPriority\"}");
}

static void write_conditions(struct buf *out, const char *const *types, size_t n)
{
    buf_printf(out, "\"conditions\":[");
    for (size_t i = 0; i < n; i++)
        buf_printf(out,
                   "%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,"
                   "\"lastTransitionTime\":\"2026-01-02T03:04:06Z\"}",
                   i == 0 ? "" : ",", types[i]);
    buf_putc(out, ']');
}

void bench_write_pod(struct buf *out, const struct pod_text *p)
{
    static const char *const types[] = {"Initialized", "Ready", "ContainersReady", "PodScheduled"};
    buf_printf(out, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",");
    write_metadata(out, p);
    buf_putc(out, ',');
    write_spec(out, p);
    buf_printf(out, ",\"status\":{\"phase\":\"%.*s\",", STR_ARG(p->phase));
    write_conditions(out, types, p->node.p == NULL ? 0 : COUNT_OF(types));
    buf_printf(out, ",\"qosClass\":\"Guaranteed\"}}");
}

static void write_figures(struct buf *out, const char *which, uint32_t cards)
{
    buf_printf(out,
               "\"%s\":{\"aliyun.com/gpu-count\":\"%u\",\"aliyun.com/gpu-mem\":\"%u\","
               "\"cpu\":\"96\",\"ephemeral-storage\":\"1015440188Ki\",\"memory\":"
               "\"1056295628Ki\",\"pods\":\"110\"},",
               which, cards, cards * BENCH_CARD_MEM);
}

void bench_write_node(struct buf *out, size_t node, uint32_t cards, unsigned version)
{
    static const char *const types[] = {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"};
    struct bench_name name;
    buf_printf(out,
               "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%.*s\","
               "\"uid\":\"9c2e7b40-8f21-4f6e-b2a1-%012zx\",\"resourceVersion\":\"%u\","
               "\"labels\":{\"cardpack.io/pool\":\"training\",\"kubernetes.io/os\":\"linux\"},"
               "\"managedFields\":[",
               STR_ARG(bench_node_name(node, &name)), node, version);
    write_managed(out, "kubelet", 52);
    buf_printf(out, "]},\"spec\":{\"podCIDR\":\"10.244.0.0/24\"},\"status\":{");
    write_figures(out, "capacity", cards);
    write_figures(out, "allocatable", cards);
    write_conditions(out, types, COUNT_OF(types));
    buf_printf(out, ",\"images\":[");
    for (unsigned i = 0; i < 30; i++)
        buf_printf(out,
                   "%s{\"names\":[\"registry.example/team/image-%02u@sha256:8f1c0a7de5b3942f6c1d"
                   "e0a97b5c3482f6190b7d5ce8a2f34d61c7e09b85a3f2\",\"registry.example/team/"
                   "image-%02u:v1.2.3\"],\"sizeBytes\":%u}",
                   i == 0 ? "" : ",", i, i, 100000000 + i);
    buf_printf(out, "]}}");
}

/* A permutation of the numbers below n, if n is not a multiple of the prime. */
static size_t scatter(size_t i, size_t n)
{
    const size_t prime = 1000003;
    return n % prime == 0 ? i : i * prime % n;
}

void bench_write_args(struct buf *out, const struct wish *wish, size_t n)
{
    struct bench_name name;
    buf_printf(out, "{\"Pod\":");
    bench_write_pod(out, &(struct pod_text){.name = STR("train-7c5ddbdf54-x2x7p"),
                                            .uid = STR("1b4e28ba-2fa1-41d2-883f-0016d3cca427"),
                                            .phase = STR("Pending"),
                                            .version = 1,
                                            .wish = *wish});
    buf_printf(out, ",\"Nodes\":null,\"NodeNames\":[");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s\"%.*s\"", i == 0 ? "" : ",",
                   STR_ARG(bench_node_name(scatter(i, n), &name)));
    buf_printf(out, "]}");
    if (buf_failed(out))
        abort();
}
