/* The reason text of a card on which room is kept for another pod. */
#include "cache_rig.h"
#include "report/reason.h"

static void node_of_two(struct rig *r, const char *max_pods)
{
    struct cache_event e = {
        .type = CACHE_NODE_SET,
        .node = {
            .name = STR("n"), .mem = STR("32"), .count = STR("2"), .max_pods = str_of(max_pods)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

/* A pod nominated for card 0, with a higher priority than all pods that ask. */
static void nominated(struct rig *r, const char *mem, const char *cores)
{
    struct container_view container = {
        .name = STR("c"), .mem = str_of(mem), .cores = str_of(cores)};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = STR("waits"),
                                    .namespace = STR("ns"),
                                    .name = STR("waits"),
                                    .phase = STR("Pending"),
                                    .nominated = STR("n"),
                                    .priority = 5,
                                    .containers = &container,
                                    .n_containers = 1}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static void reads(const struct rig *r, int64_t mem, uint16_t cores, const char *reason)
{
    struct request q = {
        .mem = mem,
        .lasting_mem = mem,
        .cores = cores,
        .lasting_cores = cores,
        .namespace = STR("ns"),
        .n_demands = 1,
        .demands = {{.mem = mem, .cores = cores}},
    };
    char bytes[256];
    struct buf text = BUF_ON(bytes);
    struct reason_scene s;
    const struct node *n = cache_node(&r->cache, STR("n"));
    struct evaluation evaluation;
    cache_evaluation(&r->cache, STR("asks"), &q, &evaluation);
    reason_scene_open(&s, n, &evaluation);
    reason_card(&text, &s, &evaluation, 0, reason_evaluate(&s, &evaluation, 0), REASON_FOR_ALL);
    ck_assert_str_is(buf_str(&text), reason);
}

TEST(memory_is_kept)
{
    struct rig r;
    rig_init(&r);
    node_of_two(&r, NULL);
    nominated(&r, "12", NULL);
    reads(&r, 4, 0, "16 of 16 free, 4 asked");
    reads(&r, 5, 0, "16 of 16 free, 5 asked, but 12 kept for others");
    rig_done(&r);
}

TEST(a_place_is_kept)
{
    struct rig r;
    rig_init(&r);
    node_of_two(&r, "2");
    pod_set(&r, .uid = "there", .mem = "2", .node = "n", .idx = "0");
    nominated(&r, "2", NULL);
    reads(&r, 2, 0, "holds 1 pod, of 2 that are allowed, and 1 kept for others");
    rig_done(&r);
}

TEST(compute_is_kept)
{
    struct rig r;
    rig_init(&r);
    node_of_two(&r, NULL);
    nominated(&r, "2", "70");
    reads(&r, 2, 30, "16 of 16 free, 2 asked");
    reads(&r, 2, 31, "100% of its compute free, 31% asked, but 70% kept for others");
    rig_done(&r);
}
