/* gpu-manager chooses shared cards by an order of its own: the prediction, and where it can't be
 * relied on. */
#include "dialect_rig.h"

TEST(predicts_the_card_of_gpu_manager)
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

TEST(whole_cards_of_gpu_manager_are_all_allowed)
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

/* Shows an unbound pod that a scheduler has nominated for n. */
static void nominate(struct rig *r, const char *uid, const char *containers)
{
    struct object o;
    object_pod(&o, uid, containers, "", "");
    o.pod.nominated = STR("n");
    o.pod.priority = 9;
    object_show(r, &o);
}

TEST(gpu_manager_knows_nothing_of_kept_room)
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

/* Shows a bound pod that is being deleted, on this card. */
static void delete_slowly(struct rig *r, const char *uid, const char *containers, const char *card)
{
    struct object o;
    char annotation[64];
    (void)snprintf(annotation, sizeof(annotation), "\"tencent.com/predicate-gpu-idx-0\":\"%s\"",
                   card);
    object_pod(&o, uid, containers, annotation, "n");
    o.pod.deleting = true;
    object_show(r, &o);
}

TEST(gpu_manager_gives_the_card_of_a_deleted_pod_away)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    set_pod(&r, "a", ONE(TENCENT("20", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"1\"");
    delete_slowly(&r, "b", ONE(TENCENT("60", "2")), "0");
    ck_assert_int_eq(fit_of(&r, ONE(TENCENT("30", "2")), "n", &there), VERDICT_PLUGIN_ORDER);
    pod_gone(&r, "b");
    ck_assert_int_eq(fit_of(&r, ONE(TENCENT("30", "2")), "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 1);
    rig_done(&r);
}

#define WHOLE(core) ONE("\"tencent.com/vcuda-core\":\"" core "\"")

/* Of a pod of another plugin it knows nothing: its card is free for gpu-manager. */
TEST(gpu_manager_knows_nothing_of_pods_of_other_plugins)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    set_pod(&r, "other", plain[DIALECT_VOLCANO], "\"volcano.sh/gpu-index\":\"0\"");
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_PLUGIN_ORDER);
    ck_assert_int_eq(fit_of(&r, WHOLE("100"), "n", &there), VERDICT_PLUGIN_ORDER);
    /* Where it takes another card anyway, the pod fits. */
    set_pod(&r, "a", ONE(TENCENT("20", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"1\"");
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 1);
    pod_gone(&r, "other");
    ck_assert_int_eq(fit_of(&r, WHOLE("100"), "n", &there), VERDICT_FITS);
    rig_done(&r);
}

TEST(whole_cards_of_deleted_pods_must_be_allowed)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    delete_slowly(&r, "a", plain[DIALECT_TENCENT], "0");
    ck_assert_int_eq(fit_of(&r, WHOLE("100"), "n", &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 1);
    health_set(&r, "n", "0");
    ck_assert_int_eq(fit_of(&r, WHOLE("100"), "n", &there), VERDICT_PLUGIN_ORDER);
    /* A pod that stays keeps it away from the card. */
    set_pod(&r, "b", ONE(TENCENT("20", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"0\"");
    ck_assert_int_eq(fit_of(&r, WHOLE("100"), "n", &there), VERDICT_FITS);
    rig_done(&r);
}

/* It has no memory of its own that could count as memory without a card. */
TEST(whole_cards_that_are_not_known_yet_hide_the_order)
{
    struct rig r;
    struct placement there;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    set_pod(&r, "a", WHOLE("100"), "");
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_PLUGIN_ORDER);
    ck_assert_int_eq(fit_of(&r, WHOLE("100"), "n", &there), VERDICT_PLUGIN_ORDER);
    set_pod(&r, "a", WHOLE("100"), "\"tencent.com/predicate-gpu-idx-0\":\"2\"");
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_FITS);
    ck_assert_int_eq(fit_of(&r, WHOLE("100"), "n", &there), VERDICT_FITS);
    rig_done(&r);
}

/* The quota would allow both containers on one card, but the plugin takes two: no number of the
 * quota is a reason for that. */
TEST(a_choice_beyond_the_quota_is_the_reason)
{
    struct rig r;
    struct placement there;
    struct quota_limit limit = {.scope = QUOTA_TOTAL, .most = {-1, 1, -1}};
    struct quota_entry entry = {.namespace = STR("ns"), .limits = &limit, .n_limits = 1};
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    struct cache_event e = {.type = CACHE_QUOTA_SET, .quota = {&entry, 1}};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(fit_of(&r, TWO(TENCENT("40", "2"), TENCENT("40", "2")), "n", &there),
                     VERDICT_FITS);
    ck_assert_int_eq(fit_of(&r, TWO(TENCENT("60", "2"), TENCENT("60", "2")), "n", &there),
                     VERDICT_PLUGIN_ORDER);
    rig_done(&r);
}

/* It knows nothing of claims, and counts what they hold of a card as free. But its nodes have no
 * table, so a claim holds all their cards whole, and never a part that could move its choice. */
TEST(claims_hold_no_part_of_its_cards)
{
    struct rig r;
    struct placement there;
    struct dra_device_view device = {.name = STR("d"), .uuid = STR("GPU-1"), .memory = 16};
    struct dra_result_view half = {
        .driver = STR("g"), .pool = STR("n"), .device = STR("d"), .shared = true, .memory = 8};
    struct cache_event slice = {.type = CACHE_SLICE_SET,
                                .slice = {.name = STR("s"),
                                          .driver = STR("g"),
                                          .pool = STR("n"),
                                          .node = STR("n"),
                                          .generation = 1,
                                          .devices = &device,
                                          .n_devices = 1}};
    struct cache_event claim = {.type = CACHE_CLAIM_SET,
                                .claim = {.uid = STR("c"), .results = &half, .n_results = 1}};
    struct object o;
    all_dialects();
    rig_init(&r);
    object_node(&o, "n",
                ",\"annotations\":{\"cardpack.io/cards\":\"[{\\\"index\\\":0,\\\"memory\\\":16,"
                "\\\"uuid\\\":\\\"GPU-0\\\"},{\\\"index\\\":1,\\\"memory\\\":16,\\\"uuid\\\":"
                "\\\"GPU-1\\\"}]\"}",
                TENCENT("200", "32"), "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(rig_apply(&r, &slice), OK);
    ck_assert_int_eq(rig_apply(&r, &claim), OK);
    const struct node *n = cache_node(&r.cache, STR("n"));
    for (uint32_t i = 0; i < 2; i++)
        ck_assert(n->cards[i].claimed && n->cards[i].lent == 0);
    ck_assert_int_eq(fit_of(&r, plain[DIALECT_TENCENT], "n", &there), VERDICT_CLAIMED);
    object_end(&o);
    rig_done(&r);
}

/* A card that it may take for the one that is reserved is ill when the Binding is sent. */
TEST(whole_cards_are_checked_again)
{
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    object_pod(&o, "p", WHOLE("100"), "", "");
    ck_assert_int_eq(object_reserve(&r, &o), OK);
    ck_assert_uint_eq(r.fx.card, 0);
    ck_assert_int_eq(renew(&r, "p"), OK);
    health_set(&r, "n", "3");
    ck_assert_int_eq(renew(&r, "p"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_PLUGIN_ORDER);
    object_end(&o);
    rig_done(&r);
}

/* A pod ends between the reservation and the Binding. */
TEST(the_choice_of_gpu_manager_is_checked_again)
{
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", DIALECT_TENCENT);
    set_pod(&r, "a", ONE(TENCENT("40", "2")), "\"tencent.com/predicate-gpu-idx-0\":\"3\"");
    object_pod(&o, "p", plain[DIALECT_TENCENT], "", "");
    ck_assert_int_eq(object_reserve(&r, &o), OK);
    ck_assert_uint_eq(r.fx.card, 3);
    ck_assert_int_eq(renew(&r, "p"), OK);
    pod_gone(&r, "a");
    ck_assert_int_eq(renew(&r, "p"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_PLUGIN_ORDER);
    object_end(&o);
    rig_done(&r);
}
