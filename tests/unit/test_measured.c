/* What cards and pods use: taking, finding, ageing, limits, and what a unit is. */
#include "core/state/measured.h"

#include "core/limit.h"
#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

#define LASTS ((uint64_t)660000)

static struct measured m;

static void set_up(void)
{
    measured_init(&m, (struct map_seed){1, 2}, LASTS);
}

static void tear_down(void)
{
    measured_done(&m);
}

static struct usage_card cards[] = {{5, 100, 81920, USAGE_BUSY_UNKNOWN}, {0, 9000, 81920, 37}};
static struct usage_pod pods[] = {
    {STR("b"), STR("n"), STR("b"), 5, 70},
    {STR("a"), STR("n"), STR("a"), 0, 4100},
    {STR("a"), STR("n"), STR("a"), 5, 30},
};

static enum errc take(const char *node, uint32_t seen_s, uint64_t now_ms)
{
    struct usage_view v = {
        .cards = cards, .n_cards = COUNT_OF(cards), .pods = pods, .n_pods = COUNT_OF(pods)};
    return measured_set(&m, str_of(node), &v, seen_s, now_ms);
}

static bool knows(const char *node)
{
    return measured_of(&m, str_of(node)) != NULL;
}

START_TEST(finds_each_card_and_pod)
{
    uint32_t mib = 0;
    ck_assert_int_eq(take("n1", 1, 0), OK);
    const struct measured_node *n = measured_of(&m, STR("n1"));
    ck_assert_ptr_nonnull(n);
    ck_assert_uint_eq(measured_card_of(n, 0)->used_mib, 9000);
    ck_assert_uint_eq(measured_card_of(n, 0)->busy_percent, 37);
    ck_assert_uint_eq(measured_card_of(n, 5)->used_mib, 100);
    ck_assert_uint_eq(measured_card_of(n, 5)->busy_percent, MEASURED_BUSY_UNKNOWN);
    ck_assert_ptr_null(measured_card_of(n, 1));
    ck_assert(measured_pod_of(&m, n, STR("a"), 0, &mib) && mib == 4100);
    ck_assert(measured_pod_of(&m, n, STR("a"), 5, &mib) && mib == 30);
    ck_assert(measured_pod_of(&m, n, STR("b"), 5, &mib) && mib == 70);
    ck_assert(!measured_pod_of(&m, n, STR("b"), 0, &mib));
    ck_assert(!measured_pod_of(&m, n, STR("c"), 5, &mib));
    ck_assert(!knows("n2"));
    ck_assert_ptr_null(measured_of(NULL, STR("n1")));
    ck_assert_ptr_null(measured_card_of(NULL, 0));
    ck_assert(!measured_pod_of(&m, NULL, STR("a"), 0, &mib));
}

START_TEST(figures_become_unknown_with_time)
{
    uint64_t wait = 0;
    ck_assert_ptr_null(measured_expire(&m, 0, &wait).p);
    ck_assert_uint_eq(wait, UINT64_MAX);
    ck_assert_int_eq(take("n1", 1, 1000), OK);
    ck_assert_int_eq(take("n2", 1, 2000), OK);
    ck_assert_int_eq(take("n1", 1, LASTS), OK); /* the same figures, from a list */
    ck_assert_ptr_null(measured_expire(&m, 999 + LASTS, &wait).p);
    ck_assert_uint_eq(wait, 1);
    ck_assert_str_is(measured_expire(&m, 1000 + LASTS, &wait), "n1");
    ck_assert_ptr_null(measured_expire(&m, 1000 + LASTS, &wait).p);
    ck_assert_uint_eq(wait, 1000);
    ck_assert(!knows("n1") && knows("n2"));
    ck_assert_int_eq(take("n1", 1, 1001 + LASTS), OK);
    ck_assert_msg(!knows("n1"), "figures that were too old became young");
    ck_assert_int_eq(take("n1", 2, 1002 + LASTS), OK);
    ck_assert(knows("n1"));
}

START_TEST(without_a_limit_figures_stay)
{
    uint64_t wait = 0;
    m.lasts_ms = 0;
    ck_assert_int_eq(take("n1", 1, 0), OK);
    ck_assert_ptr_null(measured_expire(&m, UINT64_MAX, &wait).p);
    ck_assert_uint_eq(wait, UINT64_MAX);
    ck_assert(knows("n1"));
}

START_TEST(a_faulty_text_is_told_once)
{
    ck_assert_int_eq(take("n1", 1, 0), OK);
    ck_assert(measured_set_faulty(&m, STR("n1")));
    ck_assert(!knows("n1"));
    ck_assert(!measured_set_faulty(&m, STR("n1")));
    ck_assert_int_eq(take("n1", 1, 0), OK);
    ck_assert(knows("n1"));
    ck_assert(measured_set_faulty(&m, STR("n1")));
    ck_assert(measured_drop(&m, STR("n1")) == false && m.bytes == 0);
}

