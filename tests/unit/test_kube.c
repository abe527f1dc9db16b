/* Decoders of Kubernetes' Pod, Node and ConfigMap, and the Binding that cardpack writes. */
#include "objects/kube.h"

#include "core/request/request.h"
#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

struct reading {
    struct arena arena;
    struct jread r;
    struct err err;
};

static void begin(struct reading *x, const char *json)
{
    arena_init(&x->arena, LIMIT_OBJECT_BYTES);
    x->err = ERR_INIT;
    jread_init(&x->r, str_of(json), &x->arena);
}

static void end(struct reading *x)
{
    arena_done(&x->arena);
}

#define ABSENT "(absent)"

static void check_text(struct str s, const char *expected)
{
    ck_assert_str_is(s.p == NULL ? STR(ABSENT) : s, expected);
}

/* As kubectl get -o json prints it, with fields that cardpack does not know. */
static const char whole_pod[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"annotations\":{"
    "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":"
    "\"1700000000000000001\",\"ALIYUN_COM_GPU_MEM_DEV\":\"16\",\"ALIYUN_COM_GPU_MEM_IDX\":\"1\","
    "\"ALIYUN_COM_GPU_MEM_POD\":\"8\",\"note\":\"\\u0041\\u0000\\n\"},\"creationTimestamp\":null,"
    "\"deletionGracePeriodSeconds\":30,\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
    "\"managedFields\":[{\"fieldsV1\":{\"f:metadata\":{\".\":{}}}}],\"name\":\"train-0\","
    "\"namespace\":\"team-a\",\"uid\":\"4f1d5926\"},\"spec\":{\"containers\":[{\"name\":\"main\","
    "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\",\"cpu\":\"2\"},\"requests\":{"
    "\"aliyun.com/gpu-mem\":\"4\"}}},{\"name\":\"plain\",\"resources\":{}},{\"name\":\"number\","
    "\"resources\":{\"requests\":{\"aliyun.com/gpu-mem\":2}}}],\"initContainers\":[{\"name\":"
    "\"copy\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"9\"}}},{\"name\":\"proxy\","
    "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}},\"restartPolicy\":\"Always\"}],"
    "\"nodeName\":\"node-1\",\"overhead\":{\"cpu\":\"1\",\"aliyun.com/gpu-mem\":\"3\"}},"
    "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"message\":null,\"status\":\"True\"},{"
    "\"lastProbeTime\":null,"
    "\"lastTransitionTime\":\"2026-11-22T05:40:00Z\",\"message\":\"0/2 nodes: \\\"x\\\"\","
    "\"reason\":\"Unschedulable\",\"status\":\"False\",\"type\":\"PodScheduled\"},"
    "{\"lastTransitionTime\":\"soon\",\"status\":\"True\",\"type\":\"Initialized\"}],"
    "\"phase\":\"Running\",\"startTime\":\"2026-11-22T05:40:01Z\"}}";

TEST(reads_a_whole_pod)
{
    struct reading x;
    struct pod_view p;
    begin(&x, whole_pod);
    kube_read_pod(&x.r, &x.arena, &p);
    ck_assert_ok(jread_finish(&x.r, &x.err), &x.err);
    check_text(p.uid, "4f1d5926");
    check_text(p.namespace, "team-a");
    check_text(p.name, "train-0");
    check_text(p.node, "node-1");
    check_text(p.phase, "Running");
    check_text(p.mem_overhead, "3");
    ck_assert(p.deleting && p.initialized && p.ready && p.admitted);
    check_text(p.scheduled.status, "False");
    check_text(p.scheduled.reason, "Unschedulable");
    check_text(p.scheduled.message, "0/2 nodes: \"x\"");
    ck_assert_uint_eq(p.scheduled.since_s, 1795326000);
    check_text(p.idx, "1");
    check_text(p.assigned, "false");
    check_text(p.assume_time, "1700000000000000001");
    ck_assert_uint_eq(p.annotation_bytes, 158);
    ck_assert(pod_view_bound(&p) && !pod_view_terminal(&p));

    static const struct {
        const char *name;
        const char *mem;
        enum container_kind kind;
    } expected[] = {
        {"copy", "9", CONTAINER_INIT},
        {"proxy", "1", CONTAINER_SIDECAR},
        {"main", "4", CONTAINER_MAIN},
        {"number", "2", CONTAINER_MAIN},
    };

    ck_assert_uint_eq(p.n_containers, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        check_text(p.containers[i].name, expected[i].name);
        check_text(p.containers[i].mem, expected[i].mem);
        ck_assert_int_eq(p.containers[i].kind, expected[i].kind);
    }
    end(&x);
}

/* The keys and values as the API server counts them, in the middle of a pod. */
static const struct {
    const char *json;
    size_t bytes;
} annotations[] = {
    {"null", 0},
    {"{}", 0},
    {"{\"a\":\"\"}", 1},
    {" { \"a\" : \"b c\" , \"d\" : null } ", 5},
    {"{\"ALIYUN_COM_GPU_MEM_IDX\":\"10\",\"cardpack.io/card-model\":\"T4\"}", 48},
    {"{\"a\\u0062\":\"\\\"{}\\\\\\/\\b\\f\\n\\r\\t\"}", 12},
    {"{\"k\":\"\\u003c\\u00e9\\u20ac\\ud83d\\ude00\"}", 11},
    {"{\"k\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}", 10},
    /* No value of the API server, and skipped: not fewer bytes than there are. */
    {"{\"k\":\"\\ud83d\\x\xff\"}", 10},
};

TEST_EACH(counts_the_annotations, COUNT_OF(annotations))
{
    struct reading x;
    struct pod_view p;
    char json[512];
    (void)snprintf(json, sizeof(json),
                   "{\"metadata\":{\"name\":\"p\",\"annotations\":%s,\"uid\":\"u\"}}",
                   annotations[_i].json);
    begin(&x, json);
    kube_read_pod(&x.r, &x.arena, &p);
    ck_assert_ok(jread_finish(&x.r, &x.err), &x.err);
    check_text(p.uid, "u");
    ck_assert_uint_eq(p.annotation_bytes, annotations[_i].bytes);
    end(&x);
}

static const struct {
    const char *json;
} bare_pods[] = {
    {"null"},
    {"{}"},
    {"{\"metadata\":null,\"spec\":null,\"status\":null}"},
    {"{\"metadata\":{\"name\":null,\"uid\":null,\"namespace\":null,\"annotations\":null,"
     "\"deletionTimestamp\":null},\"spec\":{\"nodeName\":null,\"containers\":null,"
     "\"initContainers\":null,\"overhead\":null},\"status\":{\"phase\":null,\"startTime\":null}}"},
    {"{\"spec\":{\"containers\":[null,{},{\"name\":\"c\",\"resources\":null},{\"resources\":{"
     "\"limits\":null,\"requests\":null}},{\"resources\":{\"limits\":{\"aliyun.com/"
     "gpu-mem\":null}}}"
     "],\"initContainers\":[]}}"},
    /* Below the arguments' own keys case matters, as in every stored object. */
    {"{\"Metadata\":{\"name\":\"x\"},\"spec\":{\"nodename\":\"n\",\"containers\":[{\"resources\":{"
     "\"limits\":{\"Aliyun.com/gpu-mem\":\"8\"}}}]}}"},
};

TEST_EACH(reads_what_is_not_there_as_absent, COUNT_OF(bare_pods))
{
    struct reading x;
    struct pod_view p;
    begin(&x, bare_pods[_i].json);
    kube_read_pod(&x.r, &x.arena, &p);
    ck_assert_ok(jread_finish(&x.r, &x.err), &x.err);
    check_text(p.uid, ABSENT);
    check_text(p.name, ABSENT);
    check_text(p.node, ABSENT);
    check_text(p.phase, ABSENT);
    check_text(p.idx, ABSENT);
    ck_assert(!p.deleting && !pod_view_bound(&p) && !pod_view_terminal(&p));
    ck_assert_uint_eq(p.n_containers, 0);
    end(&x);
}

/* What each list of containers asks for: duplicate keys, unusual order. */
static const struct {
    const char *spec;
    int64_t mem;
} specs[] = {
    {"{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}],"
     "\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{"
     "\"aliyun.com/gpu-mem\":\"1\"}}},{\"resources\":{\"limits\":{\"aliyun.com/"
     "gpu-mem\":\"9\"}}}]}",
     10},
    /* Of duplicate keys the last one counts, as in Go. */
    {"{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}],"
     "\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"3\"}}}]}",
     3},
    {"{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}],"
     "\"containers\":null}",
     0},
    {"{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\","
     "\"aliyun.com/gpu-mem\":\"2\"}}}]}",
     2},
    {"{\"initContainers\":[{\"restartPolicy\":\"Always\",\"restartPolicy\":\"OnFailure\","
     "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}],\"containers\":[{\"resources\":{"
     "\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}}]}",
     2},
    /* A main container with a restartPolicy is no sidecar. */
    {"{\"containers\":[{\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{"
     "\"aliyun.com/gpu-mem\":\"2\"}}}],\"initContainers\":[{\"resources\":{\"limits\":{"
     "\"aliyun.com/gpu-mem\":\"2\"}}}]}",
     2},
    {"{\"containers\":[{\"resources\":{\"requests\":{\"aliyun.com/gpu-mem\":\"5\"},\"limits\":{"
     "\"cpu\":\"1\"}}}]}",
     5},
    {"{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":1e1}}}]}", 10},
    {"{\"ephemeralContainers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}]}", 0},
    {"{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}", 0},
};

