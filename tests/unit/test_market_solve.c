/*
 * The prices: supply is the derivative of what all that is idle is worth, at any prices; no number
 * leaves the range of a double; failed allocations leave the old prices; a step does a bounded
 * amount of work; the prices balance supply and demand.
 */
#include "../../src/core/policy/market_solve.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../src/core/policy/market_stock.c" /* NOLINT(bugprone-suspicious-include) */
#include "fail_alloc.h"
#include "market_rig.h"

static struct rig r;

static void set_up(void)
{
    rig_init(&r);
}

static void tear_down(void)
{
    rig_done(&r);
}

/* ---- the derivative ---- */

/* The softened value of all that is idle, of which market_solve_meet_stock takes the derivative. */
static double value_of_all(struct market_solve *s)
{
    double sum = 0;
    for (uint32_t c = 0; c < s->n_classes; c++)
        market_solve_tables(s, &s->classes[c]);
    for (uint32_t i = 0; i < s->n_stocks; i++) {
        const struct solve_stock *x = &s->stocks[i];
        double values[RATES];
        double least = HUGE_VAL;
        double weight = 0;
        for (unsigned l = 0; l < RATES; l++) {
            values[l] = s->rates[l] * x->cores;
            for (uint32_t k = 0; k < x->n; k++) {
                const struct solve_item *it = &s->items[x->first + k];
                const struct solve_class *c = &s->classes[it->class];
                values[l] +=
                    it->left == FULL ? c->free[it->count][l] : it->count * c->part[it->left][l];
            }
            least = MIN_OF(least, values[l]);
        }
        for (unsigned l = 0; l < RATES; l++)
            weight += exp(-(values[l] - least) / TAU);
        sum += x->nodes * (least - TAU * log(weight));
    }
    return sum;
}

static void compute_supply(struct market_solve *s)
{
    (void)value_of_all(s);
    for (uint32_t j = 0; j < s->n_shapes; j++)
        s->shapes[j].supply = 0;
    for (uint32_t i = 0; i < s->n_stocks; i++)
        market_solve_meet_stock(s, &s->stocks[i]);
    for (uint32_t c = 0; c < s->n_classes; c++) {
        market_solve_supply_several(s, &s->classes[c]);
        market_solve_supply_single(s, &s->classes[c]);
    }
}

/* Two kinds of cards, nodes of several sizes, some cards in use. */
static void fill_cluster(uint64_t *random)
{
    static const char *const cpus[] = {"8", "32", "96", NULL};
    static const char *const models[] = {"A", "B"};
    char name[NAME_BYTES];
    int pods = 0;
    for (int i = 0; i < 6; i++) {
        int64_t cards = 1 + (int64_t)seeded_draw(random, 8);
        (void)snprintf(name, sizeof(name), "n%d", i);
        add_node(&r, name, 100, cards, cpus[seeded_draw(random, 4)],
                 models[seeded_draw(random, 2)]);
        for (int64_t k = 0; k < cards; k++) {
            char uid[NAME_BYTES];
            char mem[NAME_BYTES];
            char idx[NAME_BYTES];
            if (seeded_draw(random, 2) == 0)
                continue;
            (void)snprintf(uid, sizeof(uid), "p%d", pods++);
            (void)snprintf(mem, sizeof(mem), "%u", 1 + seeded_draw(random, 100));
            (void)snprintf(idx, sizeof(idx), "%lld", (long long)k);
            pod_set(&r, .uid = uid, .mem = mem, .node = name, .idx = idx);
        }
    }
    shapes_done(&market_of(&r)->shapes);
}

static struct shape some_shape(uint64_t *random)
{
    struct shape x = {.cpu = 500 * (int64_t)seeded_draw(random, 40),
                      .mem = 1 + (int64_t)seeded_draw(random, 100),
                      .cards = seeded_draw(random, 3) == 0 ? seeded_draw(random, 5) : 1};
    if (x.cards > 1)
        x.mem = 100;
    if (x.cards > 0 && seeded_draw(random, 4) == 0)
        x.models = STR("A");
    return x;
}

