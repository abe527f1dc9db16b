/* What a bound pod takes of a node, whoever has bound it: by resources of another device plugin
 * beside its own, or by other names of NVIDIA's. */
#include "core/dialect/card_resources.h"
#include "dialect_rig.h"

#define ALL_BUT_HAMI (DIALECTS_ALL & ~DIALECT_BIT(DIALECT_HAMI))
#define WITH(d)      (DIALECT_BIT(DIALECT_GPUSHARE) | DIALECT_BIT(d))
#define GPU          "\"nvidia.com/gpu\":\"2\""
#define SHARED_GPU   "\"nvidia.com/gpu.shared\":\"1\""
#define SLICE        "\"nvidia.com/mig-1g.5gb\":\"1\""
#define SLICES       SLICE ",\"nvidia.com/mig-2g.10gb.shared\":2"
#define REQUESTS(of) "\"containers\":[{\"name\":\"c0\",\"resources\":{\"requests\":{" of "}}}]"

/* A pod with resources of NVIDIA's plugin on the node, and whether another one may share cards. */
static const struct {
    unsigned dialects;
    enum dialect node;
    const char *containers;
    int64_t exclusive;
    enum verdict verdict;
} beside[] = {
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE(GPU), 2, VERDICT_EXCLUSIVE},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE(SHARED_GPU), 1, VERDICT_EXCLUSIVE},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE(SLICES), 3, VERDICT_EXCLUSIVE},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, REQUESTS(SHARED_GPU), 1, VERDICT_EXCLUSIVE},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE(GPU "," SHARED_GPU), 3, VERDICT_EXCLUSIVE},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, INITS(C(SLICES)) "," MAINS(D(GPU)), 3,
     VERDICT_EXCLUSIVE},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, INITS(SIDECAR(SLICE)) "," MAINS(D(SHARED_GPU)), 2,
     VERDICT_EXCLUSIVE},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE("\"nvidia.com/gpu.shared\":\"0\""), 0,
     VERDICT_FITS},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE("\"nvidia.com/hostdev\":\"1\""), 0,
     VERDICT_FITS},
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE("\"nvidia.com/gpumem\":\"1\""), 0, VERDICT_FITS},
    {WITH(DIALECT_HAMI), DIALECT_HAMI, ONE(SHARED_GPU), 1, VERDICT_EXCLUSIVE},
    /* Beside the resources of the node's own plugin. */
    {WITH(DIALECT_GPUSHARE), DIALECT_GPUSHARE, ONE("\"aliyun.com/gpu-mem\":\"1\"," GPU), 2,
     VERDICT_EXCLUSIVE},
    {ALL_BUT_HAMI, DIALECT_VGPU, ONE(VGPU("1", "1") "," GPU), 2, VERDICT_EXCLUSIVE},
    {ALL_BUT_HAMI, DIALECT_VGPU, TWO(VGPU("1", "1"), SHARED_GPU), 1, VERDICT_EXCLUSIVE},
    {ALL_BUT_HAMI, DIALECT_VGPU, INITS(C(GPU)) "," MAINS(D(VGPU("1", "1"))), 2, VERDICT_EXCLUSIVE},
    {DIALECTS_ALL, DIALECT_HAMI, ONE(HAMI("1", "1") "," SLICE), 1, VERDICT_EXCLUSIVE},
    {ALL_BUT_HAMI, DIALECT_ELASTIC, ONE(ELASTIC("1", "1") "," GPU), 2, VERDICT_EXCLUSIVE},
};

TEST_EACH(resources_of_nvidias_plugin_count, COUNT_OF(beside))
{
    struct rig r;
    struct placement there;
    dialects_use(beside[_i].dialects);
    rig_init(&r);
    set_node(&r, "n", beside[_i].node);
    ck_assert_int_eq(fit_of(&r, plain[beside[_i].node], "n", &there), VERDICT_FITS);
    set_pod(&r, "p", beside[_i].containers, "");
    ck_assert_int_eq(node_of(&r, "n")->exclusive, beside[_i].exclusive);
    ck_assert_int_eq(fit_of(&r, plain[beside[_i].node], "n", &there), beside[_i].verdict);
    pod_gone(&r, "p");
    ck_assert_int_eq(fit_of(&r, plain[beside[_i].node], "n", &there), VERDICT_FITS);
    rig_done(&r);
}

