/* The dialects of other device plugins: requests, nodes, bound pods, and pods that are confused. */
#include "dialect_rig.h"

/* ---- requests ---- */

static const struct {
    const char *containers;
    enum dialect dialect;
    int64_t mem;
    uint32_t cores;
    uint32_t cards;
    bool whole;
} good[] = {
    {ONE("\"aliyun.com/gpu-mem\":\"8\""), DIALECT_GPUSHARE, 8, 0, 1, false},
    {ONE(VOLCANO("1024")), DIALECT_VOLCANO, 1024, 0, 1, false},
    {ONE(VOLCANO("1024") ",\"cpu\":\"1\",\"volcano.sh/gpu-number\":\"1\""), DIALECT_VOLCANO, 1024,
     0, 1, false},
    {TWO(VOLCANO("1024"), "\"cpu\":\"2\""), DIALECT_VOLCANO, 1024, 0, 1, false},
    {ONE(ELASTIC("30", "4096")), DIALECT_ELASTIC, 4096, 30, 1, false},
    {ONE("\"elasticgpu.io/gpu-memory\":\"512\""), DIALECT_ELASTIC, 512, 0, 1, false},
    {TWO(ELASTIC("80", "4096"), ELASTIC("70", "100")), DIALECT_ELASTIC, 4196, 150, 1, false},
    {ONE("\"elasticgpu.io/gpu-core\":\"200\""), DIALECT_ELASTIC, 0, 200, 2, true},
    {ONE(ELASTIC("100", "7")), DIALECT_ELASTIC, 0, 100, 1, true},
    {ONE(TENCENT("30", "16")), DIALECT_TENCENT, 16, 30, 1, false},
    {TWO(TENCENT("60", "16"), TENCENT("60", "8")), DIALECT_TENCENT, 24, 120, 1, false},
    {ONE("\"tencent.com/vcuda-core\":\"400\""), DIALECT_TENCENT, 0, 400, 4, true},
    {ONE(VGPU("1", "1024")), DIALECT_VGPU, 1024, 0, 1, false},
    {ONE(VGPU("2", "1024") ",\"volcano.sh/vgpu-cores\":\"30\""), DIALECT_VGPU, 2048, 60, 2, false},
    {ONE("\"volcano.sh/vgpu-number\":\"1\""), DIALECT_VGPU, 0, 0, 1, false},
    {ONE("\"volcano.sh/vgpu-number\":\"2\",\"volcano.sh/vgpu-memory-percentage\":\"40\""),
     DIALECT_VGPU, 0, 0, 2, false},
    {ONE(VGPU("1", "8") ",\"volcano.sh/vgpu-cores\":\"100\""), DIALECT_VGPU, 8, 100, 1, true},
    {ONE(HAMI("2", "1024") ",\"nvidia.com/gpucores\":\"30\""), DIALECT_HAMI, 2048, 60, 2, false},
    {TWO("\"cpu\":\"2\"", "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"50\""),
     DIALECT_HAMI, 0, 0, 1, false},
    {TWO(HAMI("1", "8"), HAMI("2", "4") ",\"nvidia.com/gpucores\":\"30\""), DIALECT_HAMI, 16, 60, 3,
     false},
    {TWO(HAMI("1", "8") ",\"nvidia.com/gpucores\":\"100\"",
         "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpucores\":\"100\""),
     DIALECT_HAMI, 8, 200, 2, true},
};

TEST_EACH(reads_what_a_pod_asks_for, COUNT_OF(good))
{
    struct object o;
    all_dialects();
    object_pod(&o, "p", good[_i].containers, "", "");
    ck_assert_msg(o.readable == OK, "%s: %s", good[_i].containers, o.err.text);
    ck_assert_int_eq(o.request.dialect, good[_i].dialect);
    ck_assert_int_eq(o.request.mem, good[_i].mem);
    ck_assert_uint_eq(o.request.cores, good[_i].cores);
    ck_assert_uint_eq(request_cards(&o.request), good[_i].cards);
    ck_assert_int_eq(o.request.whole, good[_i].whole);
    ck_assert(request_shares(&o.request));
    ck_assert_int_eq(request_simple(&o.request), good[_i].dialect == DIALECT_GPUSHARE);
    object_end(&o);
}

