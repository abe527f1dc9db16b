/* Which locks of nodes keep pods away. */
#include "dialect_rig.h"

#define S     UINT64_C(1000000000)
#define NOW_S UINT64_C(1700000000) /* 2023-11-14T22:13:20Z */

static struct rig r;

static void set_up(void)
{
    all_dialects();
    rig_init(&r);
    r.now_ns = NOW_S * S;
}

static void tear_down(void)
{
    rig_done(&r);
}

/* lock "": the node has none. */
static void node_has_lock(enum dialect d, const char *lock)
{
    struct object o;
    char metadata[2048];
    size_t n = strlen(tables[d]) - 1; /* without the brace */
    (void)snprintf(metadata, sizeof(metadata), "%.*s%s%s%s%s%s}", (int)n, tables[d],
                   lock[0] == '\0' ? "" : ",\"", lock[0] == '\0' ? "" : dialect_facts(d)->lock.p,
                   lock[0] == '\0' ? "" : "\":\"", lock, lock[0] == '\0' ? "" : "\"");
    object_node(&o, "n", metadata, capacities[d], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    object_end(&o);
}

static enum verdict fits(enum dialect d)
{
    struct placement there;
    return fit_of(&r, plain[d], "n", &there);
}

static void pass_to(uint64_t s)
{
    struct cache_event e = {.type = CACHE_LOCKS};
    r.now_ns = s * S;
    ck_assert_int_eq(rig_apply(&r, &e), OK);
}

static const struct {
    enum dialect dialect;
    const char *lock;
    enum verdict verdict;
    bool odd;
} locks[] = {
    {DIALECT_HAMI, "", VERDICT_FITS, false},
    {DIALECT_VGPU, "2023-11-14T22:13:18Z", VERDICT_LOCKED, false},
    {DIALECT_HAMI, "2023-11-15T00:13:18+02:00", VERDICT_LOCKED, false},
    {DIALECT_VGPU, "2023-11-14T22:08:20Z", VERDICT_LOCKED, false},
    {DIALECT_VGPU, "2023-11-14T22:08:19Z", VERDICT_FITS, false},
    /* It can't be true. */
    {DIALECT_VGPU, "x", VERDICT_FITS, true},
    {DIALECT_HAMI, "x", VERDICT_FITS, true},
    {DIALECT_HAMI, "x,ns,b", VERDICT_FITS, true},
    {DIALECT_HAMI, ",,", VERDICT_FITS, true},
    {DIALECT_VGPU, "2100-01-01T00:00:00Z", VERDICT_FITS, true},
    {DIALECT_HAMI, "2100-01-01T00:00:00Z,ns,b", VERDICT_FITS, true},
    {DIALECT_VGPU, "2023-11-14T22:18:21Z", VERDICT_FITS, true},
    /* Of a pod that is not bound yet, perhaps made again under its old name. */
    {DIALECT_HAMI, "2023-11-14T22:13:18Z,ns,pending", VERDICT_FITS, false},
    /* Of one that there is not, that is on another node, that is served here. */
    {DIALECT_HAMI, "2023-11-14T22:13:18Z,ns,gone", VERDICT_FITS, false},
    {DIALECT_HAMI, "2023-11-14T22:13:18Z,other,b", VERDICT_FITS, false},
    {DIALECT_HAMI, "2023-11-14T22:13:18Z,ns,elsewhere", VERDICT_FITS, false},
    {DIALECT_HAMI, "2023-11-14T22:13:18Z,ns,b", VERDICT_LOCKED, false},
    {DIALECT_HAMI, "2023-11-14T22:08:19Z,ns,b", VERDICT_FITS, false},
};

TEST_EACH(keeps_pods_away, COUNT_OF(locks))
{
    enum dialect d = locks[_i].dialect;
    struct object o;
    set_pod(&r, "b", plain[d],
            d == DIALECT_HAMI ? "\"hami.io/bind-phase\":\"success\""
                              : "\"volcano.sh/bind-phase\":\"success\"");
    object_pod(&o, "pending", plain[d], "", "");
    object_show(&r, &o);
    object_pod(&o, "elsewhere", plain[d], "", "m");
    object_show(&r, &o);
    node_has_lock(d, locks[_i].lock);
    ck_assert_int_eq(r.fx.odd_lock, locks[_i].odd);
    ck_assert_int_eq(fits(d), locks[_i].verdict);
    node_has_lock(d, locks[_i].lock);
    ck_assert(!r.fx.odd_lock); /* it is said once */
    node_has_lock(d, "");
    ck_assert_int_eq(fits(d), VERDICT_FITS);
}

/* The lock of another dialect, or on a node without one. */
TEST(is_of_the_dialect)
{
    struct object o;
    object_node(&o, "n", ",\"annotations\":{\"hamivgpu\":\"2023-11-14T22:13:18Z\"}",
                capacities[DIALECT_GPUSHARE], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    object_end(&o);
    ck_assert_int_eq(fits(DIALECT_GPUSHARE), VERDICT_FITS);
    ck_assert_uint_eq(r.cache.n_locks, 0);
}

/* A pod waits under its lock. The plugin serves it, and soon removes the lock: no pod is refused
 * for that. If the lock stays, pods are. */
TEST(stays_after_its_pod_was_served)
{
    uint64_t version;
    set_node(&r, "n", DIALECT_HAMI);
    set_pod(&r, "b", plain[DIALECT_HAMI], "\"hami.io/bind-phase\":\"allocating\"");
    node_has_lock(DIALECT_HAMI, "2023-11-14T22:13:20Z,ns,b");
    ck_assert_int_eq(fits(DIALECT_HAMI), VERDICT_SWAP);
    pass_to(NOW_S + 20);
    ck_assert_int_eq(fits(DIALECT_HAMI), VERDICT_SWAP);
    set_pod(&r, "b", plain[DIALECT_HAMI], "\"hami.io/bind-phase\":\"success\"");
    pass_to(NOW_S + 20);
    ck_assert_int_eq(fits(DIALECT_HAMI), VERDICT_FITS);
    pass_to(NOW_S + 21);
    ck_assert_int_eq(fits(DIALECT_HAMI), VERDICT_FITS);
    version = node_of(&r, "n")->version;
    pass_to(NOW_S + 22);
    ck_assert_int_eq(fits(DIALECT_HAMI), VERDICT_LOCKED);
    ck_assert_uint_ne(node_of(&r, "n")->version, version);
    pod_gone(&r, "b");
    pass_to(NOW_S + 23);
    ck_assert_int_eq(fits(DIALECT_HAMI), VERDICT_FITS);
}

TEST(ends_by_time)
{
    node_has_lock(DIALECT_VGPU, "2023-11-14T22:13:20Z");
    ck_assert_int_eq(fits(DIALECT_VGPU), VERDICT_FITS);
    pass_to(NOW_S + 2);
    ck_assert_int_eq(fits(DIALECT_VGPU), VERDICT_LOCKED);
    ck_assert(verdict_unresolvable(VERDICT_LOCKED));
    pass_to(NOW_S + 300);
    ck_assert_int_eq(fits(DIALECT_VGPU), VERDICT_LOCKED);
    pass_to(NOW_S + 301);
    ck_assert_int_eq(fits(DIALECT_VGPU), VERDICT_FITS);
    node_gone(&r, "n");
    ck_assert_uint_eq(r.cache.n_locks, 0);
}

/* A pod that is reserved under its own lock keeps its cards. */
TEST(is_not_in_the_way_of_its_own_pod)
{
    struct object o;
    set_node(&r, "n", DIALECT_HAMI);
    object_pod(&o, "p", plain[DIALECT_HAMI], "", "");
    ck_assert_int_eq(object_reserve(&r, &o), OK);
    node_has_lock(DIALECT_HAMI, "2023-11-14T22:13:20Z,ns,p");
    pass_to(NOW_S + 60);
    ck_assert(!node_of(&r, "n")->locked);
    struct cache_event renew = {.type = CACHE_RENEW, .holder = {.uid = STR("p")}};
    ck_assert_int_eq(rig_apply(&r, &renew), OK);
    object_end(&o);
}

int main(void)
{
    TCase *c = unit_case("all");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