START_TEST(a_list_shows_which_are_missing)
{
    size_t cursor = 0;
    ck_assert_int_eq(take("n1", 1, 0), OK);
    ck_assert_int_eq(take("n2", 1, 0), OK);
    measured_list_begin(&m);
    ck_assert_int_eq(take("n2", 1, 0), OK);
    for (const struct measured_node *n = measured_next(&m, &cursor); n != NULL;
         n = measured_next(&m, &cursor))
        ck_assert_int_eq(measured_is_missing(&m, n), str_eq(n->name, STR("n1")));
    ck_assert(measured_drop(&m, STR("n1")) && !measured_drop(&m, STR("n1")));
    ck_assert(!knows("n1") && knows("n2"));
}

/* As large a cluster as docs/performance.md has: 8 cards and 4 pods with cards a node. */
START_TEST(memory_is_bounded)
{
    static struct usage_pod many[LIMIT_MEASURED_PODS];
    static struct usage_card eight[8];
    char name[32];
    enum errc code = OK;
    for (uint32_t i = 0; i < COUNT_OF(eight); i++)
        eight[i].index = i;
    struct usage_view v = {.cards = eight, .n_cards = 8, .pods = many, .n_pods = 4};
    for (uint32_t i = 0; i < LIMIT_MEASURED_PODS; i++)
        many[i] = (struct usage_pod){.uid = STR("u"), .card = i % LIMIT_CARDS};
    for (uint32_t i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof(name), "gpu-node-%05u", i);
        ck_assert_int_eq(measured_set(&m, str_of(name), &v, 1, 0), OK);
    }
    ck_assert_uint_lt(m.bytes + m.nodes.cap * sizeof(struct map_slot), 2 * MIB);
    v.n_pods = LIMIT_MEASURED_PODS;
    for (uint32_t i = 0; code == OK; i++) {
        (void)snprintf(name, sizeof(name), "gpu-node-%05u", i);
        code = measured_set(&m, str_of(name), &v, 2, 0);
        ck_assert_uint_le(m.bytes, LIMIT_MEASURED_BYTES);
    }
    ck_assert_int_eq(code, ERR_LIMIT);
    ck_assert(!knows(name));
}

static const struct {
    uint32_t size_mib;
    int64_t total;
    uint32_t unit;
} units[] = {
    {81920, 80, 1024}, {81559, 79, 1024}, {81559, 81559, 1}, {81559, 70000, 1},
    {16384, 16, 1024}, {16384, 12, 1024}, {81920, 0, 0},     {0, 80, 0},
};

START_TEST(the_sizes_of_a_card_say_what_a_unit_is)
{
    struct measured_card c = {.total_mib = units[_i].size_mib};
    ck_assert_uint_eq(measured_unit_mib(&c, units[_i].total), units[_i].unit);
    ck_assert_uint_eq(measured_unit_mib(NULL, units[_i].total), 0);
}

static const struct {
    uint32_t size_mib;
    int64_t total;
    int64_t share;
    uint32_t used_mib;
    bool exceeds;
} shares[] = {
    {81920, 80, 8, 8192, false},        {81920, 80, 8, 8193, true},
    {81920, 80, 8, 8191, false},        {81920, 80, 8, 9300, true},
    {81559, 81559, 8192, 8192, false},  {81559, 81559, 8192, 8193, true},
    {81559, 79, 79, 81500, false},      {81559, 79, 79, 81560, true},
    {81559, 0, 8, 81560, false},        {0, 80, 8, 9000, false},
    {81920, 80, INT64_MAX, 900, false},
};

START_TEST(a_pod_exceeds_its_share_or_not)
{
    struct measured_card c = {.total_mib = shares[_i].size_mib};
    ck_assert_int_eq(measured_exceeds(&c, shares[_i].total, shares[_i].share, shares[_i].used_mib),
                     shares[_i].exceeds);
}

static enum errc take_anew(void *ctx)
{
    (void)ctx;
    set_up();
    enum errc code = take("n1", 1, 0);
    ck_assert_int_eq(code == OK, knows("n1"));
    tear_down();
    return code;
}

START_TEST(survives_lack_of_memory)
{
    ck_assert_uint_gt(fail_alloc_each(take_anew, NULL), 0);
}

int main(void)
{
    TCase *tc = unit_case("measured");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, finds_each_card_and_pod);
    tcase_add_test(tc, figures_become_unknown_with_time);
    tcase_add_test(tc, without_a_limit_figures_stay);
    tcase_add_test(tc, a_faulty_text_is_told_once);
    tcase_add_test(tc, a_list_shows_which_are_missing);
    tcase_add_test(tc, memory_is_bounded);
    tcase_add_loop_test(tc, the_sizes_of_a_card_say_what_a_unit_is, 0, COUNT_OF(units));
    tcase_add_loop_test(tc, a_pod_exceeds_its_share_or_not, 0, COUNT_OF(shares));
    tc = unit_case("memory");
    tcase_add_test(tc, survives_lack_of_memory);
    return unit_run();
}