static const struct {
    const char *containers;
    const char *annotations;
    const char *error;
} bad[] = {
    {ONE(ELASTIC("200", "7")), "",
     "container \"c0\": elasticgpu.io/gpu-memory: the device plugin serves no memory on several "
     "cards"},
    {MAINS("{\"name\":\"c0123456789012345678901234567890123456789012345678901234\",\"resources\":{"
           "\"limits\":{\"elasticgpu.io/gpu-memory\":\"1\"}}}"),
     "",
     "container \"c0123456789012345678901234567890123456789012345678901234\": "
     "elasticgpu.io/gpu-memory: its name is too long for an annotation's key"},
    {ONE(VOLCANO("1.5")), "",
     "container \"c0\": volcano.sh/gpu-memory: \"1.5\" is not a whole number"},
    {ONE(VOLCANO("16Gi")), "",
     "container \"c0\": volcano.sh/gpu-memory asks for 17179869184 units of MiB, or "
     "--gpu-memory-factor MiB; write 16, not 16Gi"},
    {TWO(VOLCANO("1"), VOLCANO("2")), "",
     "container \"c1\": volcano.sh/gpu-memory: the device plugin serves one container of a pod"},
    {"\"initContainers\":[" C(VOLCANO("1")) "]", "",
     "init container \"c0\": volcano.sh/gpu-memory: the device plugin does not serve init "
     "containers"},
    {TWO(VOLCANO("1"), "\"aliyun.com/gpu-mem\":\"8\""), "",
     "container \"c1\": aliyun.com/gpu-mem: the pod names the resources of another device plugin, "
     "too"},
    {ONE("\"elasticgpu.io/gpu-core\":\"30\""), "",
     "elasticgpu.io/gpu-core: \"30\" without elasticgpu.io/gpu-memory: add a limit "
     "elasticgpu.io/gpu-memory"},
    {ONE("\"elasticgpu.io/gpu-core\":\"150\""), "",
     "container \"c0\": elasticgpu.io/gpu-core: above 100 it must be a multiple of 100: whole "
     "cards"},
    {TWO("\"elasticgpu.io/gpu-core\":\"200\"", ELASTIC("10", "1")), "",
     "elasticgpu.io/gpu-core: one container asks for whole cards, and another one for cards, too: "
     "give each a pod"},
    {ONE("\"tencent.com/vcuda-core\":\"30\""), "",
     "container \"c0\": tencent.com/vcuda-core: the device plugin wants a limit of memory beside "
     "it"},
    {ONE("\"tencent.com/vcuda-memory\":\"30\""), "",
     "container \"c0\": tencent.com/vcuda-memory: the device plugin wants a limit of compute "
     "beside it"},
    {ONE("\"volcano.sh/vgpu-cores\":\"30\""), "",
     "container \"c0\": volcano.sh/vgpu-cores: the device plugin wants a limit of cards beside it"},
    {ONE(VGPU("1", "8") ",\"volcano.sh/vgpu-memory-percentage\":\"30\""), "",
     "container \"c0\": volcano.sh/vgpu-memory-percentage: the container has an amount of memory, "
     "too"},
    {ONE("\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-memory-percentage\":\"0\""), "",
     "container \"c0\": volcano.sh/vgpu-memory-percentage: it must be 1 to 100"},
    {ONE("\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-memory-percentage\":\"101\""), "",
     "container \"c0\": volcano.sh/vgpu-memory-percentage: \"101\" is more than the whole card"},
    {ONE("\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-cores\":\"101\""), "",
     "container \"c0\": volcano.sh/vgpu-cores: \"101\" is out of range: a card has 100"},
    {ONE("\"volcano.sh/vgpu-number\":\"65\""), "",
     "container \"c0\": volcano.sh/vgpu-number: \"65\" is out of range: a pod gets 64 at most"},
    {TWO(VGPU("1", "1"), VGPU("1", "2")), "",
     "container \"c1\": volcano.sh/vgpu-number: the device plugin serves one container of a pod"},
    {TWO(HAMI("40", "1"), HAMI("25", "1")), "",
     "container \"c1\": nvidia.com/gpu: with the containers before it, it is out of range: a pod "
     "gets 64 at most"},
    {TWO(HAMI("1", "1"), "\"nvidia.com/gpumem\":\"8\""), "",
     "container \"c1\": nvidia.com/gpumem: the device plugin wants a limit of cards beside it"},
    {"\"initContainers\":[" C(VGPU("1", "1")) "]", "",
     "init container \"c0\": volcano.sh/vgpu-number: the device plugin does not serve init "
     "containers"},
    {TWO(HAMI("1", "1"), VOLCANO("8")), "",
     "container \"c1\": volcano.sh/gpu-memory: the pod names the resources of another device "
     "plugin, too"},
    {ONE(VOLCANO("8")), "\"cardpack.io/gpu-mem-percent\":\"50\"",
     "annotation cardpack.io/gpu-mem-percent: \"50\" is only for pods with aliyun.com/gpu-mem"},
};

