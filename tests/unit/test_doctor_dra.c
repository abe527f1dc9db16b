/* What doctor finds of dialects, and of the objects of Dynamic Resource Allocation. */
#include "doctor_rig.h"

/* The amounts of a node's two plugins. */
#define G(amount)                                                       \
    {                                                                   \
        .mem = S(amount), .count = S("2"), .mem_allocatable = S(amount) \
    }
#define V G("32000")

static const struct {
    struct node_view node;
    const char *found;
} spoken[] = {
    {NODE(.mem = S("32"), .count = S("2")), ""},
    {NODE(.of = {[DIALECT_VOLCANO] = V}), ""},
    {NODE(.of = {G("32"), [DIALECT_VOLCANO] = V}),
     "WARN node/n: it has resources of two device plugins, aliyun.com/gpu-mem (gpushare) and "
     "volcano.sh/gpu-memory (volcano): pods of dialect gpushare alone"},
    {NODE(.of = {G("32"), [DIALECT_VOLCANO] = V}, .dialect = S("gpushare")), ""},
    {NODE(.of = {G("0"), [DIALECT_VOLCANO] = V}), ""},
    {NODE(.mem = S("32"), .dialect = S("volcan")),
     "FAIL node/n: label cardpack.io/dialect: \"volcan\" is no dialect: no pod is placed there"},
    {NODE(.mem = S("32"), .dialect = S("elastic")),
     "FAIL node/n: label cardpack.io/dialect: \"elastic\" is not among the dialects that are read"},
};

TEST_EACH(checks_the_dialect_of_a_node, COUNT_OF(spoken))
{
    dialects_use(DIALECT_BIT(DIALECT_GPUSHARE) | DIALECT_BIT(DIALECT_VOLCANO));
    set_node(&rig, spoken[_i].node);
    doctor_dialect(&found, &spoken[_i].node, cache_node(&rig.cache, STR("n")));
    is_found(spoken[_i].found);
}

TEST(finds_a_node_that_cardpack_does_not_read)
{
    struct figures_node seen = {.name = S("n")};
    struct figures shown = {.nodes = &seen, .n = 0};
    struct node_view volcano = NODE(.of = {[DIALECT_VOLCANO] = V});
    struct doctor_marks marks = {.ours = false};
    dialects_use(DIALECTS_ALL);
    set_node(&rig, volcano);
    doctor_node(&found, &volcano, cache_node(&rig.cache, STR("n")), &marks, NOW);
    ck_assert_uint_eq(found.n, 0);
    doctor_unread(&found, &rig.cache, &shown);
    is_found("WARN node/n: its device plugin has the resource volcano.sh/gpu-memory, of dialect "
             "volcano, which the running cardpack does not read");
    shown.n = 1;
    doctor_unread(&found, &rig.cache, &shown);
    ck_assert_uint_eq(found.n, 1);
}

#define WITH_UUIDS                                                 \
    CARDS({.index = 0, .mem = 16, .numa = -1, .uuid = S("GPU-a")}, \
          {.index = 1, .mem = 16, .numa = -1, .uuid = S("GPU-b"), .pci = 0xb})

static const struct {
    struct node_view node;
    struct dra_device_view device;
    const char *found;
} published[] = {
    {NODE(.mem = S("32"), .count = S("2"), WITH_UUIDS), {.name = S("d"), .uuid = S("gpu-A")}, ""},
    {NODE(.mem = S("32"), .count = S("2"), WITH_UUIDS),
     {.name = S("d"), .uuid = S("MIG-1"), .parent = S("GPU-b")},
     ""},
    {NODE(.mem = S("32"), .count = S("2"), WITH_UUIDS),
     {.name = S("d"), .uuid = S("GPU-x"), .pci = 0xb},
     ""},
    {NODE(.mem = S("32"), .count = S("2"), WITH_UUIDS),
     {.name = S("d"), .uuid = S("GPU-x"), .pci = 0xc},
     "WARN node/n: 1 of the 1 devices of driver dr are none of its cards"},
    {NODE(.mem = S("32"), .count = S("2")),
     {.name = S("d"), .uuid = S("GPU-a")},
     "WARN node/n: driver dr publishes devices of it, and it has no annotation cardpack.io/cards"},
    {{.name = S("n")}, {.name = S("d"), .uuid = S("GPU-a")}, ""}, /* its cards are not shared */
};

TEST_EACH(joins_published_devices_to_cards, COUNT_OF(published))
{
    const struct dra_slice_view v = {.name = S("s"),
                                     .driver = S("dr"),
                                     .node = S("n"),
                                     .devices = &published[_i].device,
                                     .n_devices = 1};
    set_node(&rig, published[_i].node);
    doctor_slice(&found, &rig.cache, &v);
    is_found(published[_i].found);
}

TEST(finds_cards_that_are_used_twice)
{
    struct node_view n = NODE(.mem = S("32"), .count = S("2"), WITH_UUIDS);
    const struct pod_view p = PLAIN("p", "8", AT(1), .assigned = S("true"));
    struct node_claimed claimed = {.delegated = false};
    set_node(&rig, n);
    set_pod(&rig, p);
    card_set_add(&claimed.whole, 0);
    card_set_add(&claimed.whole, 1);
    struct node *known = map_get(&rig.cache.nodes, STR("n"));
    (void)node_set_claimed(known, &claimed);
    doctor_claimed(&found, known);
    ck_assert_str_eq(findings(),
                     "FAIL node/n: a ResourceClaim holds card 1, and 1 pod shares it\n");
}

TEST(finds_a_pod_with_claims_and_shared_cards)
{
    struct node_view n = TWO_CARDS;
    const struct pod_view shares = PLAIN("p", "8");
    const struct pod_view other = POD("q", .node = S("n"));
    set_node(&rig, n);
    doctor_pod(&found, &rig.cache, NULL, &other, true, NOW);
    ck_assert_uint_eq(found.n, 0);
    doctor_pod(&found, &rig.cache, NULL, &shares, true, NOW);
    is_found("WARN pod/ns/p: it has ResourceClaims and shared cards");
}

int main(void)
{
    TCase *tc = unit_case("doctor_dra");
    tcase_add_checked_fixture(tc, setup, teardown);
    return unit_run();
}
