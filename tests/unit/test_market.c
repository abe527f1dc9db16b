/*
 * What nodes are worth and what a pod costs, on random nodes with random pods, against the
 * definition in market.h computed again: directly, in long double, for one node at a time. A cost
 * is the difference of two values that the node has before and after the pod has really come.
 */
#include "core/policy/market.h"

#include "core/place/score.h"
#include "market_rig.h"

#include <math.h>

enum {
    CARDS_MOST = 6,
    NODES = 4,
    SHOWN = 40,
    PLACED = 20
};

static struct rig r;
static struct request wish; /* of the pod that a test asks about */

static void set_up(void)
{
    rig_init(&r);
    r.cache.settings.node_policy = POLICY_BID_PRICE;
}

static void tear_down(void)
{
    rig_done(&r);
}

/* ---- random nodes and pods ---- */

static const char *const models[] = {"A", "B", NULL};
static const int64_t totals[] = {100, 50, 10}; /* each unit is a whole number of hundredths */
static const char *const node_names[NODES] = {"n", "m", "o", "p"};

static void make_node(uint64_t *random, const char *name)
{
    static const char *const cpus[] = {"2", "7500m", "64", "3000", NULL};
    static const char *const cordons[] = {"0", "2", NULL, NULL};
    struct card_view cards[CARDS_MOST];
    char mem[NAME_BYTES];
    size_t n = 1 + seeded_draw(random, CARDS_MOST);
    uint32_t kind = seeded_draw(random, 3);
    bool mixed = seeded_draw(random, 3) == 0;
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        kind = mixed ? seeded_draw(random, 3) : kind;
        cards[i] = (struct card_view){.index = (uint32_t)(i + (i > 2 ? 1 : 0)),
                                      .mem = totals[kind],
                                      .numa = -1,
                                      .unhealthy = seeded_draw(random, 8) == 0,
                                      .model = str_of(models[kind])};
        sum += totals[kind];
    }
    (void)snprintf(mem, sizeof(mem), "%lld", (long long)sum);
    set_node(&r, (struct node_view){.name = str_of(name),
                                    .mem = str_of(mem),
                                    .cpu = str_of(cpus[seeded_draw(random, 5)]),
                                    .cordoned = str_of(cordons[seeded_draw(random, 4)]),
                                    .has_cards = true,
                                    .cards = cards,
                                    .n_cards = n});
}

struct made {
    struct pod_view view;
    struct container_view container;
    char uid[NAME_BYTES];
    char mem[NAME_BYTES];
};

static void make_pod(uint64_t *random, int number, struct made *m)
{
    static const char *const percents[] = {"10", "50", "80", "100"};
    uint32_t cards = seeded_draw(random, 4) == 0 ? 2 + seeded_draw(random, 2) : 1;
    bool by_percent = seeded_draw(random, 5) == 0;
    *m = (struct made){.container = {.name = STR("c")}};
    (void)snprintf(m->uid, sizeof(m->uid), "u%d", number);
    (void)snprintf(m->mem, sizeof(m->mem), "%u", cards * (1 + seeded_draw(random, 50)));
    m->container.mem = by_percent ? (cards == 1   ? STR("1")
                                     : cards == 2 ? STR("2")
                                                  : STR("3"))
                                  : str_of(m->mem);
    m->view = (struct pod_view){.uid = str_of(m->uid),
                                .namespace = STR("ns"),
                                .name = str_of(m->uid),
                                .host = {.cpu = 250 * (int64_t)seeded_draw(random, 12)},
                                .containers = &m->container,
                                .n_containers = 1,
                                .n_mains = 1};
    if (cards > 1)
        m->view.count_label = cards == 2 ? STR("2") : STR("3");
    if (by_percent)
        m->view.percent = str_of(percents[seeded_draw(random, 4)]);
    else if (seeded_draw(random, 8) == 0)
        m->view.whole_label = STR("require-whole-device");
    if (seeded_draw(random, 4) == 0)
        m->view.card_model = seeded_draw(random, 2) == 0 ? STR("A") : STR("!A");
}

