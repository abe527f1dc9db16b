/* What pods and nodes say of cards in labels, annotations and conditions; and what a Binding
 * says. */
#include "base/limit.h"
#include "objects/kube.h"
#include "unit.h"

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena, LIMIT_OBJECT_BYTES);
}

static void tear_down(void)
{
    arena_done(&arena);
}

static struct pod_view read_pod(const char *json)
{
    struct jread r;
    struct err e = ERR_INIT;
    struct pod_view p;
    jread_init(&r, str_of(json), &arena);
    kube_read_pod(&r, &arena, &p);
    ck_assert_ok(jread_finish(&r, &e), &e);
    return p;
}

static struct node_view read_node(const char *json)
{
    struct jread r;
    struct err e = ERR_INIT;
    struct node_view n;
    jread_init(&r, str_of(json), &arena);
    kube_read_node(&r, &arena, &n);
    ck_assert_ok(jread_finish(&r, &e), &e);
    return n;
}

TEST(names_an_unknown_annotation)
{
    struct pod_view p = read_pod(
        "{\"metadata\":{\"annotations\":{\"cardpack.io/card-model\":\"A\",\"example.com/policy\":"
        "\"x\",\"cardpack.io/card-modell\":\"B\",\"cardpack.io/polcy\":\"spread\"}}}");
    ck_assert_str_is(p.card_model, "A");
    ck_assert_str_is(p.unknown, "cardpack.io/card-modell");
    p = read_pod("{\"metadata\":{\"annotations\":{\"cardpack.io/policy\":\"spread\"}}}");
    ck_assert_ptr_null(p.unknown.p);
}

/* Annotations of nodes are unknown on a pod, and near to none of a pod's. */
static const struct {
    const char *key;
    const char *nearest;
} typos[] = {
    {"cardpack.io/card-modell", "cardpack.io/card-model"},
    {"cardpack.io/model", NULL},
    {"cardpack.io/card-affinity-grp", "cardpack.io/card-affinity-group"},
    {"cardpack.io/card-antiaffinity-group", "cardpack.io/card-anti-affinity-group"},
    {"cardpack.io/Policy", "cardpack.io/policy"},
    {"cardpack.io/gpu-memory-percent", "cardpack.io/gpu-mem-percent"},
    {"cardpack.io/exclusive-cards", NULL},
    {"cardpack.io/require-isolaton", "cardpack.io/require-isolation"},
    {"cardpack.io/", NULL},
    {"cardpack.io/card-model-card-model-card-model-card-model-card-model-card-model", NULL},
};

TEST_EACH(finds_the_annotation_that_was_meant, COUNT_OF(typos))
{
    struct str nearest = kube_near_annotation(str_of(typos[_i].key));
    if (typos[_i].nearest == NULL)
        ck_assert_ptr_null(nearest.p);
    else
        ck_assert_str_is(nearest, typos[_i].nearest);
}