TEST_EACH(supply_is_the_derivative_of_the_value, 20)
{
    uint64_t random = (uint64_t)_i;
    fill_cluster(&random);
    for (int j = 0; j < 6; j++)
        see(market_of(&r), some_shape(&random), 1 + (int)seeded_draw(&random, 20));
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1}, 1);
    struct market_solve *s = market_solve_new(market_of(&r), &r.cache.nodes);
    ck_assert_ptr_nonnull(s);
    while (s->part < PART_TABLES)
        ck_assert(market_solve_step(s));
    ck_assert_uint_gt(s->n_stocks, 0);
    s->core_price = 0.001 * (1 + seeded_draw(&random, 50));
    market_solve_set_rates(s);
    for (uint32_t j = 0; j < s->n_shapes; j++)
        s->shapes[j].price *= 0.5 + 0.01 * seeded_draw(&random, 100);
    compute_supply(s);
    for (uint32_t j = 0; j < s->n_shapes; j++) {
        const double step = 1e-5;
        double supply = s->shapes[j].supply;
        double price = s->shapes[j].price;
        if (s->shapes[j].cards == 0)
            continue;
        s->shapes[j].price = price + step;
        double more = value_of_all(s);
        s->shapes[j].price = price - step;
        double less = value_of_all(s);
        s->shapes[j].price = price;
        double slope = (more - less) / (2 * step);
        ck_assert_msg(fabs(slope - supply) < 1e-3 * (1 + fabs(slope)),
                      "seed %d shape %u: supply %g, slope %g", _i, j, supply, slope);
    }
    market_solve_free(s);
}

/* ---- requests that are hard for the arithmetic ---- */

static void check_values(const struct market *m)
{
    for (uint32_t i = 0; i < m->n_kinds; i++) {
        const struct market_values *v = m->kinds[i].values;
        ck_assert_ptr_nonnull(v);
        for (unsigned l = 0; l < MARKET_RATES; l++) {
            for (uint32_t left = 1; left <= SHAPE_STEPS; left++)
                ck_assert_int_ge(v->part[left][l], v->part[left - 1][l]);
            for (uint32_t k = 1; k <= MARKET_FREE_MAX; k++)
                ck_assert_int_ge(v->free[k][l], v->free[k - 1][l]);
        }
    }
    for (uint32_t j = 0; j < m->shapes.n; j++)
        ck_assert(isfinite(m->shapes.all[j].price) && m->shapes.all[j].price >= 0);
    ck_assert(isfinite(m->core_price) && m->core_price > 0);
}

static const struct {
    const char *why;
    struct shape shapes[3];
} hard[] = {
    {"only pods of two cards", {{.mem = 100, .cards = 2}}},
    {"only pods of eight whole cards", {{.whole = true, .cards = 8}}},
    {"pods of several counts", {{.mem = 100, .cards = 2}, {.mem = 100, .cards = 3}}},
    {"more cards than a node has", {{.mem = 100, .cards = 64}, {.mem = 3, .cards = 1}}},
    {"a small part of a card and many cores", {{.mem = 1, .cards = 1, .cpu = 4000}}},
    {"a small part of a card and all cores",
     {{.mem = 1, .cards = 1, .cpu = HOST_CPU_MAX}, {.mem = 100, .cards = 1}}},
    {"a whole card and all cores",
     {{.mem = 100, .cards = 1, .cpu = HOST_CPU_MAX}, {.mem = 100, .cards = 4, .cpu = 1}}},
    {"cores that no node has, beside pods of several cards",
     {{.mem = 30, .cards = 1, .cpu = 2000000}, {.mem = 100, .cards = 8}}},
};

TEST_EACH(no_request_breaks_the_arithmetic, COUNT_OF(hard))
{
    add_nodes(&r, 'n', 4, 100, 16, "64", "A");
    add_nodes(&r, 'm', 2, 100, 70, NULL, "B");
    for (size_t i = 0; i < COUNT_OF(hard[_i].shapes) && hard[_i].shapes[i].cards > 0; i++)
        see(market_of(&r), hard[_i].shapes[i], 50);
    for (int i = 0; i < 4; i++) {
        solve(&r);
        check_values(market_of(&r));
        ck_assert_int_gt(market_value(market_of(&r), node_of(&r, "n0")), 0);
    }
}

/* Eight free cards are worth as much as the pods on them: no less than a card each, if the price
 * of eight cards is eight. */
