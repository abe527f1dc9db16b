/* CPU and memory of nodes: which pods are charged, from when until when. */
#include "fit_fixture.h"

#define GI ((int64_t)1 << 30)

/* 8 CPUs and 32 GiB. */
#define HOST_NODE NODE(.mem = S("32"), .count = S("2"), .cpu = S("8"), .memory = S("32Gi"))

#define NEEDS(milli, gi)          .host = {milli, (int64_t)(gi) << 30}
#define OTHER(id, milli, gi, ...) POD(id, NEEDS(milli, gi), __VA_ARGS__)
#define ON(name)                  .node = S(name), .phase = S("Running")

static void open_host(struct rig *r)
{
    const struct pod_view none[FIXTURE_PODS] = {NO_POD};
    struct node_view node = HOST_NODE;
    fit_fixture_open(r, &node, none, POLICY_UNSET);
}

static void check_left(const struct rig *r, int64_t cpu, int64_t gi)
{
    struct host left = node_host_left(node_of(r, "n"));
    ck_assert_int_eq(left.cpu, cpu);
    ck_assert_int_eq(left.memory, gi * GI);
}

TEST(a_pod_with_cards_is_charged_from_its_reservation_on)
{
    struct rig r;
    struct pod_view v = PLAIN("a", "4", NEEDS(1500, 2));
    open_host(&r);
    check_left(&r, 8000, 32);
    set_pod(&r, v); /* pending */
    check_left(&r, 8000, 32);
    ck_assert_int_eq(take(&r, v), OK);
    check_left(&r, 6500, 30);
    cancel(&r, "a");
    check_left(&r, 8000, 32);
    ck_assert_int_eq(take(&r, v), OK);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    v.node = STR("n");
    v.idx = STR("0");
    set_pod(&r, v);
    check_left(&r, 6500, 30);
    v.deleting = true; /* it still runs */
    set_pod(&r, v);
    check_left(&r, 6500, 30);
    v.phase = STR("Failed");
    set_pod(&r, v);
    check_left(&r, 8000, 32);
    rig_done(&r);
}

TEST(a_pod_without_cards_is_charged_while_it_is_bound_and_runs)
{
    struct rig r;
    struct pod_view v = OTHER("a", 500, 1);
    open_host(&r);
    set_pod(&r, v);
    check_left(&r, 8000, 32);
    v.node = STR("n");
    set_pod(&r, v);
    check_left(&r, 7500, 31);
    ck_assert(!pod_known(&r, "a") && !r.fx.changed); /* no placement depends on it */
    v.host.cpu = 2000;                               /* resized in place */
    set_pod(&r, v);
    check_left(&r, 6000, 31);
    v.node = STR_NULL; /* an older object */
    set_pod(&r, v);
    check_left(&r, 6000, 31);
    v.node = STR("n");
    v.phase = STR("Succeeded");
    set_pod(&r, v);
    check_left(&r, 8000, 32);
    v.phase = STR("Running");
    set_pod(&r, v);
    pod_gone(&r, "a");
    check_left(&r, 8000, 32);
    ck_assert_uint_eq(r.cache.cardless.n, 0);
    rig_done(&r);
}

TEST(a_list_drops_those_that_it_lacks)
{
    struct rig r;
    struct pod_view a = OTHER("a", 500, 1, ON("n"));
    struct pod_view b = OTHER("b", 1000, 2, ON("n"));
    struct pod_view c = OTHER("c", 250, 4, ON("n"));
    open_host(&r);
    set_pod(&r, a);
    set_pod(&r, b);
    list_begin(&r, CACHE_PODS);
    set_pod(&r, b);
    set_pod(&r, c);
    list_end(&r, CACHE_PODS);
    ck_assert_uint_eq(r.fx.swept, 1);
    check_left(&r, 6750, 26);
    list_begin(&r, CACHE_PODS); /* it breaks off */
    list_begin(&r, CACHE_PODS);
    b.node = STR_NULL; /* an older object is a sign of life too */
    set_pod(&r, b);
    list_end(&r, CACHE_PODS);
    check_left(&r, 7000, 30);
    rig_done(&r);
}