TEST(reads_a_pods_wishes)
{
    struct pod_view p = read_pod(
        "{\"metadata\":{\"annotations\":{\"cardpack.io/gpu-mem-percent\":\"50\","
        "\"cardpack.io/card-model\":\"A10*\",\"cardpack.io/card-uuid\":\"!G\","
        "\"cardpack.io/card-affinity-group\":\"g\",\"cardpack.io/card-anti-affinity-group\":\"h\","
        "\"cardpack.io/policy\":\"spread\",\"cardpack.io/node-policy\":\"binpack\","
        "\"cardpack.io/card-policy\":\"spread\",\"cardpack.io/require-isolation\":\"true\","
        "\"scheduler.framework.gpushare.allocation\":"
        "\"{\\\"1\\\":{\\\"3\\\":8}}\"},\"labels\":{\"app\":\"x\",\"aliyun.com/gpu-count\":\"2\","
        "\"ack.gpushare.placement\":\"require-whole-device\"}},\"spec\":{\"priority\":-7,"
        "\"preemptionPolicy\":\"Never\",\"containers\":[{\"name\":\"a\"},{\"name\":\"b\","
        "\"resources\":{\"limits\":{\"aliyun.com/gpu-core.percentage\":\"30\","
        "\"nvidia.com/gpu\":1}}}],\"initContainers\":[{\"name\":\"i\"},{\"name\":\"j\","
        "\"resources\":{\"requests\":{\"aliyun.com/gpu-mem\":1}}}]},\"status\":{"
        "\"nominatedNodeName\":\"n\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"
        "{\"status\":\"True\",\"type\":\"Initialized\"},"
        "{\"type\":\"PodScheduled\",\"status\":\"False\"}]}}");
    ck_assert_str_is(p.percent, "50");
    ck_assert_str_is(p.card_model, "A10*");
    ck_assert_str_is(p.card_uuid, "!G");
    ck_assert_str_is(p.affinity, "g");
    ck_assert_str_is(p.anti_affinity, "h");
    ck_assert_str_is(p.policy, "spread");
    ck_assert_str_is(p.node_policy, "binpack");
    ck_assert_str_is(p.card_policy, "spread");
    ck_assert_str_is(p.require_isolation, "true");
    ck_assert_str_is(p.count_label, "2");
    ck_assert_str_is(p.whole_label, "require-whole-device");
    ck_assert_uint_eq(p.n_labels, 3);
    ck_assert_str_is(p.labels[0].key, "app");
    ck_assert_str_is(p.labels[0].value, "x");
    ck_assert(p.has_allocation && p.n_grants == 1 && p.grants[0].container == 1);
    ck_assert(p.grants[0].card == 3 && p.grants[0].mem == 8);
    ck_assert_int_eq(p.priority, -7);
    ck_assert(p.never_preempts && p.initialized);
    ck_assert_str_is(p.nominated, "n");
    ck_assert_uint_eq(p.n_mains, 2);
    ck_assert_uint_eq(p.n_containers, 2);
    ck_assert(p.containers[0].index == 1 && p.containers[0].kind == CONTAINER_INIT);
    ck_assert_uint_eq(p.containers[1].index, 1);
    ck_assert_str_is(p.containers[1].cores, "30");
    ck_assert_str_is(p.containers[1].exclusive, "1");
    ck_assert(p.containers[1].mem.p == NULL);
}

static const struct {
    const char *json;
    int32_t priority;
    bool never;
    bool initialized;
    bool allocation;
} odd[] = {
    {"{}", 0, false, false, false},
    {"{\"spec\":{\"priority\":null,\"preemptionPolicy\":null},\"status\":{\"conditions\":null}}", 0,
     false, false, false},
    {"{\"spec\":{\"priority\":2147483648,\"preemptionPolicy\":\"PreemptLowerPriority\"}}",
     INT32_MAX, false, false, false},
    {"{\"spec\":{\"priority\":-9223372036854775808}}", INT32_MIN, false, false, false},
    {"{\"status\":{\"conditions\":[{\"type\":\"Initialized\",\"status\":\"False\"}]}}", 0, false,
     false, false},
    {"{\"status\":{\"conditions\":[{\"type\":\"Initialized\"}]}}", 0, false, false, false},
    {"{\"status\":{\"conditions\":[{\"type\":\"initialized\",\"status\":\"True\"}]}}", 0, false,
     false, false},
    {"{\"metadata\":{\"annotations\":{\"scheduler.framework.gpushare.allocation\":\"{\"}}}", 0,
     false, false, false},
    {"{\"metadata\":{\"annotations\":{\"scheduler.framework.gpushare.allocation\":null}}}", 0,
     false, false, false},
    {"{\"metadata\":{\"annotations\":{\"scheduler.framework.gpushare.allocation\":\"{}\"}}}", 0,
     false, false, true},
};

TEST_EACH(reads_what_is_odd, COUNT_OF(odd))
{
    struct pod_view p = read_pod(odd[_i].json);
    ck_assert_int_eq(p.priority, odd[_i].priority);
    ck_assert(p.never_preempts == odd[_i].never && p.initialized == odd[_i].initialized);
    ck_assert(p.has_allocation == odd[_i].allocation);
}

