/* The figures of a refusal: what the pod asks for, and what the nodes have. */
#include "report/shortfall_write.h"

#include "fit_fixture.h"
#include "report/evaluate.h"

#define MEMORY "Insufficient GPU Memory in one device"

static const struct {
    struct node_view node;
    struct pod_view pods[FIXTURE_PODS];
    struct pod_view ask;
    const char *reason;
} rows[] = {
    {TWO_CARDS,
     {PLAIN("a", "6", AT(0)), PLAIN("b", "8", AT(1))},
     PLAIN("ask", "12"),
     MEMORY ": asks 12, largest free 10, largest card 16"},
    {TWO_CARDS, {NO_POD}, PLAIN("ask", "17"), MEMORY ": asks 17, largest free 16, largest card 16"},
    /* A card of another model has more, and is no card for this pod. */
    {NODE(.mem = S("40"), CARDS({.index = 0, .mem = 8, .model = S("T4")},
                                {.index = 1, .mem = 32, .model = S("A100")})),
     {PLAIN("a", "3", AT(0))},
     PLAIN("ask", "7", .card_model = S("T4")),
     MEMORY ": asks 7, largest free 5, largest card 8"},
    {TWO_CARDS,
     {PLAIN("a", "12", AT(0))},
     PLAIN("ask", "16", .count_label = S("2")),
     MEMORY ": asks 8 on each of 2 cards, at most 1 of a node's cards fits, largest free of the "
            "others 4, largest card 16"},
    {TWO_CARDS,
     {PLAIN("a", "12", AT(0)), PLAIN("b", "13", AT(1))},
     PLAIN("ask", "16", .count_label = S("2")),
     MEMORY ": asks 8 on each of 2 cards, largest free 4, largest "
            "card 16"},
    {TWO_CARDS,
     {PLAIN("a", "12", AT(0)), PLAIN("b", "11", AT(1))},
     POD("ask", CONTAINERS(2, MAIN(0, "4"), MAIN(1, "6"))),
     MEMORY ": asks 10 by 2 containers, 6 by the largest, largest free 5, largest card 16"},
    {TWO_CARDS,
     {PLAIN("a", "12", AT(0)), PLAIN("b", "12", AT(1))},
     PLAIN("ask", "2", .percent = S("30")),
     MEMORY ": asks 30% of a card and at least 2, largest free 4, largest card 16"},
    {TWO_CARDS,
     {NO_POD},
     PLAIN("ask", "17", WHOLE),
     MEMORY ": asks 1 whole card of 17, largest card 16"},
    {TWO_CARDS,
     {POD("a", CONTAINERS(1, MAIN_CORES(0, "1", "80")), AT(0)),
      POD("b", CONTAINERS(1, MAIN_CORES(0, "1", "71")), AT(1))},
     POD("ask", CONTAINERS(1, MAIN_CORES(0, "1", "30"))),
     "Insufficient GPU compute in one device: asks 1, 30% of the compute, largest free 29 percent"},
    {TWO_CARDS,
     {POD("a", CONTAINERS(1, MAIN_CORES(0, "1", "80")), AT(0))},
     POD("ask", .count_label = S("2"), CONTAINERS(1, MAIN_CORES(0, "2", "60"))),
     "Insufficient GPU compute in one device: asks 1 on each of 2 cards, 30% of the compute, at "
     "most 1 of a node's cards fits, largest free of the others 20 percent"},
    {TWO_CARDS,
     {NO_POD},
     PLAIN("ask", "24", .count_label = S("3")),
     "The node has fewer such GPU devices than the pod asks for: asks 3, at most 2 on a node"},
    {TWO_CARDS,
     {PLAIN("a", "2", AT(0)), PLAIN("b", "2", AT(1), WHOLE)},
     PLAIN("ask", "8", WHOLE),
     "No whole GPU device is free: asks 1"},
    {TWO_CARDS,
     {PLAIN("a", "2", AT(0), WHOLE), PLAIN("b", "2", AT(1), WHOLE)},
     PLAIN("ask", "8"),
     "Each GPU device with room is held whole by another pod: asks 8, 2 are held whole"},
    {TWO_CARDS,
     {PLAIN("a", "2", AT(0), WHOLE)},
     PLAIN("ask", "16", .count_label = S("2")),
     "Too few GPU devices of the node are free: at most 1 free of 2 asked, 1 held whole"},
    {TWO_CARDS,
     {PLAIN("a", "2", AT(0))},
     PLAIN("ask", "16", WHOLE, .count_label = S("2")),
     "Too few GPU devices of the node are free: at most 1 free of 2 asked"},
    {FOUR_CARDS,
     {PLAIN("a", "2", AT(0), .anti_affinity = S("g")),
      PLAIN("b", "2", AT(3), .anti_affinity = S("g"))},
     PLAIN("ask", "16", .count_label = S("4"), .anti_affinity = S("g")),
     "Too few GPU devices of the node are free: at most 2 free of 4 asked"},
    {NODE(.mem = S("32"), .count = S("2"), .max_pods = S("1")),
     {PLAIN("a", "2", AT(0))},
     PLAIN("ask", "16", .count_label = S("2")),
     "Too few GPU devices of the node are free: at most 1 free of 2 asked"},
    {NODE(.mem = S("32"), .count = S("2"), .max_pods = S("1")),
     {PLAIN("a", "2", AT(0)), PLAIN("b", "2", AT(1))},
     PLAIN("ask", "8"),
     "As many pods as ack.node.gpu.max-pod allows are on each GPU device with room: the limit is "
     "1"},
    {NODE(.mem = S("48"), .cordoned = S("0,2"), .exclusive_cards = S("1"),
          CARDS({.index = 0, .mem = 16}, {.index = 1, .mem = 16},
                {.index = 3, .mem = 16, .unhealthy = true})),
     {NO_POD},
     PLAIN("ask", "8"),
     "GPU devices of the node are unhealthy, cordoned or set aside: 1 unhealthy, 1 cordoned, 1 set "
     "aside"},
    {NODE(.mem = S("64"),
          CARDS({.index = 0, .mem = 16, .model = S("T4")},
                {.index = 1, .mem = 16, .model = S("A10")},
                {.index = 2, .mem = 16, .model = S("T4")}, {.index = 3, .mem = 16})),
     {NO_POD},
     PLAIN("ask", "8", .card_model = S("A100*, H*")),
     "No GPU device of the node is one that cardpack.io/card-model allows: asks \"A100*, H*\", "
     "there "
     "are \"A10\", \"T4\", 1 with no known model"},
    {NODE(.mem = S("64"), CARDS({.index = 0, .mem = 16, .model = S("T4")},
                                {.index = 1, .mem = 16, .model = S("A10")},
                                {.index = 2, .mem = 16, .model = S("L4")},
                                {.index = 3, .mem = 16, .model = S("P4")})),
     {NO_POD},
     PLAIN("ask", "8", .card_model = S("H100")),
     "No GPU device of the node is one that cardpack.io/card-model allows: asks \"H100\", there "
     "are "
     "\"A10\", \"L4\", \"P4\", ..."},
    {NODE(.mem = S("32"),
          CARDS({.index = 0, .mem = 16, .uuid = S("GPU-0")}, {.index = 1, .mem = 16})),
     {NO_POD},
     PLAIN("ask", "8", .card_uuid = S("GPU-9")),
     "No GPU device of the node is one that cardpack.io/card-uuid allows: asks \"GPU-9\", 1 with "
     "another "
     "uuid, 1 with no known uuid"},
    {TWO_CARDS,
     {PLAIN("a", "8", .node = S("elsewhere"), .idx = S("0"), .affinity = S("g"))},
     PLAIN("ask", "8", .affinity = S("g")),
     "The pods of the pod's cardpack.io/card-affinity-group are on another GPU device: group "
     "\"g\""},
    {TWO_CARDS,
     {PLAIN("a", "2", AT(0), .anti_affinity = S("g")),
      PLAIN("b", "2", AT(1), .anti_affinity = S("g"))},
     PLAIN("ask", "8", .anti_affinity = S("g")),
     "A pod of the pod's cardpack.io/card-anti-affinity-group is on each GPU device with room: "
     "group "
     "\"g\" is on 2 devices"},
    {TWO_CARDS,
     {PLAIN("a", "20", AT(9))},
     PLAIN("ask", "13"),
     "Insufficient GPU Memory on the node, beside pods without a card and what is not allocatable: "
     "asks 13, most free on a node 12"},
    {NODE(.mem = S("32"), .count = S("2"), .exclusive = S("2")),
     {POD("a", CONTAINERS(1, {.name = S("c"), .exclusive = S("2")}), AT(0))},
     PLAIN("ask", "8"),
     "Pods that ask for nvidia.com/gpu hold GPU devices of the node: asks 8, they hold 2"},
    {NODE(.mem = S("32"), .count = S("2"), .exclusive = S("2")),
     {PLAIN("a", "8", AT(0))},
     POD("ask", CONTAINERS(1, {.name = S("c"), .exclusive = S("2")})),
     "Pods that ask for aliyun.com/gpu-mem share GPU devices of the node: asks 2 nvidia.com/gpu, 1 "
     "pod shares"},
    {NODE(.mem = S("32"), .count = S("2"), .exclusive = S("2")),
     {NO_POD},
     POD("ask", CONTAINERS(1, {.name = S("c"), .mem = S("4"), .exclusive = S("1")})),
     "Pods that ask for aliyun.com/gpu-mem share GPU devices of the node: asks both, and the node "
     "has no cardpack.io/exclusive-cards"},
    {TWO_CARDS,
     {PLAIN("a", "12", .nominated = S("n"), .priority = 7), PLAIN("b", "10", AT(1))},
     PLAIN("ask", "8"),
     "Room on GPU devices is kept for pods of the same or a higher priority: asks 8 with priority "
     "0, "
     "kept for 1 pod"},
    {NODE(.mem = S("0")), {NO_POD}, PLAIN("ask", "8"), "The node is not for GPU share, need skip"},
};