TEST_EACH(says_what_a_plugin_cannot_do, COUNT_OF(bad))
{
    struct object o;
    all_dialects();
    object_pod(&o, "p", bad[_i].containers, bad[_i].annotations, "");
    ck_assert_int_eq(o.readable, ERR_RANGE);
    ck_assert_str_eq(o.err.text, bad[_i].error);
    object_end(&o);
}

TEST(other_dialects_are_off_at_first)
{
    struct object o;
    object_pod(&o, "p", ONE(VOLCANO("1024")), "\"volcano.sh/gpu-index\":\"1\"", "n");
    ck_assert_uint_eq(o.pod.n_containers, 0);
    ck_assert(o.readable == OK && !request_wants(&o.request));
    ck_assert_ptr_null(o.pod.said[DIALECT_VOLCANO].idx.p);
    object_end(&o);
    object_node(&o, "n", "", VOLCANO("1024") ",\"volcano.sh/gpu-number\":\"2\"", "");
    ck_assert_ptr_null(o.node.of[DIALECT_VOLCANO].mem.p);
    object_end(&o);
}

TEST(a_list_of_dialects)
{
    unsigned set = 0;
    struct str bad_name;
    char bytes[64];
    struct buf out = BUF_ON(bytes);
    ck_assert(dialects_parse(STR("gpushare, tencent"), &set, &bad_name));
    ck_assert_uint_eq(set, DIALECT_BIT(DIALECT_GPUSHARE) | DIALECT_BIT(DIALECT_TENCENT));
    dialects_write(set, &out);
    ck_assert_str_is(buf_str(&out), "gpushare,tencent");
    ck_assert(!dialects_parse(STR("gpushare,hamster"), &set, &bad_name));
    ck_assert_str_is(bad_name, "hamster");
    ck_assert(!dialects_parse(STR("volcano,volcano"), &set, &bad_name));
    ck_assert(!dialects_parse(STR(""), &set, &bad_name));
}

/* ---- nodes ---- */

#define GPUSHARE_NODE "\"aliyun.com/gpu-mem\":\"30\",\"aliyun.com/gpu-count\":\"2\""
#define VOLCANO_NODE  VOLCANO("32000") ",\"volcano.sh/gpu-number\":\"2\""
#define LABEL(d)      ",\"labels\":{\"cardpack.io/dialect\":\"" d "\"}"

