/* HAMi's family of dialects, whose pods name their cards by UUID: the cards are found again when
 * the node's table changes, and one pod at a time waits for the plugin. */
#include "dialect_rig.h"

static const struct node_row nodes[] = {
    {VGPU_TABLE("GPU-a,10,16000,NVIDIA-A10,true,hami-core:GPU-b,5,8000,NVIDIA-A10,true,mig:"),
     "\"volcano.sh/vgpu-number\":\"10\"", "", DIALECT_VGPU, NODE_OK, 2, 16000, true},
    {VGPU_TABLE("GPU-a,10,16000,NVIDIA-A10,true:"), "\"volcano.sh/vgpu-number\":\"10\"", "",
     DIALECT_VGPU, NODE_OK, 1, 16000, false},
    {VGPU_TABLE("GPU-a,10,16000,100,NVIDIA-A10,0,true:GPU-b,10,8,100,NVIDIA-A10,0,false:"),
     "\"volcano.sh/vgpu-number\":\"10\"", "", DIALECT_VGPU, NODE_OK, 2, 16000, true},
    {VGPU_TABLE("GPU-a,10,160"), "\"volcano.sh/vgpu-number\":\"10\"", "", DIALECT_VGPU,
     NODE_BAD_CARDS, 0, 0, false},
    {VGPU_TABLE("GPU-a,1,9,T4,true,m:GPU-a,1,9,T4,true,m:"), "\"volcano.sh/vgpu-number\":\"10\"",
     "", DIALECT_VGPU, NODE_BAD_CARDS, 0, 0, false},
    {VGPU_TABLE(""), "\"volcano.sh/vgpu-number\":\"10\"", "", DIALECT_VGPU, NODE_BAD_CARDS, 0, 0,
     false},
    {VGPU_TABLE("GPU-a,10,16000,NVIDIA-A10,true,hami-core:"), "\"volcano.sh/vgpu-number\":\"0\"",
     "", DIALECT_GPUSHARE, NODE_NOT_SHARED, 0, 0, false},
    {HAMI_TABLE("[" HAMI_CARD("GPU-b", "1") "," HAMI_CARD("GPU-a", "0") "]"),
     "\"nvidia.com/gpu\":\"20\"", "", DIALECT_HAMI, NODE_OK, 2, 16, false},
    {HAMI_TABLE("[{\\\"id\\\":\\\"GPU-a\\\",\\\"count\\\":1,\\\"devmem\\\":7,\\\"health\\\":true},"
                "{\\\"id\\\":\\\"GPU-b\\\",\\\"count\\\":1,\\\"devmem\\\":7}]"),
     "\"nvidia.com/gpu\":\"20\"", "", DIALECT_HAMI, NODE_OK, 2, 7, true},
    {HAMI_TABLE("[" HAMI_CARD("GPU-a,NVIDIA,1,0:GPU-b", "0") "]"), "\"nvidia.com/gpu\":\"20\"", "",
     DIALECT_HAMI, NODE_BAD_CARDS, 0, 0, false},
    {HAMI_TABLE("[" HAMI_CARD("GPU-a[1-0]", "0") "]"), "\"nvidia.com/gpu\":\"20\"", "",
     DIALECT_HAMI, NODE_BAD_CARDS, 0, 0, false},
    {VGPU_TABLE("GPU-a;GPU-b,1,9,T4,true,m:"), "\"volcano.sh/vgpu-number\":\"10\"", "",
     DIALECT_VGPU, NODE_BAD_CARDS, 0, 0, false},
    {HAMI_TABLE("[{}]"), "\"nvidia.com/gpu\":\"20\"", "", DIALECT_HAMI, NODE_BAD_CARDS, 0, 0,
     false},
    {HAMI_TABLE("[1"), "\"nvidia.com/gpu\":\"20\"", "", DIALECT_HAMI, NODE_BAD_CARDS, 0, 0, false},
    {"", "\"nvidia.com/gpu\":\"20\"", "", DIALECT_GPUSHARE, NODE_NOT_SHARED, 0, 0, false},
};