TEST(reads_what_a_node_says_of_its_cards)
{
    struct node_view n = read_node(
        "{\"metadata\":{\"name\":\"n\",\"labels\":{\"aliyun.accelerator/nvidia_name\":\"T4\","
        "\"ack.node.gpu.placement\":\"spread\",\"ack.node.gpu.max-pod\":\"3\","
        "\"cardpack.io/pool\":\"blue\",\"cardpack.io/"
        "isolation\":\"mps\"},\"annotations\":{\"cardpack.io/cordoned-cards\":\"0\","
        "\"cardpack.io/exclusive-cards\":\"1\",\"cardpack.io/cards\":"
        "\"[{\\\"index\\\":2,\\\"memory\\\":8}]\"}},\"status\":{\"capacity\":{"
        "\"nvidia.com/gpu\":\"4\"}}}");
    ck_assert_str_is(n.model, "T4");
    ck_assert_str_is(n.placement, "spread");
    ck_assert_str_is(n.max_pods, "3");
    ck_assert_str_is(n.pool, "blue");
    ck_assert_str_is(n.isolation, "mps");
    ck_assert_str_is(n.cordoned, "0");
    ck_assert_str_is(n.exclusive_cards, "1");
    ck_assert_str_is(n.exclusive, "4");
    ck_assert(n.has_cards && n.n_cards == 1 && n.cards[0].index == 2 && n.cards[0].mem == 8);
    n = read_node("{\"metadata\":{\"labels\":{\"nvidia.com/gpu.product\":\"A10\","
                  "\"aliyun.accelerator/nvidia_name\":\"T4\"}}}");
    ck_assert_str_is(n.model, "A10"); /* NVIDIA's own label, in either order */
    n = read_node("{\"metadata\":{\"labels\":{\"aliyun.accelerator/nvidia_name\":\"T4\","
                  "\"nvidia.com/gpu.product\":\"A10\"}}}");
    ck_assert_str_is(n.model, "A10");
    n = read_node("{\"metadata\":{\"annotations\":{\"cardpack.io/cards\":\"[\"}}}");
    ck_assert(n.has_cards && n.n_cards == 0 && n.cards_fault != NULL);
}

static const struct {
    struct binding binding;
    const char *annotations;
} bindings[] = {
    {{.mem = 8, .card_total = 16, .assume_ns = 7}, ""},
    {{.mem = 8, .card_total = 16, .assume_ns = 7, .idx = {"1", 1}},
     ",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"1\",\"ALIYUN_COM_GPU_MEM_DEV\":\"16\","
     "\"ALIYUN_COM_GPU_MEM_POD\":\"8\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\","
     "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"7\"}"},
    {{.mem = 8,
      .card_total = 16,
      .assume_ns = 7,
      .idx = {"0,2", 3},
      .allocation = {"{\"0\":{\"0\":4,\"2\":4}}", 19},
      .cores = {"{\"0\":{\"0\":5,\"2\":5}}", 19}},
     ",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0,2\",\"ALIYUN_COM_GPU_MEM_DEV\":\"16\","
     "\"ALIYUN_COM_GPU_MEM_POD\":\"8\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\","
     "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"7\",\"scheduler.framework.gpushare.allocation\":"
     "\"{\\\"0\\\":{\\\"0\\\":4,\\\"2\\\":4}}\",\"gpushare.alibabacloud.com/core-percentage\":"
     "\"{\\\"0\\\":{\\\"0\\\":5,\\\"2\\\":5}}\"}"},
};

TEST_EACH(a_binding_tells_which_cards, COUNT_OF(bindings))
{
    char bytes[1024];
    char expected[1024];
    struct buf out = BUF_ON(bytes);
    struct buf want = BUF_ON(expected);
    struct jwrite w;
    struct binding b = bindings[_i].binding;
    b.namespace = STR("ns");
    b.name = STR("p");
    b.uid = STR("u");
    b.node = STR("n");
    jwrite_init(&w, &out);
    kube_write_binding(&w, &b);
    buf_printf(&want,
               "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p\","
               "\"namespace\":\"ns\",\"uid\":\"u\"%s},\"target\":{\"kind\":\"Node\","
               "\"name\":\"n\"}}",
               bindings[_i].annotations);
    ck_assert(str_eq(buf_str(&out), buf_str(&want)));
}

int main(void)
{
    TCase *tc = unit_case("kube_wishes");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
