/* Runs of the simulator whose figures are computed by hand, and what holds for any run. */
#include "fail_alloc.h"
#include "sim_data.h"

#include "sim/bestfit.h"
#include "sim/churn.h"
#include "sim/replay.h"

struct run {
    struct arena arena;
    struct sim_workload workload;
    struct sim_policy policy;
    struct replay_settings settings;
    struct replay_result result;
};

static void run_open(struct run *r, const char *nodes, const char *pods, const char *policy)
{
    sim_data_read(&r->arena, nodes, pods, &r->workload);
    r->policy = sim_data_policy(policy);
    r->settings = (struct replay_settings){
        .world = {.workload = &r->workload, .policy = &r->policy, .seed = 1, .checked = true},
        .fill = 200};
}

static void run_replay(struct run *r)
{
    struct err e = ERR_INIT;
    ck_assert_ok(replay_run(&r->settings, &r->result, &e), &e);
}

#define ck_assert_near(a, b) ck_assert_double_eq_tol((a), (b), 1e-9)

/* Two cards. A half card, then both cards, which do not fit any more, then one card. */
TEST(has_the_figures_of_each_arrival)
{
    struct run r;
    run_open(&r, NODE_HEADS "n,64000,1024,2,T4\n",
             POD_HEADS "a,1,1,1,500,\nb,1,1,2,1000,\nc,1,1,1,1000,\n", "binpack");
    r.settings.in_order = r.settings.once = true;
    run_replay(&r);
    ck_assert_uint_eq(r.result.n_series, 201);
    for (uint32_t i = 0; i <= 200; i++) {
        double is = r.result.series[i];
        ck_assert_near(is, i == 25 ? 25 : i == 125 ? 25 : i == 175 ? 75 : -1);
    }
    ck_assert_uint_eq(r.result.arrived, 3);
    ck_assert_uint_eq(r.result.rejected, 1);
    ck_assert_near(r.result.arrived_percent, 175);
    ck_assert_near(r.result.allocated_percent, 75);
    ck_assert_near(r.result.broken_percent, 25); /* half of the first card */
    arena_done(&r.arena);
}

/* Each pod is 0.2 %: 0.2 and 0.4 round to 0; 0.6 to 1.4 round to 1, and their mean is 1. */
TEST(means_all_arrivals_that_round_to_a_percent)
{
    struct run r;
    run_open(&r, NODE_HEADS "n,64000,1024,10,T4\n", POD_HEADS "a,1,1,1,20,\n", "binpack");
    r.settings.fill = 2;
    run_replay(&r);
    ck_assert_near(r.result.series[0], 0.3);
    ck_assert_near(r.result.series[1], 1.0);
    ck_assert_near(r.result.series[2], 1.8); /* 1.6, 1.8 and 2.0 */
    ck_assert_uint_eq(r.result.arrived, 10);
    arena_done(&r.arena);
}

/* Copies follow until the next one would pass the sum; for it a pod counts with one card. */
TEST(copies_pods_up_to_the_wanted_part)
{
    struct run r;
    run_open(&r, NODE_HEADS "n,64000,1024,4,T4\n", POD_HEADS "a,1,1,2,1000,\n", "binpack");
    r.settings.fill = 100;
    run_replay(&r);
    ck_assert_uint_eq(r.result.arrived, 4);
    ck_assert_uint_eq(r.result.rejected, 2);
    ck_assert_near(r.result.arrived_percent, 200);
    ck_assert_near(r.result.allocated_percent, 100);
    arena_done(&r.arena);
}

TEST(leaves_out_pods_above_it)
{
    struct run r;
    run_open(&r, NODE_HEADS "n,64000,1024,4,T4\n",
             POD_HEADS
             "a,1,1,1,1000,\nb,1,1,1,1000,\nc,1,1,1,1000,\nd,1,1,1,1000,\ne,1,1,1,1000,\n",
             "binpack");
    r.settings.fill = 75;
    run_replay(&r);
    ck_assert_uint_eq(r.result.arrived, 3);
    arena_done(&r.arena);
}