TEST_EACH(reads_what_a_node_has, COUNT_OF(nodes))
{
    node_row_check(&nodes[_i]);
}

static void set_table(struct rig *r, const char *table)
{
    struct object o;
    object_node(&o, "n", table, capacities[DIALECT_VGPU], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

/* The cards of the table change their places, and one is gone for a while. */
TEST(uuids_are_found_again)
{
    struct rig r;
    all_dialects();
    rig_init(&r);
    set_pod(&r, "a", ONE(VGPU("2", "3")), LIST("GPU-a,NVIDIA,3,20:GPU-c,NVIDIA,3,20:"));
    set_pod(&r, "b", ONE(VGPU("1", "5")), LIST("GPU-c,NVIDIA,5,0:"));
    set_node(&r, "n", DIALECT_VGPU);
    ck_assert_int_eq(card_used(&r, "n", 0), 3);
    ck_assert_int_eq(card_used(&r, "n", 2), 8);
    set_table(&r, VGPU_TABLE(VGPU_CARD("GPU-c") VGPU_CARD("GPU-b")));
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_int_eq(card_used(&r, "n", 1), 0);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 3);
    ck_assert_int_eq(pod_of(&r, "a")->card, 0);
    set_table(&r, VGPU_TABLE(VGPU_CARD("GPU-b")));
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 11);
    set_pod(&r, "a", ONE(VGPU("2", "3")), LIST("GPU-a,NVIDIA,3,20:GPU-c,NVIDIA,3,20:"));
    set_table(&r, VGPU_TABLE(VGPU_CARD("GPU-b") VGPU_CARD("GPU-c") VGPU_CARD("GPU-a")));
    ck_assert_int_eq(card_used(&r, "n", 0), 0);
    ck_assert_int_eq(card_used(&r, "n", 1), 8);
    ck_assert_int_eq(card_used(&r, "n", 2), 3);
    ck_assert_uint_eq(node_of(&r, "n")->cards[2].cores, 20);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 0);
    pod_gone(&r, "a");
    pod_gone(&r, "b");
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    rig_done(&r);
}

/* A reservation names its cards by UUID, too: it moves with them, and fails if one is gone. */
TEST(a_reservation_follows_its_card)
{
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_VGPU);
    object_pod(&o, "p", plain[DIALECT_VGPU], "", "");
    ck_assert_int_eq(object_reserve(&r, &o), OK);
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    set_table(&r, VGPU_TABLE(VGPU_CARD("GPU-b") VGPU_CARD("GPU-a")));
    ck_assert_int_eq(card_used(&r, "n", 1), 8);
    ck_assert_int_eq(renew(&r, "p"), OK);
    set_table(&r, VGPU_TABLE(VGPU_CARD("GPU-b")));
    ck_assert_int_eq(renew(&r, "p"), ERR_UNAVAILABLE);
    object_end(&o);
    rig_done(&r);
}

/* Volcano's plugin may give a pod's cards to the next one that asks, even if the pod runs with the
 * cards of another pod. One that has ended holds nothing: a_later_pod_has_a_later_second. */
TEST_EACH(an_unserved_pod_waits_in_each_phase, 4)
{
    static const char *const phases[] = {"allocating", "success", "failed"};
    static const char *const pod_phases[] = {"Failed", "Succeeded", "Running", "Unknown"};
    struct rig r;
    struct object o;
    struct placement there;
    char annotations[256];
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_VGPU);
    for (unsigned i = 0; i < COUNT_OF(phases); i++) {
        (void)snprintf(annotations, sizeof(annotations),
                       LIST("GPU-a,NVIDIA,8,0:") ",\"volcano.sh/bind-phase\":\"%s\"", phases[i]);
        object_pod(&o, "a", plain[DIALECT_VGPU], annotations, "n");
        o.pod.phase = str_of(pod_phases[_i]);
        struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
        ck_assert_int_eq(rig_apply(&r, &e), OK);
        ck_assert_int_eq(fit_of(&r, plain[DIALECT_VGPU], "n", &there),
                         i == 0 && _i >= 2 ? VERDICT_SWAP : VERDICT_FITS);
        ck_assert_uint_eq(node_of(&r, "n")->n_pods, _i >= 2);
        object_end(&o);
    }
    rig_done(&r);
}