TEST(a_pod_may_become_one_of_the_other_kind)
{
    struct rig r;
    struct pod_view other = OTHER("a", 500, 1, ON("n"));
    struct pod_view shares = PLAIN("a", "4", NEEDS(1000, 2), ON("n"), .idx = S("0"));
    open_host(&r);
    for (int i = 0; i < 2; i++) {
        set_pod(&r, other);
        check_left(&r, 7500, 31);
        ck_assert(!pod_known(&r, "a") && r.cache.cardless.n == 1);
        set_pod(&r, shares);
        check_left(&r, 7000, 30);
        ck_assert(pod_known(&r, "a") && r.cache.cardless.n == 0);
    }
    rig_done(&r);
}

TEST(a_node_may_come_after_its_pods)
{
    struct rig r;
    struct pod_view a = OTHER("a", 500, 1, ON("late"));
    struct node_view late = {.name = STR("late"), .cpu = STR("4"), .memory = STR("8Gi")};
    open_host(&r);
    set_pod(&r, a);
    ck_assert_ptr_null(cache_node(&r.cache, STR("late"))); /* nothing shows it */
    size_t cursor = 0;
    ck_assert_ptr_nonnull(cache_next_node(&r.cache, &cursor));
    ck_assert_ptr_null(cache_next_node(&r.cache, &cursor));
    set_node(&r, late);
    ck_assert(node_host_left(node_of(&r, "late")).cpu == 3500);
    node_gone(&r, "late");
    ck_assert_ptr_null(cache_node(&r.cache, STR("late")));
    set_node(&r, late);
    ck_assert(node_host_left(node_of(&r, "late")).memory == 7 * GI);
    node_gone(&r, "late");
    pod_gone(&r, "a");
    ck_assert_uint_eq(r.cache.nodes.n, 1);
    rig_done(&r);
}

/* What is not known is no limit. */
TEST(an_amount_that_a_node_does_not_have_is_unknown)
{
    static const char *const texts[] = {NULL, "", "some", "-1", "100E", "1e40"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct rig r;
        struct node_view node = HOST_NODE;
        rig_init(&r);
        node.cpu = str_of(texts[i]);
        set_node(&r, node);
        set_pod(&r, (struct pod_view)OTHER("a", 500, 1, ON("n")));
        struct host left = node_host_left(node_of(&r, "n"));
        ck_assert_int_eq(left.cpu, HOST_UNKNOWN);
        ck_assert_int_eq(left.memory, 31 * GI);
        rig_done(&r);
    }
}

TEST(nothing_is_left_of_a_node_that_is_full_or_has_shrunk)
{
    struct rig r;
    struct node_view node = HOST_NODE;
    open_host(&r);
    set_pod(&r, (struct pod_view)OTHER("a", 7000, 32, ON("n")));
    check_left(&r, 1000, 0);
    node.cpu = STR("6");
    set_node(&r, node);
    ck_assert(!r.fx.changed); /* no placement depends on it */
    check_left(&r, 0, 0);
    node.cpu = STR("0");
    set_node(&r, node);
    check_left(&r, 0, 0);
    rig_done(&r);
}

/* However large the amounts are, what is charged is taken away exactly. */
TEST(a_sum_beyond_any_node_comes_back)
{
    struct rig r;
    struct pod_view v = OTHER("a", 0, 0, ON("n"));
    struct pod_view shares = PLAIN("b", "4", ON("n"), .idx = S("0"));
    v.host = shares.host = (struct host){INT64_MAX, INT64_MAX};
    open_host(&r);
    set_pod(&r, v);
    set_pod(&r, shares);
    check_left(&r, 0, 0);
    pod_gone(&r, "a");
    pod_gone(&r, "b");
    check_left(&r, 8000, 32);
    struct host sum = {0};
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int i = 0; i < 1 << 19; i++)
            host_charge(&sum, (struct host){HOST_CPU_MAX, HOST_MEMORY_MAX}, sign);
    }
    ck_assert(host_is_zero(sum));
    rig_done(&r);
}

