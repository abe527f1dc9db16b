/* How the quota of a namespace limits the cards that a pod may get, and the reason in the
 * refusal. */
#include "core/state/quota_usage.h"
#include "quota_rig.h"

TEST(a_model_that_is_used_up_is_skipped)
{
    struct quota_limit limits[] = {limit_of(QUOTA_MODEL, "T4", -1, 1, -1),
                                   limit_of(QUOTA_MODEL, "A100", 8, -1, -1)};
    struct rig r;
    struct placement there;
    struct request request;
    rig_init(&r);
    shop_set(&r, "n", 16, NULL, "T4", "A100");
    shop_set(&r, "t", 16, NULL, "T4", NULL);
    ck_assert_int_eq(set_limits(&r, limits, 2), OK);
    struct evaluation evaluation = ask(&r, (struct asks){.mem = "4"}, &request);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 0);
    bound(&r, "p", "t", "0", (struct asks){.mem = "1"});
    evaluation = ask(&r, (struct asks){.mem = "4"}, &request);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 1);
    ck_assert_int_eq(fit_card(node_of(&r, "n"), &evaluation, 0), VERDICT_QUOTA);
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "4"}), VERDICT_FITS);
    ck_assert_str_eq(why(&r, "t", (struct asks){.mem = "4"}),
                     "quota of namespace ns: cards of model T4: 1 of 1 used, 1 asked");
    /* It exceeds the other model's limit, so that model's card never becomes feasible; this one
     * may. */
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "9"}), VERDICT_QUOTA);
    ck_assert_str_eq(why(&r, "n", (struct asks){.mem = "9"}),
                     "quota of namespace ns: cards of model T4: 1 of 1 used, 1 asked");
    rig_done(&r);
}

/* The reason is that of the cards that the pod would get, not of the others. */
TEST(the_reason_is_that_of_its_cards)
{
    struct quota_limit limits[] = {limit_of(QUOTA_MODEL, "T4", -1, 1, -1),
                                   limit_of(QUOTA_MODEL, "A100", 8, -1, -1)};
    struct rig r;
    rig_init(&r);
    shop_set(&r, "n", 16, NULL, "T4", "A100");
    ck_assert_int_eq(set_limits(&r, limits, 2), OK);
    bound(&r, "p", "n", "0", (struct asks){.mem = "1"});
    bound(&r, "q", "n", "1", (struct asks){.mem = "5"});
    ck_assert_str_eq(why(&r, "n", (struct asks){.mem = "4", .model = "A100"}),
                     "quota of namespace ns: memory of model A100: 5 of 8 used, 4 asked");
    rig_done(&r);
}

TEST(whole_cards_cost_what_they_have)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, 20, -1, -1)};
    struct card_view cards[] = {
        {.index = 0, .mem = 24, .numa = -1, .model = STR("T4")},
        {.index = 1, .mem = 16, .numa = -1, .model = STR("T4")},
    };
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("n"),
                                     .mem = STR("40"),
                                     .has_cards = true,
                                     .cards = cards,
                                     .n_cards = COUNT_OF(cards)}};
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "1", .whole = "require-whole-device"}),
                     VERDICT_FITS);
    health_set(&r, "n", "1");
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "1", .whole = "require-whole-device"}),
                     VERDICT_QUOTA_DENIED);
    rig_done(&r);
}

TEST(several_cards_are_asked_for_at_once)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, 20, 3, 150)};
    struct rig r;
    rig_init(&r);
    shop_set(&r, "n", 16, NULL, "T4", NULL);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    bound(&r, "p", "n", "0", (struct asks){.mem = "2"});
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "18", .count = "2"}), VERDICT_FITS);
    ck_assert_str_eq(why(&r, "n", (struct asks){.mem = "20", .count = "2"}),
                     "quota of namespace ns: memory: 2 of 20 used, 20 asked");
    ck_assert_str_eq(why(&r, "n", (struct asks){.mem = "2", .percent = "60", .count = "2"}),
                     "quota of namespace ns: memory: 2 of 20 used, 20 asked");
    ck_assert_str_eq(why(&r, "n", (struct asks){.mem = "4", .cores = "160", .count = "2"}),
                     "quota of namespace ns: compute: 0 of 150 used, 160 asked");
    ck_assert_str_eq(
        why(&r, "n", (struct asks){.mem = "2", .whole = "require-whole-device", .count = "2"}),
        "quota of namespace ns: memory: 2 of 20 used, 32 asked");
    bound(&r, "q", "n", "0", (struct asks){.mem = "1"});
    ck_assert_str_eq(why(&r, "n", (struct asks){.mem = "2", .count = "2"}),
                     "quota of namespace ns: cards: 2 of 3 used, 2 asked");
    rig_done(&r);
}