/* The kubelet calls the plugin for all containers before it sets startTime, and HAMi's plugin then
 * serves the pod that the lock names, whatever the annotations of another one are. Volcano's plugin
 * goes by the annotations. */
TEST_EACH(an_admitted_pod_waits_for_volcano_alone, 2)
{
    static const enum dialect dialects[] = {DIALECT_HAMI, DIALECT_VGPU};
    enum dialect d = dialects[_i];
    struct rig r;
    struct object o;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", d);
    for (unsigned i = 0; i < 2; i++) {
        object_pod(&o, "a", plain[d],
                   _i == 0 ? "\"hami.io/bind-phase\":\"allocating\""
                           : LIST("GPU-a,NVIDIA,8,0:") ",\"volcano.sh/bind-phase\":\"allocating\"",
                   "n");
        o.pod.phase = STR("Pending");
        o.pod.admitted = i == 1;
        struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
        ck_assert_int_eq(rig_apply(&r, &e), OK);
        object_end(&o);
        ck_assert_int_eq(fit_of(&r, plain[d], "n", &there),
                         i == 1 && d == DIALECT_HAMI ? VERDICT_FITS : VERDICT_SWAP);
        ck_assert(i == 0 || d != DIALECT_HAMI || r.fx.changed); /* the waiting pods are tried */
    }
    rig_done(&r);
}

static uint64_t reserve_second(struct rig *r, const char *uid)
{
    struct object o;
    object_pod(&o, uid, ONE(VGPU("1", "3")), "", "");
    ck_assert_int_eq(object_reserve(r, &o), OK);
    object_end(&o);
    return r->fx.assume_ns / 1000000000;
}

/* The plugin compares whole seconds, also with a pod that has ended before it was served. */
TEST(a_later_pod_has_a_later_second)
{
    struct rig r;
    all_dialects();
    rig_init(&r);
    r.now_ns = UINT64_C(1700000000) * 1000000000;
    set_node(&r, "n", DIALECT_VGPU);
    uint64_t first = reserve_second(&r, "a");
    struct cache_event again = {.type = CACHE_RENEW, .holder = {.uid = STR("a")}};
    ck_assert_int_eq(rig_apply(&r, &again), OK);
    ck_assert_uint_eq(r.fx.assume_ns / 1000000000, first);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    pod_gone(&r, "a");
    ck_assert_uint_gt(reserve_second(&r, "b"), first);
    rig_done(&r);
}

TEST(hami_cordons_cards_by_uuid)
{
    struct rig r;
    struct object o;
    struct placement there;
    all_dialects();
    rig_init(&r);
    object_node(&o, "n",
                ",\"annotations\":{\"hami.io/device-cordon\":\"GPU-x, GPU-b\","
                "\"hami.io/node-nvidia-register\":\"GPU-a,9,16,100,A10,0,true:"
                "GPU-b,9,16,100,A10,0,true:\"}",
                capacities[DIALECT_HAMI], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert(!node_of(&r, "n")->cards[0].cordoned && node_of(&r, "n")->cards[1].cordoned);
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_HAMI], "n", &there), VERDICT_FITS);
    ck_assert_int_eq(fit_of(&r, ONE(HAMI("2", "1")), "n", &there), VERDICT_TOO_FEW);
    object_end(&o);
    rig_done(&r);
}

