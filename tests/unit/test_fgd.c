/*
 * fgd against the paper's definition ("Beware of Fragmentation", sections 3 and 4), written again
 * for nodes in thousandths of a card.
 */
#include "core/policy/fgd.h"

#include "fail_alloc.h"
#include "market_rig.h"

#include <math.h>

enum {
    CARDS = 4,
    NODES = 3
};

static struct rig r;

static void set_up(void)
{
    rig_init(&r);
}

static void tear_down(void)
{
    rig_done(&r);
}

static struct fgd *fgd_of(void)
{
    return &r.cache.learned.fgd;
}

/* ---- the paper ---- */

/* A task: cores, cards, thousandths of each, and the models that it may use. */
struct task {
    int64_t cpu;
    uint32_t cards;
    int64_t milli;
    const char *model; /* NULL: any */
    int popularity;
    double probability;
};

struct machine {
    int64_t cpu;
    const char *model;
    uint32_t n;
    int64_t milli[CARDS]; /* idle on each card */
};

/* The most popular tasks until they are 95 % of all. Among equals those that came first. */
static uint32_t find_typical(struct task *tasks, uint32_t n, struct task *ret)
{
    int all = 0;
    int sum = 0;
    uint32_t count = 0;
    bool taken[16] = {false};
    ck_assert_uint_le(n, COUNT_OF(taken));
    for (uint32_t i = 0; i < n; i++)
        all += tasks[i].popularity;
    while (sum < 0.95 * all) {
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++) {
            if (!taken[i] && (best == n || tasks[i].popularity > tasks[best].popularity))
                best = i;
        }
        taken[best] = true;
        ret[count++] = tasks[best];
        sum += tasks[best].popularity;
    }
    for (uint32_t i = 0; i < count; i++)
        ret[i].probability = (double)ret[i].popularity / sum;
    return count;
}

/* F_n(m): thousandths of idle cards that task m cannot use on the machine. */
static int64_t fragment_of(const struct machine *n, const struct task *m)
{
    int64_t idle = 0;
    int64_t too_small = 0;
    uint32_t fit = 0;
    bool model_fits = m->model == NULL || (n->model != NULL && strcmp(n->model, m->model) == 0);
    for (uint32_t i = 0; i < n->n; i++) {
        idle += n->milli[i];
        if (n->milli[i] >= m->milli && m->milli > 0)
            fit++;
        else
            too_small += n->milli[i];
    }
    if (m->cards == 0 || m->cpu > n->cpu || !model_fits || fit < m->cards)
        return idle;
    return too_small;
}

static double fragmentation(const struct machine *n, const struct task *typical, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += typical[i].probability * (double)fragment_of(n, &typical[i]);
    return sum;
}

/* The score with the task on the first of these cards. Exact to a rounding error of the sums. */
static double score_with(const struct machine *n, const struct task *typical, uint32_t count,
                         const struct task *m, const uint32_t *cards)
{
    struct machine after = *n;
    after.cpu = MAX_OF(after.cpu - m->cpu, (int64_t)0);
    for (uint32_t i = 0; i < m->cards; i++)
        after.milli[cards[i]] -= m->milli;
    double gain = fragmentation(n, typical, count) - fragmentation(&after, typical, count);
    return 100 / (1 + exp(-gain / 1000));
}

/* A share of one card tries each card; others take the first that have room. */
static double paper_score(const struct machine *n, const struct task *typical, uint32_t count,
                          const struct task *m, uint32_t *ret_card)
{
    uint32_t first[CARDS];
    uint32_t found = 0;
    double best = -1;
    for (uint32_t i = 0; i < n->n; i++) {
        if (n->milli[i] < m->milli)
            continue;
        first[found++] = i;
        double score = m->cards == 1 ? score_with(n, typical, count, m, &i) : 0;
        if (m->cards == 1 && floor(score) > floor(best)) {
            best = score;
            *ret_card = i;
        }
    }
    if (m->cards > 1 && found >= m->cards) {
        best = score_with(n, typical, count, m, first);
        *ret_card = first[0];
    }
    return best;
}

