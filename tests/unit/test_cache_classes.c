/* Cards that pods request of DeviceClasses by their implicit names: how many, and what is left. */
#include "core/place/fit.h"
#include "dra_rig.h"
#include "report/plan.h"

#define MAIN(c, n)                                                  \
    {                                                               \
        .class = {c, sizeof(c) - 1}, .amount = { n, sizeof(n) - 1 } \
    }
#define INIT(c, n)                                                   \
    {                                                                \
        {c, sizeof(c) - 1}, {n, sizeof(n) - 1}, CONTAINER_INIT, true \
    }
#define SIDECAR(c, n)                                                   \
    {                                                                   \
        {c, sizeof(c) - 1}, {n, sizeof(n) - 1}, CONTAINER_SIDECAR, true \
    }

/* "gpu" and "gpus" are classes of nvidia.com/gpu, "nics" is none. */
static const struct {
    struct class_request_view of[5];
    uint32_t n;
    uint32_t then;
} asks[] = {
    {.n = 0},
    {{MAIN("gpu", "2")}, 1, 2},
    {{MAIN("nics", "2")}, 1, 0},
    {{MAIN("none", "2"), MAIN("gpu", "1")}, 2, 1},
    {{MAIN("gpu", "1"), MAIN("gpu", "2")}, 2, 3},
    {{MAIN("gpu", "1"), MAIN("gpus", "2"), MAIN("gpu", "4")}, 3, 7},
    /* each class has its own peak */
    {{INIT("gpu", "3"), MAIN("gpus", "2"), MAIN("gpu", "1")}, 3, 5},
    {{INIT("gpu", "3"), SIDECAR("gpu", "1"), INIT("gpu", "2"), MAIN("gpu", "1")}, 4, 3},
    {{SIDECAR("gpu", "1"), INIT("gpu", "3"), MAIN("gpu", "1")}, 3, 4},
    /* no device is requested */
    {{MAIN("gpu", "0")}, 1, 0},
    {{MAIN("gpu", "1500m")}, 1, 0},
    {{MAIN("gpu", "-1")}, 1, 0},
    {{MAIN("gpu", "x")}, 1, 0},
    {{{.class = {"gpu", 3}}}, 1, 0},
    {{MAIN("gpu", "9E"), MAIN("gpu", "9E"), MAIN("gpus", "9E")}, 3, UINT16_MAX},
};

TEST_EACH(implicit_names_of_classes_with_cards_are_counted, COUNT_OF(asks))
{
    struct rig r;
    struct request q = {.classes = asks[_i].of, .n_classes = asks[_i].n};
    rig_init(&r);
    struct evaluation evaluation;
    cache_evaluation(&r.cache, STR("p"), &q, &evaluation);
    ck_assert_uint_eq(evaluation.devices, 0);
    ck_assert_int_eq(class_set(&r, "gpu", "nvidia.com/gpu"), OK);
    ck_assert_int_eq(class_set(&r, "gpus", "nvidia.com/gpu"), OK);
    ck_assert_int_eq(class_set(&r, "nics", NULL), OK);
    cache_evaluation(&r.cache, STR("p"), &q, &evaluation);
    ck_assert_uint_eq(evaluation.devices, asks[_i].then);
    rig_done(&r);
}

/* On every node, also where nvidia.com/gpu is another plugin's, or pods share the cards. */
TEST(devices_of_a_class_end_with_the_cards)
{
    static const struct class_request_view one[] = {MAIN("gpu", "1")};
    static const struct class_request_view both[] = {MAIN("gpu", "2")};
    struct rig r;
    struct request single = {.classes = one, .n_classes = 1};
    struct request pair = {.classes = both, .n_classes = 1};
    struct request shared = {.mem = 4, .classes = both, .n_classes = 1, .n_demands = 1};
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(reserve(&r, "p", "n1", 6), OK);
    ck_assert_int_eq(class_set(&r, "gpu", "nvidia.com/gpu"), OK);
    struct evaluation of_single;
    cache_evaluation(&r.cache, STR_NULL, &single, &of_single);
    struct evaluation of_pair;
    cache_evaluation(&r.cache, STR_NULL, &pair, &of_pair);
    struct evaluation of_shared;
    cache_evaluation(&r.cache, STR_NULL, &shared, &of_shared);
    ck_assert(!request_wants(&single));
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_pair), VERDICT_FITS);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-b")), OK);
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_single), VERDICT_FITS);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_pair), VERDICT_NO_DEVICES);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_shared), VERDICT_NO_DEVICES);
    ck_assert_int_eq(fit_node(node_of(&r, "n1"), &of_shared), VERDICT_FITS);
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("other"), .exclusive = STR("8")}};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert(!node_of(&r, "other")->delegated);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "other"), &of_single), VERDICT_NO_DEVICES);
    rig_done(&r);
}