TEST(each_card_has_a_limit_of_pods)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_table(&r, VGPU_TABLE("GPU-a,1,16,T4,true,hami-core:GPU-b,2,16,T4,true,hami-core:"));
    set_pod(&r, "a", ONE(VGPU("1", "1")),
            LIST("GPU-a,NVIDIA,1,0:") ",\"volcano.sh/bind-phase\":\"success\"");
    ck_assert_int_eq(fit_of(&r, ONE(VGPU("1", "1")), "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 1);
    ck_assert_int_eq(fit_of(&r, ONE(VGPU("2", "1")), "n", &there), VERDICT_POD_LIMIT);
    rig_done(&r);
}

/* Of an odd size: HAMi's schedulers round down, so two halves fit. */
TEST(parts_of_a_card_are_rounded_down)
{
    struct rig r;
    struct placement there;
    const char *half =
        ONE("\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-memory-percentage\":\"50\"");
    all_dialects();
    rig_init(&r);
    set_table(&r, VGPU_TABLE("GPU-a,9,15,T4,true,hami-core:"));
    ck_assert_int_eq(fit_of(&r, half, "n", &there), VERDICT_FITS);
    ck_assert_int_eq(there.grants[0].mem, 7);
    set_pod(&r, "a", half, LIST("GPU-a,NVIDIA,7,0:") ",\"volcano.sh/bind-phase\":\"success\"");
    ck_assert_int_eq(fit_of(&r, half, "n", &there), VERDICT_FITS);
    set_pod(&r, "b", half, LIST("GPU-a,NVIDIA,7,0:") ",\"volcano.sh/bind-phase\":\"success\"");
    ck_assert_int_eq(fit_of(&r, half, "n", &there), VERDICT_NO_CARD_FREE);
    rig_done(&r);
}

/* The kubelet asks for the number alone: without it the container gets no card and no limit. */
TEST_EACH(memory_needs_a_number_of_cards, 2)
{
    static const char *const resources[] = {"volcano.sh/vgpu-memory", "nvidia.com/gpumem"};
    char container[128];
    char error[128];
    struct object o;
    all_dialects();
    (void)snprintf(container, sizeof(container), ONE("\"%s\":\"8\""), resources[_i]);
    (void)snprintf(error, sizeof(error),
                   "container \"c0\": %s: the device plugin wants a limit of cards beside it",
                   resources[_i]);
    object_pod(&o, "p", container, "", "");
    ck_assert_int_eq(o.readable, ERR_RANGE);
    ck_assert_str_eq(o.err.text, error);
    ck_assert_int_eq(o.request.mem, 8);
    object_end(&o);
}

TEST(its_reasons_are_the_plugins)
{
    struct rig r;
    char bytes[256];
    struct buf scratch = BUF_ON(bytes);
    all_dialects();
    rig_init(&r);
    for (enum dialect d = DIALECT_TENCENT; d < DIALECT_COUNT; d++) {
        set_node(&r, "n", d);
        ck_assert_str_is(fit_reason(node_of(&r, "n"), VERDICT_SWAP, STR("n"), &scratch),
                         "Waits: the device plugin has not yet acknowledged another pod of the "
                         "node");
    }
    ck_assert_str_is(fit_reason(node_of(&r, "n"), VERDICT_POD_LIMIT, STR("n"), &scratch),
                     "As many pods as the device plugin or ack.node.gpu.max-pod allows are on "
                     "each GPU device with room");
    rig_done(&r);
}

/* A limit of 0 is none for the plugin's library. */
TEST(a_part_is_never_nothing)
{
    struct rig r;
    struct placement there;
    const char *small =
        ONE("\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-memory-percentage\":\"1\"");
    all_dialects();
    rig_init(&r);
    set_table(&r, VGPU_TABLE("GPU-a,9,80,T4,true,hami-core:"));
    ck_assert_int_eq(fit_of(&r, small, "n", &there), VERDICT_FITS);
    ck_assert_int_eq(there.grants[0].mem, 1);
    rig_done(&r);
}

/* Compute that can't be read does not hide the memory, nor the other way round. */
TEST(each_amount_counts_by_itself)
{
    struct rig r;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_VGPU);
    set_pod(&r, "a", ONE(VGPU("1", "3")), LIST("GPU-a,NVIDIA,9,101:"));
    ck_assert_int_eq(card_used(&r, "n", 0), 9);
    ck_assert_uint_eq(node_of(&r, "n")->cards[0].cores, 100);
    set_pod(&r, "b", ONE(VGPU("2", "3")), LIST("GPU-b,NVIDIA,-9,30:GPU-c,NVIDIA,3,0:"));
    ck_assert_int_eq(card_used(&r, "n", 1), 6);
    ck_assert_uint_eq(node_of(&r, "n")->cards[1].cores, 30);
    rig_done(&r);
}