TEST_EACH(reads_what_a_spec_asks_for, COUNT_OF(specs))
{
    struct reading x;
    struct pod_view p;
    struct request request;
    struct buf json;
    buf_init(&json, 4096);
    buf_printf(&json, "{\"spec\":%s}", specs[_i].spec);
    begin(&x, buf_cstr(&json));
    kube_read_pod(&x.r, &x.arena, &p);
    ck_assert_ok(jread_finish(&x.r, &x.err), &x.err);
    ck_assert_ok(request_read(&p, &request, &x.err), &x.err);
    ck_assert_int_eq(request.mem, specs[_i].mem);
    end(&x);
    buf_done(&json);
}

static const struct {
    const char *json;
    const char *error;
} wrong_pods[] = {
    {"[]", "expected an object, got a list at offset 0"},
    {"{\"metadata\":{\"name\":7}}", "metadata.name: expected a string, got a number at offset 20"},
    {"{\"spec\":{\"containers\":{}}}",
     "spec.containers: expected a list, got an object at offset 22"},
    {"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":[]}}}]}}",
     "spec.containers[0].resources.limits[aliyun.com/gpu-mem]: expected a string or a number, got "
     "a "
     "list at offset 68"},
    {"{\"status\":{\"phase\":true}}",
     "status.phase: expected a string, got a boolean at offset 19"},
};

