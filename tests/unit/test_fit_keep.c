/* How a decision is kept: while its Binding waits, and after it failed. */
#include "core/place/fit.h"

#include "asked.h"
#include "core/dialect/gpushare.h"

#define TABLE(size, of)                                                          \
    .name = S("n"), .mem = S("64"), .mem_allocatable = S("64"), .count = S("1"), \
    .exclusive = S("0"), CARDS({.index = 0, .mem = (size), .model = S(of), .numa = -1})

/* A pod that another client has bound there. */
#define BOUND .node = S("n"), .idx = S("0"), .phase = S("Running")

static const struct {
    const char *what;
    struct pod_view pod;
    struct node_view before;
    struct node_view after;
    struct pod_view bound; /* the pod bound meanwhile, if it has a UID */
    enum verdict verdict;
} changes[] = {
    {"nothing", PLAIN("a", "8"), {TABLE(16, "A10")}, {TABLE(16, "A10")}, {.uid = S("")}, 0},
    {"smaller",
     PLAIN("a", "8"),
     {TABLE(16, "A10")},
     {TABLE(4, "A10")},
     {.uid = S("")},
     VERDICT_TOO_LARGE},
    {"cordoned",
     PLAIN("a", "8"),
     {TABLE(16, "A10")},
     {TABLE(16, "A10"), .cordoned = S("0")},
     {.uid = S("")},
     VERDICT_UNUSABLE},
    {"another model",
     PLAIN("a", "8", .card_model = S("A10")),
     {TABLE(16, "A10")},
     {TABLE(16, "T4")},
     {.uid = S("")},
     VERDICT_MODEL},
    {"isolated, and now not",
     PLAIN("a", "8", .require_isolation = S("true")),
     {TABLE(16, "A10"), .isolation = S("mps")},
     {TABLE(16, "A10"), .isolation = S("none")},
     {.uid = S("")},
     VERDICT_ISOLATION},
    {"isolated in another way",
     PLAIN("a", "8", .require_isolation = S("true")),
     {TABLE(16, "A10"), .isolation = S("mps")},
     {TABLE(16, "A10"), .isolation = S("driver-limits")},
     {.uid = S("")},
     VERDICT_FITS},
    {"the card is not known any more",
     PLAIN("a", "8"),
     {TABLE(16, "A10")},
     {.name = S("n"), .mem = S("64"), .has_cards = true, .cards_fault = "odd"},
     {.uid = S("")},
     VERDICT_BAD_CARDS},
    {"no room on the node",
     PLAIN("a", "8"),
     {TABLE(16, "A10")},
     {.name = S("n"),
      .mem = S("64"),
      .mem_allocatable = S("7"),
      .count = S("1"),
      CARDS({.index = 0, .mem = 16, .numa = -1})},
     {.uid = S("")},
     VERDICT_NODE_FULL},
    {"as many pods as may be",
     PLAIN("a", "8"),
     {TABLE(16, "A10")},
     {TABLE(16, "A10"), .max_pods = S("1")},
     PLAIN("b", "1", BOUND),
     VERDICT_POD_LIMIT},
    {"one that it avoids",
     PLAIN("a", "8", .anti_affinity = S("g")),
     {TABLE(16, "A10")},
     {TABLE(16, "A10")},
     PLAIN("b", "1", BOUND, .anti_affinity = S("g")),
     VERDICT_ANTI_AFFINITY},
    {"cards of another plugin",
     PLAIN("a", "8"),
     {TABLE(16, "A10")},
     {TABLE(16, "A10")},
     POD("b", BOUND, CONTAINERS(1, {.exclusive = S("1")})),
     VERDICT_EXCLUSIVE},
    {"and the other way round",
     POD("a", CONTAINERS(1, {.exclusive = S("1")})),
     {TABLE(16, "A10")},
     {TABLE(16, "A10")},
     PLAIN("b", "1", BOUND),
     VERDICT_SHARED},
    /* Its allocation was written for a card of 16. On a larger one, a sum of allocations would show
     * room beside it. */
    {"a larger whole card",
     PLAIN("a", "8", WHOLE),
     {TABLE(16, "A10")},
     {TABLE(24, "A10")},
     {.uid = S("")},
     VERDICT_NO_CARD_FREE},
    {"a larger card, by percentage",
     PLAIN("a", "8", .percent = S("50")),
     {TABLE(16, "A10")},
     {TABLE(24, "A10")},
     {.uid = S("")},
     VERDICT_NO_CARD_FREE},
    {"as large as it has anyway",
     PLAIN("a", "8", .percent = S("20")),
     {TABLE(16, "A10")},
     {TABLE(24, "A10")},
     {.uid = S("")},
     VERDICT_FITS},
};

