/*
 * What the policies with costs change: which card a pod gets, which node is the best, and that a
 * plan, an explanation and a reservation agree. What comes before any policy still comes first.
 */
#include "core/policy/learned_costs.h"

#include "core/place/score.h"
#include "market_rig.h"
#include "report/plan.h"

static struct rig r;

static void set_up(void)
{
    rig_init(&r);
}

static void tear_down(void)
{
    rig_done(&r);
}

static const enum policy with_costs[] = {POLICY_FGD, POLICY_BID_PRICE};

/* A lesson that is tried again leaves costs as they are, so what was evaluated by them holds on. */
TEST(nothing_new_is_no_lesson)
{
    struct learned_costs *p = &r.cache.learned;
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1, .cpu = 1000}, 60);
    ck_assert(!learned_costs_begin(p, &r.cache.nodes)); /* there are no cards */
    uint64_t lesson = learned_costs_lesson(p);
    ck_assert(!learned_costs_begin(p, &r.cache.nodes));
    ck_assert_uint_eq(learned_costs_lesson(p), lesson);
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1, .cpu = 1000}, 1);
    ck_assert(!learned_costs_begin(p, &r.cache.nodes));
    ck_assert_uint_ne(learned_costs_lesson(p), lesson);
    lesson = learned_costs_lesson(p);
    add_node(&r, "n", 100, 1, "16", "A"); /* a new kind of cards */
    ck_assert(learned_costs_begin(p, &r.cache.nodes));
    ck_assert_uint_ne(learned_costs_lesson(p), lesson);
}

/* Nodes that fill the table, and are gone: those that came after them get kinds of their own. */
TEST(kinds_of_no_card_are_freed)
{
    char name[NAME_BYTES];
    struct learned_costs *p = &r.cache.learned;
    for (int i = 0; i < MARKET_KINDS; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        add_node(&r, name, 1 + i, 2, "8", "A");
    }
    add_node(&r, "n", 100, 2, "8", "A");
    add_node(&r, "m", 300, 2, "8", "B");
    see(market_of(&r), (struct shape){.mem = 90, .cards = 1, .cpu = 1000}, 60);
    ck_assert(
        !learned_costs_begin(p, &r.cache.nodes)); /* it fits on no card of a kind that is known */
    for (int i = 0; i < MARKET_KINDS; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        if (i % 3 > 0)
            node_gone(&r, name);
    }
    uint64_t lesson = learned_costs_lesson(p);
    ck_assert(learned_costs_begin(p, &r.cache.nodes));
    ck_assert_uint_ne(learned_costs_lesson(p), lesson);
    solve(&r);
    ck_assert_uint_eq(market_of(&r)->n_kinds, 22 + 2);
    ck_assert_uint_ne(node_of(&r, "n")->cards[0].kind, node_of(&r, "m")->cards[0].kind);
    ck_assert_int_gt(market_value(market_of(&r), node_of(&r, "n")), 0);
    ck_assert_int_gt(market_value(market_of(&r), node_of(&r, "m")), 0);
    struct request q;
    struct evaluation evaluation = wants(&r, 90, 1, 1000, &q);
    for (enum policy policy = POLICY_FGD; policy <= POLICY_BID_PRICE; policy++) {
        struct score score;
        score_begin(&score, &evaluation, policy);
        ck_assert_int_eq(score.policy, policy);
        ck_assert_uint_gt(score_node(&score, node_of(&r, "n")), SCORE_NONE + 2);
    }
    lesson = learned_costs_lesson(p);
    solve(&r);
    ck_assert_uint_eq(learned_costs_lesson(p), lesson + 1);
}

static bool has_own_kind(const char *node)
{
    const struct card *c = &node_of(&r, node)->cards[0];
    return market_of(&r)->kinds[c->kind - 1].total == c->total;
}

/* Nodes that fill the table, and stay: a kind of more cards takes the place of the rarest one. */
TEST(kinds_of_many_cards_take_the_place_of_rare_ones)
{
    char name[NAME_BYTES];
    struct learned_costs *p = &r.cache.learned;
    for (int i = 0; i < MARKET_KINDS + 8; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        add_node(&r, name, 1 + i, 2, "8", "A");
    }
    add_nodes(&r, 'n', 20, 100, 4, "8", "A");
    add_nodes(&r, 'm', 10, 300, 4, "8", "B");
    see(market_of(&r), (struct shape){.mem = 90, .cards = 1, .cpu = 1000}, 60);
    for (int i = 0; i < 2; i++)
        ck_assert(learned_costs_begin(p, &r.cache.nodes));
    ck_assert(has_own_kind("n0") && has_own_kind("m0"));
    solve(&r);
    ck_assert_int_gt(market_value(market_of(&r), node_of(&r, "n0")), 0);
    ck_assert_int_gt(market_value(market_of(&r), node_of(&r, "m0")), 0);
    /* The rest are as rare as those that have a kind. */
    uint64_t lesson = learned_costs_lesson(p);
    ck_assert(learned_costs_begin(p, &r.cache.nodes));
    ck_assert_uint_eq(learned_costs_lesson(p), lesson);
}

