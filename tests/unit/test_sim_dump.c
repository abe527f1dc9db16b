/* Clusters in what kubectl prints: which pods are read, and what fit and grow answer about them. */
#include "sim_data.h"

#include "sim/dump.h"
#include "sim/replay.h"
#include "sim/sim_fit.h"

#define NODE(name, cards, mem)                                                           \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\"},\"status\":{\"capacity\":{" \
    "\"aliyun.com/gpu-mem\":\"" mem "\",\"aliyun.com/gpu-count\":\"" cards "\"},"        \
    "\"allocatable\":{\"cpu\":\"8\",\"memory\":\"64Gi\",\"aliyun.com/gpu-mem\":\"" mem "\"}}}"

/* more: further members of the metadata, each with a comma before it. */
#define POD(name, created, more, spec, phase, limits)                                            \
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"uid\":\"" name "\",\"name\":\"" name \
    "\",\"creationTimestamp\":\"2026-11-2" created "T00:00:00Z\"" more "},\"spec\":{" spec       \
    "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{" limits                         \
    "}}}]},\"status\":{\"phase\":\"" phase "\"}}"

#define ON(node)    "\"nodeName\":\"" node "\","
#define MEM(n)      "\"aliyun.com/gpu-mem\":\"" n "\""
#define CARD(index) ",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"" index "\"}"

/* Two nodes with two cards of 16. "late" came first into the list; "b" holds card 1; "cpu" asks for
 * no card; "done" has ended; "bad" can't be read. */
static const char cluster[] =
    "{\"kind\":\"List\",\"items\":[" NODE("n2", "2", "32") "," NODE("n1", "2", "32") "," POD("late", "5", "", "", "Pending", MEM("16")) "," POD(
        "b", "2", CARD("1"), ON("n1"), "Running",
        MEM("10")) "," POD("a", "2", CARD("0"), ON("n1"), "Running",
                           MEM("6") ",\"cpu\":\"2\"") "," POD("cpu", "1", "", ON("n1"), "Running",
                                                              "\"cpu\":\"3\"") "," POD("done", "1",
                                                                                       CARD("0"),
                                                                                       ON("n1"),
                                                                                       "Succeeded",
                                                                                       MEM("16")) "," POD("bad",
                                                                                                          "1",
                                                                                                          "",
                                                                                                          "",
                                                                                                          "Pending",
                                                                                                          MEM("1.5")) "," POD("lost",
                                                                                                                              "3",
                                                                                                                              CARD(
                                                                                                                                  "0"),
                                                                                                                              ON("gone"),
                                                                                                                              "Running",
                                                                                                                              MEM("1")) ","
                                                                                                                                        "{\"kind\":\"ConfigMap\"}]}";

static enum errc read_text(const char *text, struct arena *a, struct sim_workload *ret,
                           struct err *e)
{
    arena_init(a, 64 * MIB);
    enum errc code = dump_read(STR("c.json"), str_of(text), a, ret, e);
    return code == OK ? sim_workload_measure(ret, e) : code;
}

TEST(reads_a_cluster)
{
    struct arena a;
    struct sim_workload w;
    struct err e = ERR_INIT;
    ck_assert_ok(read_text(cluster, &a, &w, &e), &e);
    ck_assert_uint_eq(w.n_nodes, 2);
    ck_assert_int_eq(w.capacity, 64);
    ck_assert_uint_eq(w.n_pods, 4); /* a, b, lost, late */
    static const int64_t mems[] = {6, 10, 1, 16};
    for (size_t i = 0; i < COUNT_OF(mems); i++)
        ck_assert_int_eq(w.shapes[w.pods[i]].mem, mems[i]);
    ck_assert_uint_eq(w.n_pending, 1);
    ck_assert_int_eq(w.shapes[w.pending[0]].mem, 16);
    ck_assert_uint_eq(w.n_held, 4); /* b, a, cpu, lost */
    ck_assert_uint_eq(w.held[0].node, 1);
    ck_assert_str_is(w.held[0].place.idx, "1");
    ck_assert_uint_eq(w.held[3].node, UINT32_MAX);
    ck_assert_uint_eq(w.n_unread, 1);
    ck_assert_str_eq(w.unread.text, "ns/bad: container \"c\": aliyun.com/gpu-mem: \"1.5\" is not a "
                                    "whole number");
    arena_done(&a);
}