TEST_EACH(a_reservation_is_evaluated_again_before_it_is_sent, COUNT_OF(changes))
{
    struct rig r;
    rig_init(&r);
    set_node(&r, changes[_i].before);
    ck_assert_int_eq(take(&r, changes[_i].pod), OK);
    set_node(&r, changes[_i].after);
    if (changes[_i].bound.uid.n > 0)
        set_pod(&r, changes[_i].bound);
    enum errc code = renew(&r, "a");
    ck_assert_msg(r.fx.verdict == changes[_i].verdict, "%s: %s", changes[_i].what,
                  verdict_name(r.fx.verdict));
    ck_assert_int_eq(code, r.fx.verdict == VERDICT_FITS ? OK : ERR_UNAVAILABLE);
    rig_done(&r);
}

/* Pods of other clients may exceed the node's limit after it shrank: then even a pod whose spec
 * asks for no memory has no room. */
TEST(a_node_beyond_its_limit_takes_nothing)
{
    struct rig r;
    rig_init(&r);
    set_node(&r, (struct node_view){.name = STR("n"),
                                    .mem = STR("32"),
                                    .mem_allocatable = STR("4"),
                                    .count = STR("2")});
    set_pod(&r, (struct pod_view)PLAIN("b", "8", BOUND));
    ck_assert_int_eq(take(&r, (struct pod_view)PLAIN("a", "1", .percent = S("40"))),
                     ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_NODE_FULL);
    set_node(&r, (struct node_view){.name = STR("n"),
                                    .mem = STR("32"),
                                    .mem_allocatable = STR("9"),
                                    .count = STR("2")});
    ck_assert_int_eq(take(&r, (struct pod_view)PLAIN("a", "1", .percent = S("40"))), OK);
    rig_done(&r);
}

/* The other plugin counts its own cards. If the node's cards are divided, a lack of shared memory
 * does not affect exclusive pods. */
TEST(a_full_node_gives_out_what_is_set_aside)
{
    struct rig r;
    rig_init(&r);
    set_node(&r, (struct node_view){.name = STR("n"),
                                    .mem = STR("16"),
                                    .count = STR("2"),
                                    .exclusive_cards = STR("1")});
    set_pod(&r, (struct pod_view)PLAIN("b", "20", BOUND));
    ck_assert_int_eq(take(&r, (struct pod_view)POD("a", CONTAINERS(1, {.exclusive = S("1")}))), OK);
    ck_assert_int_eq(renew(&r, "a"), OK);
    rig_done(&r);
}

/* cardpack does not know which exclusive cards the other plugin gives out. While a pod shares a
 * card that was set aside after it was placed, that card may be the one. */
TEST(a_sharer_on_a_card_that_is_set_aside_keeps_the_other_kind_off)
{
    struct rig r;
    struct node_view node = {.name = STR("n"), .mem = STR("32"), .count = STR("4")};
    const struct pod_view whole = POD("a", CONTAINERS(1, {.exclusive = S("1")}));
    rig_init(&r);
    set_node(&r, node);
    set_pod(&r, (struct pod_view)PLAIN("b", "4", BOUND));
    node.exclusive_cards = STR("0,1");
    set_node(&r, node);
    ck_assert_int_eq(take(&r, whole), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_SHARED);
    node.exclusive_cards = STR("2,3");
    set_node(&r, node);
    ck_assert_int_eq(take(&r, whole), OK);
    ck_assert_int_eq(renew(&r, "a"), OK);
    node.exclusive_cards = STR("0,1");
    set_node(&r, node);
    ck_assert_int_eq(renew(&r, "a"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_SHARED);
    rig_done(&r);
}

/* While the table can't be read, it is unknown which plugin each card belongs to: exclusive pods
 * and sharing pods exclude each other. */
TEST(unknown_cards_are_not_given_out_beside_sharers)
{
    struct rig r;
    struct node_view torn = {.name = STR("n"),
                             .mem = STR("16"),
                             .count = STR("1"),
                             .has_cards = true,
                             .cards_fault = "odd"};
    rig_init(&r);
    set_node(&r, torn);
    ck_assert_int_eq(take(&r, (struct pod_view)POD("a", CONTAINERS(1, {.exclusive = S("1")}))), OK);
    cancel(&r, "a");
    set_pod(&r, (struct pod_view)PLAIN("b", "8", BOUND));
    ck_assert_int_eq(take(&r, (struct pod_view)POD("a", CONTAINERS(1, {.exclusive = S("1")}))),
                     ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_SHARED);
    rig_done(&r);
}

/* A manifest copied from a bound pod has that pod's allocation. */
TEST(what_a_copied_manifest_allocates_is_not_held)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    set_pod(&r, (struct pod_view)PLAIN("a", "8", BOUND, ALLOCATION({0, 1, 8})));
    ck_assert_int_eq(card_used(&r, "n", 0), 8);
    ck_assert_int_eq(card_used(&r, "n", 1), 0);
    set_pod(&r, (struct pod_view)PLAIN("b", "4", .node = S("n"), ALLOCATION({0, 1, 4})));
    ck_assert_int_eq(card_used(&r, "n", 1), 4);
    set_pod(&r, (struct pod_view)POD("c", .node = S("n"), .idx = S("0,1"),
                                     CONTAINERS(2, MAIN(0, "1"), MAIN(1, "2")),
                                     ALLOCATION({0, 0, 1}, {1, 1, 2})));
    ck_assert_int_eq(card_used(&r, "n", 0), 9);
    ck_assert_int_eq(card_used(&r, "n", 1), 6);
    rig_done(&r);
}