/* The pod runs on the cards that fit_place chooses. */
static void place(struct made *m, const char *node)
{
    struct grant_view grants[REQUEST_CARDS_MAX];
    char idx[NAME_BYTES];
    struct placement there;
    struct evaluation evaluation = asked(&r, m->view, &wish);
    ck_assert_int_eq(fit_place(node_of(&r, node), &evaluation, &there), VERDICT_FITS);
    for (uint32_t i = 0; i < there.n; i++)
        grants[i] = (struct grant_view){.card = there.grants[i].card, .mem = there.grants[i].mem};
    (void)snprintf(idx, sizeof(idx), "%u", there.grants[0].card);
    m->view.node = str_of(node);
    m->view.phase = STR("Running");
    m->view.assigned = STR("true");
    if (there.n == 1)
        m->view.idx = str_of(idx);
    m->view.has_allocation = m->view.former.allocation = there.n > 1 || !request_plain(&wish);
    m->view.grants = grants;
    m->view.n_grants = there.n;
    set_pod(&r, m->view);
    const struct pod *p = pod_of(&r, m->uid);
    ck_assert(p->allocation != NULL && p->allocation->n_shares == there.n);
}

/* ---- the definition ---- */

struct naive {
    long double part[101];
    long double free[MARKET_FREE_MAX + 1];
};

/* A shape that came after the solve has no price. */
static uint32_t naive_steps(const struct known_shape *k, int64_t total, struct str model)
{
    const struct shape *x = &k->shape;
    int64_t most = (x->mem * 100 + total - 1) / total;
    if (k->price == 0 || x->cards == 0 || x->mem > total)
        return 0;
    if (x->models.n > 0 && str_eq(model, STR("A")) != str_eq(x->models, STR("A")))
        return 0;
    most = MAX_OF(most, (int64_t)MAX_OF(x->percent, x->cores));
    most = MAX_OF(x->whole ? 100 : most, (int64_t)1);
    return most > 100 ? 0 : (uint32_t)most;
}

static long double naive_bid(const struct known_shape *k, double rate)
{
    return (long double)k->price - (long double)rate * k->shape.cpu / 1000;
}

/* Z(r) and F(k) as sums over the shapes. */
static void naive_compute(int64_t total, struct str model, double rate, struct naive *ret)
{
    const long double tau = 0.02L;
    const struct shapes *s = &market_of(&r)->shapes;
    long double z[101];
    long double f[MARKET_FREE_MAX + 1] = {0};
    for (uint32_t left = 0; left <= 100; left++) {
        z[left] = 1;
        for (uint32_t j = 0; j < s->n; j++) {
            uint32_t steps = naive_steps(&s->all[j], total, model);
            if (s->all[j].shape.cards == 1 && steps > 0 && steps <= left)
                z[left] += expl(naive_bid(&s->all[j], rate) / tau) * z[left - steps];
        }
        ret->part[left] = tau * logl(z[left]);
    }
    for (uint32_t k = 0; k <= MARKET_FREE_MAX; k++) {
        f[k] = k == 0 ? 1 : f[k - 1];
        for (uint32_t j = 0; j < s->n; j++) {
            uint32_t n = s->all[j].shape.cards;
            if (n < 2 || n > k || naive_steps(&s->all[j], total, model) == 0)
                continue;
            f[k] += expl((naive_bid(&s->all[j], rate) - n * ret->part[100]) / tau) * f[k - n];
        }
        ret->free[k] = k * ret->part[100] + tau * logl(f[k]);
    }
}

/* What is left of a card, in hundredths, from its figures. */
static uint32_t naive_left(const struct card *c)
{
    if (c->unhealthy || c->cordoned || c->aside || c->absent || c->wholes > 0)
        return 0;
    if (c->pods == 0)
        return 100;
    int64_t left = c->used >= c->total ? 0 : (c->total - c->used) * 100 / c->total;
    return (uint32_t)MIN_OF(MIN_OF(left, (int64_t)99), 100 - (int64_t)c->cores);
}

static bool same_kind(const struct node *n, uint32_t a, uint32_t b)
{
    return n->cards[a].total == n->cards[b].total &&
           str_eq(node_card_model(n, a), node_card_model(n, b));
}