/* One node has the cores, the other the model: each reason to refuse a pod. */
TEST(respects_cpu_memory_and_models)
{
    struct run r;
    run_open(&r, NODE_HEADS "few,1000,64,8,T4\nmany,64000,4096,8,G2\nbare,64000,4096,0,\n",
             POD_HEADS "cpu,2000,1,1,1000,T4\n"   /* the T4 has one core */
                       "memory,1,128,1,1000,T4\n" /* and 64 MiB */
                       "good,1000,64,1,1000,T4|G3\n"
                       "late,1,1,1,1000,T4\n" /* all cores are taken */
                       "other,60000,1,0,0,\n" /* without a card: two nodes have room */
                       "other2,60000,1,0,0,\n"
                       "other3,60000,1,0,0,\n",
             "binpack");
    r.settings.in_order = r.settings.once = true;
    run_replay(&r);
    ck_assert_uint_eq(r.result.arrived, 7);
    ck_assert_uint_eq(r.result.rejected, 4);
    ck_assert_near(r.result.allocated_percent, 100.0 / 16);
    arena_done(&r.arena);
}

static void random_trace(struct buf *nodes, struct buf *pods, unsigned n_nodes, unsigned n_pods)
{
    struct rng rng;
    rng_init(&rng, 99, RNG_ARRIVALS);
    buf_put(nodes, STR(NODE_HEADS));
    buf_put(pods, STR(POD_HEADS));
    for (unsigned i = 0; i < n_nodes; i++)
        buf_printf(nodes, "n%u,%u,65536,%u,%s\n", i, 16000 + 8000 * rng_below(&rng, 8),
                   rng_below(&rng, 9), rng_below(&rng, 2) == 0 ? "T4" : "G2");
    for (unsigned i = 0; i < n_pods; i++) {
        unsigned cards = rng_below(&rng, 5) == 0 ? 1 + rng_below(&rng, 4) : rng_below(&rng, 2);
        unsigned milli = cards > 1 ? 1000 : 50 * (1 + rng_below(&rng, 20));
        buf_printf(pods, "p%u,%u,%u,%u,%u,%s\n", i, 500 * rng_below(&rng, 16),
                   256 * rng_below(&rng, 16), cards, milli,
                   rng_below(&rng, 3) > 0    ? ""
                   : rng_below(&rng, 2) == 0 ? "T4"
                                             : "G2|T4");
    }
}

static void run_open_random(struct run *r, unsigned n_nodes, unsigned n_pods, const char *policy)
{
    struct buf nodes;
    struct buf pods;
    buf_init(&nodes, MIB);
    buf_init(&pods, MIB);
    random_trace(&nodes, &pods, n_nodes, n_pods);
    run_open(r, buf_cstr(&nodes), buf_cstr(&pods), policy);
    buf_done(&nodes);
    buf_done(&pods);
}

static const char *const policies[] = {"binpack", "spread", "bestfit"};

/* Pods arrive and leave at random, with every invariant checked after each event: what is allocated
 * is the sum of the pods that run, and in the end nothing. */
TEST_EACH(keeps_count_of_what_runs, COUNT_OF(policies))
{
    struct run r;
    struct world w;
    struct rng rng;
    struct err e = ERR_INIT;
    struct world_pod running[64];
    size_t n = 0;
    int64_t sum = 0;
    unsigned placed_pods = 0;
    run_open_random(&r, 6, 60, policies[_i]);
    r.settings.world.ties = SIM_TIES_POD;
    rng_init(&rng, 5, RNG_ARRIVALS);
    ck_assert_ok(world_init(&w, &r.settings.world, &e), &e);
    ck_assert_int_eq(w.capacity, r.workload.capacity);
    for (int i = 0; i < 1500; i++) {
        bool placed = false;
        if (n == COUNT_OF(running) || (n > 0 && rng_below(&rng, 3) == 0)) {
            size_t at = rng_below(&rng, (uint32_t)n);
            sum -= r.workload.shapes[running[at].shape].mem;
            ck_assert_ok(world_leave(&w, &running[at], &e), &e);
            running[at] = running[--n];
        } else {
            uint32_t shape = r.workload.pods[rng_below(&rng, r.workload.n_pods)];
            ck_assert_ok(world_arrive(&w, shape, &placed, &running[n], &e), &e);
            sum += placed ? r.workload.shapes[shape].mem : 0;
            n += placed ? 1 : 0;
            placed_pods += placed ? 1 : 0;
        }
        ck_assert_int_eq(w.allocated, sum);
        ck_assert_uint_eq(w.cache.n_pending, 0);
    }
    ck_assert_uint_gt(placed_pods, 500);
    while (n > 0)
        ck_assert_ok(world_leave(&w, &running[--n], &e), &e);
    ck_assert_int_eq(w.allocated, 0);
    ck_assert_int_eq(world_broken(&w), 0);
    for (uint32_t i = 0; i < w.n_places; i++)
        ck_assert(host_is_zero(w.places[i].node->host_used));
    world_done(&w);
    arena_done(&r.arena);
}

