/* gpu-manager chooses shared cards by an order of its own: the prediction, and where it can't be
 * relied on. */
#include "dialect_rig.h"

START_TEST(predicts_the_card_of_gpu_manager)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 0);
    /* Least compute left first, although card 1 has less memory left. */
    set_pod(&r, "a", ONE(TENCENT("40", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"3\"");
    set_pod(&r, "b", ONE(TENCENT("10", "8")), "\"tencent.com/predicate-gpu-idx-0\":\"1\"");
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 3);
    /* Each container in turn: the first takes what is left of card 3. */
    ck_assert_int_eq(fit_of(&r, TWO(TENCENT("60", "8"), TENCENT("60", "8")), "n", &there),
                     VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 3);
    ck_assert_uint_eq(there.grants[1].card, 1);
    /* It knows nothing of a card that is ill for us. */
    health_set(&r, "n", "3");
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_PLUGIN_ORDER);
    health_gone(&r, "n");
    ck_assert_int_eq(fit_of(&r, ONE("\"tencent.com/vcuda-core\":\"200\""), "n", &there),
                     VERDICT_FITS);
    ck_assert_int_eq(fit_of(&r, ONE("\"tencent.com/vcuda-core\":\"300\""), "n", &there),
                     VERDICT_NOT_EMPTY);
    ck_assert_int_eq(fit_of(&r, ONE(TENCENT("50", "17")), "n", &there), VERDICT_TOO_LARGE);
    rig_done(&r);
}

END_TEST

START_TEST(whole_cards_of_gpu_manager_are_all_allowed)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    health_set(&r, "n", "0");
    ck_assert_int_eq(fit_of(&r, ONE("\"tencent.com/vcuda-core\":\"100\""), "n", &there),
                     VERDICT_PLUGIN_ORDER);
    /* With a pod on it the plugin does not take it. */
    set_pod(&r, "a", ONE(TENCENT("40", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"0\"");
    ck_assert_int_eq(fit_of(&r, ONE("\"tencent.com/vcuda-core\":\"100\""), "n", &there),
                     VERDICT_FITS);
    rig_done(&r);
}

END_TEST

/* Shows an unbound pod that a scheduler has nominated for n. */
static void nominate(struct rig *r, const char *uid, const char *containers)
{
    struct object o;
    object_pod(&o, uid, containers, "", "");
    o.pod.nominated = STR("n");
    o.pod.priority = 9;
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

START_TEST(gpu_manager_knows_nothing_of_kept_room)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    nominate(&r, "first", ONE(TENCENT("30", "8")));
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 0);
    /* It would take card 0, whose room is kept. */
    nominate(&r, "first", ONE(TENCENT("60", "8")));
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_KEPT);
    rig_done(&r);
}

END_TEST

START_TEST(gpu_manager_gives_the_card_of_a_deleted_pod_away)
{
    struct rig r;
    struct placement there;
    struct object o;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    set_pod(&r, "a", ONE(TENCENT("20", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"1\"");
    object_pod(&o, "b", ONE(TENCENT("60", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"0\"", "n");
    o.pod.deleting = true;
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    object_end(&o);
    ck_assert_int_eq(fit_of(&r, ONE(TENCENT("30", "2")), "n", &there), VERDICT_PLUGIN_ORDER);
    pod_gone(&r, "b");
    ck_assert_int_eq(fit_of(&r, ONE(TENCENT("30", "2")), "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 1);
    rig_done(&r);
}

END_TEST

/* A pod ends between the reservation and the Binding. */
START_TEST(the_choice_of_gpu_manager_is_checked_again)
{
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    set_pod(&r, "a", ONE(TENCENT("40", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"3\"");
    object_pod(&o, "p", plain[DIALECT_TENCENT], "", "");
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = STR("p"),
                                        .namespace = STR("ns"),
                                        .name = STR("p"),
                                        .node = STR("n"),
                                        .request = &o.request}};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_uint_eq(r.fx.card, 3);
    ck_assert_int_eq(renew(&r, "p"), OK);
    pod_gone(&r, "a");
    ck_assert_int_eq(renew(&r, "p"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_PLUGIN_ORDER);
    object_end(&o);
    rig_done(&r);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("in_turn");
    TCase *t = tcase_create("in_turn");
    tcase_add_test(t, predicts_the_card_of_gpu_manager);
    tcase_add_test(t, whole_cards_of_gpu_manager_are_all_allowed);
    tcase_add_test(t, gpu_manager_knows_nothing_of_kept_room);
    tcase_add_test(t, gpu_manager_gives_the_card_of_a_deleted_pod_away);
    tcase_add_test(t, the_choice_of_gpu_manager_is_checked_again);
    suite_add_tcase(s, t);
    return unit_main(s);
}