/* The value at one rate of the cards of the same kind as this one, if it is the first of them. */
static long double naive_kind(const struct node *n, uint32_t first, double rate)
{
    struct naive v;
    uint32_t frees = 0;
    long double sum = 0;
    for (uint32_t i = 0; i < first; i++) {
        if (same_kind(n, i, first))
            return 0;
    }
    if (n->cards[first].absent)
        return 0;
    naive_compute(n->cards[first].total, node_card_model(n, first), rate, &v);
    for (uint32_t i = first; i < n->n_cards; i++) {
        uint32_t left = naive_left(&n->cards[i]);
        if (!same_kind(n, i, first))
            continue;
        frees += left == 100 ? 1 : 0;
        sum += left < 100 ? v.part[left] : 0;
    }
    return sum + v.free[MIN_OF(frees, (uint32_t)MARKET_FREE_MAX)] +
           (frees > MARKET_FREE_MAX ? frees - MARKET_FREE_MAX : 0) * v.part[100];
}

static double naive_value(const struct node *n)
{
    const struct market *m = market_of(&r);
    int64_t cpu = node_host_left(n).cpu;
    long double least = HUGE_VALL;
    for (unsigned l = 0; l < MARKET_RATES; l++) {
        double rate = m->rates[l] / 1e6;
        long double sum = (long double)rate * MIN_OF(cpu, (int64_t)1024000) / 1000;
        for (uint32_t i = 0; i < n->n_cards; i++)
            sum += naive_kind(n, i, rate);
        least = MIN_OF(least, sum);
    }
    return (double)least;
}

static void check_value(const struct node *n, int seed)
{
    double value = (double)market_value(market_of(&r), n) / 1e6;
    double expected = naive_value(n);
    ck_assert_msg(fabs(value - expected) < 1e-4 * (1 + n->n_cards), "seed %d node %.*s: %g, not %g",
                  seed, STR_ARG(n->name), value, expected);
}

static void fill_cluster(uint64_t *random)
{
    for (int i = 0; i < NODES; i++)
        make_node(random, node_names[i]);
    for (int i = 0; i < SHOWN; i++) {
        struct made m;
        make_pod(random, i, &m);
        set_pod(&r, m.view);
    }
    ck_assert_uint_eq(market_of(&r)->shapes.arrivals, SHOWN);
    solve(&r);
}

/* What market.h says of free cards, from the cards before and after the pod came. */
static int64_t naive_drain(const struct node *n, const uint32_t before[static LIMIT_CARDS])
{
    int64_t frees = 0;
    int64_t parts = 0;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        frees += before[i] == 100 ? 1 : 0;
        if (naive_left(&n->cards[i]) < before[i])
            parts += before[i] == 100 ? 100 : before[i] - naive_left(&n->cards[i]);
    }
    return market_of(&r)->drain * frees * parts / 800;
}

static void check_cost(struct made *m, const char *name, int seed)
{
    const struct node *n = node_of(&r, name);
    uint32_t left[LIMIT_CARDS] = {0};
    struct evaluation evaluation = asked(&r, m->view, &wish);
    struct market_ask ask;
    int64_t order[LIMIT_CARDS];
    int64_t before = market_value(market_of(&r), n);
    market_ask(market_of(&r), &evaluation, &ask);
    int64_t cost = market_cost(&ask, n);
    market_order(&ask, n, order);
    for (uint32_t i = 0; i < n->n_cards; i++) {
        bool fits = fit_card(n, &evaluation, i) == VERDICT_FITS;
        ck_assert_msg((order[i] != MARKET_NO_COST) == fits, "seed %d %s card %u", seed, m->uid, i);
        ck_assert(!fits || request_cards(&wish) > 1 || order[i] >= cost);
    }
    if (fit_node(n, &evaluation) != VERDICT_FITS)
        return;
    for (uint32_t i = 0; i < n->n_cards; i++)
        left[i] = naive_left(&n->cards[i]);
    place(m, name);
    int64_t after = market_value(market_of(&r), n);
    int64_t drain = naive_drain(n, left);
    ck_assert_msg(cost == before - after + drain, "seed %d %s on %s: %lld, not %lld - %lld + %lld",
                  seed, m->uid, name, (long long)cost, (long long)before, (long long)after,
                  (long long)drain);
}