/* A plugin's own names are known by the setting card-resources. */
static const struct {
    const char *setting;
    const char *containers;
    enum verdict verdict;
} named[] = {
    {"", ONE("\"example.com/gpu\":\"1\""), VERDICT_FITS},
    {"example.com/gpu", ONE("\"example.com/gpu\":\"1\""), VERDICT_EXCLUSIVE},
    {"nvidia.com/a100, example.com/gpu", ONE("\"example.com/gpu\":\"1\""), VERDICT_EXCLUSIVE},
    {"example.com/gpu*", INITS(C("\"example.com/gpu\":\"1\"")) "," MAINS(D("")), VERDICT_EXCLUSIVE},
    {"example.com/*", ONE("\"example.com/gpu\":\"1\""), VERDICT_EXCLUSIVE},
    {"example.com/gpu.*", ONE("\"example.com/gpu\":\"1\""), VERDICT_FITS},
    {"example.com/gp", ONE("\"example.com/gpu\":\"1\""), VERDICT_FITS},
    {"example.com/gpu", ONE(SHARED_GPU), VERDICT_EXCLUSIVE},
};

TEST_EACH(names_of_the_setting_count, COUNT_OF(named))
{
    struct rig r;
    struct placement there;
    struct str bad;
    ck_assert(card_resources_check(str_of(named[_i].setting), &bad));
    card_resources_use(str_of(named[_i].setting));
    dialects_use(WITH(DIALECT_GPUSHARE));
    rig_init(&r);
    set_node_as(&r, "n", DIALECT_GPUSHARE,
                "\"aliyun.com/gpu-mem\":\"16\",\"aliyun.com/gpu-count\":\"2\","
                "\"nvidia.com/gpu.shared\":\"1\",\"example.com/gpu\":\"0\"");
    set_pod(&r, "p", named[_i].containers, "");
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_GPUSHARE], "n", &there), named[_i].verdict);
    rig_done(&r);
}

/* The reverse: such a pod gets no node with pods that share cards, and none asks for both. */
TEST_EACH(they_get_no_shared_node, 3)
{
    static const char *const asks[] = {ONE(GPU), ONE(SHARED_GPU), INITS(C(SLICE)) "," MAINS(D(""))};

    static const enum dialect nodes[] = {DIALECT_GPUSHARE, DIALECT_VGPU};
    struct rig r;
    struct placement there;
    dialects_use(ALL_BUT_HAMI);
    rig_init(&r);
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        set_node(&r, "n", nodes[i]);
        ck_assert_int_eq(fit_of(&r, asks[_i], "n", &there), VERDICT_FITS);
        set_pod(&r, "p", plain[nodes[i]], "");
        ck_assert_int_eq(fit_of(&r, asks[_i], "n", &there), VERDICT_SHARED);
        pod_gone(&r, "p");
    }
    ck_assert_int_eq(fit_of(&r, ONE(VGPU("1", "1") "," GPU), "n", &there), VERDICT_SHARED);
    rig_done(&r);
}

/* The kubelet gives a pod nothing of a resource that the node does not have. What it has with 0 may
 * be of a plugin that is gone, whose pods still run. */
