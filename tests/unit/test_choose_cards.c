/* Which cards a pod gets when several are feasible. */
#include "fit_fixture.h"

#define ASK(q, ...) PLAIN("ask", q, __VA_ARGS__)
#define SPREAD      .card_policy = S("spread")

/* Two NUMA nodes with two cards each, and a card without a NUMA node. */
#define NUMA_CARDS                                                                     \
    NODE(.mem = S("80"),                                                               \
         CARDS({.index = 0, .mem = 16, .numa = 0}, {.index = 1, .mem = 16, .numa = 1}, \
               {.index = 2, .mem = 16, .numa = 0}, {.index = 3, .mem = 16, .numa = 1}, \
               {.index = 4, .mem = 16, .numa = -1}))

enum {
    GRANTS = 6
};

static const struct {
    struct node_view node;
    struct pod_view pods[FIXTURE_PODS];
    struct pod_view ask;
    enum policy fallback;
    struct grant grants[GRANTS];
    uint32_t n;
} rows[] = {
    /* The card policy comes from the pod, its other annotation, the node's label, the
     * configuration; else it is binpack. */
    {FOUR_CARDS, {PLAIN("a", "4", AT(2))}, ASK("8"), POLICY_UNSET, {{8, 2, UINT16_MAX, 0}}, 1},
    {FOUR_CARDS, {PLAIN("a", "4", AT(0))}, ASK("8"), POLICY_SPREAD, {{8, 1, UINT16_MAX, 0}}, 1},
    {NODE(.mem = S("64"), .count = S("4"), .placement = S("spread")),
     {PLAIN("a", "4", AT(0))},
     ASK("8"),
     POLICY_BINPACK,
     {{8, 1, UINT16_MAX, 0}},
     1},
    {NODE(.mem = S("64"), .count = S("4"), .placement = S("spread")),
     {PLAIN("a", "4", AT(2))},
     ASK("8", .policy = S("binpack")),
     POLICY_SPREAD,
     {{8, 2, UINT16_MAX, 0}},
     1},
    {FOUR_CARDS,
     {PLAIN("a", "4", AT(0))},
     ASK("8", .policy = S("binpack"), SPREAD),
     POLICY_UNSET,
     {{8, 1, UINT16_MAX, 0}},
     1},
    {FOUR_CARDS,
     {PLAIN("a", "4", AT(0))},
     ASK("8", .policy = S("spread"), .node_policy = S("binpack")),
     POLICY_UNSET,
     {{8, 1, UINT16_MAX, 0}},
     1},
    /* Several cards: the fullest, or the emptiest; the lowest index among equals; in ascending
     * order. */
    {FOUR_CARDS,
     {PLAIN("a", "4", AT(3)), PLAIN("b", "8", AT(1))},
     ASK("16", .count_label = S("2")),
     POLICY_UNSET,
     {{8, 1, 0, 0}, {8, 3, 0, 0}},
     2},
    {FOUR_CARDS,
     {PLAIN("a", "4", AT(0)), PLAIN("b", "8", AT(1))},
     ASK("24", .count_label = S("3"), SPREAD),
     POLICY_UNSET,
     {{8, 0, 0, 0}, {8, 2, 0, 0}, {8, 3, 0, 0}},
     3},
    {FOUR_CARDS,
     {NO_POD},
     POD("ask", .count_label = S("2"),
         CONTAINERS(2, SIDECAR(0, "2"), INIT(1, "8"), MAIN_CORES(0, "4", "50"), MAIN(1, "6"))),
     POLICY_UNSET,
     {{1, 0, 2, 0}, {1, 1, 2, 0}, {2, 0, 0, 25}, {2, 1, 0, 25}, {3, 0, 1, 0}, {3, 1, 1, 0}},
     6},
    /* From one NUMA node, if one has enough cards; from the fullest of those, or the emptiest. */
    {NUMA_CARDS,
     {PLAIN("a", "4", AT(0)), PLAIN("b", "5", AT(1))},
     ASK("16", .count_label = S("2")),
     POLICY_UNSET,
     {{8, 1, 0, 0}, {8, 3, 0, 0}},
     2},
    {NUMA_CARDS,
     {PLAIN("a", "4", AT(0)), PLAIN("b", "5", AT(1))},
     ASK("16", .count_label = S("2"), SPREAD),
     POLICY_UNSET,
     {{8, 0, 0, 0}, {8, 2, 0, 0}},
     2},
    {NUMA_CARDS,
     {PLAIN("a", "9", AT(0)), PLAIN("b", "9", AT(1))},
     ASK("16", .count_label = S("2")),
     POLICY_UNSET,
     {{8, 2, 0, 0}, {8, 3, 0, 0}}, /* none has two cards with room */
     2},
    {NUMA_CARDS,
     {NO_POD},
     ASK("24", .count_label = S("3")),
     POLICY_UNSET,
     {{8, 0, 0, 0}, {8, 1, 0, 0}, {8, 2, 0, 0}},
     3},
    /* For whole cards and percentages the whole charge is written, for the first container. */
    {NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
     {NO_POD},
     POD("ask", WHOLE, SPREAD, CONTAINERS(2, MAIN(0, "2"), MAIN(1, "3"))),
     POLICY_UNSET,
     {{13, 1, 0, 0}, {3, 1, 1, 0}},
     2},
    {NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8}, {.index = 1, .mem = 16})),
     {NO_POD},
     ASK("2", .percent = S("50"), .count_label = S("2")),
     POLICY_UNSET,
     {{4, 0, 0, 0}, {8, 1, 0, 0}},
     2},
    {TWO_CARDS, {PLAIN("a", "9", AT(0))}, ASK("1", WHOLE), POLICY_UNSET, {{16, 1, 0, 0}}, 1},
    {TWO_CARDS, /* the init containers' peak does not last */
     {NO_POD},
     POD("ask", .percent = S("25"), CONTAINERS(1, SIDECAR(0, "1"), INIT(1, "9"), MAIN(0, "2"))),
     POLICY_UNSET,
     {{2, 0, 1, 0}, {2, 0, 0, 0}},
     2},
    {TWO_CARDS,
     {PLAIN("a", "9", AT(0))},
     POD("ask", CONTAINERS(0, INIT(0, "8"), INIT(1, "3")), .mem_overhead = S("1")),
     POLICY_UNSET,
     {{8, 1, 0, 0}, {3, 1, 1, 0}},
     2},
    {TWO_CARDS,
     {NO_POD},
     POD("ask", CONTAINERS(1, MAIN(0, "0")), .count_label = S("2"), .mem_overhead = S("3")),
     POLICY_UNSET,
     {{3, 0, UINT16_MAX, 0}},
     1},
    /* Containers share a card if they can, and get different cards if they can't. */
    {TWO_CARDS,
     {NO_POD},
     POD("ask", CONTAINERS(2, MAIN(0, "8"), MAIN_CORES(1, "4", "20"))),
     POLICY_UNSET,
     {{8, 0, 0, 0}, {4, 0, 1, 20}},
     2},
    {TWO_CARDS,
     {PLAIN("a", "8", AT(0)), PLAIN("b", "8", AT(1))},
     POD("ask", CONTAINERS(2, MAIN(0, "4"), MAIN(1, "8"))),
     POLICY_UNSET,
     {{4, 1, 0, 0}, {8, 0, 1, 0}},
     2},
    {TWO_CARDS,
     {NO_POD},
     POD("ask", CONTAINERS(2, MAIN_CORES(0, "1", "60"), MAIN_CORES(1, "1", "50"))),
     POLICY_UNSET,
     {{1, 0, 0, 60}, {1, 1, 1, 50}},
     2},
    {TWO_CARDS, /* the peak, on the first container's card */
     {PLAIN("a", "7", AT(0)), PLAIN("b", "4", AT(1))},
     POD("ask", CONTAINERS(2, INIT(0, "12"), MAIN(0, "6"), MAIN(1, "7"))),
     POLICY_UNSET,
     {{6, 1, 0, 0}, {7, 0, 1, 0}},
     2},
    /* Free: 2, 3, 8. The init container runs on the card of the largest container. */
    {NODE(.mem = S("13"),
          CARDS({.index = 0, .mem = 2}, {.index = 1, .mem = 3}, {.index = 2, .mem = 8})),
     {NO_POD},
     POD("ask", CONTAINERS(2, INIT(0, "5"),
                           {.name = S("s"),
                            .mem = S("0"),
                            .cores = S("60"),
                            .index = 1,
                            .kind = CONTAINER_SIDECAR},
                           MAIN(0, "3"), MAIN(1, "8"))),
     POLICY_UNSET,
     {{3, 1, 0, 0}, {8, 2, 1, 0}, {0, 2, 3, 60}},
     3},
};