TEST_EACH(values_and_costs_are_those_of_the_definition, 40)
{
    uint64_t random = (uint64_t)_i;
    fill_cluster(&random);
    for (int i = 0; i < PLACED; i++) {
        const char *name = node_names[seeded_draw(&random, NODES)];
        struct made m;
        make_pod(&random, SHOWN + i, &m);
        check_cost(&m, name, _i);
        if (i % 5 == 0)
            check_value(node_of(&r, name), _i);
    }
}

/* ---- equal nodes ---- */

TEST_EACH(the_order_of_cards_does_not_matter, 10)
{
    uint64_t random = (uint64_t)_i;

    enum {
        CARDS = 5
    };
    struct card_view cards[2][CARDS];
    static const char *const names[] = {"n", "m"};
    fill_cluster(&random);
    for (uint32_t i = 0; i < CARDS; i++) {
        uint32_t kind = seeded_draw(&random, 3);
        struct card_view c = {
            .index = i, .mem = totals[kind], .numa = -1, .model = str_of(models[kind])};
        cards[0][i] = c;
        c.index = CARDS - 1 - i;
        cards[1][CARDS - 1 - i] = c;
    }
    for (int k = 0; k < 2; k++)
        set_node(&r, (struct node_view){.name = str_of(names[k]),
                                        .mem = STR("500"),
                                        .cpu = STR("20"),
                                        .has_cards = true,
                                        .cards = cards[k],
                                        .n_cards = CARDS});
    for (uint32_t i = 0; i < CARDS; i++) {
        char mem[NAME_BYTES];
        (void)snprintf(mem, sizeof(mem), "%u", seeded_draw(&random, 12));
        for (uint32_t k = 0; k < 2; k++) {
            char uid[NAME_BYTES];
            char idx[NAME_BYTES];
            (void)snprintf(uid, sizeof(uid), "x%u-%u", i, k);
            (void)snprintf(idx, sizeof(idx), "%u", k == 0 ? i : CARDS - 1 - i);
            pod_set(&r, .uid = uid, .mem = mem, .node = names[k], .idx = idx);
        }
    }
    solve(&r);
    const struct market *m = market_of(&r);
    ck_assert_int_eq(market_value(m, node_of(&r, "n")), market_value(m, node_of(&r, "m")));
    for (int i = 0; i < 20; i++) {
        struct made made;
        struct market_ask ask;
        make_pod(&random, 500 + i, &made);
        struct evaluation evaluation = asked(&r, made.view, &wish);
        market_ask(m, &evaluation, &ask);
        ck_assert_int_eq(market_cost(&ask, node_of(&r, "n")), market_cost(&ask, node_of(&r, "m")));
    }
}

/* ---- limits ---- */

TEST(more_free_cards_than_the_table_has)
{
    add_node(&r, "n", 100, MARKET_FREE_MAX + 6, "64", "A");
    see(market_of(&r), (struct shape){.mem = 100, .cards = 4, .cpu = 2000}, 20);
    see(market_of(&r), (struct shape){.mem = 30, .cards = 1, .cpu = 1000}, 20);
    solve(&r);
    check_value(node_of(&r, "n"), 0);
    struct made m;
    uint64_t random = 3;
    for (int i = 0; i < 30; i++) {
        make_pod(&random, i, &m);
        check_cost(&m, "n", i);
        check_value(node_of(&r, "n"), i);
    }
}