TEST(free_cards_are_worth_what_the_pods_pay)
{
    struct shape eight = {.mem = 100, .cards = 8};
    add_nodes(&r, 'n', 40, 100, 8, "64", "A");
    see(market_of(&r), eight, 100);
    solve(&r);
    double price = market_of(&r)->shapes.all[0].price;
    double value = (double)market_value(market_of(&r), node_of(&r, "n0")) / 1e6;
    ck_assert_msg(fabs(value - price) < 0.1, "value %g price %g", value, price);
}

/* Whatever a client asks for, the values of a node of LIMIT_CARDS cards can be summed up. */
TEST(a_node_of_very_many_cards)
{
    add_node(&r, "n", 100, LIMIT_CARDS, "1024", "A");
    see(market_of(&r), (struct shape){.mem = 1, .cards = 1, .cpu = 100000}, 10);
    solve(&r);
    const struct node *n = node_of(&r, "n");
    struct request one;
    struct evaluation of_one = wants(&r, 1, 1, 100000, &one);
    struct market_ask ask;
    market_ask(market_of(&r), &of_one, &ask);
    ck_assert_int_gt(market_value(market_of(&r), n), 0);
    ck_assert_int_ge(market_cost(&ask, n), 0);
}

/* ---- balance ---- */

/* Single iterations swing around the balance: TAU is small. */
TEST(supply_meets_demand)
{
    static const struct shape shapes[] = {
        {.mem = 50, .cards = 1, .cpu = 4000},   {.mem = 30, .cards = 1, .cpu = 2000},
        {.mem = 20, .cards = 1, .cpu = 1000},   {.mem = 100, .cards = 1, .cpu = 8000},
        {.mem = 100, .cards = 8, .cpu = 48000}, {.cpu = 4000}};
    static const int counts[] = {300, 200, 400, 250, 20, 100};
    double supply[COUNT_OF(shapes)] = {0};
    double demand[COUNT_OF(shapes)] = {0};
    add_nodes(&r, 'n', 150, 100, 8, "96", "A");
    add_nodes(&r, 'm', 100, 100, 2, "64", "B");
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        see(market_of(&r), shapes[i], counts[i]);
    struct market_solve *s = market_solve_new(market_of(&r), &r.cache.nodes);
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(s->n_shapes, COUNT_OF(shapes));
    do {
        for (uint32_t j = 0;
             s->part == PART_PRICES && s->iteration >= s->iterations / 2 && j < s->n_shapes; j++) {
            supply[j] += s->shapes[j].supply;
            demand[j] += market_solve_demand(s, &s->shapes[j]);
        }
    } while (market_solve_step(s));
    market_solve_free(s);
    for (size_t j = 0; j < COUNT_OF(shapes); j++) {
        if (shapes[j].cards > 0)
            ck_assert_msg(fabs(supply[j] - demand[j]) < 0.15 * demand[j],
                          "shape %zu: supply %g, demand %g", j, supply[j], demand[j]);
    }
}

/* A node whose cards are all in use has cores for pods that ask for no card. They are worth less
 * with them. A node without any card is not counted: pods there are not learned from, either. */
TEST(cores_beside_full_cards)
{
    double price[2];
    for (int i = 0; i < 2; i++) {
        add_node(&r, "n", 100, 1, "8", "A");
        see(market_of(&r), (struct shape){.mem = 100, .cards = 1, .cpu = 7000}, 20);
        see(market_of(&r), (struct shape){.cpu = 2000}, 20);
        if (i == 1) {
            add_node(&r, "full", 100, 1, "90", "A");
            add_node(&r, "none", 100, 0, "500", "A");
            pod_set(&r, .uid = "p", .mem = "100", .node = "full", .idx = "0", .phase = "Running");
        }
        struct market_solve *s = market_solve_new(market_of(&r), &r.cache.nodes);
        ck_assert_ptr_nonnull(s);
        while (s->part < PART_TABLES)
            ck_assert(market_solve_step(s));
        ck_assert_double_eq(s->idle_cores, i == 0 ? 8 : 98);
        market_solve_free(s);
        solve(&r);
        price[i] = market_of(&r)->core_price;
        rig_done(&r);
        rig_init(&r);
    }
    ck_assert_msg(price[1] < price[0] / 2, "%g, %g", price[0], price[1]);
}

