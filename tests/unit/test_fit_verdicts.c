/* Why a node is not feasible for a pod, and why each of its cards is not. */
#include "fit_fixture.h"

#define V(name)         VERDICT_##name
#define ONE(id, q, ...) PLAIN(id, q, __VA_ARGS__)
#define ASK(q, ...)     PLAIN("ask", q, __VA_ARGS__)
#define ISOLATED        .require_isolation = S("true")
#define TWO             .count_label = S("2")
#define ISOLATING(how)  NODE(.mem = S("32"), .count = S("2"), .isolation = S(how))
#define EXCLUSIVE_POD(id, ...) \
    POD(id, CONTAINERS(1, {.name = S("c"), .exclusive = S("1")}), __VA_ARGS__)

static const struct {
    struct node_view node;
    struct pod_view pods[FIXTURE_PODS];
    struct pod_view ask;
    enum verdict verdict;
    bool unresolvable;
    enum verdict cards[FIXTURE_CARDS];
} rows[] = {
    {NO_NODE, {NO_POD}, ASK("8"), V(UNKNOWN_NODE), true, {0}},
    {NODE(.mem = S("0")), {NO_POD}, ASK("8"), V(NOT_SHARED), true, {0}},
    {NODE(.mem = S("32")), {NO_POD}, ASK("8"), V(NO_CARDS), true, {0}},
    {NODE(.mem = S("32"), .count = S("x")), {NO_POD}, ASK("8"), V(NO_CARDS), true, {0}},
    {NODE(.mem = S("32"), .has_cards = true, .cards_fault = "bad"),
     {NO_POD},
     ASK("8"),
     V(BAD_CARDS),
     true,
     {0}},
    {TWO_CARDS, {NO_POD}, ASK("8"), V(FITS), false, {V(FITS), V(FITS)}},
    /* Isolation is of the node, and no eviction helps; only for pods that ask for it. */
    {TWO_CARDS, {NO_POD}, ASK("8", ISOLATED), V(ISOLATION), true, {0}},
    {TWO_CARDS, {NO_POD}, ASK("8", .require_isolation = S("false")), V(FITS), false, {0}},
    {ISOLATING("none"), {NO_POD}, ASK("8", ISOLATED), V(ISOLATION), true, {0}},
    {ISOLATING("odd"), {NO_POD}, ASK("8", ISOLATED), V(ISOLATION), true, {0}},
    {ISOLATING("mps"), {NO_POD}, ASK("8", ISOLATED), V(FITS), false, {0}},
    {ISOLATING("mps"), {NO_POD}, ASK("8", ISOLATED, TWO), V(MPS), true, {0}},
    {ISOLATING("mps"), {NO_POD}, ASK("8", TWO), V(MPS), true, {0}},
    {ISOLATING("mps"), {NO_POD}, ASK("8"), V(FITS), false, {0}},
    {ISOLATING("mps"), {NO_POD}, EXCLUSIVE_POD("ask", TWO), V(FITS), false, {0}},
    {ISOLATING("mig"), {NO_POD}, ASK("8", ISOLATED, TWO), V(FITS), false, {0}},
    {ISOLATING("mig"), {NO_POD}, ASK("8", ISOLATED), V(FITS), false, {0}},
    {ISOLATING("driver-limits"), {NO_POD}, ASK("8", ISOLATED), V(FITS), false, {0}},
    {ISOLATING("none"), {NO_POD}, ASK("8"), V(FITS), false, {0}},
    {TWO_CARDS, {NO_POD}, ASK("1", WHOLE, ISOLATED), V(ISOLATION), true, {0}},
    {TWO_CARDS,
     {ONE("a", "9", AT(0)), ONE("b", "9", AT(1))},
     ASK("8", ISOLATED),
     V(ISOLATION),
     true,
     {0}},
    {TWO_CARDS, {EXCLUSIVE_POD("a", .node = S("n"))}, ASK("1", ISOLATED), V(ISOLATION), true, {0}},
    {TWO_CARDS, {NO_POD}, EXCLUSIVE_POD("ask", ISOLATED), V(FITS), false, {0}},
    {NODE(.mem = S("32")), {NO_POD}, ASK("8", ISOLATED), V(NO_CARDS), true, {0}},
    {ISOLATING("mps"),
     {ONE("a", "9", AT(0)), ONE("b", "9", AT(1))},
     ASK("8", ISOLATED),
     V(NO_CARD_FREE),
     false,
     {V(NO_CARD_FREE), V(NO_CARD_FREE)}},
    /* The overhead of a pod on several cards is on none of them; it counts only in the node's
     * sum. */
    {NODE(.mem = S("6"), .count = S("2")),
     {ONE("lost", "1", .node = S("n"))},
     ASK("4", .count_label = S("2"), .mem_overhead = S("1")),
     V(FITS),
     false,
     {V(FITS), V(FITS)}},
    {TWO_CARDS, {NO_POD}, ASK("17"), V(TOO_LARGE), true, {V(TOO_LARGE), V(TOO_LARGE)}},
    {TWO_CARDS,
     {ONE("a", "9", AT(0)), ONE("b", "9", AT(1))},
     ASK("8"),
     V(NO_CARD_FREE),
     false,
     {V(NO_CARD_FREE), V(NO_CARD_FREE)}},
    /* Three kinds of unusable cards. */
    {NODE(.mem = S("48"), .cordoned = S("0"), .exclusive_cards = S("1"),
          CARDS({.index = 0, .mem = 16}, {.index = 1, .mem = 16},
                {.index = 2, .mem = 16, .unhealthy = true})),
     {NO_POD},
     ASK("8"),
     V(UNUSABLE),
     true,
     {V(UNUSABLE), V(UNUSABLE), V(UNUSABLE)}},
    {NODE(.mem = S("24"), CARDS({.index = 1, .mem = 8, .model = S("A100")},
                                {.index = 2, .mem = 16, .model = S("T4")})),
     {NO_POD},
     ASK("8", .card_model = S("A1*")),
     V(FITS),
     false,
     {V(UNUSABLE), V(FITS), V(MODEL)}},
    {NODE(.mem = S("32"), .count = S("2"), .model = S("T4")),
     {NO_POD},
     ASK("8", .card_model = S("!T4")),
     V(MODEL),
     true,
     {V(MODEL), V(MODEL)}},
    {NODE(.mem = S("24"), CARDS({.index = 0, .mem = 8, .uuid = S("G-0")},
                                {.index = 1, .mem = 16, .uuid = S("G-1")})),
     {NO_POD},
     ASK("10", .card_uuid = S("G-0,G-2")),
     V(TOO_LARGE), /* of the cards that can never be feasible, the one that comes closest */
     true,
     {V(TOO_LARGE), V(UUID)}},
    {TWO_CARDS, {NO_POD}, ASK("8", .card_uuid = S("G-0")), V(UUID), true, {V(UUID), V(UUID)}},
    {TWO_CARDS, {NO_POD}, ASK("24", .count_label = S("3")), V(TOO_FEW), true, {V(FITS), V(FITS)}},
    {NODE(.mem = S("32"), .count = S("2"), .cordoned = S("0")),
     {NO_POD},
     ASK("8", .count_label = S("2")),
     V(TOO_FEW),
     true,
     {V(UNUSABLE), V(FITS)}},
    {TWO_CARDS,
     {ONE("a", "13", AT(0))},
     ASK("8", .count_label = S("2")),
     V(NO_CARD_FREE),
     false,
     {V(NO_CARD_FREE), V(FITS)}},
    /* A group belongs to a namespace. */
    {TWO_CARDS,
     {ONE("a", "8", AT(0), .affinity = S("g"))},
     ASK("8", .affinity = S("g")),
     V(FITS),
     false,
     {V(FITS), V(AFFINITY)}},
    {TWO_CARDS,
     {ONE("a", "8", .node = S("elsewhere"), .idx = S("0"), .affinity = S("g"))},
     ASK("8", .affinity = S("g")),
     V(AFFINITY),
     true,
     {V(AFFINITY), V(AFFINITY)}},
    {TWO_CARDS,
     {ONE("a", "9", AT(0), .affinity = S("g"))},
     ASK("8", .affinity = S("g")),
     V(NO_CARD_FREE),
     false,
     {V(NO_CARD_FREE), V(AFFINITY)}},
    {TWO_CARDS,
     {ONE("a", "8", AT(0), .affinity = S("other"))},
     ASK("8", .affinity = S("g")),
     V(FITS),
     false,
     {V(FITS), V(FITS)}},
    {TWO_CARDS,
     {ONE("a", "2", AT(0), .anti_affinity = S("g")), ONE("b", "2", AT(1), .anti_affinity = S("g"))},
     ASK("8", .anti_affinity = S("g")),
     V(ANTI_AFFINITY),
     false,
     {V(ANTI_AFFINITY), V(ANTI_AFFINITY)}},
    {TWO_CARDS,
     {ONE("a", "2", AT(0), .anti_affinity = S("g")), ONE("b", "2", AT(1), .affinity = S("g"))},
     ASK("8", .anti_affinity = S("g")),
     V(FITS),
     false,
     {V(ANTI_AFFINITY), V(FITS)}},
    /* Whole cards. */
    {TWO_CARDS,
     {ONE("a", "2", AT(0), WHOLE), ONE("b", "2", AT(1), WHOLE)},
     ASK("8"),
     V(HELD_WHOLE),
     false,
     {V(HELD_WHOLE), V(HELD_WHOLE)}},
    {TWO_CARDS,
     {ONE("a", "2", AT(0)), ONE("b", "2", AT(1), WHOLE)},
     ASK("8", WHOLE),
     V(NOT_EMPTY),
     false,
     {V(NOT_EMPTY), V(HELD_WHOLE)}},
    {TWO_CARDS,
     {ONE("a", "1", AT(0), .percent = S("1"))},
     ASK("1", WHOLE),
     V(FITS),
     false,
     {V(NOT_EMPTY), V(FITS)}},
    {TWO_CARDS, {NO_POD}, ASK("17", WHOLE), V(TOO_LARGE), true, {V(TOO_LARGE), V(TOO_LARGE)}},
    {NODE(.mem = S("32"), .count = S("2"), .max_pods = S("1")),
     {ONE("a", "2", AT(0)), ONE("b", "2", AT(1))},
     ASK("8"),
     V(POD_LIMIT),
     false,
     {V(POD_LIMIT), V(POD_LIMIT)}},
    {TWO_CARDS,
     {POD("a", CONTAINERS(1, MAIN_CORES(0, "1", "80")), AT(0)),
      POD("b", CONTAINERS(1, MAIN_CORES(0, "1", "71")), AT(1))},
     POD("ask", CONTAINERS(1, MAIN_CORES(0, "1", "30"))),
     V(NO_CORES),
     false,
     {V(NO_CORES), V(NO_CORES)}},
    {TWO_CARDS,
     {POD("a", CONTAINERS(1, MAIN_CORES(0, "1", "70")), AT(0))},
     POD("ask", CONTAINERS(1, MAIN_CORES(0, "1", "30")), .card_policy = S("binpack")),
     V(FITS),
     false,
     {V(FITS), V(FITS)}},
    {TWO_CARDS,
     {ONE("a", "8", AT(0)), ONE("b", "9", AT(1))},
     ASK("1", .percent = S("51")),
     V(NO_CARD_FREE),
     false,
     {V(NO_CARD_FREE), V(NO_CARD_FREE)}},
    {TWO_CARDS,
     {ONE("a", "8", AT(0)), ONE("b", "9", AT(1))},
     ASK("1", .percent = S("50")),
     V(FITS),
     false,
     {V(FITS), V(NO_CARD_FREE)}},
    /* The node's sum. */
    {TWO_CARDS, {ONE("a", "20", AT(9))}, ASK("13"), V(NODE_FULL), false, {V(FITS), V(FITS)}},
    {NODE(.mem = S("32"), .count = S("2"), .mem_allocatable = S("7")),
     {NO_POD},
     ASK("8"),
     V(NODE_FULL),
     false,
     {V(FITS), V(FITS)}},
    {NODE(.mem = S("20"), CARDS({.index = 0, .mem = 16}, {.index = 1, .mem = 16})),
     {ONE("a", "8", AT(0))},
     ASK("1", WHOLE),
     V(NODE_FULL),
     false,
     {V(NOT_EMPTY), V(FITS)}},
    {NODE(.mem = S("16"), CARDS({.index = 0, .mem = 16}, {.index = 1, .mem = 16})),
     {ONE("a", "14", AT(0)), ONE("b", "14", AT(1))}, /* more than the node has */
     ASK("1"),
     V(NODE_FULL),
     false,
     {V(FITS), V(FITS)}},
    /* Another plugin's pods. */
    {TWO_CARDS, {EXCLUSIVE_POD("a", .node = S("n"))}, ASK("1"), V(EXCLUSIVE), false, {0}},
    {TWO_CARDS, {ONE("a", "1", AT(0))}, EXCLUSIVE_POD("ask"), V(SHARED), false, {0}},
    {TWO_CARDS, {EXCLUSIVE_POD("a", .node = S("n"))}, EXCLUSIVE_POD("ask"), V(FITS), false, {0}},
    {NODE(.mem = S("0")), {NO_POD}, EXCLUSIVE_POD("ask"), V(FITS), false, {0}},
    /* A node whose table can't be read. */
    {NODE(.mem = S("32"), .has_cards = true, .cards_fault = "bad"),
     {PLAIN("a", "1", AT(0))},
     EXCLUSIVE_POD("ask"),
     V(SHARED),
     false,
     {0}},
    {NODE(.mem = S("32"), .has_cards = true, .cards_fault = "bad"),
     {EXCLUSIVE_POD("a", .node = S("n"))},
     ASK("1"),
     V(BAD_CARDS),
     true,
     {0}},
    {NODE(.mem = S("32"), .count = S("2"), .exclusive_cards = S("1")),
     {EXCLUSIVE_POD("a", .node = S("n"))},
     ASK("1"),
     V(FITS),
     false,
     {V(FITS), V(UNUSABLE)}},
    {NODE(.mem = S("32"), .count = S("2"), .exclusive_cards = S("1")),
     {ONE("a", "1", AT(0))},
     EXCLUSIVE_POD("ask"),
     V(FITS),
     false,
     {0}},
    {TWO_CARDS,
     {NO_POD},
     POD("ask", CONTAINERS(2, MAIN(0, "4"), {.name = S("x"), .exclusive = S("1"), .index = 1})),
     V(SHARED),
     false,
     {0}},
    /* Containers that may be on different cards. */
    {TWO_CARDS,
     {ONE("a", "6", AT(0)), ONE("b", "6", AT(1))},
     POD("ask", CONTAINERS(2, MAIN(0, "10"), MAIN(1, "10"))),
     V(FITS),
     false,
     {V(TOO_LARGE), V(TOO_LARGE)}},
    {TWO_CARDS,
     {ONE("a", "7", AT(0)), ONE("b", "6", AT(1))},
     POD("ask", CONTAINERS(2, MAIN(0, "10"), MAIN(1, "10"))),
     V(NO_CARD_FREE), /* empty cards would be enough */
     false,
     {V(TOO_LARGE), V(TOO_LARGE)}},
    {TWO_CARDS,
     {NO_POD},
     POD("ask", CONTAINERS(3, MAIN(0, "10"), MAIN(1, "10"), MAIN(2, "10"))),
     V(TOO_LARGE),
     true,
     {V(TOO_LARGE), V(TOO_LARGE)}},
    {TWO_CARDS,
     {NO_POD},
     POD("ask", CONTAINERS(0, INIT(0, "4"), INIT(1, "20"))),
     V(TOO_LARGE),
     true,
     {V(TOO_LARGE), V(TOO_LARGE)}},
    {TWO_CARDS,
     {ONE("a", "1", .node = S("elsewhere"), .idx = S("0"))},
     POD("ask", CONTAINERS(2, MAIN(0, "10"), MAIN(1, "10")), .affinity = S("g")),
     V(TOO_LARGE), /* a group stays on one card */
     true,
     {V(TOO_LARGE), V(TOO_LARGE)}},
};