/* Cards that are kept for a pending pod stay kept, and nothing that could be placed has changed. */
TEST(a_resize_of_cpu_alone_changes_no_placement)
{
    struct rig r;
    struct placement there = {.n = 1, .grants = {{.container = 0, .card = 1, .mem = 4}}};
    struct pod_view waits = PLAIN("a", "4", NEEDS(1000, 1));
    struct pod_view runs = PLAIN("b", "4", NEEDS(1000, 1), ON("n"), .idx = S("0"));
    open_host(&r);
    set_pod(&r, waits);
    struct cache_event keep = {.type = CACHE_KEEP,
                               .keep = {.uid = STR("a"), .node = STR("n"), .there = &there}};
    ck_assert_int_eq(rig_apply(&r, &keep), OK);
    waits.host.cpu = 3000;
    set_pod(&r, waits);
    ck_assert(pod_of(&r, "a")->kept && !r.fx.changed);
    ck_assert_int_eq(pod_of(&r, "a")->request->host.cpu, 3000);
    set_pod(&r, runs);
    runs.host.cpu = 2000;
    uint64_t version = node_of(&r, "n")->version;
    set_pod(&r, runs);
    check_left(&r, 6000, 31);
    ck_assert(!r.fx.changed && node_of(&r, "n")->version != version);
    rig_done(&r);
}

TEST(an_edit_during_a_reservation_counts_after_it)
{
    struct rig r;
    struct pod_view v = PLAIN("a", "4", NEEDS(1000, 1));
    open_host(&r);
    set_pod(&r, v);
    ck_assert_int_eq(take(&r, v), OK);
    v.host.cpu = 3000;
    set_pod(&r, v);
    check_left(&r, 7000, 31); /* as reserved */
    cancel(&r, "a");
    check_left(&r, 8000, 32);
    ck_assert_int_eq(pod_of(&r, "a")->request->host.cpu, 3000);
    rig_done(&r);
}

/* Two objects of one name, or of one node at two times, must not be taken for one. */
TEST(a_version_is_never_given_again)
{
    struct rig r;
    struct node_view other = NODE(.mem = S("32"), .count = S("2"));
    other.name = STR("m");
    open_host(&r);
    set_node(&r, other);
    uint64_t n = node_of(&r, "n")->version;
    uint64_t m = node_of(&r, "m")->version;
    ck_assert(n > 0 && m > 0 && n != m);
    node_gone(&r, "n");
    set_node(&r, (struct node_view)HOST_NODE);
    ck_assert(node_of(&r, "n")->version > MAX_OF(n, m));
    set_node(&r, (struct node_view)HOST_NODE); /* the same again */
    ck_assert(node_of(&r, "m")->version == m);
    rig_done(&r);
}

static void moves(struct rig *r, uint64_t *version, const char *what)
{
    uint64_t now = node_of(r, "n")->version;
    ck_assert_msg(now != *version, "%s", what);
    *version = now;
}

TEST(each_change_moves_the_version)
{
    struct rig r;
    struct node_view node = HOST_NODE;
    struct pod_view bound = PLAIN("b", "4", ON("n"), .idx = S("0"));
    struct pod_view waits = PLAIN("a", "4", .nominated = S("n"));
    struct pod_view other = OTHER("c", 1, 0, ON("n"));
    open_host(&r);
    uint64_t version = node_of(&r, "n")->version;
    node.cordoned = STR("1");
    set_node(&r, node);
    moves(&r, &version, "a cordon");
    node.memory = STR("16Gi");
    set_node(&r, node);
    moves(&r, &version, "the memory of the host");
    health_set(&r, "n", "1");
    moves(&r, &version, "an unhealthy card");
    health_gone(&r, "n");
    moves(&r, &version, "a healthy card");
    set_pod(&r, waits);
    moves(&r, &version, "a nomination");
    waits.priority = 3;
    set_pod(&r, waits);
    moves(&r, &version, "the priority of a nominated pod");
    set_pod(&r, bound);
    moves(&r, &version, "a bound pod");
    bound.assigned = STR("true");
    set_pod(&r, bound);
    moves(&r, &version, "the device plugin's acknowledgment");
    bound.phase = STR("Pending");
    set_pod(&r, bound);
    moves(&r, &version, "a start");
    bound.vacated = STR("1");
    set_pod(&r, bound);
    moves(&r, &version, "an exchange");
    bound.deleting = true;
    set_pod(&r, bound);
    moves(&r, &version, "a deletion");
    set_pod(&r, other);
    moves(&r, &version, "a pod without cards");
    set_pod(&r, bound); /* nothing has changed */
    set_pod(&r, other);
    set_pod(&r, waits);
    set_node(&r, node);
    ck_assert_uint_eq(node_of(&r, "n")->version, version);
    rig_done(&r);
}