/* What is remembered of a node is what an evaluation says: without the memos the run is the same.
 */
TEST_EACH(is_the_same_without_memos, COUNT_OF(policies))
{
    struct run r;
    struct world a;
    struct world b;
    struct err e = ERR_INIT;
    run_open_random(&r, 12, 80, policies[_i]);
    r.settings.world.checked = false;
    ck_assert_ok(world_init(&a, &r.settings.world, &e), &e);
    ck_assert_ok(world_init(&b, &r.settings.world, &e), &e);
    struct world_memo *memos = b.memos;
    b.memos = NULL;
    for (uint32_t i = 0; i < 2 * r.workload.n_pods; i++) {
        struct world_pod x;
        struct world_pod y;
        bool placed_x = false;
        bool placed_y = false;
        uint32_t shape = r.workload.pods[i % r.workload.n_pods];
        ck_assert_ok(world_arrive(&a, shape, &placed_x, &x, &e), &e);
        ck_assert_ok(world_arrive(&b, shape, &placed_y, &y, &e), &e);
        ck_assert(placed_x == placed_y && x.place == y.place);
    }
    b.memos = memos;
    world_done(&a);
    world_done(&b);
    arena_done(&r.arena);
}

TEST(repeats_by_seed)
{
    struct run r;
    run_open_random(&r, 12, 80, "binpack");
    r.settings.world.checked = false;
    run_replay(&r);
    struct replay_result first = r.result;
    run_replay(&r);
    ck_assert_mem_eq(&first, &r.result, sizeof(first));
    r.settings.world.seed = 2;
    run_replay(&r);
    ck_assert_mem_ne(&first, &r.result, sizeof(first));
    arena_done(&r.arena);
}

static void run_in_order(struct run *r, uint64_t seed, struct buf *places)
{
    buf_clear(places, SIZE_MAX);
    r->settings.in_order = r->settings.once = true;
    r->settings.world.ties = SIM_TIES_NAME;
    r->settings.world.checked = false;
    r->settings.world.seed = seed;
    r->settings.places = places;
    run_replay(r);
}

/* The first pods of the workload arrive, of which some have learned prices. */
static void run_some(struct run *r, struct world *w, uint64_t seed)
{
    struct err e = ERR_INIT;
    r->settings.world.ties = SIM_TIES_NAME;
    r->settings.world.checked = false;
    r->settings.world.seed = seed;
    ck_assert_ok(world_init(w, &r->settings.world, &e), &e);
    for (uint32_t i = 0; i < 100; i++) {
        bool placed;
        struct world_pod pod;
        ck_assert_ok(world_arrive(w, r->workload.pods[i], &placed, &pod, &e), &e);
    }
}

/* The seed is that of the cache's maps, too; in the daemon it is drawn when the process starts.
 * Last digits that differ become other places some pods later. */
TEST(prices_do_not_depend_on_the_order_of_a_map)
{
    struct run r;
    struct world a;
    run_open_random(&r, 40, 100, "bid-price");
    run_some(&r, &a, 1);
    const struct market *m = &a.cache.learned.market;
    ck_assert_uint_gt(m->solved, 3);
    for (uint64_t seed = 2; seed <= 4; seed++) {
        struct world b;
        run_some(&r, &b, seed);
        const struct market *n = &b.cache.learned.market;
        ck_assert_uint_eq(m->shapes.n, n->shapes.n);
        for (uint32_t i = 0; i < m->shapes.n; i++)
            ck_assert_double_eq(m->shapes.all[i].price, n->shapes.all[i].price);
        ck_assert_double_eq(m->core_price, n->core_price);
        world_done(&b);
    }
    world_done(&a);
    arena_done(&r.arena);
}

#define THREE_NODES NODE_HEADS "a,64000,1024,8,T4\nb,64000,1024,8,T4\nc,64000,1024,8,T4\n"

