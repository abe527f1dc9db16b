/* Pods of HAMi's dialect with cards in several containers: their victims, and their quota. */
#include "core/preempt/victims.h"
#include "core/state/vgpu.h"
#include "core/step_budget.h"
#include "dialect_rig.h"

#define WHOLE_HAMI "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpucores\":\"100\""
#define PART(n, p) "\"nvidia.com/gpu\":\"" n "\",\"nvidia.com/gpumem-percentage\":\"" p "\""

static void set_pod_of(struct rig *r, const char *uid, const char *list, int32_t priority)
{
    struct object o;
    char annotations[160];
    (void)snprintf(annotations, sizeof(annotations),
                   "\"hami.io/vgpu-devices-allocated\":\"%s\",\"hami.io/bind-phase\":\"success\"",
                   list);
    object_pod(&o, uid, ONE(HAMI("1", "1")), annotations, "n");
    o.pod.priority = priority;
    o.pod.phase = STR("Running");
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

/* The first container must leave the card that it would have alone: that takes some steps. The
 * victims are found with as many as the pod needs where they are gone already. */
TEST(victims_take_no_more_steps_than_room)
{
    struct rig rigs[2]; /* the second one without the victim */
    struct object o;
    unsigned found = 0;
    all_dialects();
    for (unsigned i = 0; i < 2; i++) {
        rig_init(&rigs[i]);
        set_node(&rigs[i], "n", DIALECT_HAMI);
        set_pod_of(&rigs[i], "stays", "GPU-a,NVIDIA,4,0:;", 100);
    }
    set_pod_of(&rigs[0], "goes", "GPU-d,NVIDIA,16,0:;", 1);
    object_pod(&o, "new", TWO(HAMI("1", "4"), HAMI("4", "12")),
               "\"cardpack.io/policy\":\"binpack\"", "");
    ck_assert_int_eq(o.readable, OK);
    o.request.priority = 50;
    cache_evaluation(&rigs[0].cache, STR("new"), &o.request, &o.evaluation);
    for (unsigned looks = 0; looks < 1000; looks++) {
        struct step_budget step_budget;
        struct arena arena;
        struct victims got;
        struct placement there;
        unsigned steps = 1000;
        struct victims_question q = {
            .node = node_of(&rigs[0], "n"), .evaluation = &o.evaluation, .steps = &steps};
        arena_init(&arena, MIB);
        o.evaluation.step_budget = &step_budget;
        step_budget_begin(&step_budget, 1);
        step_budget.looks = looks;
        bool room = fit_place(node_of(&rigs[1], "n"), &o.evaluation, &there) == VERDICT_FITS;
        step_budget_begin(&step_budget, 1);
        step_budget.looks = looks;
        ck_assert_int_eq(victims_choose(&q, &arena, &got), OK);
        ck_assert_msg((got.verdict == VERDICT_FITS) == room, "%u", looks);
        ck_assert(!room || (got.cost.n == 1 && got.there.n == 5));
        ck_assert_uint_le(step_budget.looks, looks);
        found += room ? 1 : 0;
        arena_done(&arena);
    }
    ck_assert_uint_gt(found, 100);
    ck_assert_uint_lt(found, 1000);
    object_end(&o);
    rig_done(&rigs[0]);
    rig_done(&rigs[1]);
}

/* Each container is within the quota, but not both. */
static const struct {
    const char *containers;
    int64_t mem;
    int64_t cards;
    enum verdict verdict;
    const char *why;
} rationed[] = {
    {TWO(HAMI("1", "6"), HAMI("1", "6")), 12, -1, VERDICT_FITS, NULL},
    {TWO(HAMI("1", "6"), HAMI("1", "6")), 10, -1, VERDICT_QUOTA,
     "quota of namespace ns: memory: 0 of 10 used, 12 asked"},
    {TWO(PART("1", "50"), PART("2", "25")), 15, -1, VERDICT_QUOTA,
     "quota of namespace ns: memory: 0 of 15 used, 16 asked"},
    {TWO(WHOLE_HAMI, HAMI("1", "6")), 20, -1, VERDICT_QUOTA,
     "quota of namespace ns: memory: 0 of 20 used, 22 asked"},
    {TWO(HAMI("2", "6"), HAMI("1", "6")), -1, 2, VERDICT_FITS, NULL},
    {TWO(HAMI("1", "12"), HAMI("1", "12")), -1, 1, VERDICT_QUOTA, NULL},
    {TWO(HAMI("4", "9"), HAMI("1", "9")), 100, -1, VERDICT_TOO_FEW, NULL},
    /* Of an init container and the others the larger counts. */
    {INITS(C(HAMI("1", "6"))) "," MAINS(D(HAMI("1", "5"))), 6, 1, VERDICT_FITS, NULL},
    {INITS(C(HAMI("2", "6"))) "," MAINS(D(HAMI("1", "5"))), 11, 2, VERDICT_QUOTA_DENIED,
     "quota of namespace ns: memory: 0 of 11 used, 12 asked"},
    {INITS(C(HAMI("1", "6"))) "," MAINS(D(HAMI("2", "5"))), 10, 2, VERDICT_QUOTA, NULL},
    {INITS(C(HAMI("1", "6"))) "," MAINS(D(HAMI("2", "5"))), 11, 2, VERDICT_FITS, NULL},
};

TEST_EACH(a_quota_counts_all_containers, COUNT_OF(rationed))
{
    struct quota_limit limit = {.scope = QUOTA_TOTAL,
                                .most = {rationed[_i].mem, rationed[_i].cards, -1}};
    struct quota_entry entry = {.namespace = STR("ns"), .limits = &limit, .n_limits = 1};
    struct cache_event e = {.type = CACHE_QUOTA_SET, .quota = {&entry, 1}};
    struct quota_refusal refusal;
    struct rig r;
    struct object o;
    struct placement there;
    char bytes[256];
    struct buf why = BUF_ON(bytes);
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_HAMI);
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    object_pod(&o, "asked", rationed[_i].containers, "", "");
    ck_assert_int_eq(o.readable, OK);
    cache_evaluation(&r.cache, STR("asked"), &o.request, &o.evaluation);
    enum verdict v = fit_place(node_of(&r, "n"), &o.evaluation, &there);
    ck_assert_str_eq(verdict_name(v), verdict_name(rationed[_i].verdict));
    if (rationed[_i].why != NULL) {
        ck_assert(fit_refusal(node_of(&r, "n"), &o.evaluation, v, &refusal));
        quota_refusal_write(&refusal, &why);
        ck_assert_str_is(buf_str(&why), rationed[_i].why);
    }
    object_end(&o);
    rig_done(&r);
}