/* All further kinds share the last one. Nodes with such cards are still chosen. */
TEST(more_kinds_than_the_table_has)
{
    char name[NAME_BYTES];
    for (int i = 0; i < MARKET_KINDS + 20; i++) {
        (void)snprintf(name, sizeof(name), "k%d", i);
        add_node(&r, name, 100 + i, 2, "8", "A");
    }
    ck_assert_uint_eq(market_of(&r)->n_kinds, MARKET_KINDS);
    ck_assert_uint_eq(node_of(&r, "k0")->cards[0].kind, 1);
    ck_assert_uint_eq(node_of(&r, "k63")->cards[1].kind, MARKET_KINDS);
    ck_assert_uint_eq(node_of(&r, "k83")->cards[1].kind, MARKET_KINDS);
    see(market_of(&r), (struct shape){.mem = 30, .cards = 1, .cpu = 1000}, 20);
    solve(&r);
    struct request both[2]; /* one smaller, one larger than the last kind that is known */
    struct evaluation of_small = wants(&r, 10, 1, 1000, &both[0]);
    struct evaluation of_large = wants(&r, 180, 1, 1000, &both[1]);
    struct score score;
    score_begin(&score, &of_small, POLICY_BID_PRICE);
    ck_assert_uint_gt(score_node(&score, node_of(&r, "k83")), SCORE_NONE + 2);
    score_begin(&score, &of_large, POLICY_BID_PRICE);
    ck_assert_int_eq(fit_node(node_of(&r, "k83"), &of_large), VERDICT_FITS);
    ck_assert_uint_gt(score_node(&score, node_of(&r, "k83")), SCORE_NONE);
    ck_assert_uint_lt(score_node(&score, node_of(&r, "k83")), SCORE_BEST);
    struct placement there;
    ck_assert_int_eq(fit_place(node_of(&r, "k83"), &of_large, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 0);
}

/* An unknown amount of CPU is no limit: a pod's cores cost nothing there. */
TEST(a_node_without_cpu_figures)
{
    struct market_ask with;
    struct market_ask without;
    add_node(&r, "n", 100, 4, NULL, "A");
    add_node(&r, "m", 100, 4, "8", "A");
    see(market_of(&r), (struct shape){.mem = 30, .cards = 1, .cpu = 4000}, 20);
    solve(&r);
    struct request both[2];
    struct evaluation of_cores = wants(&r, 30, 1, 8000, &both[0]);
    struct evaluation of_none = wants(&r, 30, 1, 0, &both[1]);
    market_ask(market_of(&r), &of_cores, &with);
    market_ask(market_of(&r), &of_none, &without);
    ck_assert_int_eq(market_cost(&with, node_of(&r, "n")), market_cost(&without, node_of(&r, "n")));
    ck_assert_int_gt(market_cost(&with, node_of(&r, "m")), market_cost(&without, node_of(&r, "m")));
    check_value(node_of(&r, "n"), 0);
    check_value(node_of(&r, "m"), 0);
}

/* Cards that no pod may use are worth nothing, and take part in no sum. */
TEST(cards_out_of_use)
{
    add_node(&r, "n", 100, 3, "8", "A");
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1}, 20);
    see(market_of(&r), (struct shape){.mem = 100, .cards = 2}, 20);
    solve(&r);
    int64_t three = market_value(market_of(&r), node_of(&r, "n"));
    health_set(&r, "n", "1");
    int64_t two = market_value(market_of(&r), node_of(&r, "n"));
    ck_assert_int_lt(two, three);
    check_value(node_of(&r, "n"), 0);
    struct evaluation evaluation = wants(&r, 50, 1, 0, &wish);
    struct market_ask ask;
    int64_t order[LIMIT_CARDS];
    market_ask(market_of(&r), &evaluation, &ask);
    market_order(&ask, node_of(&r, "n"), order);
    ck_assert(order[1] == MARKET_NO_COST && order[0] != MARKET_NO_COST);
    health_set(&r, "n", "0,1,2");
    ck_assert_int_eq(market_cost(&ask, node_of(&r, "n")), MARKET_NO_COST);
    health_gone(&r, "n");
    ck_assert_int_eq(market_value(market_of(&r), node_of(&r, "n")), three);
}

/* No pod has asked for several cards yet, and the prices of halves and wholes see no difference
 * between these nodes. */
TEST(equal_pods_go_together)
{
    struct market_ask ask;
    add_node(&r, "n", 100, 8, NULL, "A");
    add_node(&r, "m", 100, 8, NULL, "A");
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1}, 20);
    see(market_of(&r), (struct shape){.mem = 100, .cards = 1}, 20);
    pod_set(&r, .uid = "a", .mem = "100", .node = "n", .idx = "0", .phase = "Running");
    solve(&r);
    struct evaluation evaluation = wants(&r, 100, 1, 0, &wish);
    market_ask(market_of(&r), &evaluation, &ask);
    ck_assert_int_eq(market_of(&r)->drain, 50000);
    ck_assert_int_ge(market_cost(&ask, node_of(&r, "m")),
                     market_cost(&ask, node_of(&r, "n")) + 50000 / 8);
}

/* Only two nodes have the cores for the pods of eight cards. Without pods that leave
 * nothing is kept. */