static struct step_budget step_budget;
static struct arena arena;

/* Evaluates the nodes, of which none is feasible, and writes the reason of the first one. */
static void evaluate_nodes(const struct rig *r, const struct pod_view *ask, const struct str *names,
                           size_t n, struct buf *out)
{
    struct candidates j;
    struct err e = ERR_INIT;
    struct filter_args args = {
        .pod = *ask, .has_pod = true, .by_name = true, .names = names, .n = n};
    ck_assert_ok(evaluate(&r->cache, NULL, &step_budget, &args, &arena, false, &j, &e), &e);
    ck_assert_uint_eq(j.counts[VERDICT_FITS], 0);
    ck_assert_ptr_null(j.evaluation.shortfall);
    enum verdict v = (enum verdict)j.verdicts[0];
    shortfall_write(out, v, &j.evaluation, j.shortfalls);
}

TEST_EACH(says_what_is_asked_and_what_is_there, COUNT_OF(rows))
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    struct rig r;
    const struct str name = STR("n");
    arena_init(&arena, 1 << 20);
    fit_fixture_open(&r, &rows[_i].node, rows[_i].pods, POLICY_UNSET);
    evaluate_nodes(&r, &rows[_i].ask, &name, 1, &text);
    ck_assert_str_is(buf_str(&text), rows[_i].reason);
    arena_done(&arena);
    rig_done(&r);
}