static const struct {
    enum dialect node;
    const char *capacity; /* beside its own */
    const char *containers;
    const char *annotations;
    const char *asked;
    enum verdict verdict;
} absent[] = {
    {DIALECT_GPUSHARE, "", ONE(GPU), "", NULL, VERDICT_FITS},
    {DIALECT_GPUSHARE, "\"nvidia.com/gpu\":\"0\",", ONE(GPU), "", NULL, VERDICT_EXCLUSIVE},
    {DIALECT_GPUSHARE, "\"nvidia.com/gpu.shared\":\"0\",", ONE(GPU), "", NULL, VERDICT_FITS},
    {DIALECT_GPUSHARE, "\"nvidia.com/gpu\":\"0\",", ONE(SLICES), "", NULL, VERDICT_FITS},
    {DIALECT_GPUSHARE, SLICE ",", ONE(SLICES), "", NULL, VERDICT_EXCLUSIVE},
    {DIALECT_GPUSHARE, "", ONE(GPU "," SLICES), "", NULL, VERDICT_FITS},
    {DIALECT_GPUSHARE, "", ONE("\"aliyun.com/gpu-mem\":\"1\"," GPU), "", NULL, VERDICT_FITS},
    {DIALECT_ELASTIC, "", ONE(SHARED_GPU), "", NULL, VERDICT_FITS},
    /* Shared cards of another plugin. */
    {DIALECT_GPUSHARE, "", ONE(TENCENT("20", "1")), "", NULL, VERDICT_FITS},
    {DIALECT_GPUSHARE, "", ONE(TENCENT("20", "1")),
     "\"tencent.com/predicate-gpu-idx-0\":\"0\",\"tencent.com/gpu-assigned\":\"true\"", NULL,
     VERDICT_FITS},
    {DIALECT_GPUSHARE, TENCENT("0", "0") ",", ONE(TENCENT("20", "1")), "", NULL, VERDICT_NODE_FULL},
    {DIALECT_TENCENT, "", ONE("\"aliyun.com/gpu-mem\":\"1\""), "", NULL, VERDICT_FITS},
    {DIALECT_VGPU, "", ONE(ELASTIC("1", "1")), "", NULL, VERDICT_FITS},
    /* Whole cards where nothing is shared. */
    {DIALECT_COUNT, GPU ",", ONE("\"aliyun.com/gpu-mem\":\"1\""), "", ONE(GPU), VERDICT_FITS},
    {DIALECT_COUNT, GPU ",", ONE(VOLCANO("1")), "", ONE(GPU), VERDICT_FITS},
    {DIALECT_COUNT, "\"aliyun.com/gpu-mem\":\"0\"," GPU ",", ONE("\"aliyun.com/gpu-mem\":\"1\""),
     "", ONE(GPU), VERDICT_SHARED},
};

TEST_EACH(what_the_node_does_not_have_is_not_held, COUNT_OF(absent))
{
    struct rig r;
    struct object o;
    struct placement there;
    char capacity[512];
    enum dialect d = absent[_i].node;
    const char *asked = absent[_i].asked;
    if (asked == NULL && d != DIALECT_COUNT) {
        asked = plain[d];
    }
    dialects_use(ALL_BUT_HAMI);
    rig_init(&r);
    (void)snprintf(capacity, sizeof(capacity), "%s%s", absent[_i].capacity,
                   d == DIALECT_COUNT ? "\"cpu\":\"1\"" : capacities[d]);
    set_node_as(&r, "n", d == DIALECT_COUNT ? DIALECT_GPUSHARE : d, capacity);
    object_pod(&o, "p", absent[_i].containers, absent[_i].annotations, "n");
    object_show(&r, &o);
    ck_assert_int_eq(fit_of(&r, asked, "n", &there), absent[_i].verdict);
    /* The plugin of the pod is installed, and the pod's cards count. */
    if (d != DIALECT_COUNT) {
        set_node(&r, "n", d);
        ck_assert(node_of(&r, "n")->used > 0 || node_of(&r, "n")->exclusive > 0);
    }
    set_node_as(&r, "n", d == DIALECT_COUNT ? DIALECT_GPUSHARE : d, capacity);
    ck_assert_int_eq(fit_of(&r, asked, "n", &there), absent[_i].verdict);
    cache_check(&r.cache);
    pod_gone(&r, "p");
    ck_assert_int_eq(fit_of(&r, asked, "n", &there), VERDICT_FITS);
    rig_done(&r);
}