/* A pod's author may write the list of a pod that runs with the amounts of its spec. */
TEST(a_list_never_counts_less_than_the_spec)
{
    struct rig r;
    const char *two = ONE(VGPU("2", "8") ",\"volcano.sh/vgpu-cores\":\"30\"");
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_VGPU);
    set_pod(&r, "a", two, LIST("GPU-a,NVIDIA,1,0:GPU-b,NVIDIA,9,40:"));
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_uint_eq(node_of(&r, "n")->cards[0].cores, 30);
    ck_assert_int_eq(card_used(&r, "n", 1), 9);
    ck_assert_uint_eq(node_of(&r, "n")->cards[1].cores, 40);
    set_pod(&r, "a", two, LIST("GPU-a,NVIDIA,1,0:"));
    ck_assert_int_eq(card_used(&r, "n", 0), 16);
    set_pod(&r, "a", two, LIST("GPU-x,NVIDIA,1,0:GPU-y,NVIDIA,1,0:"));
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 16);
    rig_done(&r);
}

/* A pod's annotations may have 256 KiB. The amounts of a list of that size count for the node. */
TEST(a_huge_list_is_not_kept)
{
    static char list[40 * KIB];
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_VGPU);
    memset(list, ';', sizeof(list));
    memcpy(list, "GPU-a,NVIDIA,9,0:", 17);
    list[sizeof(list) - 1] = ':';
    object_pod(&o, "a", plain[DIALECT_VGPU], "", "n");
    o.pod.said[DIALECT_VGPU].idx = (struct str){list, sizeof(list)};
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_uint_eq(pod_of(&r, "a")->list_n, 0);
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 9);
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    set_node(&r, "n", DIALECT_VGPU);
    set_table(&r, VGPU_TABLE(VGPU_CARD("GPU-b") VGPU_CARD("GPU-a")));
    ck_assert_int_eq(node_of(&r, "n")->unplaced, 9);
    object_end(&o);
    pod_gone(&r, "a");
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    rig_done(&r);
}