TEST_EACH(says_why, COUNT_OF(rows))
{
    struct rig r;
    struct placement there;
    fit_fixture_open(&r, &rows[_i].node, rows[_i].pods, POLICY_UNSET);
    enum verdict v = fit_fixture_evaluate(&r, &rows[_i].ask, &there);
    ck_assert_str_eq(verdict_name(v), verdict_name(rows[_i].verdict));
    ck_assert(v == VERDICT_FITS || verdict_unresolvable(v) == rows[_i].unresolvable);
    struct request request;
    struct evaluation evaluation = asked(&r, rows[_i].ask, &request);
    const struct node *n = cache_node(&r.cache, STR("n"));
    for (uint32_t i = 0; n != NULL && request_shares(&request) && i < n->n_cards; i++) {
        if (rows[_i].cards[0] != V(FITS) || rows[_i].cards[1] != V(FITS))
            ck_assert_str_eq(verdict_name(fit_card(n, &evaluation, i)),
                             verdict_name(rows[_i].cards[i]));
    }
    /* A bind gives the same verdict, and keeps what it holds. */
    enum errc code = request_wants(&request) ? take(&r, rows[_i].ask) : OK;
    ck_assert_int_eq(code, v == VERDICT_FITS ? OK : ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, v);
    rig_done(&r);
}