/* On a node of four cards of 16, of which the first two have this much: where each container's
 * cards are. */
static const struct {
    const char *containers;
    const char *pods[2]; /* of card 0 and card 1; NULL: none */
    const char *policy;
    enum verdict verdict;
    const char *cards; /* each container's, in order */
} fits[] = {
    /* On one card with binpack, as long as it has room. */
    {TWO(HAMI("1", "8"), HAMI("1", "8")), {NULL, NULL}, "binpack", VERDICT_FITS, "0 0"},
    {TWO(HAMI("1", "8"), HAMI("1", "9")), {NULL, NULL}, "binpack", VERDICT_FITS, "0 1"},
    {TWO(HAMI("1", "8"), HAMI("1", "8")), {NULL, NULL}, "spread", VERDICT_FITS, "0 1"},
    {TWO(HAMI("2", "8"), HAMI("2", "8")), {NULL, NULL}, "spread", VERDICT_FITS, "01 23"},
    {TWO(HAMI("2", "8"), HAMI("1", "8")), {NULL, NULL}, "binpack", VERDICT_FITS, "01 0"},
    {TWO(HAMI("1", "8"), HAMI("4", "4")), {NULL, NULL}, "binpack", VERDICT_FITS, "0 0123"},
    {TWO(HAMI("1", "8"), HAMI("1", "8")), {"9", NULL}, "binpack", VERDICT_FITS, "1 1"},
    /* The first container gives way where the second would have no card. */
    {TWO(HAMI("1", "4"), HAMI("4", "13")), {NULL, NULL}, "binpack", VERDICT_TOO_FEW, NULL},
    {TWO(HAMI("1", "4"), HAMI("3", "13")), {"3", NULL}, "binpack", VERDICT_FITS, "0 123"},
    {TWO(HAMI("1", "7"), HAMI("3", "9")), {"8", NULL}, "binpack", VERDICT_FITS, "0 123"},
    {TWO(HAMI("1", "4"), HAMI("1", "12")), {"4", "4"}, "binpack", VERDICT_FITS, "0 1"},
    /* Whole cards. */
    {TWO(WHOLE_HAMI, HAMI("1", "1")), {NULL, NULL}, "binpack", VERDICT_FITS, "0 1"},
    {TWO(HAMI("1", "1"), WHOLE_HAMI), {NULL, NULL}, "binpack", VERDICT_FITS, "0 1"},
    {TWO(WHOLE_HAMI, WHOLE_HAMI), {"1", "1"}, "binpack", VERDICT_FITS, "2 3"},
    {MAINS(C(WHOLE_HAMI) "," D(WHOLE_HAMI) "," E(WHOLE_HAMI)),
     {"1", "1"},
     "binpack",
     VERDICT_NO_CARD_FREE,
     NULL},
    {MAINS(C(HAMI("2", "1")) "," D(PART("1", "100")) "," E(WHOLE_HAMI)),
     {"1", NULL},
     "binpack",
     VERDICT_FITS,
     "01 2 3"},
    /* Parts of cards. */
    {TWO(PART("1", "50"), PART("1", "50")), {NULL, NULL}, "binpack", VERDICT_FITS, "0 0"},
    {TWO(PART("4", "50"), PART("4", "51")), {NULL, NULL}, "binpack", VERDICT_FITS, "0123 0123"},
    {TWO(PART("4", "50"), PART("4", "60")), {NULL, NULL}, "binpack", VERDICT_TOO_FEW, NULL},
    /* Init containers: beside the sidecars before them alone. */
    {INITS(C(HAMI("1", "12"))) "," MAINS(D(HAMI("1", "12"))),
     {NULL, NULL},
     "binpack",
     VERDICT_FITS,
     "0 0"},
    {INITS(C(HAMI("1", "12")) "," D(HAMI("1", "16"))) "," MAINS(E(HAMI("1", "12"))),
     {"4", NULL},
     "binpack",
     VERDICT_FITS,
     "0 1 0"},
    {INITS(SIDECAR(HAMI("1", "6")) "," D(HAMI("1", "12"))) "," MAINS(E(HAMI("1", "10"))),
     {NULL, NULL},
     "binpack",
     VERDICT_FITS,
     "0 1 0"},
    {INITS(D(HAMI("1", "12")) "," SIDECAR(HAMI("1", "6"))) "," MAINS(E(HAMI("1", "12"))),
     {NULL, NULL},
     "binpack",
     VERDICT_FITS,
     "0 0 1"},
    {INITS(C(HAMI("4", "16"))) "," MAINS(D(HAMI("1", "4"))),
     {NULL, NULL},
     "binpack",
     VERDICT_FITS,
     "0123 0"},
    {INITS(C(HAMI("4", "16"))) "," MAINS(D(HAMI("1", "4"))),
     {"1", NULL},
     "binpack",
     VERDICT_NO_CARD_FREE,
     NULL},
    {INITS(C(WHOLE_HAMI)) "," MAINS(D(HAMI("1", "4"))),
     {"1", NULL},
     "binpack",
     VERDICT_FITS,
     "1 0"},
    {INITS(C(WHOLE_HAMI)) "," MAINS(D(WHOLE_HAMI)), {"1", "1"}, "binpack", VERDICT_FITS, "2 2"},
    {INITS(SIDECAR(WHOLE_HAMI) "," D(WHOLE_HAMI)) "," MAINS(E(HAMI("1", "4"))),
     {"1", "1"},
     "binpack",
     VERDICT_FITS,
     "2 3 0"},
    {INITS(C(PART("3", "100"))) "," MAINS(D(PART("4", "25"))),
     {"4", NULL},
     "binpack",
     VERDICT_FITS,
     "123 0123"},
    {INITS(C(HAMI("2", "8"))) "," MAINS("{\"name\":\"c1\"}"),
     {"9", NULL},
     "binpack",
     VERDICT_FITS,
     "12"},
    /* What no card or no node can have. */
    {TWO(HAMI("1", "1"), HAMI("1", "17")), {NULL, NULL}, "binpack", VERDICT_TOO_LARGE, NULL},
    {TWO(HAMI("1", "1"), HAMI("5", "1")), {NULL, NULL}, "binpack", VERDICT_TOO_FEW, NULL},
    {TWO(HAMI("4", "9"), HAMI("1", "9")), {NULL, NULL}, "binpack", VERDICT_TOO_FEW, NULL},
};