/* ---- both ---- */

static const char *const models[] = {"A", "B", NULL};

static struct shape shape_of_task(const struct task *m)
{
    return (struct shape){
        .cpu = m->cpu, .cards = m->cards, .mem = m->milli / 10, .models = str_of(m->model)};
}

static struct task some_task(uint64_t *random)
{
    static const int64_t cores[] = {0, 1000, 4000, 8000};
    struct task m = {.cpu = cores[seeded_draw(random, 4)],
                     .milli = 10 * (1 + (int64_t)seeded_draw(random, 100)),
                     .cards = 1,
                     .popularity = 1 + (int)seeded_draw(random, 40)};
    if (seeded_draw(random, 4) == 0) {
        m.cards = seeded_draw(random, 4);
        m.milli = m.cards == 0 ? 0 : 1000;
    }
    if (m.cards > 0 && seeded_draw(random, 4) == 0)
        m.model = "A";
    return m;
}

static void make_machine(uint64_t *random, const char *name, struct machine *ret)
{
    static const int64_t cores[] = {2, 8, 32};
    char cpu[NAME_BYTES];
    *ret = (struct machine){.cpu = cores[seeded_draw(random, 3)],
                            .model = models[seeded_draw(random, 3)],
                            .n = 1 + seeded_draw(random, CARDS)};
    (void)snprintf(cpu, sizeof(cpu), "%lld", (long long)ret->cpu);
    ret->cpu *= 1000;
    add_node(&r, name, 100, ret->n, cpu, ret->model);
    for (uint32_t i = 0; i < ret->n; i++) {
        char uid[NAME_BYTES];
        char mem[NAME_BYTES];
        char idx[NAME_BYTES];
        uint32_t used = seeded_draw(random, 2) == 0 ? 0 : 1 + seeded_draw(random, 100);
        ret->milli[i] = 1000 - 10 * (int64_t)used;
        (void)snprintf(uid, sizeof(uid), "%s-%u", name, i);
        (void)snprintf(mem, sizeof(mem), "%u", used);
        (void)snprintf(idx, sizeof(idx), "%u", i);
        if (used > 0)
            pod_set(&r, .uid = uid, .mem = mem, .node = name, .idx = idx, .phase = "Running");
    }
}

static void check_score(const struct machine *n, const char *name, const struct task *typical,
                        uint32_t count, const struct task *m, int seed)
{
    uint32_t card = 0;
    int64_t order[LIMIT_CARDS];
    struct market_ask ask;
    struct request q;
    struct evaluation evaluation = wants(&r, m->milli / 10, m->cards, m->cpu, &q);
    q.models = str_of(m->model);
    bool allowed = m->model == NULL || (n->model != NULL && strcmp(m->model, n->model) == 0);
    double expected = paper_score(n, typical, count, m, &card);
    if (!allowed || expected < 0 || fabs(expected - round(expected)) < 1e-7)
        return; /* the whole part of the exact number is that of either neighbour */
    market_ask(market_of(&r), &evaluation, &ask);
    ck_assert_msg(fgd_score(fgd_of(), &ask, node_of(&r, name)) == (uint32_t)expected,
                  "seed %d: %u, not %g", seed, fgd_score(fgd_of(), &ask, node_of(&r, name)),
                  expected);
    fgd_order(fgd_of(), &ask, node_of(&r, name), order);
    uint32_t best = 0;
    for (uint32_t i = 0; i < n->n; i++) {
        ck_assert((order[i] == MARKET_NO_COST) == (n->milli[i] < m->milli));
        best = order[i] < order[best] ? i : best;
    }
    ck_assert_msg(best == card, "seed %d: card %u, not %u", seed, best, card);
}