/* Containers on different cards use a card each. If the quota allows no second card, they are
 * placed on one. */
TEST(containers_part_within_it)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, 20, -1, -1),
                                   limit_of(QUOTA_MODEL, "T4", 8, -1, -1)};
    struct rig r;
    struct placement there;
    struct request request;
    rig_init(&r);
    shop_set(&r, "n", 12, NULL, "T4", "A100");
    shop_set(&r, "a", 12, NULL, "A100", NULL);
    ck_assert_int_eq(set_limits(&r, limits, 2), OK);
    ck_assert_int_eq(fit(&r, "a", (struct asks){.mem = "10", .more = "10"}), VERDICT_FITS);
    ck_assert_str_eq(why(&r, "a", (struct asks){.mem = "10", .more = "11"}),
                     "quota of namespace ns: memory: 0 of 20 used, 21 asked");
    ck_assert_int_eq(fit(&r, "a", (struct asks){.mem = "10", .more = "11"}), VERDICT_QUOTA_DENIED);
    limits[0].most[QUOTA_CARDS] = 1;
    ck_assert_int_eq(set_limits(&r, limits, 2), OK);
    struct evaluation evaluation = ask(&r, (struct asks){.mem = "5", .more = "5"}, &request);
    ck_assert_int_eq(fit_place(node_of(&r, "a"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, there.grants[1].card);
    ck_assert_int_eq(fit(&r, "a", (struct asks){.mem = "7", .more = "7"}), VERDICT_TOO_LARGE);
    rig_done(&r);
}

/* Cards with equal room differ if their models differ. */
TEST(containers_part_over_models)
{
    struct quota_limit limits[] = {limit_of(QUOTA_MODEL, "T4", -1, 1, -1)};
    struct card_view cards[] = {
        {.index = 0, .mem = 12, .numa = -1, .model = STR("T4")},
        {.index = 1, .mem = 12, .numa = -1, .model = STR("T4")},
        {.index = 2, .mem = 12, .numa = -1, .model = STR("A100")},
    };
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("n"),
                                     .mem = STR("36"),
                                     .has_cards = true,
                                     .cards = cards,
                                     .n_cards = COUNT_OF(cards)}};
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "10", .more = "10"}), VERDICT_FITS);
    bound(&r, "p", "n", "2", (struct asks){.mem = "10"});
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "10", .more = "10"}), VERDICT_NO_CARD_FREE);
    rig_done(&r);
}

/* A card that a container of the pod has already takes no more of a limit on cards, so it differs
 * from a card with equal room. */
TEST(containers_part_onto_few_cards)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, -1, 4, -1)};
    struct container_view containers[] = {
        {.name = STR("c"), .mem = STR("12")},
        {.name = STR("d"), .mem = STR("4"), .index = 1},
        {.name = STR("e"), .mem = STR("4"), .index = 2},
    };
    struct pod_view view = {
        .namespace = STR("ns"), .containers = containers, .n_containers = 3, .n_mains = 3};
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("n"), .mem = STR("48"), .count = STR("3")}};
    struct rig r;
    struct request request;
    struct err error = ERR_INIT;
    rig_init(&r);
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    bound(&r, "p", "n", "0", (struct asks){.mem = "12"});
    bound(&r, "q", "n", "1", (struct asks){.mem = "12"});
    ck_assert_int_eq(request_read(&view, &request, &error), OK);
    struct evaluation evaluation;
    cache_evaluation(&r.cache, STR_NULL, &request, &evaluation);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    limits[0].most[QUOTA_CARDS] = 3;
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    cache_evaluation(&r.cache, STR_NULL, &request, &evaluation);
    ck_assert_int_ne(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    rig_done(&r);
}

enum {
    KINDS = 80
};

static void kind_set(struct rig *r, unsigned i)
{
    char name[8];
    char pool[8];
    char model[8];
    (void)snprintf(name, sizeof(name), "n%u", i);
    (void)snprintf(pool, sizeof(pool), "p%u", i % 4);
    (void)snprintf(model, sizeof(model), "m%u", i / 4 % 5);
    shop_set(r, name, 16 + 8 * (i / 20), pool, model, NULL);
}