TEST_EACH(takes_these, COUNT_OF(rows))
{
    struct rig r;
    struct placement there;
    fit_fixture_open(&r, &rows[_i].node, rows[_i].pods, rows[_i].fallback);
    ck_assert_int_eq(fit_fixture_evaluate(&r, &rows[_i].ask, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.n, rows[_i].n);
    for (uint32_t i = 0; i < there.n; i++) {
        const struct grant *g = &there.grants[i];
        const struct grant *e = &rows[_i].grants[i];
        ck_assert_msg(memcmp(g, e, sizeof(*g)) == 0,
                      "grant %u is {%lld, %u, %u, %u}, expected {%lld, %u, %u, %u}", i,
                      (long long)g->mem, g->card, g->container, g->cores, (long long)e->mem,
                      e->card, e->container, e->cores);
    }
    rig_done(&r);
}

/* The plugin knows pods by their memory only: compute and percentages make no difference. */
static const struct {
    struct pod_view ask;
    uint32_t card;
} beside[] = {
    {ASK("4"), 2},
    {POD("ask", CONTAINERS(1, MAIN_CORES(0, "4", "10"))), 2},
    {ASK("4", .percent = S("25")), 2},
    {POD("ask", CONTAINERS(2, MAIN(0, "4"), MAIN(1, "1"))), 2}, /* the plugin may confuse these */
    {POD("ask", CONTAINERS(2, MAIN(0, "3"), MAIN(1, "1"))), 2}, /* or the pod takes their place */
    {ASK("3"), 0},
    {ASK("4", .count_label = S("2")), 0},
};

TEST_EACH(all_of_one_card_go_beside_equals, COUNT_OF(beside))
{
    struct rig r;
    struct placement there;
    struct node_view node = FOUR_CARDS;
    const struct pod_view pods[FIXTURE_PODS] = {
        PLAIN("tight", "10", AT(0)), PLAIN("twin", "4", .node = S("n"), .idx = S("2"),
                                           .phase = S("Pending"), .assigned = S("false"))};
    fit_fixture_open(&r, &node, pods, POLICY_UNSET);
    ck_assert_int_eq(fit_fixture_evaluate(&r, &beside[_i].ask, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, beside[_i].card);
    rig_done(&r);
}

/* The largest number of containers on the largest number of cards: the search ends, and finds an
 * easy place. */
TEST(a_large_search_ends)
{
    struct rig r;
    struct placement there;
    struct container_view containers[REQUEST_DEMANDS_MAX];
    struct node_view node = NODE(.mem = S("10240"), .count = S("1024"));
    struct pod_view ask = {.uid = STR("ask"),
                           .namespace = STR("ns"),
                           .name = STR("ask"),
                           .containers = containers,
                           .n_containers = COUNT_OF(containers),
                           .n_mains = COUNT_OF(containers)};
    for (uint32_t i = 0; i < COUNT_OF(containers); i++)
        containers[i] = (struct container_view){.name = STR("c"), .mem = STR("7"), .index = i};
    const struct pod_view none[FIXTURE_PODS] = {NO_POD};
    fit_fixture_open(&r, &node, none, POLICY_UNSET);
    ck_assert_int_eq(fit_fixture_evaluate(&r, &ask, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.n, COUNT_OF(containers));
    containers[3].mem = STR("11");
    ck_assert_int_eq(fit_fixture_evaluate(&r, &ask, &there), VERDICT_TOO_LARGE);
    rig_done(&r);
}