static void put_cards(const struct placement *there, struct buf *out)
{
    for (uint32_t i = 0; i < there->n; i++)
        buf_printf(out, "%s%u",
                   i > 0 && there->grants[i].container != there->grants[i - 1].container ? " " : "",
                   there->grants[i].card);
}

TEST_EACH(each_container_gets_its_own_cards, COUNT_OF(fits))
{
    struct rig r;
    struct object o;
    struct placement there;
    char bytes[64];
    struct buf cards = BUF_ON(bytes);
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_HAMI);
    for (unsigned i = 0; i < 2; i++) {
        char uid[3] = {'p', (char)('0' + i), '\0'};
        if (fits[_i].pods[i] == NULL)
            continue;
        char list[160];
        (void)snprintf(list, sizeof(list),
                       "\"hami.io/vgpu-devices-allocated\":\"GPU-%c,NVIDIA,%s,0:;\","
                       "\"hami.io/bind-phase\":\"success\"",
                       "ab"[i], fits[_i].pods[i]);
        set_pod(&r, uid, ONE(HAMI("1", "1")), list);
    }
    (void)snprintf(bytes, sizeof(bytes), "\"cardpack.io/policy\":\"%s\"", fits[_i].policy);
    object_pod(&o, "asked", fits[_i].containers, bytes, "");
    ck_assert_msg(o.readable == OK, "%s", o.err.text);
    cache_evaluation(&r.cache, STR("asked"), &o.request, &o.evaluation);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &o.evaluation), fits[_i].verdict);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &o.evaluation, &there), fits[_i].verdict);
    if (fits[_i].verdict == VERDICT_FITS) {
        put_cards(&there, &cards);
        ck_assert_str_is(buf_str(&cards), fits[_i].cards);
    }
    object_end(&o);
    rig_done(&r);
}