static uint32_t card_of(const struct evaluation *e, const char *node)
{
    struct placement there;
    ck_assert_int_eq(fit_place(node_of(&r, node), e, &there), VERDICT_FITS);
    return there.grants[0].card;
}

/* Half a card and a third, in equal parts: a hole of a fifth is for nothing. */
static void learn(enum policy p)
{
    r.cache.settings.node_policy = p;
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1, .cpu = 1000}, 60);
    see(market_of(&r), (struct shape){.mem = 30, .cards = 1, .cpu = 1000}, 60);
    see(market_of(&r), (struct shape){.mem = 100, .cards = 2, .cpu = 1000}, 20);
    solve(&r);
    ck_assert_int_eq(learned_costs_able(&r.cache.learned, p), p);
}

/* ---- the card ---- */

/* The pod of 50 leaves 30 on card 1, which is of use. On card 0, the fullest, it leaves 20, and on
 * card 2, the emptiest, 45. */
TEST_EACH(the_card_of_least_cost, COUNT_OF(with_costs))
{
    add_node(&r, "n", 100, 3, "16", "A");
    pod_set(&r, .uid = "a", .mem = "30", .node = "n", .idx = "0", .phase = "Running");
    pod_set(&r, .uid = "b", .mem = "20", .node = "n", .idx = "1", .phase = "Running");
    pod_set(&r, .uid = "c", .mem = "5", .node = "n", .idx = "2", .phase = "Running");
    struct request q;
    struct evaluation evaluation = wants(&r, 50, 1, 1000, &q);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 0);
    learn(with_costs[_i]);
    evaluation = wants(&r, 50, 1, 1000, &q);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 1);
    /* A policy for cards of the pod or of the node comes first. */
    evaluation = wants(&r, 50, 1, 1000, &q);
    q.card_policy = POLICY_SPREAD;
    ck_assert_uint_eq(card_of(&evaluation, "n"), 2);
    /* That of the configuration does so if it is spread, or if the pod's policy for nodes has no
     * costs. */
    r.cache.settings.card_policy = POLICY_BINPACK;
    evaluation = wants(&r, 50, 1, 1000, &q);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 1);
    evaluation = wants(&r, 50, 1, 1000, &q);
    q.node_policy = POLICY_BINPACK;
    cache_evaluation(&r.cache, STR("nobody"), &q, &evaluation);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 0);
    r.cache.settings.card_policy = POLICY_SPREAD;
    evaluation = wants(&r, 50, 1, 1000, &q);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 2);
    r.cache.settings.card_policy = POLICY_UNSET;
    set_node(&r, (struct node_view){.name = STR("n"),
                                    .mem = STR("300"),
                                    .count = STR("3"),
                                    .cpu = STR("16"),
                                    .model = STR("A"),
                                    .placement = STR("spread")});
    evaluation = wants(&r, 50, 1, 1000, &q);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 2);
    /* A policy with costs for cards alone. */
    r.cache.settings.node_policy = POLICY_BINPACK;
    evaluation = wants(&r, 50, 1, 1000, &q);
    q.card_policy = with_costs[_i];
    ck_assert_uint_eq(card_of(&evaluation, "n"), 1);
}

/* Among the feasible cards only. */
TEST_EACH(a_card_that_is_not_feasible, COUNT_OF(with_costs))
{
    add_node(&r, "n", 100, 3, "16", "A");
    pod_set(&r, .uid = "a", .mem = "30", .node = "n", .idx = "0", .phase = "Running");
    pod_set(&r, .uid = "b", .mem = "20", .node = "n", .idx = "1", .phase = "Running");
    learn(with_costs[_i]);
    health_set(&r, "n", "1");
    struct request q;
    struct evaluation evaluation = wants(&r, 50, 1, 1000, &q);
    ck_assert_uint_ne(card_of(&evaluation, "n"), 1);
}

/* The device plugin may confuse two pods of one size that wait: they belong on one card. */
TEST_EACH(beside_an_equal_pod_that_waits, COUNT_OF(with_costs))
{
    add_node(&r, "n", 100, 3, "16", "A");
    pod_set(&r, .uid = "a", .mem = "20", .node = "n", .idx = "1", .phase = "Running");
    learn(with_costs[_i]);
    pod_set(&r, .uid = "waits", .mem = "40", .node = "n", .idx = "0", .assume = "5",
            .assigned = "false");
    struct request q;
    struct evaluation evaluation = wants(&r, 40, 1, 1000, &q);
    struct request other;
    struct evaluation of_other = wants(&r, 39, 1, 1000, &other);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 0);
    ck_assert_uint_ne(card_of(&of_other, "n"), 0);
    pod_set(&r, .uid = "waits", .mem = "40", .node = "n", .idx = "0", .assume = "5",
            .assigned = "true");
    ck_assert_uint_ne(card_of(&evaluation, "n"), 0);
}