static const struct node_row nodes[] = {
    {"", GPUSHARE_NODE, "", DIALECT_GPUSHARE, NODE_OK, 2, 15, false},
    {"", VOLCANO_NODE, "", DIALECT_VOLCANO, NODE_OK, 2, 16000, false},
    {",\"annotations\":{\"volcano.sh/gpu-unhealthy-ids\":\"1\"}", VOLCANO_NODE, "", DIALECT_VOLCANO,
     NODE_OK, 2, 16000, true},
    {"", VOLCANO("32000"), "", DIALECT_VOLCANO, NODE_NO_CARDS, 0, 0, false},
    {"", ELASTIC("200", "32000"), "", DIALECT_ELASTIC, NODE_OK, 2, 16000, false},
    {"", TENCENT("400", "256"), "", DIALECT_TENCENT, NODE_OK, 4, 64, false},
    {"", TENCENT("150", "256"), "", DIALECT_TENCENT, NODE_BAD_QUANTITY, 0, 0, false},
    /* Two plugins: the one that has something allocatable. */
    {"", GPUSHARE_NODE "," VOLCANO_NODE, "\"aliyun.com/gpu-mem\":\"0\"," VOLCANO("32000"),
     DIALECT_VOLCANO, NODE_OK, 2, 16000, false},
    {"", GPUSHARE_NODE "," VOLCANO_NODE, "\"aliyun.com/gpu-mem\":\"30\"," VOLCANO("0"),
     DIALECT_GPUSHARE, NODE_OK, 2, 15, false},
    {VGPU_TABLE(
         "GPU-a,10,16000,NVIDIA-A10,true,hami-core:GPU-b,5,8000,NVIDIA-A10,false,hami-core:"),
     "\"volcano.sh/vgpu-number\":\"10\"", "", DIALECT_VGPU, NODE_OK, 2, 16000, true},
    {LABEL("volcano"), GPUSHARE_NODE "," VOLCANO_NODE, "", DIALECT_VOLCANO, NODE_OK, 2, 16000,
     false},
    {LABEL("elastic"), GPUSHARE_NODE, "", DIALECT_ELASTIC, NODE_NOT_SHARED, 0, 0, false},
    {LABEL("else"), GPUSHARE_NODE, "", DIALECT_GPUSHARE, NODE_NOT_SHARED, 0, 0, false},
};

TEST_EACH(reads_what_a_node_has, COUNT_OF(nodes))
{
    node_row_check(&nodes[_i]);
}

/* ---- pods on nodes ---- */

TEST(a_pod_goes_to_nodes_of_its_own_dialect)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    for (unsigned d = 0; d < DIALECT_COUNT; d++)
        set_node(&r, names[d], (enum dialect)d);
    for (unsigned a = 0; a < DIALECT_COUNT; a++) {
        for (unsigned b = 0; b < DIALECT_COUNT; b++)
            ck_assert_int_eq(fit_of(&r, plain[a], names[b], &there),
                             a == b ? VERDICT_FITS : VERDICT_DIALECT);
    }
    rig_done(&r);
}