static const struct {
    const char *nodes;
    const char *pods;
} tiny[] = {
    {THREE_NODES, POD_HEADS "a,1000,1,1,300,\n"},
    {THREE_NODES, POD_HEADS "a,1000,1,8,1000,\n"},
    {THREE_NODES, POD_HEADS "a,20000,1,1,100,\n"}, /* nine of them have all cores */
    {THREE_NODES, POD_HEADS "a,2000,1,1,500,\nb,2000,1,1,300,\nc,4000,1,1,700,\n"},
    {THREE_NODES, POD_HEADS "a,2000,1,1,500,\nb,2000,1,1,250,\nc,4000,1,1,1000,\n"
                            "d,1000,1,1,125,\n"},
    {THREE_NODES, POD_HEADS "a,2000,1,1,300,\nb,2000,1,1,200,\nc,4000,1,1,500,\n"
                            "d,8000,1,4,1000,\n"},
    {NODE_HEADS "a,64000,1024,1,T4\n", POD_HEADS "a,1000,1,1,20,\n"},
};

static double mean_allocated(const char *nodes, const char *pods, const char *policy)
{
    struct run r;
    double sum = 0;
    run_open(&r, nodes, pods, policy);
    r.settings.fill = 130;
    for (r.settings.world.seed = 1; r.settings.world.seed <= 3; r.settings.world.seed++) {
        run_replay(&r);
        sum += r.result.allocated_percent;
    }
    arena_done(&r.arena);
    return sum / 3;
}

/* Where there is little to learn from, nothing is lost by learning. */
TEST_EACH(bid_price_on_tiny_clusters, COUNT_OF(tiny))
{
    double bid_price = mean_allocated(tiny[_i].nodes, tiny[_i].pods, "bid-price");
    double binpack = mean_allocated(tiny[_i].nodes, tiny[_i].pods, "binpack");
    double fgd = mean_allocated(tiny[_i].nodes, tiny[_i].pods, "fgd");
    ck_assert_msg(bid_price >= MAX_OF(binpack, fgd) - 0.3, "%g; binpack %g, fgd %g", bid_price,
                  binpack, fgd);
}

TEST(pods_arrive_in_the_order_of_the_file)
{
    struct run r;
    struct buf places;
    buf_init(&places, MIB);
    run_open(&r, NODE_HEADS "m,9000,9000,1,T4\nn,9000,9000,1,T4\n",
             POD_HEADS "c,1,1,1,600,\na,1,1,1,700,\nb,1,1,1,400,\nd,1,1,1,500,\n", "binpack");
    run_in_order(&r, 1, &places);
    ck_assert_str_eq(buf_cstr(&places), "binpack,1,m\nbinpack,2,n\nbinpack,3,m\nbinpack,4,\n");
    buf_done(&places);
    arena_done(&r.arena);
}

/* ---- churn ---- */

static struct churn_result run_churn(struct run *r, double load)
{
    struct churn_result result;
    struct err e = ERR_INIT;
    struct churn_settings s = {.world = r->settings.world, .load = load};
    ck_assert_ok(churn_run(&s, &result, &e), &e);
    return result;
}

/* Pods of a tenth of a card on 40 cards: a loss system with 400 places, whose share of lost pods is
 * Erlang's B. At 300 it is below 10^-8, at 400 it is 0.0387, at 800 it is 0.5023. */
TEST(churn_is_a_loss_system)
{
    struct run r;
    run_open(&r,
             NODE_HEADS "a,900000,999999,10,T4\nb,900000,999999,10,T4\nc,900000,999999,10,T4\n"
                        "d,900000,999999,10,T4\n",
             POD_HEADS "p,1,1,1,100,\n", "binpack");
    r.settings.world.checked = false;
    double sums[3] = {0};
    static const double loads[] = {0.75, 1.0, 2.0};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        r.settings.world.seed = seed;
        for (size_t i = 0; i < COUNT_OF(loads); i++) {
            struct churn_result result = run_churn(&r, loads[i]);
            sums[i] += result.rejected_percent;
            /* What is allocated is what was not rejected, but for the noise of one run. */
            double expected = 100 * loads[i] * (1 - result.rejected_percent / 100);
            ck_assert_double_eq_tol(result.allocated_percent, expected, 12);
        }
    }
    ck_assert_double_eq_tol(sums[0] / 8, 0.0, 0.01);
    ck_assert_double_eq_tol(sums[1] / 8, 3.87, 1.2);
    ck_assert_double_eq_tol(sums[2] / 8, 50.23, 1.0);
    arena_done(&r.arena);
}

