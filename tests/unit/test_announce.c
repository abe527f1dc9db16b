/* What cardpack-node announces: cases against the API server of announce_rig.h. */
#include "announce_rig.h"

#include "kube/write_step.h"
#include "objects/cards.h"

TEST(announces_cards)
{
    watch(); /* before there is anything to compare with */
    ck_assert_str_is(announce_trouble(t.announce), "the cards are not announced yet");
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    node_has("2", "[" FIRST "}," SECOND "}]", "none");
    ck_assert_str_eq(map_has(), "(none)");
    ck_assert_uint_eq(t.node_patches, 1);
    ck_assert_uint_eq(t.map_calls, 1); /* an older one might have been there */
    cards(GPU_HEALTHY, GPU_HEALTHY);
    watch();
    pass(200000);
    ck_assert_uint_eq(t.node_patches, 1);
    ck_assert_uint_eq(t.map_calls, 1);
    ck_assert_str_eq(t.events_said, "");
    ck_assert_uint_eq(announce_trouble(t.announce).n, 0);
    ck_assert_uint_eq(announce_counts(t.announce)->nodes, 1);
}

/* cardpack reads the table that is written, with its fields. */
TEST(cardpack_reads_the_table)
{
    struct arena a;
    struct node_view v = {.name = STR_NULL};
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    pass(0);
    arena_init(&a, 65536);
    ck_assert(
        cards_read(str_of(at(t.node, "metadata", "annotations", "cardpack.io/cards")), &a, &v));
    ck_assert_ptr_null(v.cards_fault);
    ck_assert_uint_eq(v.n_cards, 2);
    ck_assert(v.cards[0].index == 0 && v.cards[0].mem == 40 && v.cards[0].numa == 0);
    ck_assert(!v.cards[0].unhealthy && v.cards[1].unhealthy);
    ck_assert(v.cards[1].index == 2 && v.cards[1].mem == 5 && v.cards[1].numa == -1);
    ck_assert_str_is(v.cards[0].uuid, "GPU-a");
    ck_assert_str_is(v.cards[1].profile, "1g.5gb");
    arena_done(&a);
}

TEST(the_config_map_comes_first)
{
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(100);
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    ck_assert(!announce_has_written(t.announce, 2));
    t.told = 0;
    pass(0);
    ck_assert_str_eq(map_has(), "2");
    ck_assert(announce_has_written(t.announce, 2) && !announce_has_written(t.announce, 0));
    ck_assert_uint_ge(t.told, 1);
    node_has("2", "[" FIRST "}," SECOND ILL "]", "none");
    cards(GPU_UNHEALTHY, GPU_UNHEALTHY);
    ck_assert(!announce_has_written(t.announce, 0) && announce_has_written(t.announce, 2));
    pass(0);
    ck_assert_str_eq(map_has(), "0,2");
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    ck_assert_str_eq(map_has(), "");
    node_has("2", "[" FIRST "}," SECOND "}]", "none");
}

TEST(events_on_the_node)
{
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    cards(GPU_UNHEALTHY, GPU_WARNED);
    cards(GPU_UNHEALTHY, GPU_WARNED);
    pass(0);
    ck_assert_uint_eq(said("\"kind\":\"Node\",\"name\":\"gpu-7\",\"uid\":\"gpu-7\""), 2);
    ck_assert_uint_eq(said("\"reason\":\"CardUnhealthy\",\"message\":\"card 0 (GPU-a, NVIDIA A100) "
                           "is unhealthy and gets no new pods: XID 79\""),
                      1);
    ck_assert_uint_eq(said("\"reason\":\"CardNeedsReset\",\"message\":\"card 2 (MIG-b, NVIDIA "
                           "A100) still works; drain the node and reset the card: XID 48\""),
                      1);
    cards(GPU_HEALTHY, GPU_WARNED);
    pass(0);
    ck_assert_uint_eq(said("\"type\":\"Normal\",\"reason\":\"CardRecovered\",\"message\":\"card 0 "
                           "(GPU-a, NVIDIA A100) is healthy again\""),
                      1);
    ck_assert_uint_eq(said("\"component\":\"cardpack-node\""), 3);
}

/* The driver may say so after the XID; an administrator waits for that event. */
TEST(an_event_when_a_card_begins_to_need_a_reset)
{
    struct announce_card one = {.index = 1,
                                .units = 3,
                                .numa = -1,
                                .uuid = STR("GPU-c"),
                                .health = GPU_UNHEALTHY,
                                .reason = STR("XID 140")};
    for (unsigned i = 0; i < 5; i++) {
        if (i == 2) {
            one.needs_reset = true;
            one.reason = STR("XID 140: by the driver it needs a reset");
        } else if (i == 4) {
            one.needs_reset = false;
        }
        announce_cards(t.announce, &one, 1, ISOLATION_NONE, false);
        pass(0);
        ck_assert_uint_eq(said("\"reason\":\"CardUnhealthy\""), i < 2 ? 1 : 2);
        ck_assert_uint_eq(said("XID 140: by the driver it needs a reset"), i < 2 ? 0 : 1);
    }
}