/* No table is longer than the largest node needs. */
TEST(the_most_cards_of_a_node)
{
    add_node(&r, "n", 100, 3, "8", "A");
    add_node(&r, "m", 100, 5, "8", "A");
    add_node(&r, "o", 50, 2, "8", "B");
    add_node(&r, "p", 20, MARKET_FREE_MAX + 5, "8", "C");
    see(market_of(&r), (struct shape){.mem = 15, .cards = 1}, 1);
    struct market_solve *s = market_solve_new(market_of(&r), &r.cache.nodes);
    ck_assert_ptr_nonnull(s);
    while (s->part < PART_TABLES)
        ck_assert(market_solve_step(s));
    ck_assert_uint_eq(s->n_classes, 3);
    ck_assert_uint_eq(s->classes[s->class_of[0]].most, 5);
    ck_assert_uint_eq(s->classes[s->class_of[1]].most, 2);
    ck_assert_uint_eq(s->classes[s->class_of[2]].most, MARKET_FREE_MAX);
    market_solve_free(s);
}

/* ---- steps ---- */

/* The largest number of steps: for the copy of what is idle; then for each iteration its classes
 * twice, its stocks, and the prices. */
TEST(a_solve_ends_after_a_known_number_of_steps)
{
    uint64_t random = 5;
    fill_cluster(&random);
    for (int j = 0; j < 6; j++)
        see(market_of(&r), some_shape(&random), 3);
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1}, 1);
    ck_assert(market_begin(market_of(&r), &r.cache.nodes));
    const struct market_solve *s = market_of(&r)->solve;
    uint64_t copying = 0;
    for (; s->part < PART_TABLES; copying++)
        ck_assert(market_step(market_of(&r)));
    ck_assert_uint_le(copying, r.cache.nodes.n / 64 + (uint64_t)s->n_stocks * 17 / 1024 +
                                   r.cache.nodes.n / 512 + 4);
    uint64_t most =
        (uint64_t)FIRST_ITERATIONS * (2 * s->n_classes + s->n_stocks / STOCKS_A_STEP + 1 + 1) +
        s->n_classes;
    uint64_t steps = 1;
    while (market_step(market_of(&r)))
        steps++;
    ck_assert_uint_le(steps, most);
    ck_assert_uint_eq(market_of(&r)->solved, 1);
    ck_assert(!market_step(market_of(&r)));
}

/* What comes while a solve is in progress changes only the next one. */
TEST(the_result_does_not_depend_on_what_comes_meanwhile)
{
    struct rig other;
    rig_init(&other);
    for (int i = 0; i < 2; i++) {
        struct rig *at = i == 0 ? &r : &other;
        add_nodes(at, 'n', 20, 100, 4, "32", "A");
        see(market_of(at), (struct shape){.mem = 30, .cards = 1, .cpu = 2000}, 40);
        see(market_of(at), (struct shape){.mem = 100, .cards = 2, .cpu = 2000}, 10);
        ck_assert(market_begin(market_of(at), &at->cache.nodes));
    }
    while (market_step(market_of(&r))) {
    }
    for (int i = 0; market_step(market_of(&other)); i++) {
        if (i < 3000)
            see(market_of(&other), (struct shape){.mem = 1 + i % 100, .cards = 1, .cpu = i}, 1);
        if (i == 20)
            node_gone(&other, "n3");
        if (i == 30)
            add_node(&other, "late", 77, 3, "4", "C");
    }
    ck_assert_mem_eq(market_of(&r)->owned, market_of(&other)->owned, sizeof(struct market_values));
    ck_assert_mem_eq(market_of(&r)->rates, market_of(&other)->rates, sizeof(market_of(&r)->rates));
    /* The kind that came meanwhile has no values yet. */
    ck_assert_uint_eq(market_of(&other)->n_kinds, 2);
    ck_assert_ptr_null(market_of(&other)->kinds[1].values);
    ck_assert_int_eq(market_value(market_of(&other), node_of(&other, "late")),
                     (int64_t)market_of(&other)->rates[0] * 4);
    rig_done(&other);
}

/* Pods that come until the prices are old, after so many were seen. */
static uint64_t arrivals_until_due(struct rig *at, int seen)
{
    struct market *m = market_of(at);
    struct shape x = {.mem = 50, .cards = 1};
    see(m, x, seen);
    solve(at);
    uint64_t before = m->shapes.arrivals;
    while (!market_is_due(m))
        see(m, x, 1);
    return m->shapes.arrivals - before;
}