TEST_EACH(churn_keeps_every_card_in_its_size, COUNT_OF(policies))
{
    struct run r;
    run_open_random(&r, 4, 40, policies[_i]);
    struct churn_result a = run_churn(&r, 1.2);
    struct churn_result b = run_churn(&r, 1.2);
    ck_assert_mem_eq(&a, &b, sizeof(a));
    ck_assert_uint_gt(a.rejected, 0);
    ck_assert(a.allocated_percent > 30 && a.allocated_percent <= 100);
    arena_done(&r.arena);
}

TEST(refuses_pods_without_cards)
{
    struct run r;
    struct err e = ERR_INIT;
    struct churn_result result;
    run_open(&r, NODE_HEADS "n,1,1,1,T4\n", POD_HEADS "p,1,1,0,0,\n", "binpack");
    struct churn_settings s = {.world = r.settings.world, .load = 1};
    ck_assert_int_eq(replay_run(&r.settings, &r.result, &e), ERR_RANGE);
    ck_assert_str_eq(e.text, "no pod asks for a card");
    ck_assert_int_eq(churn_run(&s, &result, &e), ERR_RANGE);
    arena_done(&r.arena);
}

/* ---- lack of memory ---- */

static enum errc replay_scenario(void *ctx)
{
    struct run *r = ctx;
    struct err e = ERR_INIT;
    return replay_run(&r->settings, &r->result, &e);
}

static enum errc churn_scenario(void *ctx)
{
    const struct run *r = ctx;
    struct err e = ERR_INIT;
    struct churn_result result;
    struct churn_settings s = {.world = r->settings.world, .load = 0.02};
    return churn_run(&s, &result, &e);
}

static enum errc trace_scenario(void *ctx)
{
    struct arena a;
    struct err e = ERR_INIT;
    struct sim_workload w = {.n_nodes = 0};
    (void)ctx;
    arena_init(&a, MIB);
    enum errc code = trace_read_nodes(STR("n"), STR(NODE_HEADS "n,1000,1,1,T4\n"), &a, &w, &e);
    if (code == OK)
        code = sim_workload_measure(&w, &e);
    if (code == OK)
        code =
            trace_read_pods(STR("p"), STR(POD_HEADS "a,1,1,1,500,T4\nb,1,1,1,1000,\n"), &a, &w, &e);
    arena_done(&a);
    return code;
}

TEST(says_that_memory_lacks)
{
    struct run r;
    /* No models: a shape with models that finds no memory is not learned, which is no error. */
    run_open(&r, NODE_HEADS "n,64000,1024,2,T4\n",
             POD_HEADS "a,1,1,1,500,\nb,1,1,2,1000,\nc,1,1,0,0,\n", "binpack");
    ck_assert_uint_gt(fail_alloc_each(trace_scenario, NULL), 3);
    ck_assert_uint_gt(fail_alloc_each(replay_scenario, &r), 10);
    ck_assert_uint_gt(fail_alloc_each(churn_scenario, &r), 10);
    arena_done(&r.arena);
}

/* ---- bestfit ---- */

TEST(bestfit_has_the_published_score)
{
    struct node n = {.total = 8000, .used = 2000};
    struct sim_shape s = {.mem = 1000, .request = {.host = {.cpu = 8000}}};
    /* 100 x (1 - 0.5 x 56/128 - 0.5 x 5/8) = 46.875 */
    ck_assert_uint_eq(bestfit_score(&n, (struct host){.cpu = 64000}, &s) -
                          bestfit_score(&n, (struct host){.cpu = 128000}, &s),
                      46 - 21);
    struct node full = {.total = 1000, .used = 0};
    ck_assert_uint_eq(bestfit_score(&full, (struct host){.cpu = 8000}, &s) -
                          bestfit_score(&n, (struct host){.cpu = 64000}, &s),
                      100 - 46);
    struct node huge = {.total = INT64_C(1) << 40, .used = 0};
    ck_assert_uint_ne(bestfit_score(&huge, (struct host){.cpu = HOST_CPU_MAX}, &s), SCORE_NONE);
}

int main(void)
{
    TCase *t = unit_case("replay");
    tcase_set_timeout(t, 0);
    return unit_run();
}