static bool keeps_room(const struct rig *r, const char *node, const char *uid)
{
    const struct node *n = cache_node(&r->cache, str_of(node));
    return n != NULL && n->kept_for != NULL && str_eq(n->kept_for->uid, str_of(uid));
}

TEST(a_nomination_outlives_a_reservation)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    set_pod(&r, (struct pod_view)PLAIN("a", "8", .nominated = S("later")));
    ck_assert(keeps_room(&r, "later", "a"));
    ck_assert_int_eq(take(&r, (struct pod_view)PLAIN("a", "8")), OK);
    ck_assert(!keeps_room(&r, "later", "a"));
    cancel(&r, "a");
    ck_assert(keeps_room(&r, "later", "a"));
    /* The node may appear, change and go while the Binding is under way. */
    ck_assert_int_eq(take(&r, (struct pod_view)PLAIN("a", "8")), OK);
    set_pod(&r, (struct pod_view)PLAIN("a", "8", .nominated = S("ghost")));
    ck_assert_int_eq(node_of(&r, "ghost")->fault, NODE_ABSENT); /* only a name, without kept room */
    set_pod(&r, (struct pod_view)PLAIN("a", "8", .nominated = S("n")));
    cancel(&r, "a");
    ck_assert(keeps_room(&r, "n", "a"));
    ck_assert_ptr_null(cache_node(&r.cache, STR("later")));
    ck_assert_int_eq(take(&r, (struct pod_view)PLAIN("a", "8")), OK);
    set_pod(&r, (struct pod_view)PLAIN("a", "8"));
    cancel(&r, "a");
    ck_assert(!keeps_room(&r, "n", "a"));
    /* A bound pod holds cards, and no room is kept for it. */
    set_pod(&r, (struct pod_view)PLAIN("a", "8", .nominated = S("later")));
    set_pod(&r, (struct pod_view)PLAIN("a", "8", BOUND, .nominated = S("later")));
    ck_assert_ptr_null(cache_node(&r.cache, STR("later")));
    rig_done(&r);
}

/* Exclusive cards do not count as a place of the group. */
TEST(a_group_is_where_one_has_a_shared_card)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", NULL);
    set_pod(&r, (struct pod_view)POD("x", .node = S("other"), .affinity = S("g"),
                                     CONTAINERS(1, {.mem = S("0"), .exclusive = S("1")})));
    ck_assert_int_eq(take(&r, (struct pod_view)PLAIN("a", "8", .affinity = S("g"))), OK);
    ck_assert_int_eq(take(&r, (struct pod_view)PLAIN("b", "9", .affinity = S("g"))),
                     ERR_UNAVAILABLE);
    rig_done(&r);
}

/*
 * The containers of the pod for which room is kept are too large for one card, and it waits until
 * pod "gone" has ended. Another pod's request must cost no more than on a node with two cards and
 * one pod.
 */
TEST(kept_room_that_waits_for_a_deleted_pod_costs_little)
{
    static struct step_budget step_budget;
    struct rig r;
    struct placement there;
    rig_init(&r);
    node_set(&r, "n", "16", "2", NULL);
    set_pod(&r, (struct pod_view)PLAIN("gone", "2", BOUND, .deleting = true));
    set_pod(&r, (struct pod_view)POD("nominee", CONTAINERS(2, MAIN(0, "8"), MAIN(1, "12")),
                                     .anti_affinity = S("g"), .nominated = S("n")));
    struct request request;
    struct evaluation evaluation = asked(&r, (struct pod_view)PLAIN("a", "1"), &request);
    step_budget_begin(&step_budget, 1);
    evaluation.step_budget = &step_budget;
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_le(step_budget.steps, 100);
    rig_done(&r);
}
