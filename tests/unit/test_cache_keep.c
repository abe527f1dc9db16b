/* Room that is kept for a pending pod: for which pods it counts, and what ends it. */
#include "cache_rig.h"
#include "core/place/fit.h"
#include "fail_alloc.h"

/* Fields of a pod that cache_rig.h lacks. */
struct seen {
    const char *uid;
    const char *mem;
    const char *nominated;
    const char *node;
    const char *phase;
    int32_t priority;
    bool deleting;
};

static enum errc show(struct rig *r, struct seen s)
{
    struct container_view container = {.name = STR("c"), .mem = str_of(s.mem)};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = str_of(s.uid),
                                    .namespace = STR("ns"),
                                    .name = str_of(s.uid),
                                    .node = str_of(s.node),
                                    .phase = str_of(s.phase == NULL ? "Pending" : s.phase),
                                    .nominated = str_of(s.nominated),
                                    .priority = s.priority,
                                    .deleting = s.deleting,
                                    .idx = s.node == NULL ? STR_NULL : STR("0"),
                                    .containers = &container,
                                    .n_containers = 1}};
    return rig_apply(r, &e);
}

#define SHOW(r, ...) ck_assert_int_eq(show((r), (struct seen){__VA_ARGS__}), OK)

static enum errc keep(struct rig *r, const char *uid, const char *node, uint32_t card, int64_t mem)
{
    struct placement there = {.n = 1, .grants = {{.mem = mem, .card = card}}};
    struct cache_event e = {.type = CACHE_KEEP,
                            .keep = {.uid = str_of(uid), .node = str_of(node), .there = &there}};
    return rig_apply(r, &e);
}

