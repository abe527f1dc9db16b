/* The decoders of CPU and memory: the effective request of a pod, and what a node has. */
#include "objects/kube.h"

#include "unit.h"

#include <stdio.h>

#define MI ((int64_t)1 << 20)

/* A container with these amounts; "" leaves the resource out. */
#define ASKS(cpu, memory) \
    "{\"resources\":{\"requests\":{\"cpu\":\"" cpu "\",\"memory\":\"" memory "\"}}}"
#define ALWAYS(cpu, memory)                                                     \
    "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"" cpu \
    "\",\"memory\":\"" memory "\"}}}"
#define MAINS(...) "\"containers\":[" __VA_ARGS__ "]"
#define INITS(...) "\"initContainers\":[" __VA_ARGS__ "]"

static const struct {
    const char *spec;
    int64_t cpu;
    int64_t memory;
} pods[] = {
    {"", 0, 0},
    {MAINS("{}"), 0, 0},
    {MAINS(ASKS("500m", "128Mi")), 500, 128 * MI},
    {MAINS(ASKS("2", "1Gi") "," ASKS("0.25", "1M")), 2250, 1024 * MI + 1000000},
    /* Rounded up, as kube-scheduler does. */
    {MAINS(ASKS("0.1m", "100m")), 1, 1},
    {MAINS(ASKS("1u", "1.5")), 1, 2},
    /* Init containers run one at a time: the largest counts. */
    {INITS(ASKS("3", "1Mi") "," ASKS("1", "9Mi")) "," MAINS(ASKS("2", "4Mi")), 3000, 9 * MI},
    {MAINS(ASKS("2", "4Mi")) "," INITS(ASKS("3", "1Mi") "," ASKS("1", "9Mi")), 3000, 9 * MI},
    {INITS(ASKS("1", "1Mi")) "," MAINS(ASKS("2", "4Mi")), 2000, 4 * MI},
    /* A sidecar counts beside the containers, and beside the init containers after it. */
    {INITS(ALWAYS("1", "1Mi") "," ASKS("4", "1Mi")) "," MAINS(ASKS("2", "4Mi")), 5000, 5 * MI},
    {INITS(ASKS("4", "1Mi") "," ALWAYS("1", "1Mi")) "," MAINS(ASKS("2", "4Mi")), 4000, 5 * MI},
    {INITS(ALWAYS("1", "1Mi") "," ASKS("4", "6Mi") "," ALWAYS("2", "2Mi") "," ASKS(
         "3", "1Mi")) "," MAINS(ASKS("1", "1Mi")),
     6000, 7 * MI},
    /* restartPolicy means this for an init container only. */
    {MAINS(ALWAYS("1", "1Mi")), 1000, MI},
    /* The overhead of the runtime class is added to the peak. */
    {INITS(ASKS("3", "1Mi")) "," MAINS(ASKS(
         "1",
         "2Mi")) ",\"overhead\":{\"cpu\":\"250m\",\"memory\":\"1Mi\",\"aliyun.com/gpu-mem\":\"1\"}",
     3250, 3 * MI},
    {"\"overhead\":null," MAINS(ASKS("1", "2Mi")), 1000, 2 * MI},
    /* A limit counts only where there is no request. */
    {MAINS("{\"resources\":{\"limits\":{\"cpu\":\"2\",\"memory\":\"4Mi\"},\"requests\":{\"cpu\":"
           "\"500m\"}}}"),
     500, 4 * MI},
    {MAINS("{\"resources\":{\"requests\":{\"cpu\":\"0\"},\"limits\":{\"cpu\":\"2\"}}}"), 0, 0},
    /* Requests of the pod replace those of its containers, for each resource alone. */
    {MAINS(ASKS("1", "2Mi")) ",\"resources\":{\"requests\":{\"cpu\":\"8\"}}", 8000, 2 * MI},
    {"\"resources\":{\"requests\":{\"memory\":\"1Mi\"},\"limits\":{\"memory\":\"9Mi\"}}," MAINS(
         ASKS("1", "2Mi")) ",\"overhead\":{\"memory\":\"1Mi\"}",
     1000, 2 * MI},
    {MAINS(ASKS("1", "2Mi")) ",\"resources\":{\"limits\":{\"cpu\":\"8\",\"memory\":\"8Mi\"}}", 1000,
     2 * MI},
    {MAINS("{}") ",\"resources\":{\"limits\":{\"cpu\":\"8\",\"memory\":\"8Mi\"}}", 8000, 8 * MI},
    {INITS(ASKS("1", "1Mi")) "," MAINS("{}") ",\"resources\":{\"limits\":{\"cpu\":\"8\"}}", 1000,
     MI},
    {MAINS(ASKS("1", "2Mi")) ",\"resources\":null", 1000, 2 * MI},
    {MAINS(ASKS("1", "2Mi")) ",\"resources\":\"many\"", 1000, 2 * MI},
    /* What can't be read counts as 0, and the rest of the pod counts. */
    {MAINS(ASKS("some", "") "," ASKS("1", "2Mi")), 1000, 2 * MI},
    {MAINS(ASKS("-1", "-2Mi") "," ASKS("1", "2Mi")), 1000, 2 * MI},
    {MAINS(ASKS("1e99", "1e-99")), 0, 0},
    {MAINS(
         "{\"resources\":{\"requests\":{\"cpu\":{\"a\":[1]},\"memory\":true}}}," ASKS("1", "1Mi")),
     1000, MI},
    {MAINS("{\"resources\":{\"requests\":{\"cpu\":null,\"memory\":null}}}"), 0, 0},
    /* Numbers as well as strings. */
    {MAINS("{\"resources\":{\"requests\":{\"cpu\":2,\"memory\":1048576}}}"), 2000, MI},
    {MAINS("{\"resources\":{\"requests\":{\"cpu\":0.5}}}"), 500, 0},
    /* Cut at what no node has. */
    {MAINS(ASKS("100E", "100E") "," ASKS("100E", "100E")), HOST_CPU_MAX, HOST_MEMORY_MAX},
    {MAINS(ASKS("100E", "8Ei")) ",\"overhead\":{\"cpu\":\"1\",\"memory\":\"1\"}", HOST_CPU_MAX,
     HOST_MEMORY_MAX},
    /* Of a repeated key the last counts, in this too. */
    {MAINS(ASKS("7", "7Mi")) "," MAINS(ASKS("1", "2Mi")), 1000, 2 * MI},
};