/* Two cards of 30 each: on the NUMA node where they cost less; never one of each. Under binpack the
 * fullest NUMA node is the other one. */
TEST(several_cards_come_from_one_numa_node)
{
    struct card_view cards[] = {{.index = 0, .mem = 100, .numa = 0, .model = STR("A")},
                                {.index = 1, .mem = 100, .numa = 1, .model = STR("A")},
                                {.index = 2, .mem = 100, .numa = 0, .model = STR("A")},
                                {.index = 3, .mem = 100, .numa = 1, .model = STR("A")}};
    struct placement there;
    set_node(&r, (struct node_view){.name = STR("n"),
                                    .mem = STR("400"),
                                    .cpu = STR("64"),
                                    .has_cards = true,
                                    .cards = cards,
                                    .n_cards = 4});
    pod_set(&r, .uid = "a", .mem = "35", .node = "n", .idx = "0", .phase = "Running");
    pod_set(&r, .uid = "b", .mem = "35", .node = "n", .idx = "2", .phase = "Running");
    pod_set(&r, .uid = "c", .mem = "20", .node = "n", .idx = "1", .phase = "Running");
    pod_set(&r, .uid = "d", .mem = "20", .node = "n", .idx = "3", .phase = "Running");
    struct request q;
    struct evaluation evaluation = wants(&r, 30, 2, 1000, &q);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert(there.grants[0].card == 0 && there.grants[1].card == 2);
    learn(POLICY_BID_PRICE);
    evaluation = wants(&r, 30, 2, 1000, &q);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert(there.grants[0].card == 1 && there.grants[1].card == 3);
    /* Card 1 alone is the cheapest, but its neighbour is full. */
    pod_set(&r, .uid = "e", .mem = "80", .node = "n", .idx = "3", .phase = "Running");
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert(there.grants[0].card == 0 && there.grants[1].card == 2);
}

/* Two containers that fit on no card together: no card has a cost for the whole pod, and the search
 * goes through the cards as under binpack. */
TEST_EACH(containers_on_different_cards, COUNT_OF(with_costs))
{
    struct container_view c[] = {{.name = STR("a"), .mem = STR("45"), .index = 0},
                                 {.name = STR("b"), .mem = STR("60"), .index = 1}};
    struct pod_view v = {.uid = STR("u"),
                         .namespace = STR("ns"),
                         .name = STR("u"),
                         .containers = c,
                         .n_containers = 2,
                         .n_mains = 2};
    struct placement binpack;
    struct placement there;
    add_node(&r, "n", 100, 3, "16", "A");
    pod_set(&r, .uid = "x", .mem = "40", .node = "n", .idx = "2", .phase = "Running");
    pod_set(&r, .uid = "y", .mem = "20", .node = "n", .idx = "1", .phase = "Running");
    pod_set(&r, .uid = "z", .mem = "5", .node = "n", .idx = "0", .phase = "Running");
    struct request q;
    struct evaluation evaluation = asked(&r, v, &q);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &binpack), VERDICT_FITS);
    ck_assert_uint_eq(binpack.n, 2);
    learn(with_costs[_i]);
    evaluation = asked(&r, v, &q);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.n, 2);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_uint_eq(there.grants[i].card, binpack.grants[i].card);
}

/* ---- the node, and agreement ---- */

static void add_pods(uint64_t *random, const char *node, int64_t cards)
{
    for (int64_t i = 0; i < cards; i++) {
        char uid[NAME_BYTES];
        char mem[NAME_BYTES];
        char idx[NAME_BYTES];
        if (seeded_draw(random, 3) == 0)
            continue;
        (void)snprintf(uid, sizeof(uid), "%s-%lld", node, (long long)i);
        (void)snprintf(mem, sizeof(mem), "%u", 1 + seeded_draw(random, 90));
        (void)snprintf(idx, sizeof(idx), "%lld", (long long)i);
        pod_set(&r, .uid = uid, .mem = mem, .node = node, .idx = idx, .phase = "Running");
    }
}

static const char *best_node(const struct evaluation *e, const char *const *names, size_t n)
{
    struct score score;
    uint64_t most = SCORE_NONE;
    const char *best = NULL;
    score_begin(&score, e,
                policy_choose(e->request->node_policy, POLICY_UNSET, r.cache.settings.node_policy));
    for (size_t i = 0; i < n; i++) {
        if (fit_node(node_of(&r, names[i]), e) != VERDICT_FITS)
            continue;
        uint64_t its = score_node(&score, node_of(&r, names[i]));
        ck_assert(its > SCORE_NONE && its < SCORE_BEST);
        best = its > most ? names[i] : best;
        most = MAX_OF(its, most);
    }
    return best;
}

