/* A solve while nodes and cards come and go: it is given up, and the old prices stay. */
#include "../../src/core/policy/market_stock.c" /* NOLINT(bugprone-suspicious-include) */
#include "market_rig.h"

#include <stdio.h>

static struct rig r;

static void set_up(void)
{
    rig_init(&r);
}

static void tear_down(void)
{
    rig_done(&r);
}

/* A node that comes during the copy of what is idle: the old prices stay, and the next solve is due
 * at once. */
TEST(a_torn_copy_is_given_up)
{
    struct market *m = market_of(&r);
    add_nodes(&r, 'n', 200, 100, 4, "32", "A");
    see(m, (struct shape){.mem = 30, .cards = 1, .cpu = 2000}, 40);
    solve(&r);
    int64_t value = market_value(m, node_of(&r, "n0"));
    see(m, (struct shape){.mem = 80, .cards = 1, .cpu = 2000}, 8);
    ck_assert(market_begin(m, &r.cache.nodes));
    ck_assert(!market_is_due(m));
    ck_assert(market_step(m));
    /* As many as before, but perhaps at other places of the map. */
    add_node(&r, "late", 77, 3, "4", "C");
    struct cache_event gone = {.type = CACHE_NODE_GONE, .node = {.name = STR("n7")}};
    ck_assert_int_eq(rig_apply(&r, &gone), OK);
    ck_assert(!market_step(m));
    ck_assert_ptr_null(m->solve);
    ck_assert_uint_eq(m->solved, 1);
    ck_assert_int_eq(market_value(m, node_of(&r, "n0")), value);
    ck_assert(market_is_due(m));
    solve(&r);
}

/* The same while the cards are counted; and then the only kind on which the shape fits has no card
 * left. */
TEST(a_torn_count_is_given_up)
{
    struct market *m = market_of(&r);
    add_nodes(&r, 'n', 600, 100, 1, "32", "A");
    see(m, (struct shape){.mem = 100, .cards = 1}, 40);
    ck_assert(market_begin(m, &r.cache.nodes));
    ck_assert(market_step(m));
    ck_assert_int_eq(m->solve->part, PART_COUNT);
    add_node(&r, "late", 100, 1, "4", "A");
    ck_assert(!market_step(m));
    ck_assert_ptr_null(m->solve);
    ck_assert(market_is_due(m));
    solve(&r);
    for (int i = 0; i < 600; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "n%d", i);
        add_node(&r, name, 50, 1, "32", "A");
    }
    add_node(&r, "late", 50, 1, "4", "A");
    uint64_t solved = m->solved;
    ck_assert(market_begin(m, &r.cache.nodes));
    while (market_step(m)) {
    }
    ck_assert_uint_eq(m->solved, solved);
    ck_assert(!market_is_due(m)); /* else it would be tried for nothing, twice a second */
    see(m, (struct shape){.mem = 50, .cards = 1}, 16);
    ck_assert(market_is_due(m));
    solve(&r);
}

/* A node whose cards become more during the copy: there may be no room for them. */
TEST(cards_that_come_during_a_copy)
{
    struct market *m = market_of(&r);
    add_nodes(&r, 'n', 100, 100, 1, "32", "A");
    see(m, (struct shape){.mem = 30, .cards = 1, .cpu = 2000}, 40);
    solve(&r);
    pod_set(&r, .uid = "p", .mem = "30", .node = "n0", .idx = "0", .phase = "Running");
    ck_assert(market_begin(m, &r.cache.nodes));
    for (int i = 0; i < 100; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "n%d", i);
        add_node(&r, name, 100 + i, 8, "32", "A");
    }
    while (market_step(m)) {
    }
    ck_assert_ptr_null(m->solve);
    solve(&r);
}

int main(void)
{
    TCase *tc = unit_case("market_torn");
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