static const struct held_case held[] = {
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"volcano.sh/gpu-index\":\"2\"", {0, 0, 8, 0}, 0},
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"volcano.sh/gpu-index\":\"0,1\"", {8, 8, 0, 0}, 0},
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"volcano.sh/gpu-index\":\"x\"", {0, 0, 0, 0}, 8},
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"volcano.sh/gpu-index\":\"1,1\"", {0, 8, 0, 0}, 0},
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"ALIYUN_COM_GPU_MEM_IDX\":\"1\"", {0, 0, 0, 0}, 8},
    {DIALECT_ELASTIC,
     ONE(ELASTIC("50", "8")),
     "\"elasticgpu.io/container-c0\":\"3\"",
     {0, 0, 0, 8},
     0},
    {DIALECT_ELASTIC,
     TWO(ELASTIC("50", "8"), ELASTIC("50", "4")),
     "\"elasticgpu.io/container-c1\":\"0\",\"elasticgpu.io/container-c0\":\"3\"",
     {4, 0, 0, 8},
     0},
    {DIALECT_ELASTIC,
     TWO(ELASTIC("50", "8"), ELASTIC("50", "4")),
     "\"elasticgpu.io/container-c0\":\"3\"",
     {0, 0, 0, 8},
     4},
    {DIALECT_ELASTIC,
     ONE("\"elasticgpu.io/gpu-core\":\"200\""),
     "\"elasticgpu.io/container-c0\":\"0,2\"",
     {16, 0, 16, 0},
     0},
    {DIALECT_TENCENT,
     ONE(TENCENT("50", "8")),
     "\"tencent.com/predicate-gpu-idx-0\":\"1\"",
     {0, 8, 0, 0},
     0},
    {DIALECT_TENCENT,
     TWO("\"cpu\":\"1\"", TENCENT("50", "8")),
     "\"tencent.com/predicate-gpu-idx-1\":\"1\"",
     {0, 8, 0, 0},
     0},
    {DIALECT_TENCENT,
     ONE(TENCENT("50", "8")),
     "\"tencent.com/predicate-gpu-idx-1\":\"1\"",
     {0, 0, 0, 0},
     8},
    {DIALECT_TENCENT,
     ONE("\"tencent.com/vcuda-core\":\"100\""),
     "\"tencent.com/predicate-gpu-idx-0\":\"1\"",
     {0, 16, 0, 0},
     0},
    {DIALECT_VGPU,
     ONE(VGPU("1", "8")),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-c,NVIDIA,8,0:\"",
     {0, 0, 8, 0},
     0},
    {DIALECT_VGPU,
     ONE(VGPU("2", "8")),
     "\"volcano.sh/vgpu-ids-new\":\";GPU-d,NVIDIA,8,0:GPU-b,NVIDIA,8,0:\"",
     {0, 8, 0, 8},
     0},
    /* What the list says counts, as it does for the plugin. */
    {DIALECT_VGPU,
     TWO(VGPU("1", "4"), VGPU("1", "5")),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-b,NVIDIA,4,0:;GPU-b,NVIDIA,5,0:\"",
     {0, 9, 0, 0},
     0},
    {DIALECT_VGPU,
     ONE("\"volcano.sh/vgpu-number\":\"1\""),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-a,NVIDIA,16,0:\"",
     {16, 0, 0, 0},
     0},
    {DIALECT_VGPU,
     ONE("\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-memory-percentage\":\"50\""),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-a,NVIDIA,8,0:\"",
     {8, 0, 0, 0},
     0},
    {DIALECT_VGPU,
     ONE(VGPU("1", "8") ",\"volcano.sh/vgpu-cores\":\"100\""),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-a,NVIDIA,8,100:\"",
     {16, 0, 0, 0},
     0},
    {DIALECT_VGPU,
     ONE(VGPU("1", "8")),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-x,NVIDIA,8,0:\"",
     {0, 0, 0, 0},
     8},
    {DIALECT_VGPU,
     ONE(VGPU("1", "8")),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-c,NVIDIA,many,0:\"",
     {0, 0, 8, 0},
     0},
    {DIALECT_VGPU,
     ONE(VGPU("1", "8")),
     "\"volcano.sh/vgpu-ids-new\":\"GPU-c[1-0],NVIDIA,8,0:\"",
     {0, 0, 8, 0},
     0},
    {DIALECT_VGPU,
     ONE(VGPU("1", "8")),
     "\"volcano.sh/devices-to-allocate\":\"GPU-c,NVIDIA,8,0:\"",
     {0, 0, 0, 0},
     8},
    {DIALECT_HAMI,
     TWO("\"cpu\":\"1\"", HAMI("1", "8")),
     "\"hami.io/vgpu-devices-allocated\":\";GPU-c,NVIDIA,8,0:;\"",
     {0, 0, 8, 0},
     0},
    /* In another unit than the node's: the whole card, or the whole node. */
    {DIALECT_TENCENT, ONE(VOLCANO("3")), "\"volcano.sh/gpu-index\":\"2\"", {0, 0, 16, 0}, 0},
    {DIALECT_TENCENT, ONE(VOLCANO("3")), "", {0, 0, 0, 0}, 64},
    {DIALECT_GPUSHARE, ONE(VOLCANO("9000")), "\"volcano.sh/gpu-index\":\"2\"", {0, 0, 16, 0}, 0},
    {DIALECT_VOLCANO,
     ONE("\"aliyun.com/gpu-mem\":\"8\""),
     "\"ALIYUN_COM_GPU_MEM_IDX\":\"1\"",
     {0, 16, 0, 0},
     0},
};

TEST_EACH(charges_the_cards_that_annotations_name, COUNT_OF(held))
{
    expect_held(&held[_i]);
}