/* Pods with cards in several containers, which HAMi's scheduler has bound. */
static const struct {
    const char *containers;
    const char *list;
    int64_t used[4];
    int64_t nowhere;
} held[] = {
    {TWO(HAMI("1", "8"), HAMI("2", "4")),
     "GPU-c,NVIDIA,8,0:;GPU-c,NVIDIA,4,0:GPU-a,NVIDIA,4,0:;",
     {4, 0, 12, 0},
     0},
    /* A container with all compute of a card has it alone; the other one has only its part. */
    {TWO(HAMI("1", "8") ",\"nvidia.com/gpucores\":\"100\"", HAMI("1", "4")),
     "GPU-c,NVIDIA,8,100:;GPU-b,NVIDIA,4,0:;",
     {0, 4, 16, 0},
     0},
    /* No container counts less than its spec says, also as a part of its card. */
    {TWO(HAMI("1", "8"), "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"50\""),
     "GPU-c,NVIDIA,1,0:;GPU-b,NVIDIA,1,0:;",
     {0, 8, 8, 0},
     0},
    {TWO(HAMI("1", "8"), HAMI("1", "4")), "GPU-x,NVIDIA,8,0:;GPU-b,NVIDIA,4,0:;", {0, 4, 0, 0}, 8},
    /* Nor does a part that is no container's, or one's without cards. */
    {TWO(HAMI("1", "8"), HAMI("1", "4")), ";;GPU-a,NVIDIA,0,0:GPU-b,NVIDIA,9,0:;", {8, 9, 0, 0}, 0},
    {TWO(HAMI("1", "1"), "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"50\""),
     ";;GPU-a,NVIDIA,0,0:;GPU-b,NVIDIA,0,0:;",
     {8, 8, 0, 0},
     0},
    /* Of init containers and the others the larger sum of each card counts. */
    {INITS(C(HAMI("1", "6"))) "," MAINS(D(HAMI("1", "4"))),
     "GPU-b,NVIDIA,6,0:;GPU-b,NVIDIA,4,0:;",
     {0, 6, 0, 0},
     0},
    {INITS(C(HAMI("1", "6")) "," D(HAMI("2", "7"))) "," MAINS(E(HAMI("1", "4"))),
     "GPU-b,NVIDIA,6,0:;GPU-b,NVIDIA,7,0:GPU-c,NVIDIA,7,0:;GPU-a,NVIDIA,4,0:;",
     {4, 7, 7, 0},
     0},
    /* A sidecar runs beside all containers, and beside the init containers after it. */
    {INITS(SIDECAR(HAMI("1", "6")) "," D(HAMI("1", "5"))) "," MAINS(E(HAMI("1", "4"))),
     "GPU-b,NVIDIA,6,0:;GPU-b,NVIDIA,5,0:;GPU-b,NVIDIA,4,0:;",
     {0, 11, 0, 0},
     0},
    {INITS(D(HAMI("1", "8")) "," SIDECAR(HAMI("1", "6"))) "," MAINS(E(HAMI("1", "1"))),
     "GPU-b,NVIDIA,8,0:;GPU-b,NVIDIA,6,0:;GPU-b,NVIDIA,1,0:;",
     {0, 8, 0, 0},
     0},
    {INITS(SIDECAR(HAMI("1", "6"))) "," MAINS(E(HAMI("1", "4"))),
     "GPU-b,NVIDIA,6,0:;GPU-b,NVIDIA,4,0:;",
     {0, 10, 0, 0},
     0},
    /* HAMi's scheduler has left out a container without cards: no part is known to end. */
    {INITS("{\"name\":\"i0\"}," C(HAMI("1", "2"))) "," MAINS(D(HAMI("1", "4"))),
     "GPU-b,NVIDIA,2,0:;GPU-b,NVIDIA,4,0:;",
     {0, 8, 0, 0},
     0},
    /* Whole for an init container: until the pod ends, others get nothing of it. */
    {INITS(C(HAMI("1", "8") ",\"nvidia.com/gpucores\":\"100\"")) "," MAINS(D(HAMI("1", "4"))),
     "GPU-c,NVIDIA,8,100:;GPU-c,NVIDIA,4,0:;",
     {0, 0, 16, 0},
     0},
    {INITS(C(HAMI("1", "6"))) "," MAINS("{\"name\":\"c1\"}"),
     "GPU-b,NVIDIA,6,0:;;",
     {0, 6, 0, 0},
     0},
};

TEST_EACH(charges_the_cards_of_each_container, COUNT_OF(held))
{
    struct rig r;
    char annotation[256];
    all_dialects();
    rig_init(&r);
    (void)snprintf(annotation, sizeof(annotation), "\"hami.io/vgpu-devices-allocated\":\"%s\"",
                   held[_i].list);
    set_node(&r, "n", DIALECT_HAMI);
    set_pod(&r, "a", held[_i].containers, annotation);
    for (unsigned twice = 0; twice < 2; twice++) {
        for (uint32_t card = 0; card < 4; card++)
            ck_assert_int_eq(card_used(&r, "n", card), held[_i].used[card]);
        ck_assert_int_eq(node_of(&r, "n")->unplaced, held[_i].nowhere);
        set_node(&r, "n", DIALECT_VGPU); /* another plugin, and back */
        set_node(&r, "n", DIALECT_HAMI);
    }
    pod_gone(&r, "a");
    ck_assert_int_eq(node_of(&r, "n")->used, 0);
    rig_done(&r);
}