/* The best of all nodes with this reason; those without room, and too small ones, are one kind. */
TEST(has_one_text_for_all_nodes)
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    struct rig r;
    const struct str names[] = {STR("n"), STR("m"), STR("small"), STR("none"), STR("m")};
    struct pod_view ask = PLAIN("ask", "12");
    rig_init(&r);
    arena_init(&arena, 1 << 20);
    node_set(&r, "n", "32", "2", NULL);
    node_set(&r, "m", "80", "2", NULL);
    node_set(&r, "small", "8", "1", NULL);
    pod_set(&r, .uid = "a", .mem = "6", .node = "n", .idx = "0");
    pod_set(&r, .uid = "b", .mem = "16", .node = "n", .idx = "1");
    pod_set(&r, .uid = "c", .mem = "40", .node = "m", .idx = "0");
    pod_set(&r, .uid = "d", .mem = "31", .node = "m", .idx = "1");
    evaluate_nodes(&r, &ask, names, COUNT_OF(names), &text);
    ck_assert_str_is(buf_str(&text), MEMORY ": asks 12, largest free 10, largest card 40");
    arena_done(&arena);
    rig_done(&r);
}

/* A quota makes a node expensive to evaluate, also where its own figures decide. */
TEST(has_the_figures_beside_a_quota)
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    struct rig r;
    const struct str name = STR("n");
    const struct quota_limit limit = {.scope = QUOTA_TOTAL, .most = {1000, -1, -1}};
    const struct quota_entry entry = {.namespace = STR("ns"), .limits = &limit, .n_limits = 1};
    struct cache_event e = {.type = CACHE_QUOTA_SET, .quota = {.entries = &entry, .n = 1}};
    struct pod_view ask = PLAIN("ask", "12");
    rig_init(&r);
    arena_init(&arena, 1 << 20);
    node_set(&r, "n", "32", "2", NULL);
    pod_set(&r, .uid = "a", .mem = "6", .node = "n", .idx = "0");
    pod_set(&r, .uid = "b", .mem = "7", .node = "n", .idx = "1");
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    evaluate_nodes(&r, &ask, &name, 1, &text);
    ck_assert_str_is(buf_str(&text), MEMORY ": asks 12, largest free 10, largest card 16");
    arena_done(&arena);
    rig_done(&r);
}