TEST_EACH(names_the_field_that_is_wrong, COUNT_OF(wrong_pods))
{
    struct reading x;
    struct pod_view p;
    begin(&x, wrong_pods[_i].json);
    kube_read_pod(&x.r, &x.arena, &p);
    ck_assert_int_eq(jread_finish(&x.r, &x.err), ERR_SYNTAX);
    ck_assert_str_eq(x.err.text, wrong_pods[_i].error);
    end(&x);
}

static const struct {
    const char *json;
    const char *name;
    const char *mem;
    const char *count;
    const char *allocatable;
} nodes[] = {
    {"{\"metadata\":{\"name\":\"n1\",\"labels\":{\"name\":\"x\"}},\"status\":{\"capacity\":{"
     "\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":\"2\",\"cpu\":\"8\"},\"allocatable\":{"
     "\"aliyun.com/gpu-mem\":\"16\",\"aliyun.com/"
     "gpu-count\":\"9\"},\"images\":[{\"names\":[\"i\"]}]}}",
     "n1", "32", "2", "16"},
    {"{\"metadata\":{\"name\":\"n1\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":32,"
     "\"aliyun.com/gpu-count\":2}}}",
     "n1", "32", "2", ABSENT},
    {"{\"metadata\":{\"name\":\"n1\"},\"status\":{}}", "n1", ABSENT, ABSENT, ABSENT},
    {"{\"metadata\":{\"name\":\"n1\"},\"status\":{\"capacity\":null,\"allocatable\":null}}", "n1",
     ABSENT, ABSENT, ABSENT},
    {"{\"metadata\":{\"name\":\"\\u006e1\"}}", "n1", ABSENT, ABSENT, ABSENT},
    {"null", ABSENT, ABSENT, ABSENT, ABSENT},
    {"{\"name\":\"n1\",\"status\":null}", ABSENT, ABSENT, ABSENT, ABSENT},
};

TEST_EACH(reads_nodes, COUNT_OF(nodes))
{
    struct reading x;
    struct node_view n;
    begin(&x, nodes[_i].json);
    kube_read_node(&x.r, &x.arena, &n);
    ck_assert_ok(jread_finish(&x.r, &x.err), &x.err);
    check_text(n.name, nodes[_i].name);
    check_text(n.mem, nodes[_i].mem);
    check_text(n.count, nodes[_i].count);
    check_text(n.mem_allocatable, nodes[_i].allocatable);
    end(&x);
}

