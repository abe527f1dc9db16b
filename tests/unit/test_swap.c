/* Pods that the device plugin may confuse, and how swap-guard prevents that. */
#include "core/place/score.h"
#include "core/preempt/victims.h"
#include "fit_fixture.h"
#include "report/plan.h"

#define FALSE           .assigned = S("false")
#define TRUE            .assigned = S("true")
#define PENDING_AT(at)  .node = S("n"), .idx = S(#at), .phase = S("Pending")
#define PENDING_ON(...) .node = S("n"), .phase = S("Pending"), ALLOCATION(__VA_ARGS__)

#define ANY  (-1)
#define NONE (-2)

static const struct {
    const char *name;
    struct pod_view there[FIXTURE_PODS];
    struct pod_view asks;
    int card; /* the only feasible one of four cards; NONE: SWAP */
} cases[] = {
    {"an equal", {PLAIN("a", "4", PENDING_AT(2), FALSE), NO_POD}, PLAIN("p", "4"), 2},
    {"another size", {PLAIN("a", "4", PENDING_AT(2), FALSE), NO_POD}, PLAIN("p", "5"), ANY},
    {"acknowledged", {PLAIN("a", "4", PENDING_AT(2), TRUE), NO_POD}, PLAIN("p", "4"), ANY},
    {"started", {PLAIN("a", "4", AT(2), FALSE), NO_POD}, PLAIN("p", "4"), ANY},
    {"never acknowledged", {PLAIN("a", "4", PENDING_AT(2)), NO_POD}, PLAIN("p", "4"), 2},
    {"its card is full",
     {PLAIN("a", "4", PENDING_AT(2), FALSE), PLAIN("b", "11", AT(2), TRUE), NO_POD},
     PLAIN("p", "4"),
     NONE},
    {"on two cards",
     {PLAIN("a", "4", PENDING_AT(2), FALSE), PLAIN("b", "4", PENDING_AT(1), FALSE), NO_POD},
     PLAIN("p", "4"),
     NONE},
    {"on no card",
     {PLAIN("a", "4", .node = S("n"), .phase = S("Pending"), FALSE), NO_POD},
     PLAIN("p", "4"),
     NONE},
    {"by their sum: the plugin compares a container with that",
     {POD("a", CONTAINERS(2, MAIN(0, "3"), MAIN(1, "1")), PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "4"),
     2},
    {"not by a part of it",
     {POD("a", CONTAINERS(2, MAIN(0, "3"), MAIN(1, "1")), PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "2"),
     ANY},
    {"by one of its containers, which may take our card",
     {POD("a", CONTAINERS(2, MAIN(0, "3"), MAIN(1, "1")), PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "3"),
     2},
    {"acknowledged, and it has another container to ask for",
     {POD("a", CONTAINERS(2, MAIN(0, "3"), MAIN(1, "1")), PENDING_AT(2), TRUE), NO_POD},
     PLAIN("p", "3"),
     2},
    {"init containers are no part of the sum",
     {POD("a", CONTAINERS(1, INIT(0, "9"), MAIN(0, "4")), PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "4"),
     2},
    {"but they ask, too",
     {POD("a", CONTAINERS(1, INIT(0, "9"), MAIN(0, "4")), PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "9"),
     NONE}, /* no room beside it */
    {"ours has several containers",
     {PLAIN("a", "4", PENDING_AT(2), FALSE), NO_POD},
     POD("p", CONTAINERS(2, MAIN(0, "4"), MAIN(1, "1"))),
     2},
    {"on cards of their own",
     {PLAIN("a", "9", PENDING_AT(2), FALSE), NO_POD},
     POD("p", CONTAINERS(2, MAIN(0, "9"), MAIN(1, "9"))),
     NONE},
    {"whole cards are compared by their limit",
     {PLAIN("a", "4", PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "4", WHOLE),
     NONE},
    {"several cards",
     {PLAIN("a", "4", PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "4", .count_label = S("2")),
     NONE},
    {"equals on several cards",
     {PLAIN("a", "4", PENDING_ON({0, 0, 2}, {0, 1, 2}), FALSE, .count_label = S("2")), NO_POD},
     PLAIN("p", "4"),
     NONE},
    {"passed over: one started that the plugin has not acknowledged, so one that it has may wait",
     {PLAIN("a", "4", PENDING_AT(2), TRUE), PLAIN("b", "4", AT(2), FALSE), NO_POD},
     PLAIN("p", "4"),
     2},
    {"another size was passed over",
     {PLAIN("a", "4", PENDING_AT(2), TRUE), PLAIN("b", "5", AT(2), FALSE), NO_POD},
     PLAIN("p", "4"),
     ANY},
    {"no card has the room, guarded or not",
     {PLAIN("a", "4", PENDING_AT(2), FALSE), NO_POD},
     PLAIN("p", "17"),
     -3},
};

/* In the program the setting is there before the first node; here nodes and pods are there, so that
 * one scene can be judged with two settings. */
static void guard(struct rig *r, enum swap_guard how)
{
    size_t cursor = 0;
    r->cache.settings.swap_guard = how;
    for (struct node *n = map_next(&r->cache.nodes, &cursor); n != NULL;
         n = map_next(&r->cache.nodes, &cursor)) {
        n->guarded = how == SWAP_GUARD_REQUIRE;
        node_derive(n);
    }
}

static enum verdict on_card(const struct rig *r, struct pod_view asks, uint32_t card)
{
    struct request request;
    struct evaluation evaluation = asked(r, asks, &request);
    return fit_card(node_of(r, "n"), &evaluation, card);
}

static void is_only(const struct rig *r, struct pod_view asks, int card)
{
    struct placement there;
    enum verdict v = fit_fixture_evaluate(r, &asks, &there);
    ck_assert_str_eq(verdict_name(v), card == NONE ? "swap" : "fits");
    for (uint32_t i = 0; v == VERDICT_FITS && card != ANY && i < there.n; i++)
        ck_assert_int_eq((int)there.grants[i].card, card);
    for (uint32_t i = 0; card >= 0 && i < 4; i++)
        ck_assert_str_eq(verdict_name(on_card(r, asks, i)), (int)i == card ? "fits" : "swap");
}

TEST_EACH(a_node_is_refused_where_the_plugin_could_swap, COUNT_OF(cases))
{
    struct rig r;
    struct node_view node = FOUR_CARDS;
    struct pod_view asks = cases[_i].asks;
    asks.card_policy = STR("spread"); /* without swap-guard another card would be better */
    struct placement there;
    fit_fixture_open(&r, &node, cases[_i].there, POLICY_UNSET);
    enum verdict before = fit_fixture_evaluate(&r, &asks, &there);
    ck_assert(before == (cases[_i].card == -3 ? VERDICT_TOO_LARGE : VERDICT_FITS));
    guard(&r, SWAP_GUARD_REQUIRE);
    cache_check(&r.cache);
    if (cases[_i].card == -3)
        ck_assert_int_eq(fit_fixture_evaluate(&r, &asks, &there), VERDICT_TOO_LARGE);
    else
        is_only(&r, asks, cases[_i].card);
    guard(&r, SWAP_GUARD_OFF);
    ck_assert_int_eq(fit_fixture_evaluate(&r, &asks, &there), before);
    rig_done(&r);
}

/* The containers of a node with late binding get their cards by their IDs: none is swapped there,
 * so each verdict is as without the guard. */
TEST_EACH(a_node_with_late_binding_is_not_guarded, COUNT_OF(cases))
{
    struct rig r;
    struct node_view node = FOUR_CARDS;
    struct card_view table[4];
    struct pod_view asks = cases[_i].asks;
    struct placement there;
    struct placement free_choice;
    for (uint32_t i = 0; i < 4; i++)
        table[i] = (struct card_view){.index = i, .mem = 16, .numa = -1};
    asks.card_policy = STR("spread");
    fit_fixture_open(&r, &node, cases[_i].there, POLICY_UNSET);
    enum verdict unguarded = fit_fixture_evaluate(&r, &asks, &free_choice);
    guard(&r, SWAP_GUARD_REQUIRE);
    enum verdict guarded = fit_fixture_evaluate(&r, &asks, &there);
    node.late = STR("true");
    set_node(&r, node); /* without the table that cardpack-node writes */
    ck_assert_int_eq(fit_fixture_evaluate(&r, &asks, &there), guarded);
    node.has_cards = true;
    node.cards = table;
    node.n_cards = COUNT_OF(table);
    set_node(&r, node);
    ck_assert(r.fx.changed); /* so the scheduler tries waiting pods again */
    cache_check(&r.cache);
    ck_assert_int_eq(fit_fixture_evaluate(&r, &asks, &there), unguarded);
    for (uint32_t i = 0; unguarded == VERDICT_FITS && i < there.n; i++)
        ck_assert_uint_eq(there.grants[i].card, free_choice.grants[i].card);
    /* and it is guarded again when the annotation goes, or says something else */
    node.late = _i % 2 == 0 ? STR("false") : STR_NULL;
    set_node(&r, node);
    ck_assert_int_eq(fit_fixture_evaluate(&r, &asks, &there), guarded);
    rig_done(&r);
}

/* Verdicts from the node's sums must equal verdicts from its cards. */
TEST(a_simple_request_is_evaluated_alike)
{
    struct rig r;
    struct pod_view there[] = {PLAIN("a", "4", PENDING_AT(0), FALSE), PLAIN("b", "12", AT(0), TRUE),
                               NO_POD};
    struct pod_view asks = PLAIN("p", "4");
    struct node_view node = TWO_CARDS;
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    struct request request;
    struct evaluation evaluation = asked(&r, asks, &request);
    ck_assert(fit_simply(node_of(&r, "n"), &evaluation));
    guard(&r, SWAP_GUARD_REQUIRE);
    ck_assert(!fit_simply(node_of(&r, "n"), &evaluation));
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_SWAP);
    ck_assert(verdict_unresolvable(VERDICT_SWAP)); /* an eviction would not help */
    there[0].assigned = STR("true");
    set_pod(&r, there[0]);
    ck_assert(r.fx.changed); /* so the scheduler tries waiting pods again */
    ck_assert(fit_simply(node_of(&r, "n"), &evaluation) ||
              fit_node(node_of(&r, "n"), &evaluation) == VERDICT_FITS);
    rig_done(&r);
}

/* cardpack-node writes the cards of two pods anew. Between the writes a card seems to have room. */
TEST(a_node_with_an_exchange_takes_no_pod)
{
    struct rig r;
    struct pod_view there[] = {PLAIN("a", "4", PENDING_AT(0), TRUE), PLAIN("b", "4", AT(1), TRUE),
                               NO_POD};
    struct pod_view asks = PLAIN("p", "4");
    struct node_view node = TWO_CARDS;
    node.isolation = STR("none");
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    struct request request;
    struct evaluation evaluation = asked(&r, asks, &request);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    there[0].vacated = STR("0");
    set_pod(&r, there[0]);
    ck_assert(!fit_simply(node_of(&r, "n"), &evaluation));
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_SWAP);
    ck_assert_int_eq(reserve(&r, "q", "n", 4), ERR_UNAVAILABLE);
    there[0].vacated = STR_NULL;
    set_pod(&r, there[0]);
    ck_assert(r.fx.changed); /* so the scheduler tries waiting pods again */
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    there[0].vacated = STR("0");
    there[0].phase = STR("Running"); /* no exchange changes its cards: a user has written it */
    set_pod(&r, there[0]);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    there[0].phase = STR("Pending");
    set_pod(&r, there[0]);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_SWAP);
    there[0].phase = STR("Failed");
    set_pod(&r, there[0]);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    rig_done(&r);
}

/* The annotation on a pod of a node without cardpack-node would stay there. */
TEST(an_exchange_needs_the_program_that_ends_it)
{
    struct rig r;
    struct pod_view there[] = {PLAIN("a", "4", PENDING_AT(0), TRUE), NO_POD};
    struct pod_view asks = PLAIN("p", "4");
    struct node_view node = TWO_CARDS;
    there[0].vacated = STR("0");
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    struct request request;
    struct evaluation evaluation = asked(&r, asks, &request);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    rig_done(&r);
}

/* cardpack-node would never remove the annotation from a pod that has none of its cards. */
TEST(a_pod_of_another_plugin_exchanges_none)
{
    struct rig r;
    struct pod_view there[] = {POD("a", CONTAINERS(1, {.name = S("m"), .exclusive = S("1")}),
                                   .node = S("n"), .phase = S("Running"), .vacated = S("0")),
                               NO_POD};
    struct pod_view asks = PLAIN("p", "4");
    struct node_view node = TWO_CARDS;
    node.isolation = STR("none");
    node.exclusive = STR("1");
    node.exclusive_cards = STR("1");
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    struct request request;
    struct evaluation evaluation = asked(&r, asks, &request);
    ck_assert_int_eq(fit_node(node_of(&r, "n"), &evaluation), VERDICT_FITS);
    rig_done(&r);
}

TEST(one_card_has_none_to_swap_for)
{
    struct rig r;
    struct pod_view there[] = {PLAIN("a", "4", .node = S("n"), .phase = S("Pending"), FALSE),
                               NO_POD};
    struct pod_view asks = PLAIN("p", "4");
    struct node_view node = NODE(.mem = S("16"), .count = S("1"));
    struct placement at;
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    guard(&r, SWAP_GUARD_REQUIRE);
    ck_assert_int_eq(fit_fixture_evaluate(&r, &asks, &at), VERDICT_FITS);
    rig_done(&r);
}

/* It counts from the reservation on. A reservation is not sent while its pod could be swapped. */
TEST(a_reservation_waits_as_well)
{
    struct rig r;
    struct pod_view none[] = {NO_POD};
    struct node_view node = TWO_CARDS;
    fit_fixture_open(&r, &node, none, POLICY_UNSET);
    guard(&r, SWAP_GUARD_REQUIRE);
    ck_assert_int_eq(reserve(&r, "a", "n", 12), OK);
    ck_assert_int_eq(reserve(&r, "b", "n", 12), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_SWAP);
    ck_assert_int_eq(renew(&r, "a"), OK);
    ck_assert_int_eq(confirm(&r, "a", false), OK);
    ck_assert_int_eq(reserve(&r, "b", "n", 12), ERR_UNAVAILABLE);
    guard(&r, SWAP_GUARD_PREFER);
    ck_assert_int_eq(reserve(&r, "b", "n", 12), OK);
    guard(&r, SWAP_GUARD_REQUIRE);
    ck_assert_int_eq(renew(&r, "b"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_SWAP);
    pod_set(&r, .uid = "a", .mem = "12", .node = "n", .idx = "0", .assigned = "true");
    ck_assert_int_eq(renew(&r, "b"), OK);
    cancel(&r, "b");
    ck_assert_int_eq(reserve(&r, "c", "n", 12), OK);
    rig_done(&r);
}

/* It was acknowledged for the container of another pod, which has ended since. */
TEST(what_was_taken_by_one_that_ended_is_remembered)
{
    struct rig r;
    struct pod_view there[] = {PLAIN("a", "4", PENDING_AT(1), FALSE),
                               PLAIN("b", "4", PENDING_AT(1), FALSE), NO_POD};
    struct pod_view asks = PLAIN("p", "4", .card_policy = S("spread"));
    struct node_view node = FOUR_CARDS;
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    guard(&r, SWAP_GUARD_REQUIRE);
    there[0].assigned = STR("true"); /* for b's container */
    set_pod(&r, there[0]);
    pod_gone(&r, "b");
    is_only(&r, asks, 1);
    there[0].phase = STR("Running");
    set_pod(&r, there[0]);
    is_only(&r, asks, ANY);
    rig_done(&r);
}

/* A pod that will soon not be in conflict is not evicted for that. */
TEST(no_waiting_pod_is_evicted)
{
    struct rig r;
    struct arena arena;
    struct victims v;
    unsigned steps = 10000;
    struct pod_view there[] = {PLAIN("a", "16", PENDING_AT(0), FALSE),
                               PLAIN("b", "16", AT(1), TRUE), NO_POD};
    struct pod_view asks = PLAIN("p", "16", .priority = 5);
    struct node_view node = TWO_CARDS;
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    arena_init(&arena, 1 << 20);
    struct request request;
    struct evaluation evaluation = asked(&r, asks, &request);
    struct victims_question q = {
        .node = node_of(&r, "n"), .evaluation = &evaluation, .steps = &steps};
    ck_assert_int_eq(victims_choose(&q, &arena, &v), OK);
    ck_assert_int_eq(v.verdict, VERDICT_FITS);
    ck_assert_uint_eq(v.cost.n, 1);
    guard(&r, SWAP_GUARD_REQUIRE);
    ck_assert_int_eq(victims_choose(&q, &arena, &v), OK);
    ck_assert_int_eq(v.verdict, VERDICT_SWAP);
    there[0].assigned = STR("true");
    set_pod(&r, there[0]);
    ck_assert_int_eq(victims_choose(&q, &arena, &v), OK);
    ck_assert_int_eq(v.verdict, VERDICT_FITS);
    arena_done(&arena);
    rig_done(&r);
}

/* What-if: each replica comes after the plugin has served the one before it. */
TEST(replicas_wait_for_pods_that_are_there_alone)
{
    struct rig r;
    struct arena arena;
    struct plan plan;
    struct pod_view none[] = {NO_POD};
    struct pod_view asks = PLAIN("p", "12");
    struct pod_view waits = PLAIN("a", "12", PENDING_AT(2), FALSE);
    struct node_view node = FOUR_CARDS;
    fit_fixture_open(&r, &node, none, POLICY_UNSET);
    arena_init(&arena, 1 << 20);
    guard(&r, SWAP_GUARD_REQUIRE);
    struct request request;
    struct evaluation evaluation = asked(&r, asks, &request);
    ck_assert_int_eq(plan_make(&plan, &r.cache, &evaluation, 9, &arena), OK);
    ck_assert_uint_eq(plan.fit, 4);
    set_pod(&r, waits);
    ck_assert_int_eq(plan_make(&plan, &r.cache, &evaluation, 9, &arena), OK);
    ck_assert_uint_eq(plan.fit, 0);
    ck_assert_int_eq(plan_next(&plan, &plan.sites[0]), VERDICT_SWAP);
    arena_done(&arena);
    rig_done(&r);
}

TEST(a_swap_is_foreseen)
{
    struct rig r;
    struct pod_view there[] = {PLAIN("a", "4", PENDING_AT(1), FALSE), NO_POD, NO_POD};
    struct pod_view asks = PLAIN("p", "4", .card_policy = S("spread"));
    struct node_view node = FOUR_CARDS;
    fit_fixture_open(&r, &node, there, POLICY_UNSET);
    struct request request;
    struct evaluation evaluation = asked(&r, asks, &request);
    ck_assert(!fit_swaps(node_of(&r, "n"), &evaluation)); /* it gets card 1, too */
    pod_set(&r, .uid = "full", .mem = "12", .node = "n", .idx = "1", .phase = "Running");
    ck_assert(fit_swaps(node_of(&r, "n"), &evaluation));
    pod_gone(&r, "full");
    pod_set(&r, .uid = "b", .mem = "4", .node = "n", .idx = "2", .assigned = "false");
    ck_assert(fit_swaps(node_of(&r, "n"), &evaluation));
    struct node a = {.used = 3, .total = INT32_MAX};
    struct node b = {.used = 4, .total = INT32_MAX};
    uint64_t less = score_share(&a, 1, POLICY_BINPACK);
    ck_assert_uint_gt(score_favoured(less), less);
    ck_assert_uint_gt(score_share(&b, 1, POLICY_BINPACK), score_favoured(less));
    a.used = INT32_MAX;
    ck_assert_uint_lt(score_favoured(score_share(&a, 1, POLICY_BINPACK)), SCORE_BEST);
    rig_done(&r);
}