/* With shrink-after-init a pod whose init containers are done holds what lasts, also if cards
 * change their places meanwhile. */
TEST_EACH(init_containers_leave_their_cards, 2)
{
    static const int64_t then[2][2] = {{10, 6}, {9, 0}};
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    r.cache.settings.shrink = _i == 1;
    set_node(&r, "n", DIALECT_HAMI);
    object_pod(&o, "a",
               INITS(SIDECAR(HAMI("1", "4")) "," D(HAMI("2", "6"))) "," MAINS(E(HAMI("1", "5"))),
               "\"hami.io/vgpu-devices-allocated\":"
               "\"GPU-a,NVIDIA,4,0:;GPU-a,NVIDIA,6,0:GPU-b,NVIDIA,6,0:;GPU-a,NVIDIA,5,0:;\"",
               "n");
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(card_used(&r, "n", 0), 10);
    ck_assert_int_eq(card_used(&r, "n", 1), 6);
    e.pod.initialized = true;
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    for (unsigned twice = 0; twice < 2; twice++) {
        ck_assert_int_eq(card_used(&r, "n", 0), then[_i][0]);
        ck_assert_int_eq(card_used(&r, "n", 1), then[_i][1]);
        set_node(&r, "n", DIALECT_VGPU);
        set_node(&r, "n", DIALECT_HAMI);
    }
    e.pod.initialized = false; /* they run again */
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(card_used(&r, "n", 0), 10);
    ck_assert_int_eq(card_used(&r, "n", 1), 6);
    object_end(&o);
    rig_done(&r);
}

/* So does a pod that has cards in init containers alone. */
static const struct {
    const char *inits;
    const char *list;
    int64_t peak[2];
} ending[] = {
    {INITS(C(HAMI("1", "6"))), "GPU-a,NVIDIA,6,0:;;", {6, 0}},
    {INITS(C(HAMI("2", "6") ",\"nvidia.com/gpucores\":\"30\"")),
     "GPU-a,NVIDIA,6,30:GPU-b,NVIDIA,6,30:;;",
     {6, 6}},
    {INITS(C(HAMI("1", "6")) "," D(HAMI("1", "7"))),
     "GPU-a,NVIDIA,6,0:;GPU-b,NVIDIA,7,0:;;",
     {6, 7}},
};

TEST_EACH(init_containers_alone_leave_all, COUNT_OF(ending))
{
    struct rig r;
    struct object o;
    char containers[512];
    char annotation[256];
    all_dialects();
    rig_init(&r);
    r.cache.settings.shrink = true;
    set_node(&r, "n", DIALECT_HAMI);
    (void)snprintf(containers, sizeof(containers), "%s," MAINS("{\"name\":\"c\"}"),
                   ending[_i].inits);
    (void)snprintf(annotation, sizeof(annotation), "\"hami.io/vgpu-devices-allocated\":\"%s\"",
                   ending[_i].list);
    object_pod(&o, "a", containers, annotation, "n");
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    for (unsigned turn = 0; turn < 3; turn++) {
        e.pod.initialized = turn == 1;
        ck_assert_int_eq(rig_apply(&r, &e), OK);
        for (uint32_t card = 0; card < 2; card++)
            ck_assert_int_eq(card_used(&r, "n", card), turn == 1 ? 0 : ending[_i].peak[card]);
        ck_assert(turn != 1 || node_of(&r, "n")->cards[0].cores == 0);
        ck_assert_uint_eq(node_of(&r, "n")->cards[0].pods, 1);
    }
    object_end(&o);
    rig_done(&r);
}