/* With a memo and without: the verdicts must be equal. */
static enum verdict ask_both(const struct rig *r, unsigned i, struct asks a,
                             struct quota_usage_memo *memo)
{
    char name[8];
    struct request request;
    struct quota_refusal x = {.limit = 0};
    struct quota_refusal y = {.limit = 0};
    (void)snprintf(name, sizeof(name), "n%u", i);
    const struct node *n = node_of(r, name);
    struct evaluation evaluation = ask(r, a, &request);
    enum verdict v = fit_node(n, &evaluation);
    bool said = fit_refusal(n, &evaluation, v, &x);
    evaluation.memo = memo;
    ck_assert_int_eq(fit_node(n, &evaluation), v);
    ck_assert(fit_refusal(n, &evaluation, v, &y) == said);
    ck_assert(x.scope == y.scope && x.kind == y.kind && x.used == y.used && x.asked == y.asked);
    ck_assert(str_eq(x.name, y.name));
    return v;
}

/* More kinds of nodes than a memo holds, each of them twice. */
TEST(a_memo_answers_as_the_account)
{
    struct quota_limit limits[] = {
        limit_of(QUOTA_TOTAL, NULL, 40, -1, -1),  limit_of(QUOTA_POOL, "p1", 20, -1, -1),
        limit_of(QUOTA_POOL, "p2", 10, -1, -1),   limit_of(QUOTA_MODEL, "m1", 24, -1, -1),
        limit_of(QUOTA_MODEL, "m2*", 12, -1, -1),
    };
    static const struct asks asks[] = {
        {.mem = "8"},
        {.mem = "4", .percent = "60"},
        {.mem = "2", .whole = "require-whole-device"},
        {.mem = "4", .exclusive = "1"},
        {.exclusive = "2"},
    };
    struct rig r;
    unsigned verdicts[VERDICT_COUNT] = {0};
    rig_init(&r);
    ck_assert_int_eq(set_limits(&r, limits, COUNT_OF(limits)), OK);
    for (unsigned i = 0; i < KINDS; i++)
        kind_set(&r, i);
    bound(&r, "p", "n6", "0", (struct asks){.mem = "3"});
    for (size_t k = 0; k < COUNT_OF(asks); k++) {
        struct quota_usage_memo memo = {.n = 0};
        for (unsigned i = 0; i < 2 * KINDS; i++)
            verdicts[ask_both(&r, i % KINDS, asks[k], &memo)]++;
        ck_assert(memo.n > 10 || asks[k].exclusive != NULL);
    }
    ck_assert_uint_gt(verdicts[VERDICT_FITS], 0);
    ck_assert_uint_gt(verdicts[VERDICT_QUOTA], 0);
    ck_assert_uint_gt(verdicts[VERDICT_QUOTA_DENIED], 0);
    rig_done(&r);
}

TEST(cards_of_another_plugin_are_asked_for)
{
    struct quota_limit limits[] = {limit_of(QUOTA_MODEL, "T4", -1, 2, -1)};
    struct rig r;
    rig_init(&r);
    shop_set(&r, "n", 16, NULL, "T4", NULL);
    shop_set(&r, "m", 16, NULL, "A100", NULL);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    bound(&r, "p", "n", NULL, (struct asks){.exclusive = "1"});
    ck_assert_int_eq(fit(&r, "n", (struct asks){.exclusive = "1"}), VERDICT_FITS);
    ck_assert_int_eq(fit(&r, "m", (struct asks){.exclusive = "3"}), VERDICT_FITS);
    ck_assert_str_eq(why(&r, "n", (struct asks){.exclusive = "2"}),
                     "quota of namespace ns: cards of model T4: 1 of 2 used, 2 asked");
    ck_assert_int_eq(fit(&r, "n", (struct asks){.exclusive = "3"}), VERDICT_QUOTA_DENIED);
    rig_done(&r);
}

/* With the quota used up, room does not help. If the card can never be feasible, that is the
 * reason. */
TEST(verdicts_come_in_order)
{
    struct quota_limit limits[] = {limit_of(QUOTA_TOTAL, NULL, 17, -1, -1)};
    struct rig r;
    rig_init(&r);
    shop_set(&r, "n", 16, NULL, "T4", NULL);
    node_set(&r, "full", "16", "1", NULL);
    ck_assert_int_eq(set_limits(&r, limits, 1), OK);
    bound(&r, "p", "full", "0", (struct asks){.mem = "16"});
    ck_assert_int_eq(fit(&r, "full", (struct asks){.mem = "2"}), VERDICT_QUOTA);
    ck_assert_int_eq(fit(&r, "full", (struct asks){.mem = "1"}), VERDICT_NO_CARD_FREE);
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "17"}), VERDICT_TOO_LARGE);
    health_set(&r, "n", "0,1");
    ck_assert_int_eq(fit(&r, "n", (struct asks){.mem = "2"}), VERDICT_UNUSABLE);
    ck_assert(verdict_unresolvable(VERDICT_QUOTA_DENIED) && !verdict_unresolvable(VERDICT_QUOTA));
    rig_done(&r);
}