static const struct {
    const char *json;
    const char *namespace;
    const char *name;
    const char *gpus;
    const char *quota;
} configmaps[] = {
    {"{\"metadata\":{\"name\":\"unhealthy-gpu-n1\",\"namespace\":\"kube-system\"},\"data\":{"
     "\"gpus\":\"0,2\",\"quota.yml\":\"x\"}}",
     "kube-system", "unhealthy-gpu-n1", "0,2", ABSENT},
    {"{\"metadata\":{\"name\":\"x\"},\"data\":null}", ABSENT, "x", ABSENT, ABSENT},
    {"{\"data\":{\"gpus\":\"\"}}", ABSENT, ABSENT, "", ABSENT},
    {"{\"data\":{\"quota.yaml\":\"namespaces:\\n  a: {}\\n\",\"gpus\":\"1\"}}", ABSENT, ABSENT, "1",
     "namespaces:\n  a: {}\n"},
    {"{\"binaryData\":{\"gpus\":\"MA==\",\"quota.yaml\":\"e30=\"}}", ABSENT, ABSENT, ABSENT,
     ABSENT},
};

TEST_EACH(reads_configmaps, COUNT_OF(configmaps))
{
    struct reading x;
    struct configmap_view m;
    begin(&x, configmaps[_i].json);
    kube_read_configmap(&x.r, &m);
    ck_assert_ok(jread_finish(&x.r, &x.err), &x.err);
    check_text(m.namespace, configmaps[_i].namespace);
    check_text(m.name, configmaps[_i].name);
    check_text(m.gpus, configmaps[_i].gpus);
    check_text(m.quota, configmaps[_i].quota);
    end(&x);
}

TEST(writes_bindings)
{
    struct buf out;
    struct jwrite w;
    struct binding b = {.namespace = STR("team-a"),
                        .name = STR("train-0"),
                        .uid = STR("4f1d5926"),
                        .version = 42,
                        .node = STR("node-1"),
                        .mem = 8138,
                        .idx = STR("3"),
                        .vacated = true,
                        .card_total = INT64_MAX,
                        .assume_ns = UINT64_MAX};
    buf_init(&out, 4096);
    jwrite_init(&w, &out);
    kube_write_binding(&w, &b);
    ck_assert_str_is(
        buf_str(&out),
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"train-0\","
        "\"namespace\":\"team-a\",\"uid\":\"4f1d5926\",\"resourceVersion\":\"42\",\"annotations\":{"
        "\"ALIYUN_COM_GPU_MEM_IDX\":\"3\",\"ALIYUN_COM_GPU_MEM_DEV\":\"9223372036854775807\","
        "\"ALIYUN_COM_GPU_MEM_POD\":\"8138\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\","
        "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"18446744073709551615\","
        "\"cardpack.io/vacated-cards\":\"\"}},\"target\":{\"kind\":"
        "\"Node\",\"name\":\"node-1\"}}");
    buf_clear(&out, 0);
    jwrite_init(&w, &out);
    b.version = 0;
    b.idx = STR_NULL; /* the pod asks for no card: the plugin must find nothing */
    kube_write_binding(&w, &b);
    ck_assert_str_is(
        buf_str(&out),
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"train-0\","
        "\"namespace\":\"team-a\",\"uid\":\"4f1d5926\"},\"target\":{\"kind\":\"Node\","
        "\"name\":\"node-1\"}}");
    buf_done(&out);
}

/* The API server merges the annotations into the pod, and the watch brings them back. */
TEST(reads_back_the_annotations_that_it_writes)
{
    struct reading x;
    struct pod_view p;
    struct buf out;
    struct jwrite w;
    struct binding b = {
        .name = STR("p"), .mem = 8, .idx = STR("1"), .card_total = 16, .assume_ns = 5};
    b.namespace = STR("ns");
    b.uid = STR("\"\\u\n\xff");
    b.node = STR("n");
    buf_init(&out, 4096);
    jwrite_init(&w, &out);
    kube_write_binding(&w, &b);
    begin(&x, buf_cstr(&out));
    kube_read_pod(&x.r, &x.arena, &p);
    ck_assert_ok(jread_finish(&x.r, &x.err), &x.err);
    check_text(p.uid, "\"\\u\n\xef\xbf\xbd");
    check_text(p.idx, "1");
    check_text(p.assigned, "false");
    check_text(p.assume_time, "5");
    end(&x);
    buf_done(&out);
}

static enum errc read_pod(void *ctx)
{
    struct reading x;
    struct pod_view p;
    const struct str *json = ctx;
    begin(&x, json->p);
    kube_read_pod(&x.r, &x.arena, &p);
    enum errc code = jread_finish(&x.r, &x.err);
    end(&x);
    return code == ERR_LIMIT ? ERR_NOMEM : code; /* the reader can't tell the two apart */
}

TEST(survives_a_lack_of_memory)
{
    struct str json = str_of(whole_pod);
    ck_assert_uint_ge(fail_alloc_each(read_pod, &json), 1);
}