/* A node that can't be read has no cards, but its pods may have. */
TEST(an_unreadable_node_may_have_anything)
{
    struct rig r;
    struct placement there;
    dialects_use(ALL_BUT_HAMI);
    rig_init(&r);
    set_node(&r, "n", DIALECT_GPUSHARE);
    set_pod(&r, "p", plain[DIALECT_GPUSHARE], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = {.name = STR("n"), .unreadable = true}};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(fit_of(&r, ONE(GPU), "n", &there), VERDICT_SHARED);
    rig_done(&r);
}

/* What is no card in an annotation with cards hides none of the others. */
static const struct held_case held[] = {
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"volcano.sh/gpu-index\":\"x,3,\"", {0, 0, 0, 8}, 0},
    {DIALECT_GPUSHARE,
     ONE("\"aliyun.com/gpu-mem\":\"8\""),
     "\"ALIYUN_COM_GPU_MEM_IDX\":\"0,2\"",
     {8, 0, 8, 0},
     0},
    {DIALECT_GPUSHARE,
     ONE("\"aliyun.com/gpu-mem\":\"8\""),
     "\"ALIYUN_COM_GPU_MEM_IDX\":\"3,1\",\"scheduler.framework.gpushare.allocation\":\"{"
     "\\\"0\\\"\"",
     {0, 8, 0, 8},
     0},
    {DIALECT_GPUSHARE,
     ONE("\"aliyun.com/gpu-mem\":\"8\""),
     "\"ALIYUN_COM_GPU_MEM_IDX\":\"0,9\"",
     {8, 0, 0, 0},
     8},
    /* Nothing where a device could be is none. */
    {DIALECT_HAMI,
     TWO(HAMI("1", "8"), "\"cpu\":\"1\""),
     "\"hami.io/vgpu-devices-allocated\":\"GPU-c,NVIDIA,8,0:;,,0,0:;\"",
     {0, 0, 8, 0},
     0},
    {DIALECT_HAMI,
     INITS("{\"name\":\"i\"}") "," MAINS(C(HAMI("2", "8"))),
     "\"hami.io/vgpu-devices-allocated\":\",,0,0:;GPU-c,NVIDIA,8,0:,,0,0:GPU-a,NVIDIA,8,0:::;;\"",
     {8, 0, 8, 0},
     0},
    {DIALECT_HAMI,
     TWO(HAMI("1", "8"), HAMI("1", "2")),
     "\"hami.io/vgpu-devices-allocated\":\"GPU-c,NVIDIA,8,0:;GPU-d,NVIDIA,2,0:,NVIDIA,0,0:;\"",
     {0, 0, 8, 2},
     0},
    {DIALECT_VGPU,
     TWO("\"cpu\":\"1\"", VGPU("1", "8")),
     "\"volcano.sh/vgpu-ids-new\":\",,0,0:;GPU-b,NVIDIA,8,0:,,,:;\"",
     {0, 8, 0, 0},
     0},
    {DIALECT_VGPU,
     ONE(VGPU("1", "8")),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-b,NVIDIA,8,0:,NVIDIA,3,0:\"",
     {0, 8, 0, 0},
     8},
    {DIALECT_VGPU, ONE(VGPU("1", "8")), "\"volcano.sh/vgpu-ids-new\":\",,0,0:\"", {0, 0, 0, 0}, 8},
};

TEST_EACH(every_card_of_a_list_is_taken, COUNT_OF(held))
{
    expect_held(&held[_i]);
}

#define CORES_HAMI(n) "\"nvidia.com/gpucores\":\"" n "\""
#define CORES_VGPU(n) "\"volcano.sh/vgpu-cores\":\"" n "\""

