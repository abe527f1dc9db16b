/* Pods of HAMi's dialect with cards in several containers: their victims, and their quota. */
#include "core/victims.h"
#include "core/work.h"
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
START_TEST(victims_take_no_more_steps_than_room)
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
    cache_resolve(&rigs[0].cache, STR("new"), &o.request);
    for (unsigned looks = 0; looks < 1000; looks++) {
        struct work work;
        struct arena arena;
        struct victims got;
        struct placement there;
        unsigned steps = 1000;
        struct victims_question q = {
            .node = node_of(&rigs[0], "n"), .request = &o.request, .steps = &steps};
        arena_init(&arena, MIB);
        o.request.work = &work;
        work_begin(&work, 1);
        work.looks = looks;
        bool room = fit_place(node_of(&rigs[1], "n"), &o.request, &there) == VERDICT_FITS;
        work_begin(&work, 1);
        work.looks = looks;
        ck_assert_int_eq(victims_choose(&q, &arena, &got), OK);
        ck_assert_msg((got.verdict == VERDICT_FITS) == room, "%u", looks);
        ck_assert(!room || (got.cost.n == 1 && got.there.n == 5));
        ck_assert_uint_le(work.looks, looks);
        found += room ? 1 : 0;
        arena_done(&arena);
    }
    ck_assert_uint_gt(found, 100);
    ck_assert_uint_lt(found, 1000);
    object_end(&o);
    rig_done(&rigs[0]);
    rig_done(&rigs[1]);
}

END_TEST

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

START_TEST(a_quota_counts_all_containers)
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
    cache_resolve(&r.cache, STR("asked"), &o.request);
    enum verdict v = fit_place(node_of(&r, "n"), &o.request, &there);
    ck_assert_str_eq(verdict_name(v), verdict_name(rationed[_i].verdict));
    if (rationed[_i].why != NULL) {
        ck_assert(fit_refusal(node_of(&r, "n"), &o.request, v, &refusal));
        quota_refusal_write(&refusal, &why);
        ck_assert_str_is(buf_str(&why), rationed[_i].why);
    }
    object_end(&o);
    rig_done(&r);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("each");
    TCase *t = tcase_create("each");
    tcase_add_loop_test(t, a_quota_counts_all_containers, 0, COUNT_OF(rationed));
    tcase_add_test(t, victims_take_no_more_steps_than_room);
    suite_add_tcase(s, t);
    return unit_main(s);
}