/* A node of DRA alone: cardpack knows no card of it, so it can't say that none is left. */
TEST_EACH(devices_of_an_unknown_card_have_no_limit, 2)
{
    static const struct class_request_view one[] = {MAIN("gpu", "1")};
    struct rig r;
    struct request q = {.classes = one, .n_classes = 1};
    const struct request whole = {.exclusive = 1};
    const struct evaluation of_whole = {.request = &whole};
    struct cache_event node = {.type = CACHE_NODE_SET, .node = {.name = STR("n1")}};
    struct cache_event gone = {.type = CACHE_SLICE_GONE, .slice = {.name = STR("s")}};
    rig_init(&r);
    ck_assert_int_eq(class_set(&r, "gpu", "nvidia.com/gpu"), OK);
    struct evaluation evaluation;
    cache_evaluation(&r.cache, STR_NULL, &q, &evaluation);
    if (_i == 0)
        ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-b")), OK);
    ck_assert_int_eq(rig_apply(&r, &node), OK);
    if (_i == 1)
        ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-b")), OK);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &evaluation), VERDICT_FITS);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_whole), VERDICT_FITS);
    ck_assert_int_eq(rig_apply(&r, &gone), OK);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &evaluation), VERDICT_NO_DEVICES);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_whole), VERDICT_NO_EXCLUSIVE);
    rig_done(&r);
}

/* Pods may be seen before their node, or be left after it. */
TEST(a_slice_of_an_absent_node_counts_once_it_is_there)
{
    static const struct class_request_view one[] = {MAIN("gpu", "1")};
    struct rig r;
    struct request q = {.classes = one, .n_classes = 1};
    struct cache_event node = {.type = CACHE_NODE_SET, .node = {.name = STR("n1")}};
    rig_init(&r);
    ck_assert_int_eq(class_set(&r, "gpu", "nvidia.com/gpu"), OK);
    struct evaluation evaluation;
    cache_evaluation(&r.cache, STR_NULL, &q, &evaluation);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-b")), OK);
    pod_set(&r, .uid = "a", .node = "n1");
    ck_assert_int_eq(rig_apply(&r, &node), OK);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &evaluation), VERDICT_FITS);
    node_gone(&r, "n1");
    ck_assert_int_eq(rig_apply(&r, &node), OK);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &evaluation), VERDICT_FITS);
    rig_done(&r);
}

/* Each replica needs other cards than the claims that there are. */
TEST_EACH(replicas_add_to_the_claims, 2)
{
    static const struct class_request_view one[] = {MAIN("gpu", "1")};
    struct rig r;
    struct arena a;
    struct plan p;
    struct request q = _i == 0 ? (struct request){.classes = one, .n_classes = 1}
                               : (struct request){.exclusive = 1};
    rig_init(&r);
    arena_init(&a, MIB);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(class_set(&r, "gpu", "nvidia.com/gpu"), OK);
    struct evaluation evaluation;
    cache_evaluation(&r.cache, STR_NULL, &q, &evaluation);
    ck_assert_int_eq(plan_make(&p, &r.cache, &evaluation, 5, &a), OK);
    ck_assert_uint_eq(p.fit, 2);
    ck_assert_int_eq(plan_next(&p, &p.sites[0]),
                     _i == 0 ? VERDICT_NO_DEVICES : VERDICT_NO_EXCLUSIVE);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-b")), OK);
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    ck_assert_int_eq(plan_make(&p, &r.cache, &evaluation, 5, &a), OK);
    ck_assert_uint_eq(p.fit, 1);
    arena_done(&a);
    rig_done(&r);
}