/* A part without a limit of compute gets no card whose compute is all given out. */
static const struct {
    enum dialect dialect;
    const char *first; /* 60 percent of card 0 */
    const char *rest;
    const char *asked;
    uint32_t card;
} sold_out[] = {
    {DIALECT_HAMI, ONE(HAMI("1", "1") "," CORES_HAMI("60")),
     ONE(HAMI("1", "1") "," CORES_HAMI("40")), ONE(HAMI("1", "1")), 1},
    {DIALECT_HAMI, ONE(HAMI("1", "1") "," CORES_HAMI("60")),
     ONE(HAMI("1", "1") "," CORES_HAMI("39")), ONE(HAMI("1", "1")), 0},
    {DIALECT_HAMI, ONE(HAMI("1", "1") "," CORES_HAMI("60")),
     ONE(HAMI("1", "1") "," CORES_HAMI("40")), ONE(HAMI("1", "1") "," CORES_HAMI("0")), 1},
    /* The sum of the containers before it counts, too. */
    {DIALECT_HAMI, ONE(HAMI("1", "1") "," CORES_HAMI("60")), ONE(HAMI("1", "1")),
     TWO(HAMI("1", "1") "," CORES_HAMI("40"), HAMI("1", "1")), 1},
    {DIALECT_HAMI, ONE(HAMI("1", "1") "," CORES_HAMI("60")), ONE(HAMI("1", "1")),
     TWO(HAMI("1", "1"), HAMI("1", "1") "," CORES_HAMI("40")), 0},
    {DIALECT_VGPU, ONE(VGPU("1", "1") "," CORES_VGPU("60")),
     ONE(VGPU("1", "1") "," CORES_VGPU("40")), ONE(VGPU("1", "1")), 1},
    {DIALECT_VGPU, ONE(VGPU("1", "1") "," CORES_VGPU("60")),
     ONE(VGPU("1", "1") "," CORES_VGPU("30")), ONE(VGPU("1", "1")), 0},
};

static void set_served(struct rig *r, const char *uid, enum dialect d, const char *containers,
                       const char *list)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "\"%s\":\"%s\",\"%s\":\"success\"", dialect_facts(d)->idx.p,
                   list, dialect_facts(d)->assigned.p);
    set_pod(r, uid, containers, text);
}

TEST_EACH(no_part_of_a_card_whose_compute_is_sold_out, COUNT_OF(sold_out))
{
    enum dialect d = sold_out[_i].dialect;
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", d);
    set_served(&r, "a", d, sold_out[_i].first, "GPU-a,NVIDIA,1,60:");
    /* The spec is the least that counts. */
    set_served(&r, "b", d, sold_out[_i].rest, "GPU-a,NVIDIA,1,0:");
    ck_assert_int_eq(fit_of(&r, sold_out[_i].asked, "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[there.n - 1].card, sold_out[_i].card);
    rig_done(&r);
}

/* Which names of NVIDIA's plugin a claim serves, by the pod's status. */
static const struct {
    const char *status;
    unsigned claims;
} statuses[] = {
    {"", 0},
    {",\"extendedResourceClaimStatus\":null", 0},
    {",\"extendedResourceClaimStatus\":{}", 0},
    {",\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"x\",\"requestMappings\":[]}", 0},
    {",\"extendedResourceClaimStatus\":{\"requestMappings\":[{\"resourceName\":\"a.b/gpu\"}]}", 0},
    {",\"extendedResourceClaimStatus\":{\"requestMappings\":[{\"containerName\":\"c\","
     "\"resourceName\":\"nvidia.com/gpu\",\"requestName\":\"r\"}],\"resourceClaimName\":\"x\"}",
     CLAIMS_CARDS},
    {",\"extendedResourceClaimStatus\":{\"requestMappings\":["
     "{\"resourceName\":\"nvidia.com/mig-1g.5gb\"},{\"resourceName\":\"nvidia.com/gpu\"}]}",
     CLAIMS_CARDS | CLAIMS_RENAMED},
};

TEST_EACH(a_status_says_what_a_claim_serves, COUNT_OF(statuses))
{
    char text[512];
    struct arena arena;
    struct jread in;
    struct pod_view pod;
    struct err e = ERR_INIT;
    (void)snprintf(text, sizeof(text), "{\"status\":{\"phase\":\"Running\"%s}}",
                   statuses[_i].status);
    arena_init(&arena, MIB);
    jread_init(&in, str_of(text), &arena);
    kube_read_pod(&in, &arena, &pod);
    ck_assert_ok(jread_finish(&in, &e), &e);
    ck_assert_uint_eq(pod.claims, statuses[_i].claims);
    arena_done(&arena);
}