/* HAMi's scheduler counts the containers of a card, not its pods. */
TEST(each_container_takes_a_place_of_its_card)
{
    struct rig r;
    struct placement there;
    struct object o;
    all_dialects();
    rig_init(&r);
    object_node(&o, "n",
                ",\"annotations\":{\"hami.io/node-nvidia-register\":"
                "\"GPU-a,3,16,100,A10,0,true:\"}",
                capacities[DIALECT_HAMI], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    object_end(&o);
    set_pod(&r, "a", TWO(HAMI("1", "1"), HAMI("1", "1")),
            "\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,1,0:;GPU-a,NVIDIA,1,0:;\","
            "\"hami.io/bind-phase\":\"success\"");
    ck_assert_uint_eq(card_takers(&node_of(&r, "n")->cards[0]), 2);
    ck_assert_uint_eq(node_of(&r, "n")->cards[0].pods, 1);
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_HAMI], "n", &there), VERDICT_FITS);
    ck_assert_int_eq(fit_of(&r, TWO(HAMI("1", "1"), HAMI("1", "1")), "n", &there),
                     VERDICT_NO_CARD_FREE);
    pod_gone(&r, "a");
    ck_assert_uint_eq(card_takers(&node_of(&r, "n")->cards[0]), 0);
    ck_assert_int_eq(fit_of(&r, TWO(HAMI("1", "1"), HAMI("1", "1")), "n", &there), VERDICT_FITS);
    rig_done(&r);
}