TEST(nodes_that_few_can_stand_in_for_are_kept)
{
    struct market_ask ask;
    struct market *m = market_of(&r);
    add_nodes(&r, 'n', 18, 100, 8, "96", "A");
    add_nodes(&r, 'm', 2, 100, 8, "128", "B");
    see(m, (struct shape){.mem = 50, .cards = 1, .cpu = 1000}, 40);
    see(m, (struct shape){.mem = 100, .cards = 8, .cpu = 120000}, 4);
    solve(&r);
    ck_assert_int_eq(m->reserve, 0);
    m->placed = m->departed = 100;
    solve(&r);
    ck_assert_int_eq(m->reserve, 300000);
    struct evaluation of_one = wants(&r, 50, 1, 1000, &wish);
    market_ask(m, &of_one, &ask);
    int64_t kept = market_cost(&ask, node_of(&r, "m0"));
    int64_t other = market_cost(&ask, node_of(&r, "n0"));
    m->reserve = 0;
    ck_assert_int_eq(market_cost(&ask, node_of(&r, "m0")), kept - 300000);
    ck_assert_int_eq(market_cost(&ask, node_of(&r, "n0")), other);
    m->reserve = 300000;
    struct evaluation of_eight = wants(&r, 100, 8, 120000, &wish);
    market_ask(m, &of_eight, &ask);
    int64_t its = market_cost(&ask, node_of(&r, "m0"));
    m->reserve = 0;
    ck_assert_int_eq(market_cost(&ask, node_of(&r, "m0")), its);
}

/* Until there are prices, the node and the card are those of binpack. */
TEST(no_prices_yet)
{
    struct placement there;
    struct market_ask ask;
    struct score score;
    struct score binpack;
    add_node(&r, "n", 100, 2, "8", "A");
    pod_set(&r, .uid = "a", .mem = "10", .node = "n", .idx = "1", .phase = "Running");
    struct evaluation evaluation = wants(&r, 30, 1, 1000, &wish);
    market_ask(market_of(&r), &evaluation, &ask);
    ck_assert_int_eq(market_cost(&ask, node_of(&r, "n")), MARKET_NO_COST);
    ck_assert_int_eq(market_value(market_of(&r), node_of(&r, "n")), 0);
    for (enum policy p = POLICY_FGD; p <= POLICY_BID_PRICE; p++) {
        score_begin(&score, &evaluation, p);
        score_begin(&binpack, &evaluation, POLICY_BINPACK);
        ck_assert_uint_eq(score_node(&score, node_of(&r, "n")),
                          score_node(&binpack, node_of(&r, "n")));
        ck_assert_int_eq(learned_costs_able(evaluation.learned, p), POLICY_BINPACK);
        ck_assert_int_eq(learned_costs_able(NULL, p), POLICY_BINPACK);
    }
    ck_assert_int_eq(learned_costs_able(NULL, POLICY_SPREAD), POLICY_SPREAD);
    ck_assert_int_eq(fit_place(node_of(&r, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.grants[0].card, 1);
}

/* Each pod counts once, however often it is shown; and again if its UID is new. */
TEST(each_pod_counts_once)
{
    struct made m;
    uint64_t random = 1;
    add_node(&r, "n", 100, 2, "8", "A");
    make_pod(&random, 1, &m);
    for (int i = 0; i < 5; i++)
        set_pod(&r, m.view);
    ck_assert_uint_eq(market_of(&r)->shapes.arrivals, 1);
    m.view.uid = STR("another");
    set_pod(&r, m.view);
    ck_assert_uint_eq(market_of(&r)->shapes.arrivals, 2);
    ck_assert_uint_eq(market_of(&r)->shapes.n, 1);
    /* A pod without cards counts where it can take CPU from cards. */
    struct pod_view other = {.uid = STR("o"),
                             .namespace = STR("ns"),
                             .name = STR("o"),
                             .node = STR("n"),
                             .phase = STR("Running"),
                             .host = {.cpu = 100}};
    set_pod(&r, other);
    set_pod(&r, other);
    ck_assert_uint_eq(market_of(&r)->shapes.arrivals, 3);
    other.uid = STR("elsewhere");
    other.node = STR("no-cards");
    set_pod(&r, other);
    ck_assert_uint_eq(market_of(&r)->shapes.arrivals, 3);
}

int main(void)
{
    TCase *tc = unit_case("market");
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