/* What is on a node stays there, whatever else is wrong with its pod. */
TEST(keeps_a_bound_pod_that_is_not_valid)
{
    struct arena a;
    struct sim_workload w;
    struct err e = ERR_INIT;
    ck_assert_ok(
        read_text("{\"kind\":\"List\",\"items\":[" NODE("n", "1", "16") "," POD(
                      "odd", "1", CARD("0") ",\"labels\":{\"aliyun.com/gpu-count\":\"two\"}",
                      ON("n"), "Running", MEM("6")) "]}",
                  &a, &w, &e),
        &e);
    ck_assert_uint_eq(w.n_unread, 1);
    ck_assert_str_eq(w.unread.text,
                     "ns/odd: label aliyun.com/gpu-count: \"two\" must be a number of cards, 1 to "
                     "64; it keeps what can be read of its node");
    ck_assert_uint_eq(w.n_pods, 0);
    ck_assert_uint_eq(w.n_held, 1);
    ck_assert_int_eq(w.shapes[w.held[0].shape].mem, 6);
    ck_assert_uint_eq(w.held[0].node, 0);
    arena_done(&a);
}

TEST(reads_yaml)
{
    struct arena a;
    struct sim_workload w;
    struct err e = ERR_INIT;
    ck_assert_ok(read_text("kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n  status:\n"
                           "    capacity: {aliyun.com/gpu-mem: 16, aliyun.com/gpu-count: 1}\n"
                           "    allocatable: {aliyun.com/gpu-mem: 16}\n",
                           &a, &w, &e),
                 &e);
    ck_assert_uint_eq(w.n_nodes, 1);
    ck_assert_uint_eq(w.n_pods, 0);
    arena_done(&a);
}

/* The pods are on their cards, and the one without a card keeps its cores. */
TEST(holds_the_pods_that_are_there)
{
    struct arena a;
    struct sim_workload w;
    struct world world;
    struct err e = ERR_INIT;
    struct sim_policy policy = sim_data_policy("binpack");
    struct world_settings s = {.workload = &w, .policy = &policy, .checked = true};

    static const struct {
        enum sim_held_pods held;
        int64_t allocated;
        int64_t cpu;
    } rows[] = {{SIM_HELD_NONE, 0, 0}, {SIM_HELD_OTHERS, 0, 3000}, {SIM_HELD_ALL, 16, 5000}};

    ck_assert_ok(read_text(cluster, &a, &w, &e), &e);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        s.held = rows[i].held;
        ck_assert_ok(world_init(&world, &s, &e), &e);
        const struct node *n = cache_node(&world.cache, STR("n1"));
        ck_assert_int_eq(world.allocated, rows[i].allocated);
        ck_assert_int_eq(n->host_used.cpu, rows[i].cpu);
        ck_assert_int_eq(n->cards[0].used, rows[i].held == SIM_HELD_ALL ? 6 : 0);
        ck_assert_int_eq(n->cards[1].used, rows[i].held == SIM_HELD_ALL ? 10 : 0);
        world_done(&world);
    }
    arena_done(&a);
}