/* The same pod before its node is there, and after the node has changed its plugin. */
TEST(charges_again_when_the_node_changes)
{
    struct rig r;
    all_dialects();
    rig_init(&r);
    set_pod(&r, "a", ONE(VOLCANO("3")), "\"volcano.sh/gpu-index\":\"2\"");
    set_node(&r, "n", DIALECT_VOLCANO);
    ck_assert_int_eq(card_used(&r, "n", 2), 3);
    set_node(&r, "n", DIALECT_GPUSHARE);
    ck_assert_int_eq(card_used(&r, "n", 2), 16);
    set_node(&r, "n", DIALECT_VOLCANO);
    ck_assert_int_eq(card_used(&r, "n", 2), 3);
    rig_done(&r);
}

/* ---- a node that changes its plugin, and one whose plugin is not served ---- */

TEST(policies_learn_nothing_in_another_unit)
{
    struct rig r;
    all_dialects();
    rig_init(&r);
    set_pod(&r, "a", plain[DIALECT_VOLCANO], "");
    ck_assert_uint_eq(r.cache.learned.market.shapes.arrivals, 0);
    set_pod(&r, "b", plain[DIALECT_GPUSHARE], "");
    ck_assert_uint_eq(r.cache.learned.market.shapes.arrivals, 1);
    rig_done(&r);
}

TEST(foreign_pods_fill_their_card_and_no_other)
{
    struct rig r;
    struct placement there;
    char uid[4] = "a0";
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_GPUSHARE);
    for (unsigned i = 0; i < 4; i++) {
        uid[1] = (char)('0' + i);
        set_pod(&r, uid, ONE(VOLCANO("2000")), "\"volcano.sh/gpu-index\":\"0\"");
    }
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    ck_assert_int_eq(node_of(&r, "n")->used, 16);
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_GPUSHARE], "n", &there), VERDICT_FITS);
    ck_assert_uint_ne(there.grants[0].card, 0);
    for (unsigned i = 0; i < 4; i++) {
        uid[1] = (char)('0' + i);
        ck_assert_int_eq(card_used(&r, "n", 0), 16);
        pod_gone(&r, uid);
    }
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    rig_done(&r);
}