static char *long_text(char *bytes, size_t size)
{
    memset(bytes, 'x', size - 1);
    bytes[size - 1] = '\0';
    return bytes;
}

/* Long annotations and names of models are cut: a reason stays within its bytes, with figures. */
START_TEST(stays_within_its_bytes)
{
    char bytes[SHORTFALL_WRITE_BYTES + 1];
    char wish[4000];
    char model[SHORTFALL_MODELS + 1][200];
    struct buf text = BUF_ON(bytes);
    struct shortfall sums[VERDICT_COUNT] = {{.free = 0}};
    struct shortfall l = {.n_models = SHORTFALL_MODELS,
                          .more_models = true,
                          .unnamed = UINT64_MAX,
                          .named = UINT64_MAX};
    struct request r = {.mem = REQUEST_MEM_MAX, .cards = 64, .priority = INT32_MIN};
    const struct evaluation evaluation = {.request = &r};
    r.models = r.uuids = r.affinity = r.anti_affinity = str_of(long_text(wish, sizeof(wish)));
    for (size_t i = 0; i < SHORTFALL_MODELS; i++)
        l.models[i] = str_of(long_text(model[i], sizeof(model[i])));
    l.free = l.largest = l.left = INT64_MAX;
    l.held = l.foes = l.pods = l.exclusive = UINT64_MAX;
    l.unhealthy = l.cordoned = l.aside = UINT64_MAX;
    sums[_i] = l;
    shortfall_write(&text, (enum verdict)_i, &evaluation, sums);
    ck_assert(!buf_failed(&text));

    /* Wherever there are figures at all: HELD_ELSEWHERE has none here, as the pod holds nothing. */
    static const enum verdict with[] = {
        VERDICT_UNUSABLE, VERDICT_MODEL,        VERDICT_UUID,
        VERDICT_TOO_FEW,  VERDICT_AFFINITY,     VERDICT_ANTI_AFFINITY,
        VERDICT_NO_CORES, VERDICT_NO_CARD_FREE, VERDICT_KEPT};

    for (size_t i = 0; i < COUNT_OF(with); i++)
        ck_assert(with[i] != (enum verdict)_i || memmem(text.p, text.n, ": ", 2) != NULL);
}

int main(void)
{
    TCase *tc = unit_case("shortfall_write");
    tcase_add_loop_test(tc, stays_within_its_bytes, VERDICT_FITS + 1, VERDICT_COUNT);
    return unit_run();
}