/* The kubelet starts without its checkpoint: it sets extended resources to 0. */
static void kubelet_zeroes(void)
{
    json_t *status = json_object_get(t.node, "status");
    json_object_set_new(json_object_get(status, "capacity"), "aliyun.com/gpu-count",
                        json_string("0"));
    json_object_set_new(json_object_get(status, "allocatable"), "aliyun.com/gpu-count",
                        json_string("0"));
    touch_node();
}

TEST(the_kubelet_zeroes_the_count)
{
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    for (unsigned i = 0; i < 3; i++) {
        kubelet_zeroes();
        watch();
        pass(3000);
        node_has("2", "[" FIRST "}," SECOND "}]", "none");
        watch();
    }
    ck_assert_uint_eq(t.node_patches, 4);
    ck_assert_uint_eq(announce_counts(t.announce)->drifts, 3);
}

/* It does so after our PATCH took effect, and before its answer arrives. */
TEST(zeroed_while_a_patch_is_under_way)
{
    t.away = true;
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    struct http_call *c = fake_find("PATCH", "/nodes/");
    json_t *patch = json_loadb(c->body.p, c->body.n, 0, NULL);
    merge(t.node, patch);
    json_decref(patch);
    touch_node();
    char *answer = json_dumps(t.node, JSON_COMPACT);
    kubelet_zeroes();
    watch();
    fake_answer(c, 200, answer);
    free(answer);
    t.away = false;
    pass(0);
    node_has("2", "[" FIRST "}," SECOND "}]", "none");
}

/* An event of before the last PATCH is no drift. */
TEST(a_watch_that_lags)
{
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    json_t *old = json_deep_copy(t.node);
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    pass(0);
    json_t *now = t.node;
    t.node = old;
    watch();
    t.node = now;
    json_decref(old);
    pass(1000);
    ck_assert_uint_eq(t.node_patches, 2);
    ck_assert_uint_eq(announce_counts(t.announce)->drifts, 0);
}

/* An administrator edits the annotation or the label. */
TEST_EACH(others_edit_the_node, 2)
{
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    json_t *metadata = json_object_get(t.node, "metadata");
    if (_i == 0)
        json_object_set_new(json_object_get(metadata, "annotations"), "cardpack.io/cards",
                            json_string("[]"));
    else
        json_object_del(json_object_get(metadata, "labels"), "cardpack.io/isolation");
    touch_node();
    watch();
    pass(0);
    node_has("2", "[" FIRST "}," SECOND "}]", "none");
}

/* For minutes: the kubelet is told after five seconds, everything is announced in the end, and the
 * requests are few. */
TEST_EACH(the_api_server_is_away, 6)
{
    static const unsigned how[] = {0, 503, 429, 403, 409, 401};
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    t.refuse = how[_i];
    t.away = how[_i] == 0;
    t.told = 0;
    cards(GPU_UNHEALTHY, GPU_HEALTHY);
    pass(ANNOUNCE_TELL_MS - 100);
    ck_assert(!announce_has_written(t.announce, 0) && t.told == 0);
    pass(200);
    ck_assert(announce_has_written(t.announce, 0) && t.told == 1);
    for (unsigned i = 0; i < 300; i++) {
        pass(1000);
        /* What libcurl would report after its timeout. */
        while (t.away && !list_is_empty(&fake_calls))
            fake_land(LIST_FIRST(&fake_calls, struct http_call, link), HTTP_UNKNOWN, 0);
    }
    ck_assert_uint_gt(announce_trouble(t.announce).n, 0);
    ck_assert_uint_ge(announce_counts(t.announce)->failures, 10);
    ck_assert_uint_le(announce_counts(t.announce)->failures, 60);
    t.refuse = 0;
    t.away = false;
    pass(2 * WRITE_RETRY_MAX_MS);
    ck_assert_str_eq(map_has(), "0");
    node_has("2", "[" FIRST ILL "," SECOND "}]", "none");
    ck_assert_uint_eq(announce_trouble(t.announce).n, 0);
    /* The wait is for each card anew. */
    cards(GPU_UNHEALTHY, GPU_UNHEALTHY);
    ck_assert(!announce_has_written(t.announce, 2));
}

TEST(another_program_makes_the_config_map)
{
    t.map_conflict = true;
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    pass(0);
    ck_assert_str_eq(map_has(), "2");
}