/* Of a pod whose only container with cards is an init container: the plugin limits it to what the
 * list says, and 0 would be no limit. */
TEST_EACH(an_init_container_alone_gets_its_amounts, 5)
{
    static const struct {
        const char *limits;
        int64_t mem;
        uint16_t cores;
        uint32_t cards;
        const char *list;
    } of[] = {
        {HAMI("1", "6"), 6, 0, 1, "GPU-a,NVIDIA,6,0:"},
        {HAMI("1", "6") ",\"nvidia.com/gpucores\":\"30\"", 6, 30, 1, "GPU-a,NVIDIA,6,30:"},
        {HAMI("2", "6"), 6, 0, 2, "GPU-a,NVIDIA,6,0:GPU-b,NVIDIA,6,0:"},
        {PART("1", "50"), 8, 0, 1, "GPU-a,NVIDIA,8,0:"},
        {WHOLE_HAMI, 16, 100, 1, "GPU-a,NVIDIA,16,100:"},
    };
    struct rig r;
    struct placement there;
    struct buf list;
    char containers[256];
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_HAMI);
    (void)snprintf(containers, sizeof(containers), INITS(C("%s")) "," MAINS("{\"name\":\"c1\"}"),
                   of[_i].limits);
    ck_assert_int_eq(fit_of(&r, containers, "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.n, of[_i].cards);
    for (uint32_t i = 0; i < there.n; i++) {
        ck_assert_int_eq(there.grants[i].mem, of[_i].mem);
        ck_assert_uint_eq(there.grants[i].cores, of[_i].cores);
    }
    buf_init(&list, SIZE_MAX);
    vgpu_write(there.grants, there.n, node_of(&r, "n"), &list);
    ck_assert_str_is(buf_str(&list), of[_i].list);
    buf_done(&list);
    rig_done(&r);
}

/* The sidecar must leave the card that only the last container can have. What the init container
 * between them could have otherwise makes no difference to that. */
TEST(init_containers_do_not_multiply_the_search)
{
    struct rig r;
    struct object o;
    struct placement there;
    struct step_budget step_budget;
    char table[1024];
    struct buf text = BUF_ON(table);
    all_dialects();
    rig_init(&r);
    buf_put(&text, STR(",\"annotations\":{\"hami.io/node-nvidia-register\":\""));
    for (int i = 0; i < 16; i++)
        buf_printf(&text, "GPU-%c,10,%d,100,A10,0,true:", 'a' + i, 10 + i);
    buf_printf(&text, "\"}%c", 0);
    ck_assert(!buf_failed(&text));
    object_node(&o, "n", table, capacities[DIALECT_HAMI], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    object_end(&o);
    object_pod(&o, "asked",
               INITS(SIDECAR(HAMI("1", "20")) "," C(HAMI("8", "1"))) "," MAINS(D(HAMI("1", "25"))),
               "\"cardpack.io/policy\":\"spread\"", "");
    ck_assert_int_eq(o.readable, OK);
    cache_evaluation(&r.cache, STR("asked"), &o.request, &o.evaluation);
    o.evaluation.step_budget = &step_budget;
    step_budget_begin(&step_budget, 1);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &o.evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.n, 10);
    ck_assert_uint_eq(there.grants[0].card, 14);
    ck_assert_uint_eq(there.grants[9].card, 15);
    object_end(&o);
    rig_done(&r);
}