TEST_EACH(agrees_with_the_paper, 60)
{
    static const char *const names[NODES] = {"n0", "n1", "n2"};
    uint64_t random = (uint64_t)_i;
    struct machine machines[NODES];
    struct task tasks[12];
    struct task typical[COUNT_OF(tasks)];
    for (int i = 0; i < NODES; i++)
        make_machine(&random, names[i], &machines[i]);
    shapes_done(&market_of(&r)->shapes);
    for (uint32_t i = 0; i < COUNT_OF(tasks); i++) {
        tasks[i] = some_task(&random);
        tasks[i].cpu += i; /* each is another shape */
        see(market_of(&r), shape_of_task(&tasks[i]), tasks[i].popularity);
    }
    /* Without decay, which the paper does not have. */
    for (uint32_t i = 0; i < COUNT_OF(tasks); i++)
        market_of(&r)->shapes.all[i].weight = tasks[i].popularity;
    market_of(&r)->shapes.sum = 0;
    for (uint32_t i = 0; i < COUNT_OF(tasks); i++)
        market_of(&r)->shapes.sum += tasks[i].popularity;
    fgd_learn(fgd_of(), market_of(&r));
    uint32_t count = find_typical(tasks, COUNT_OF(tasks), typical);
    ck_assert_uint_eq(fgd_of()->n, count);
    for (int i = 0; i < NODES; i++) {
        const struct node *n = node_of(&r, names[i]);
        ck_assert_double_eq_tol(fgd_waste(fgd_of(), n),
                                fragmentation(&machines[i], typical, count) / 1000, 1e-9);
        for (int k = 0; k < 20; k++) {
            struct task m = some_task(&random);
            if (m.cards > 0)
                check_score(&machines[i], names[i], typical, count, &m, _i);
        }
    }
}

TEST(without_expected_pods)
{
    struct market_ask ask;
    add_node(&r, "n", 100, 2, "8", "A");
    fgd_learn(fgd_of(), market_of(&r));
    ck_assert_uint_eq(fgd_of()->n, 0);
    ck_assert(fgd_waste(fgd_of(), node_of(&r, "n")) == 0);
    struct request q;
    struct evaluation evaluation = wants(&r, 30, 1, 0, &q);
    market_ask(market_of(&r), &evaluation, &ask);
    ck_assert_uint_eq(fgd_score(fgd_of(), &ask, node_of(&r, "n")), 50);
}

/* A node that cannot take the pod at all. */
TEST(no_card_has_room)
{
    struct market_ask ask;
    int64_t order[LIMIT_CARDS];
    add_node(&r, "n", 100, 1, "8", "A");
    pod_set(&r, .uid = "a", .mem = "80", .node = "n", .idx = "0");
    fgd_learn(fgd_of(), market_of(&r));
    struct request q;
    struct evaluation evaluation = wants(&r, 30, 1, 0, &q);
    market_ask(market_of(&r), &evaluation, &ask);
    fgd_order(fgd_of(), &ask, node_of(&r, "n"), order);
    ck_assert(order[0] == MARKET_NO_COST);
    ck_assert_uint_eq(fgd_score(fgd_of(), &ask, node_of(&r, "n")), 0);
}

static enum errc learn_or_fail(void *ctx)
{
    struct fgd_shape *before = fgd_of()->all;
    (void)ctx;
    fgd_learn(fgd_of(), market_of(&r));
    ck_assert_uint_eq(fgd_of()->n, 1);
    return fgd_of()->all == before ? ERR_NOMEM : OK;
}

TEST(without_memory_the_old_ones_stay)
{
    add_node(&r, "n", 100, 1, "8", "A");
    see(market_of(&r), (struct shape){.mem = 30, .cards = 1}, 20);
    fgd_learn(fgd_of(), market_of(&r));
    ck_assert_uint_eq(fail_alloc_each(learn_or_fail, NULL), 1);
}

int main(void)
{
    TCase *tc = unit_case("fgd");
    tcase_set_timeout(tc, 0);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