static void unkeep(struct rig *r, const char *uid)
{
    struct cache_event e = {.type = CACHE_UNKEEP, .holder = {.uid = str_of(uid)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static enum verdict fits(const struct rig *r, const char *uid, int64_t mem, int32_t priority)
{
    struct request q = {.mem = mem,
                        .lasting_mem = mem,
                        .priority = priority,
                        .namespace = STR("ns"),
                        .n_demands = 1,
                        .demands = {{.mem = mem}}};
    struct evaluation evaluation;
    cache_evaluation(&r->cache, str_of(uid), &q, &evaluation);
    return fit_node(cache_node(&r->cache, STR("n")), &evaluation);
}

/* Two cards of 16: one with a pod of 10 that is being deleted, one with a pod of 10 that stays. */
static void start(struct rig *r)
{
    rig_init(r);
    node_set(r, "n", "32", "2", NULL);
    node_set(r, "m", "32", "2", NULL);
    pod_set(r, .uid = "victim", .mem = "10", .node = "n", .idx = "0");
    pod_set(r, .uid = "stays", .mem = "10", .node = "n", .idx = "1");
    SHOW(r, .uid = "a", .mem = "12", .priority = 5);
    ck_assert_int_eq(keep(r, "a", "n", 0, 12), OK);
    ck_assert(r->fx.changed);
}

TEST(only_who_weighs_more_takes_it)
{
    struct rig r;
    start(&r);
    ck_assert(pod_of(&r, "a")->kept);
    ck_assert_ptr_eq(pod_of(&r, "a")->keeper, node_of(&r, "n"));
    ck_assert_int_eq(fits(&r, "a", 12, 5), VERDICT_NO_CARD_FREE);
    pod_gone(&r, "victim");
    ck_assert_int_eq(fits(&r, "a", 12, 5), VERDICT_FITS);
    ck_assert_int_eq(fits(&r, "lower", 6, 0), VERDICT_FITS); /* beside the pod that stays */
    ck_assert_int_eq(fits(&r, "lower", 7, 0), VERDICT_KEPT);
    ck_assert_int_eq(fits(&r, "equal", 7, 5), VERDICT_KEPT);
    ck_assert_int_eq(fits(&r, "higher", 7, 6), VERDICT_FITS);
    unkeep(&r, "a");
    ck_assert(r.fx.changed);
    ck_assert_int_eq(fits(&r, "lower", 7, 0), VERDICT_FITS);
    unkeep(&r, "a");
    ck_assert(!r.fx.changed);
    rig_done(&r);
}

static void is_bound(struct rig *r)
{
    SHOW(r, .uid = "a", .mem = "12", .priority = 5, .node = "m");
}

static void is_reserved(struct rig *r)
{
    ck_assert_int_eq(reserve(r, "a", "m", 12), OK);
    cancel(r, "a");
}

static void is_gone(struct rig *r)
{
    pod_gone(r, "a");
}

static void has_ended(struct rig *r)
{
    SHOW(r, .uid = "a", .mem = "12", .phase = "Failed");
}

static void wants_less(struct rig *r)
{
    SHOW(r, .uid = "a", .mem = "11", .priority = 5);
}

static void wants_nothing(struct rig *r)
{
    SHOW(r, .uid = "a", .mem = "0", .priority = 5);
}

/* Its finalizers can keep the object for ever. */
static void is_being_deleted(struct rig *r)
{
    SHOW(r, .uid = "a", .mem = "12", .priority = 5, .deleting = true);
    ck_assert(r->fx.changed);
    ck_assert_int_eq(keep(r, "a", "n", 0, 12), ERR_CONFLICT);
}

static void is_in_no_list(struct rig *r)
{
    list_begin(r, CACHE_PODS);
    pod_set(r, .uid = "stays", .mem = "10", .node = "n", .idx = "1");
    list_end(r, CACHE_PODS);
}

static void is_given_up(struct rig *r)
{
    unkeep(r, "a");
}

static void (*const ends[])(struct rig *r) = {
    is_bound,      is_reserved,      is_gone,       has_ended,   wants_less,
    wants_nothing, is_being_deleted, is_in_no_list, is_given_up,
};

TEST_EACH(it_ends_with, COUNT_OF(ends))
{
    struct rig r;
    start(&r);
    pod_gone(&r, "victim");
    SHOW(&r, .uid = "a", .mem = "12", .priority = 5); /* as before: nothing changes */
    ck_assert_int_eq(fits(&r, "lower", 7, 0), VERDICT_KEPT);
    ends[_i](&r);
    ck_assert_int_eq(fits(&r, "lower", 7, 0), VERDICT_FITS);
    ck_assert_ptr_null(node_of(&r, "n")->kept_for);
    rig_done(&r);
}

TEST(a_nomination_yields_to_it)
{
    struct rig r;
    start(&r);
    SHOW(&r, .uid = "a", .mem = "12", .priority = 5, .nominated = "m");
    ck_assert_ptr_eq(pod_of(&r, "a")->keeper, node_of(&r, "n"));
    ck_assert(pod_of(&r, "a")->kept);

    SHOW(&r, .uid = "b", .mem = "12", .nominated = "ghost");
    ck_assert(!pod_of(&r, "b")->kept);
    ck_assert_int_eq(keep(&r, "b", "m", 1, 12), OK);
    ck_assert(pod_of(&r, "b")->kept);
    unkeep(&r, "b"); /* the cache has remembered the nomination */
    ck_assert_ptr_eq(pod_of(&r, "b")->keeper, cache_node(&r.cache, STR("ghost")));
    SHOW(&r, .uid = "b", .mem = "12", .nominated = "n");
    ck_assert_ptr_eq(pod_of(&r, "b")->keeper, node_of(&r, "n"));
    ck_assert(!pod_of(&r, "b")->kept);
    unkeep(&r, "b"); /* this claim is the scheduler's: unkeep does not end it */
    ck_assert_ptr_eq(pod_of(&r, "b")->keeper, node_of(&r, "n"));
    rig_done(&r);
}

TEST(a_pod_has_one_at_most)
{
    struct rig r;
    start(&r);
    ck_assert_int_eq(keep(&r, "a", "n", 1, 12), OK);
    ck_assert_ptr_eq(node_of(&r, "n")->kept_for, pod_of(&r, "a"));
    ck_assert_ptr_null(pod_of(&r, "a")->next);
    ck_assert_uint_eq(pod_of(&r, "a")->allocation->shares[0].card, 1);
    ck_assert_int_eq(keep(&r, "a", "m", 0, 12), OK);
    ck_assert_ptr_null(node_of(&r, "n")->kept_for);
    ck_assert_ptr_eq(node_of(&r, "m")->kept_for, pod_of(&r, "a"));
    node_gone(&r, "m");
    ck_assert_ptr_nonnull(cache_node(&r.cache, STR("m"))); /* while room is kept on it */
    unkeep(&r, "a");
    ck_assert_ptr_null(cache_node(&r.cache, STR("m")));
    rig_done(&r);
}

TEST(nothing_is_kept_that_is_not_there)
{
    struct rig r;
    struct placement none = {.n = 0};
    struct cache_event e = {.type = CACHE_KEEP,
                            .keep = {.uid = STR("a"), .node = STR("n"), .there = &none}};
    start(&r);
    ck_assert_int_eq(rig_apply(&r, &e), ERR_NOTFOUND);
    ck_assert_int_eq(keep(&r, "nobody", "n", 0, 12), ERR_NOTFOUND);
    ck_assert_int_eq(keep(&r, "a", "nowhere", 0, 12), ERR_NOTFOUND);
    ck_assert_int_eq(keep(&r, "a", "n", 2, 12), ERR_NOTFOUND);
    ck_assert_int_eq(keep(&r, "stays", "n", 0, 12), ERR_CONFLICT);
    ck_assert(!r.fx.changed);
    ck_assert_uint_eq(pod_of(&r, "a")->allocation->shares[0].card, 0);
    unkeep(&r, "stays");
    unkeep(&r, "nobody");
    ck_assert_int_eq(card_used(&r, "n", 1), 10);
    rig_done(&r);
}

TEST(without_memory_it_is_as_it_was)
{
    for (size_t nth = 1;; nth++) {
        struct rig r;
        start(&r);
        fail_alloc_arm(FAIL_ONCE, nth);
        enum errc code = keep(&r, "a", "m", 1, 12);
        fail_alloc_disarm();
        bool hit = fail_alloc_hit();
        ck_assert_int_eq(code, hit ? ERR_NOMEM : OK);
        ck_assert_int_eq(r.fx.changed, !hit);
        ck_assert(pod_of(&r, "a")->kept);
        ck_assert_ptr_eq(pod_of(&r, "a")->keeper, node_of(&r, hit ? "n" : "m"));
        ck_assert_uint_eq(pod_of(&r, "a")->allocation->shares[0].card, hit ? 0 : 1);
        fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
        unkeep(&r, "a");
        fail_alloc_disarm();
        ck_assert(!pod_of(&r, "a")->kept);
        rig_done(&r);
        if (!hit) {
            ck_assert_uint_gt(nth, 1);
            break;
        }
    }
}