static void read_pod(const char *spec, struct pod_view *ret)
{
    char json[2048];
    struct arena arena;
    struct jread r;
    struct err err = ERR_INIT;
    int n = snprintf(json, sizeof(json), "{\"spec\":{%s}}", spec);
    ck_assert_int_lt(n, (int)sizeof(json));
    arena_init(&arena, LIMIT_OBJECT_BYTES);
    jread_init(&r, (struct str){json, (size_t)n}, &arena);
    kube_read_pod(&r, &arena, ret);
    ck_assert_ok(jread_finish(&r, &err), &err);
    arena_done(&arena);
}

TEST_EACH(a_pod_requests_what_the_scheduler_counts, COUNT_OF(pods))
{
    struct pod_view pod;
    read_pod(pods[_i].spec, &pod);
    ck_assert_msg(pod.host.cpu == pods[_i].cpu && pod.host.memory == pods[_i].memory,
                  "%s: %lld %lld", pods[_i].spec, (long long)pod.host.cpu,
                  (long long)pod.host.memory);
}

/* No number of containers overflows the sum. */
TEST(many_containers_are_cut_as_well)
{
    static char spec[2000];
    struct pod_view pod;
    size_t n = (size_t)snprintf(spec, sizeof(spec), "\"containers\":[{}");
    while (n < sizeof(spec) - 100)
        n += (size_t)snprintf(spec + n, sizeof(spec) - n, ",%s", ASKS("1E", "1E"));
    (void)snprintf(spec + n, sizeof(spec) - n, "]");
    read_pod(spec, &pod);
    ck_assert(pod.host.cpu == HOST_CPU_MAX && pod.host.memory == HOST_MEMORY_MAX);
}

static const struct {
    const char *status;
    const char *cpu; /* NULL: absent */
    const char *memory;
} nodes[] = {
    {"{}", NULL, NULL},
    {"{\"capacity\":{\"cpu\":\"8\",\"memory\":\"1Gi\"}}", NULL, NULL},
    {"{\"allocatable\":{\"cpu\":\"7500m\",\"memory\":\"1Gi\"}}", "7500m", "1Gi"},
    {"{\"allocatable\":{\"memory\":123,\"aliyun.com/gpu-mem\":\"4\"}}", NULL, "123"},
    {"{\"allocatable\":{\"cpu\":[\"8\"],\"memory\":{}}}", NULL, NULL},
    {"{\"allocatable\":{\"cpu\":null,\"memory\":null}}", NULL, NULL},
};

static void check(struct str s, const char *expected)
{
    ck_assert((s.p == NULL) == (expected == NULL));
    if (expected != NULL)
        ck_assert_str_is(s, expected);
}

TEST_EACH(a_node_has_what_is_allocatable, COUNT_OF(nodes))
{
    char json[256];
    struct arena arena;
    struct jread r;
    struct node_view node;
    struct err err = ERR_INIT;
    (void)snprintf(json, sizeof(json), "{\"status\":%s}", nodes[_i].status);
    arena_init(&arena, LIMIT_OBJECT_BYTES);
    jread_init(&r, str_of(json), &arena);
    kube_read_node(&r, &arena, &node);
    ck_assert_ok(jread_finish(&r, &err), &err);
    check(node.cpu, nodes[_i].cpu);
    check(node.memory, nodes[_i].memory);
    arena_done(&arena);
}