/* Replicas of a plan go where pods go that are bound one after the other: also when a replica has
 * changed the node, which is a copy then. */
TEST_EACH(a_plan_agrees_with_reservations, 40)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3"};
    uint64_t random = (uint64_t)_i;
    struct arena a;
    struct plan plan;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        int64_t cards = 1 + (int64_t)seeded_draw(&random, 5);
        add_node(&r, names[i], 100, cards, i % 2 == 0 ? "8" : "32", "A");
        add_pods(&random, names[i], cards);
    }
    learn(with_costs[_i % 2]);
    r.cache.settings.swap_guard = SWAP_GUARD_OFF;
    uint32_t cards = 1 + seeded_draw(&random, 2);
    struct request q;
    struct evaluation evaluation = wants(&r, 1 + seeded_draw(&random, 60), cards, 1000, &q);
    arena_init(&a, (size_t)1 << 20);
    ck_assert_int_eq(plan_make(&plan, &r.cache, &evaluation, 8, &a), OK);
    for (uint32_t i = 0; i < plan.fit; i++) {
        char uid[NAME_BYTES];
        (void)snprintf(uid, sizeof(uid), "r%u", i);
        struct evaluation again;
        cache_evaluation(&r.cache, str_of(uid), &q, &again);
        const char *best = best_node(&again, names, COUNT_OF(names));
        ck_assert_ptr_nonnull(best);
        ck_assert_str_is(plan.spots[i].site->real->name, best);
        struct cache_event e = {.type = CACHE_RESERVE,
                                .reserve = {.uid = str_of(uid),
                                            .namespace = STR("ns"),
                                            .name = str_of(uid),
                                            .node = str_of(best),
                                            .request = &q}};
        ck_assert_int_eq(rig_apply(&r, &e), OK);
        const struct pod_allocation *h = pod_of(&r, uid)->allocation;
        ck_assert_uint_eq(h->n_shares, plan.spots[i].allocation->n_shares);
        for (uint32_t k = 0; k < h->n_shares; k++)
            ck_assert_msg(h->shares[k].card == plan.spots[i].allocation->shares[k].card,
                          "seed %d replica %u", _i, i);
    }
    struct evaluation after;
    cache_evaluation(&r.cache, STR("nobody"), &q, &after);
    ck_assert(plan.fit == 8 || best_node(&after, names, COUNT_OF(names)) == NULL);
    arena_done(&a);
}

/* A pending pod's room is kept on the card that the pod will get: 30 of 60, and not of 50 as under
 * binpack. */
TEST(room_is_kept_where_the_pod_goes)
{
    add_node(&r, "n", 100, 3, "16", "A");
    pod_set(&r, .uid = "a", .mem = "50", .node = "n", .idx = "0", .phase = "Running");
    pod_set(&r, .uid = "b", .mem = "40", .node = "n", .idx = "1", .phase = "Running");
    pod_set(&r, .uid = "c", .mem = "90", .node = "n", .idx = "2", .phase = "Running");
    learn(POLICY_BID_PRICE);
    struct container_view c = {.name = STR("c"), .mem = STR("30")};
    set_pod(&r, (struct pod_view){.uid = STR("nominee"),
                                  .namespace = STR("ns"),
                                  .name = STR("nominee"),
                                  .nominated = STR("n"),
                                  .priority = 10,
                                  .containers = &c,
                                  .n_containers = 1,
                                  .n_mains = 1});
    struct request high;
    struct evaluation of_high = wants(&r, 30, 1, 1000, &high);
    high.priority = 100; /* it keeps nothing for the nominee */
    ck_assert_uint_eq(card_of(&of_high, "n"), 1);
    struct request q;
    struct evaluation evaluation = wants(&r, 50, 1, 1000, &q);
    ck_assert_uint_eq(card_of(&evaluation, "n"), 0);
}

/* Also a pod that asks for no card can be scored: the simulator does that. */
TEST_EACH(a_pod_without_cards, COUNT_OF(with_costs))
{
    struct score score;
    add_node(&r, "n", 100, 2, "16", "A");
    learn(with_costs[_i]);
    struct request q;
    struct evaluation evaluation = wants(&r, 0, 1, 4000, &q);
    score_begin(&score, &evaluation, with_costs[_i]);
    ck_assert_uint_gt(score_node(&score, node_of(&r, "n")), SCORE_NONE);
}

int main(void)
{
    TCase *tc = unit_case("learned_costs");
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