/* A whole card, a percentage, and cards of another device plugin: the node has two of those. */
static const char kinds[] =
    "{\"kind\":\"List\",\"items\":["
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{\"capacity\":{"
    "\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":\"2\"},\"allocatable\":{"
    "\"aliyun.com/gpu-mem\":\"32\"}}},"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"x\"},\"status\":{\"capacity\":{"
    "\"nvidia.com/gpu\":\"2\"}}}," POD(
        "a", "1", ",\"labels\":{\"ack.gpushare.placement\":\"require-whole-device\"}", "",
        "Pending",
        MEM("1")) "," POD("b", "2", ",\"annotations\":{\"cardpack.io/gpu-mem-percent\":\"50\"}", "",
                          "Pending",
                          MEM("1")) "," POD("c", "3", "", "", "Pending",
                                            "\"nvidia.com/gpu\":\"2\"") "," POD("d", "4", "", "",
                                                                                "Pending",
                                                                                "\"nvidia.com/"
                                                                                "gpu\":\"1\"") "]}";

TEST(replays_every_kind_of_request)
{
    struct arena a;
    struct sim_workload w;
    struct err e = ERR_INIT;
    struct replay_result r;
    struct sim_policy policy = sim_data_policy("spread");
    ck_assert_ok(read_text(kinds, &a, &w, &e), &e);
    struct replay_settings s = {.world = {.workload = &w, .policy = &policy, .checked = true},
                                .fill = LIMIT_SIM_FILL,
                                .in_order = true,
                                .once = true};
    ck_assert_ok(replay_run(&s, &r, &e), &e);
    ck_assert_uint_eq(r.arrived, 4);
    ck_assert_uint_eq(r.rejected, 1); /* d: both cards of x are c's */
    ck_assert_double_eq_tol(r.arrived_percent, 75, 1e-9);
    ck_assert_double_eq_tol(r.allocated_percent, 75, 1e-9);
    ck_assert_double_eq_tol(r.broken_percent, 25, 1e-9);
    arena_done(&a);
}

static const struct {
    const char *text;
    const char *error;
} bad[] = {
    {"", "c.json: expected an object at offset 0"},
    {"{\"kind\":\"List\",\"items\":[]}", "c.json: it has no nodes"},
    {"{\"kind\":\"List\",\"items\":[" NODE("n", "1", "16") "," NODE("n", "1", "16") "]}",
     "c.json: two nodes are named \"n\""},
    {"{\"kind\":\"List\",\"items\":[{\"kind\":\"Node\",\"metadata\":{}}]}",
     "c.json: object 1: it has no metadata.name"},
    {"{\"kind\":\"List\",\"items\":[{\"kind\":\"Pod\",\"metadata\":[]}]}",
     "c.json: object 1: metadata: expected an object, got a list at offset 25"},
};

TEST_EACH(refuses_what_is_no_cluster, COUNT_OF(bad))
{
    struct arena a;
    struct sim_workload w;
    struct err e = ERR_INIT;
    ck_assert_int_ne(read_text(bad[_i].text, &a, &w, &e), OK);
    ck_assert_str_eq(e.text, bad[_i].error);
    arena_done(&a);
}

/* ---- fit and grow ---- */

static struct sim_args args_of(const char *policy)
{
    struct sim_args a = {.n_policies = 1, .first_seed = 1, .checked = true};
    a.policies[0] = sim_data_policy(policy);
    return a;
}

static const struct {
    const char *mem;
    int64_t cpu;
    uint64_t fit;
    const char *reason;
    uint32_t nodes;
} fits[] = {
    {"16", 0, 2, "Insufficient GPU Memory in one device", 2},
    {"5", 0, 9, "Insufficient GPU Memory in one device", 2}, /* 2 + 1 and 3 + 3 */
    {"1", 2000, 5, "Insufficient CPU or memory", 2},
    {"17", 0, 0, "Insufficient GPU Memory in one device", 2},
};

TEST_EACH(fits_until_something_stops_it, COUNT_OF(fits))
{
    struct arena a;
    struct sim_workload w;
    struct err e = ERR_INIT;
    struct sim_fit_answer f;
    uint32_t shape = 0;
    struct container_view c = {.name = STR("c"), .kind = CONTAINER_MAIN};
    struct pod_view pod = {
        .namespace = STR("ns"), .containers = &c, .n_containers = 1, .n_mains = 1};
    c.mem = str_of(fits[_i].mem);
    pod.host.cpu = fits[_i].cpu;
    struct sim_args args = args_of("binpack");
    ck_assert_ok(read_text(cluster, &a, &w, &e), &e);
    ck_assert_ok(sim_workload_add(&w, &pod, &a, &shape, &e), &e);
    ck_assert_ok(sim_fit_run(&w, shape, &args, &a, &f, &e), &e);
    ck_assert_uint_eq(f.fit, fits[_i].fit);
    ck_assert(!f.limited);
    ck_assert_uint_eq(f.n_stops, 1);
    ck_assert_str_is(f.stops[0].reason, fits[_i].reason);
    ck_assert_uint_eq(f.stops[0].nodes, fits[_i].nodes);
    arena_done(&a);
}

/* Three pods of 16 on a node whose two cards are taken, and one of 40, which fits on no card. */
static const char waiting[] =
    "{\"kind\":\"List\",\"items\":[" NODE("n1", "2", "32") "," POD("a", "2", CARD("0"), ON("n1"), "Running", MEM("16")) "," POD(
        "b", "2", CARD("1"), ON("n1"), "Running",
        MEM("8")) "," POD("p1", "3", "", "", "Pending",
                          MEM("16")) "," POD("p2", "3", "", "", "Pending",
                                             MEM("16")) "," POD("p3", "3", "", "", "Pending",
                                                                MEM("16")) "," POD("small", "3", "",
                                                                                   "", "Pending",
                                                                                   MEM("8")) "," POD("big",
                                                                                                     "3",
                                                                                                     "",
                                                                                                     "",
                                                                                                     "Pending",
                                                                                                     MEM("40")) "]}";

static const struct {
    const char *add;
    uint32_t run;
    uint32_t nodes;
} grows[] = {
    {"cards=2,card-memory=16", 4, 2},
    {"cards=1,card-memory=16,model=T4", 4, 3},
    {"cards=8,card-memory=80,cpu=64,memory=1Ti", 5, 1},
    {"cards=4,card-memory=8", 1, 0},
};

TEST_EACH(grows_until_the_pods_run, COUNT_OF(grows))
{
    struct arena a;
    struct sim_workload w;
    struct sim_node add;
    struct err e = ERR_INIT;
    struct grow_answer g;
    struct sim_args args = args_of("binpack");
    ck_assert_ok(read_text(waiting, &a, &w, &e), &e);
    ck_assert_ok(grow_read_node(str_of(grows[_i].add), &a, &add, &e), &e);
    ck_assert_ok(grow_run(&w, &add, &args, &a, &g, &e), &e);
    ck_assert_uint_eq(g.pending, 5);
    ck_assert_uint_eq(g.run_now, 1);
    ck_assert_uint_eq(g.run, grows[_i].run);
    ck_assert_uint_eq(g.nodes, grows[_i].nodes);
    arena_done(&a);
}

static const struct {
    const char *add;
    const char *error;
} bad_adds[] = {
    {"cards=2", "--add: name cards and card-memory"},
    {"cards", "--add: \"cards\" must be KEY=VALUE"},
    {"gpus=2", "--add: \"gpus\" must be cpu, memory, cards, card-memory or model"},
    {"cards=2000", "--add: cards: \"2000\" is not a whole number up to 1024"},
    {"cpu=1.5", "--add: cpu: \"1.5\" is not a whole number up to 1000000"},
    {"memory=x", "--add: memory: \"x\" is not a whole number up to 70368744177664"},
};

TEST_EACH(refuses_bad_nodes_to_add, COUNT_OF(bad_adds))
{
    struct arena a;
    struct sim_node add;
    struct err e = ERR_INIT;
    arena_init(&a, MIB);
    ck_assert_int_ne(grow_read_node(str_of(bad_adds[_i].add), &a, &add, &e), OK);
    ck_assert_str_eq(e.text, bad_adds[_i].error);
    arena_done(&a);
}