TEST(gpushare_can_be_left_out)
{
    struct rig r;
    struct object o;
    dialects_use(DIALECT_BIT(DIALECT_VOLCANO));
    rig_init(&r);
    object_node(&o, "n", "", capacities[DIALECT_GPUSHARE], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(node_of(&r, "n")->fault, NODE_NOT_SHARED);
    object_end(&o);
    object_pod(&o, "p", plain[DIALECT_GPUSHARE], "", "");
    ck_assert(o.readable == OK && !request_wants(&o.request));
    object_end(&o);
    rig_done(&r);
}

/* cardpack-node's, in GiB. */
TEST(the_table_of_another_plugin_does_not_count)
{
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    object_node(&o, "n",
                ",\"annotations\":{\"cardpack.io/cards\":\"[{\\\"index\\\":0,"
                "\\\"memory\\\":9000}]\"}",
                capacities[DIALECT_VOLCANO], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_uint_eq(node_of(&r, "n")->n_cards, 4);
    ck_assert_int_eq(node_of(&r, "n")->cards[0].total, 16);
    object_end(&o);
    rig_done(&r);
}

/* 18 containers of elastic-gpu, bound by its own scheduler: none of their cards is free. */
TEST(more_containers_than_a_request_has)
{
    struct rig r;
    struct object o;
    struct buf containers;
    struct buf notes;
    all_dialects();
    rig_init(&r);
    buf_init(&containers, 8192);
    buf_init(&notes, 8192);
    buf_put(&containers, STR("\"containers\":["));
    for (unsigned i = 0; i < 18; i++) {
        buf_printf(&containers,
                   "%s{\"name\":\"c%u\",\"resources\":{\"limits\":{"
                   "\"elasticgpu.io/gpu-memory\":\"1\"}}}",
                   i == 0 ? "" : ",", i);
        buf_printf(&notes, "%s\"elasticgpu.io/container-c%u\":\"%u\"", i == 0 ? "" : ",", i,
                   i < 16 ? 0 : i - 14);
    }
    buf_put(&containers, STR("]"));
    set_node(&r, "n", DIALECT_ELASTIC);
    object_pod(&o, "p", buf_cstr(&containers), buf_cstr(&notes), "n");
    ck_assert_int_eq(o.readable, ERR_RANGE);
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_ge(card_used(&r, "n", 0), 16);
    ck_assert_int_ge(card_used(&r, "n", 2), 1);
    ck_assert_int_ge(card_used(&r, "n", 3), 1);
    object_end(&o);
    buf_done(&containers);
    buf_done(&notes);
    rig_done(&r);
}

/* ---- which pods the plugin can confuse ---- */

static const struct {
    enum dialect dialect;
    const char *there; /* waits on card 2 */
    const char *annotations;
    const char *asks;
    enum swap_cards cards; /* SWAP_ONE: card 2 */
} swaps[] = {
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"volcano.sh/gpu-index\":\"2\"", ONE(VOLCANO("8")),
     SWAP_ONE},
    {DIALECT_VOLCANO, ONE(VOLCANO("8")), "\"volcano.sh/gpu-index\":\"2\"", ONE(VOLCANO("4")),
     SWAP_ANY},
    {DIALECT_VOLCANO, ONE(VOLCANO("8")),
     "\"volcano.sh/gpu-index\":\"2\",\"volcano.sh/gpu-assigned\":\"true\"", ONE(VOLCANO("8")),
     SWAP_ANY},
    {DIALECT_TENCENT, ONE(TENCENT("50", "4")), "\"tencent.com/predicate-gpu-idx-0\":\"2\"",
     ONE(TENCENT("50", "8")), SWAP_NONE},
    {DIALECT_TENCENT, ONE(TENCENT("40", "8")), "\"tencent.com/predicate-gpu-idx-0\":\"2\"",
     ONE("\"tencent.com/vcuda-core\":\"100\""), SWAP_NONE},
    {DIALECT_TENCENT, ONE(TENCENT("40", "8")),
     "\"tencent.com/predicate-gpu-idx-0\":\"2\",\"tencent.com/gpu-assigned\":\"true\"",
     ONE(TENCENT("40", "8")), SWAP_ANY},
    {DIALECT_ELASTIC, ONE(ELASTIC("50", "8")), "\"elasticgpu.io/container-c0\":\"2\"",
     ONE(ELASTIC("50", "8")), SWAP_ANY},
    {DIALECT_VGPU, ONE(VGPU("1", "8")),
     LIST("GPU-c,NVIDIA,8,0:") ",\"volcano.sh/bind-phase\":\"allocating\"", ONE(VGPU("2", "1")),
     SWAP_NONE},
    {DIALECT_VGPU, ONE(VGPU("1", "8")),
     LIST("GPU-c,NVIDIA,8,0:") ",\"volcano.sh/bind-phase\":\"success\"", ONE(VGPU("1", "8")),
     SWAP_ANY},
    {DIALECT_HAMI, ONE(HAMI("1", "8")), "\"hami.io/vgpu-devices-allocated\":\"GPU-c,NVIDIA,8,0:;\"",
     ONE(HAMI("1", "8")), SWAP_NONE},
};

TEST_EACH(knows_which_pods_a_plugin_confuses, COUNT_OF(swaps))
{
    struct rig r;
    struct object o;
    struct swap s;
    const struct evaluation evaluation = {.request = &o.request};
    all_dialects();
    rig_init(&r);
    r.cache.settings.swap_guard = SWAP_GUARD_REQUIRE;
    set_node(&r, "n", swaps[_i].dialect);
    set_pod(&r, "a", swaps[_i].there, swaps[_i].annotations);
    object_pod(&o, "asked", swaps[_i].asks, "", "");
    swap_find(node_of(&r, "n"), &evaluation, &s);
    ck_assert_int_eq(s.cards, swaps[_i].cards);
    ck_assert(s.cards != SWAP_ONE || s.card == 2);
    object_end(&o);
    rig_done(&r);
}