/* A lack of shared memory does not affect pods of the other plugin, and the reverse. */
TEST(a_full_node_is_no_hindrance_to_the_other_plugin)
{
    struct rig r;
    const struct pod_view pods[FIXTURE_PODS] = {ONE("a", "16", AT(0))};
    struct node_view node =
        NODE(.mem = S("32"), .count = S("2"), .mem_allocatable = S("8"), .exclusive_cards = S("1"));
    fit_fixture_open(&r, &node, pods, POLICY_UNSET);
    struct pod_view ask = EXCLUSIVE_POD("ask");
    ck_assert_int_eq(take(&r, ask), OK);
    ck_assert_int_eq(renew(&r, "ask"), OK);
    node_gone(&r, "n");
    ck_assert_int_eq(renew(&r, "ask"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_UNKNOWN_NODE);
    rig_done(&r);
}

/* A pod is reserved, then its node changes: may the reservation stay? */
static const struct {
    struct node_view node;
    struct pod_view other;
    enum verdict verdict;
} keeps[] = {
    {FOUR_CARDS, NO_POD, V(FITS)},
    {NODE(.mem = S("0")), NO_POD, V(NOT_SHARED)},
    {NODE(.mem = S("64")), NO_POD, V(NO_CARDS)},
    {NODE(.mem = S("16"), .count = S("1")), NO_POD, V(NO_CARD_FREE)}, /* card 1 is gone */
    {NODE(.mem = S("8"), .count = S("2")), NO_POD, V(TOO_LARGE)},
    {NODE(.mem = S("32"), .count = S("2"), .cordoned = S("1")), NO_POD, V(UNUSABLE)},
    {NODE(.mem = S("32"), .count = S("2"), .mem_allocatable = S("15")), NO_POD, V(NODE_FULL)},
    {TWO_CARDS, ONE("other", "9", AT(1)), V(NO_CARD_FREE)},
    {TWO_CARDS, POD("other", CONTAINERS(1, MAIN_CORES(0, "1", "71")), AT(1)), V(NO_CORES)},
};

TEST_EACH(says_whether_what_is_reserved_still_holds, COUNT_OF(keeps))
{
    struct rig r;
    static const struct pod_view none[FIXTURE_PODS];
    struct node_view node = TWO_CARDS;
    struct pod_view ask =
        POD("ask", .count_label = S("2"), CONTAINERS(1, MAIN_CORES(0, "16", "60")));
    fit_fixture_open(&r, &node, none, POLICY_UNSET);
    ck_assert_int_eq(take(&r, ask), OK);
    set_node(&r, keeps[_i].node);
    if (keeps[_i].other.uid.n > 0)
        set_pod(&r, keeps[_i].other);
    ck_assert_int_eq(renew(&r, "ask"), keeps[_i].verdict == V(FITS) ? OK : ERR_UNAVAILABLE);
    ck_assert_str_eq(verdict_name(r.fx.verdict), verdict_name(keeps[_i].verdict));
    rig_done(&r);
}