static void add_unusable(struct rig *at, const char *name, uint32_t cards)
{
    static char bytes[8192];
    struct buf b = BUF_ON(bytes);
    for (uint32_t i = 0; i < cards; i++)
        buf_printf(&b, "%s%u", i == 0 ? "" : ",", i);
    add_node(at, name, 100, cards, "8", "A");
    health_set(at, name, buf_cstr(&b));
}

/* An eighth of the pods that were seen, but at most a sixteenth of those that fit, and at least a
 * number that grows from 4 to 16 with the cluster. */
TEST(prices_grow_old_with_the_cluster)
{
    struct rig large;
    rig_init(&large);
    ck_assert(!market_is_due(market_of(&r)));
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1}, 31);
    ck_assert(!market_is_due(market_of(&r)));
    see(market_of(&r), (struct shape){.mem = 50, .cards = 1}, 1);
    ck_assert(market_is_due(market_of(&r)));
    shapes_done(&market_of(&r)->shapes);
    add_node(&r, "n", 100, 4, "8", "A");
    ck_assert_uint_eq(arrivals_until_due(&r, 5000), 4);
    add_unusable(&r, "full", 636);
    ck_assert_uint_eq(arrivals_until_due(&r, 5000), 10);
    add_unusable(&r, "fuller", 1000);
    ck_assert_uint_eq(arrivals_until_due(&r, 5000), 16);
    add_nodes(&large, 'n', 100, 100, 8, "96", "A");
    ck_assert_uint_eq(arrivals_until_due(&large, 400), 50);
    ck_assert_uint_eq(arrivals_until_due(&large, 5000), 100);
    add_nodes(&large, 'm', 900, 100, 8, "96", "A");
    ck_assert_uint_eq(arrivals_until_due(&large, 5000), 200);
    rig_done(&large);
}

/* ---- nothing to learn, and no memory ---- */

TEST(nothing_to_learn)
{
    struct market *m = market_of(&r);
    ck_assert(!market_begin(m, &r.cache.nodes));
    see(m, (struct shape){.mem = 10, .cards = 1}, 10);
    ck_assert(!market_begin(m, &r.cache.nodes)); /* no cards */
    add_node(&r, "n", 100, 2, "8", "A");
    shapes_done(&m->shapes);
    see(m, (struct shape){.cpu = 1000}, 10);
    ck_assert(!market_begin(m, &r.cache.nodes)); /* no pod that asks for cards */
    see(m, (struct shape){.mem = 101, .cards = 1}, 10);
    ck_assert(!market_begin(m, &r.cache.nodes)); /* it fits on no card */
    see(m, (struct shape){.mem = 100, .cards = 1}, 10);
    solve(&r);
}

/* A cluster that is full has nothing to sell. The prices stay numbers. */
TEST(nothing_is_idle)
{
    add_node(&r, "n", 100, 1, "8", "A");
    pod_set(&r, .uid = "p", .mem = "100", .node = "n", .idx = "0", .phase = "Running");
    solve(&r);
    check_values(market_of(&r));
}

struct prices {
    double shape;
    double core;
    uint64_t solved;
    int64_t value;
};

static struct prices prices_now(void)
{
    const struct market *m = market_of(&r);
    return (struct prices){.shape = m->shapes.all[0].price,
                           .core = m->core_price,
                           .solved = m->solved,
                           .value = market_value(m, node_of(&r, "n0"))};
}

static enum errc solve_or_fail(void *ctx)
{
    struct market *m = market_of(&r);
    struct prices before = prices_now();
    (void)ctx;
    if (market_begin(m, &r.cache.nodes)) {
        while (market_step(m)) {
        }
    }
    ck_assert_ptr_null(m->solve);
    if (m->solved > before.solved)
        return OK;
    struct prices after = prices_now();
    ck_assert_mem_eq(&before, &after, sizeof(before));
    return ERR_NOMEM;
}

TEST(without_memory_the_old_prices_stay)
{
    add_nodes(&r, 'n', 10, 100, 4, "32", "A");
    see(market_of(&r), (struct shape){.mem = 30, .cards = 1, .cpu = 2000}, 40);
    solve(&r);
    see(market_of(&r), (struct shape){.mem = 80, .cards = 1, .cpu = 2000}, 40);
    ck_assert_uint_eq(fail_alloc_each(solve_or_fail, NULL), 11);
}

int main(void)
{
    TCase *tc = unit_case("market_solve");
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