/* Of an earlier start; and someone deletes or changes it later. */
TEST(an_old_config_map)
{
    t.map = json_pack("{s:{s:s}}", "data", "gpus", "0,1");
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(0);
    ck_assert_str_eq(map_has(), "");
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    pass(0);
    json_decref(t.map);
    t.map = NULL;
    pass(310000);
    ck_assert_str_eq(map_has(), "2");
}

TEST(the_node_is_not_there_yet)
{
    t.refuse = 404;
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(5000);
    t.refuse = 0;
    pass(20000);
    node_has("2", "[" FIRST "}," SECOND "}]", "none");
}

TEST(an_api_server_that_drops_it)
{
    t.drops = true;
    cards(GPU_HEALTHY, GPU_HEALTHY);
    pass(60000);
    ck_assert_uint_ge(t.node_patches, 5);
    ck_assert_uint_le(t.node_patches, 12);
    ck_assert(memmem(announce_trouble(t.announce).p, announce_trouble(t.announce).n,
                     "without what was sent", 21) != NULL);
    t.drops = false;
    pass(2 * WRITE_RETRY_MAX_MS);
    node_has("2", "[" FIRST "}," SECOND "}]", "none");
}

/* The last card is gone from the hardware and from the state: nothing of it stays announced. */
TEST(no_card_at_all)
{
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    pass(0);
    announce_cards(t.announce, NULL, 0, ISOLATION_NONE, true);
    pass(0);
    node_has("(none)", "(none)", "(none)");
    ck_assert_str_eq(map_has(), "");
    kubelet_zeroes(); /* it keeps the resource with 0 */
    watch();
    pass(1000);
    ck_assert_uint_eq(announce_counts(t.announce)->drifts, 0);
}

TEST(isolation_changes)
{
    const struct announce_card one = {.index = 1, .units = 3, .numa = -1, .uuid = STR("GPU-c")};
    announce_cards(t.announce, &one, 1, ISOLATION_NONE, false);
    pass(0);
    announce_cards(t.announce, &one, 1, ISOLATION_DRIVER_LIMITS, false);
    pass(0);
    node_has("1", "[{\"index\":1,\"memory\":3,\"uuid\":\"GPU-c\"}]", "driver-limits");
}

/* cardpack does not guard such a node against swaps, so it must say so as long as it is true, and
 * no longer. */
TEST(late_binding_changes)
{
    static const bool turns[] = {false, true, true, false, true};
    const struct announce_card one = {.index = 1, .units = 3, .numa = -1, .uuid = STR("GPU-c")};
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        unsigned patches = t.node_patches;
        announce_cards(t.announce, &one, 1, ISOLATION_NONE, turns[i]);
        pass(0);
        ck_assert_str_eq(at(t.node, "metadata", "annotations", "cardpack.io/late-binding"),
                         turns[i] ? "true" : "(none)");
        ck_assert_uint_eq(t.node_patches - patches, i == 0 || turns[i] != turns[i - 1] ? 1 : 0);
    }
    /* another program takes it away, or a user claims it */
    json_object_del(json_object_get(json_object_get(t.node, "metadata"), "annotations"),
                    "cardpack.io/late-binding");
    touch_node();
    watch();
    pass(3000);
    ck_assert_str_eq(at(t.node, "metadata", "annotations", "cardpack.io/late-binding"), "true");
    announce_cards(t.announce, &one, 1, ISOLATION_NONE, false);
    pass(0);
    json_object_set_new(json_object_get(json_object_get(t.node, "metadata"), "annotations"),
                        "cardpack.io/late-binding", json_string("true"));
    touch_node();
    watch();
    pass(60000);
    ck_assert_str_eq(at(t.node, "metadata", "annotations", "cardpack.io/late-binding"), "(none)");
}

static enum errc opens(void *ctx)
{
    struct err e = ERR_INIT;
    (void)ctx;
    enum errc code = try_open(&e);
    ck_assert((code == OK) == (t.announce != NULL));
    t.announce = announce_free(t.announce);
    return code;
}

TEST(no_memory_to_open)
{
    t.announce = announce_free(t.announce);
    ck_assert_uint_ge(fail_alloc_each(opens, NULL), 2);
}

/* An allocation fails on the way: the same cards, announced again, arrive. */
TEST_EACH(no_memory_on_the_way, 25)
{
    fail_alloc_arm(FAIL_ONCE, (size_t)_i + 1);
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    pass(3000);
    fail_alloc_disarm();
    cards(GPU_HEALTHY, GPU_UNHEALTHY);
    pass(3000);
    node_has("2", "[" FIRST "}," SECOND ILL "]", "none");
    ck_assert_str_eq(map_has(), "2");
}

int main(void)
{
    TCase *c = unit_case("announce");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
