/*
 * How costs grow: with the cluster's nodes, a node's cards, pods, and names. Each point is compared
 * with the first of its curve, in turns. test_untouched shows without a clock that nodes outside a
 * request cost nothing.
 */
#include "bench.h"
#include "bench_cluster.h"
#include "feed.h"
#include "verbs_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMES  1000
#define CARDS  8
#define ROUNDS 50
#define OFTEN  200

enum growth_work {
    FILTER,
    PRIORITIZE,
    FILTER_GROUP, /* with an anti-affinity group */
    RESERVE,      /* and cancel: a bind's work in the cache */
    WATCH,
    WORKS
};

static const char *const work_names[WORKS] = {
    [FILTER] = "filter",
    [PRIORITIZE] = "prioritize",
    [FILTER_GROUP] = "filter with an anti-affinity group",
    [RESERVE] = "reserve and cancel",
    [WATCH] = "a watch event",
};

/* A cluster, and the requests and events for it. */
struct place {
    struct verbs_fixture verbs;
    struct feed feed;
    struct buf plain; /* requests with so many names */
    struct buf group;
    struct buf lines[2];
    size_t nodes; /* nodes that reservations and events use in turn */
    size_t turn;
    enum growth_work work;
};

static void reserve(struct place *p)
{
    struct bench_name name;
    struct effect effect;
    const struct request r = {.mem = 1,
                              .lasting_mem = 1,
                              .namespace = STR("team-00"),
                              .n_demands = 1,
                              .demands = {{.mem = 1}}};
    struct cache_event e = {.type = CACHE_RESERVE};
    e.reserve.uid = STR("5d0c2a17-7b1e-4c55-9a7d-3f2e1d0c9b8a");
    e.reserve.namespace = STR("team-00");
    e.reserve.name = STR("train-reserved");
    e.reserve.node = bench_node_name(p->turn++ * 7919 % p->nodes, &name);
    e.reserve.request = &r;
    if (cache_apply(&p->verbs.service.cache, &e, UINT64_C(1700000000000000000), &effect) != OK)
        abort();
    e = (struct cache_event){.type = CACHE_CANCEL};
    e.holder.uid = STR("5d0c2a17-7b1e-4c55-9a7d-3f2e1d0c9b8a");
    if (cache_apply(&p->verbs.service.cache, &e, UINT64_C(1700000000000000000), &effect) != OK)
        abort();
}

static size_t do_work(void *ctx)
{
    struct place *p = ctx;
    switch (p->work) {
    case FILTER:
        verbs_ask(&p->verbs, filter_handle, buf_str(&p->plain));
        return 1;
    case PRIORITIZE:
        verbs_ask(&p->verbs, prioritize_handle, buf_str(&p->plain));
        return 1;
    case FILTER_GROUP:
        verbs_ask(&p->verbs, filter_handle, buf_str(&p->group));
        return 1;
    case RESERVE:
        for (size_t i = 0; i < OFTEN; i++)
            reserve(p);
        return OFTEN;
    case WATCH:
        for (size_t i = 0; i < OFTEN; i++)
            feed_push(&p->feed, buf_str(&p->lines[i % 2]));
        return OFTEN;
    case WORKS:
        break;
    }
    abort();
}

/* A pod that asks for more and then for less again. */
static void write_lines(struct place *p)
{
    struct bench_name name;
    struct pod_text text = {.name = STR("train-7c5ddbdf54-x2x7p"),
                            .uid = STR("7e9a1f34-52c8-4d0b-b7e6-9c3d5a1f2b48"),
                            .node = bench_node_name(p->nodes / 2, &name),
                            .phase = STR("Running"),
                            .wish = WISH_PLAIN};
    text.wish.annotations = ",\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"";
    for (unsigned i = 0; i < 2; i++) {
        text.version = 1000000 + i;
        text.wish.limits =
            i == 0 ? ",\"aliyun.com/gpu-mem\":\"1\"" : ",\"aliyun.com/gpu-mem\":\"2\"";
        buf_init(&p->lines[i], MIB);
        buf_put(&p->lines[i], STR("{\"type\":\"MODIFIED\",\"object\":"));
        bench_write_pod(&p->lines[i], &text);
        buf_put(&p->lines[i], STR("}\n"));
    }
}

/* Requests name the first `names` nodes of the cluster. */
static void place_open(struct place *p, const struct bench_cluster *g, size_t names)
{
    struct wish group = WISH_PLAIN;
    group.annotations = ",\"cardpack.io/card-anti-affinity-group\":\"group-1\"";
    *p = (struct place){.nodes = g->nodes};
    verbs_open(&p->verbs);
    bench_cluster_build(&p->verbs.service.cache, g);
    buf_init(&p->plain, 64 * MIB);
    buf_init(&p->group, 64 * MIB);
    bench_write_args(&p->plain, &WISH_PLAIN, names);
    bench_write_args(&p->group, &group, names);
    feed_open(&p->feed, p->verbs.service.loop, &p->verbs.service.cache, false);
    write_lines(p);
}

static void place_close(struct place *p)
{
    feed_close(&p->feed);
    buf_done(&p->plain);
    buf_done(&p->group);
    buf_done(&p->lines[0]);
    buf_done(&p->lines[1]);
    verbs_close(&p->verbs);
}

struct axis {
    const char *table;
    const char *by;
    const char *beside;
    const char *suffix; /* of the rows' names */
};

static void expect_all_fit(const struct place *p)
{
    size_t fit;
    size_t failed;
    if (p->work != FILTER && p->work != FILTER_GROUP)
        return;
    verbs_count(&p->verbs, &fit, &failed);
    if (fit == 0 || failed > 0)
        abort();
}

/* Compares `now` with `first`; for the first point both are the same place. */
static void measure(const struct axis *a, struct place *first, struct place *now,
                    enum growth_work work, uint64_t x)
{
    char row[80];
    struct bench_side sides[] = {{.once = do_work, .ctx = now}, {.once = do_work, .ctx = first}};
    first->work = now->work = work;
    bench_turns_alone(sides, COUNT_OF(sides), ROUNDS);
    expect_all_fit(first);
    expect_all_fit(now);
    (void)snprintf(row, sizeof(row), "%s%s", work_names[work], a->suffix);
    bench_figure(&(struct figure){.table = a->table,
                                  .what = row,
                                  .by = a->by,
                                  .x = x,
                                  .value = sides[0].us,
                                  .unit = "us",
                                  .beside = a->beside,
                                  .limit = sides[1].us});
}

static void measure_all(const struct axis *a, struct place *first, struct place *now, uint64_t x)
{
    static const enum growth_work all[] = {FILTER, PRIORITIZE, RESERVE, WATCH};

    for (size_t i = 0; i < COUNT_OF(all); i++)
        measure(a, first, now, all[i], x);
}

static struct place first;
static struct place now;

/* Skips places that take seconds to build: they show no more about whether the benchmark works. */
static bool is_too_much(size_t x)
{
    return bench_is_quick() && x > 10000;
}

/* More nodes that no request names. */
static void grow_nodes(void)
{
    static const size_t nodes[] = {1000, 2000, 5000, 10000, 20000, 50000, 100000};
    const struct axis a = {"growth-nodes", "nodes", "in a cluster of 1,000", ""};
    struct bench_cluster g = {.nodes = nodes[0], .cards = CARDS, .pods = 4, .pod_mem = 8};
    place_open(&first, &g, NAMES);
    measure_all(&a, &first, &first, nodes[0]);
    for (size_t i = 1; i < COUNT_OF(nodes) && !is_too_much(nodes[i]); i++) {
        g.nodes = nodes[i];
        place_open(&now, &g, NAMES);
        measure_all(&a, &first, &now, nodes[i]);
        place_close(&now);
    }
    place_close(&first);
}

/* Cards of the nodes in the request, and of as many other nodes. */
static void grow_cards(void)
{
    static const uint32_t cards[] = {1, 2, 4, 8, 16, 32, 64};
    const struct axis asked = {"growth-cards", "cards", "with one card", ", nodes asked for"};
    const struct axis other = {"growth-cards", "cards", "with one card", ", other nodes"};
    struct bench_cluster g = {.nodes = NAMES, .cards = 1, .pods = 1, .pod_mem = 8};
    const struct bench_cluster eight = {.nodes = NAMES, .cards = CARDS, .pods = 4, .pod_mem = 8};
    for (size_t i = 0; i < COUNT_OF(cards); i++) {
        g.first = 0;
        g.cards = 1;
        place_open(&first, &g, NAMES);
        g.cards = cards[i];
        place_open(&now, &g, NAMES);
        measure_all(&asked, &first, &now, cards[i]);
        place_close(&first);
        place_close(&now);
        g.first = NAMES;
        g.cards = 1;
        place_open(&first, &eight, NAMES);
        bench_cluster_build(&first.verbs.service.cache, &g);
        g.cards = cards[i];
        place_open(&now, &eight, NAMES);
        bench_cluster_build(&now.verbs.service.cache, &g);
        measure(&other, &first, &now, FILTER, cards[i]);
        measure(&other, &first, &now, PRIORITIZE, cards[i]);
        place_close(&first);
        place_close(&now);
    }
}

/* Pods on nodes that no request names: 100 on each. */
static void grow_pods(void)
{
    static const size_t pods[] = {0, 1000, 10000, 100000, 300000, 1000000};
    const struct axis a = {"growth-pods", "pods", "with no pods", ""};
    const struct bench_cluster asked = {.nodes = NAMES, .cards = CARDS, .pods = 4, .pod_mem = 8};
    struct bench_cluster g = {.first = NAMES, .nodes = 10000, .cards = CARDS, .pod_mem = 1};
    place_open(&first, &asked, NAMES);
    place_open(&now, &asked, NAMES);
    bench_cluster_build_nodes(&first.verbs.service.cache, &g);
    bench_cluster_build_nodes(&now.verbs.service.cache, &g);
    g.pods = 100;
    for (size_t i = 0; i < COUNT_OF(pods) && !is_too_much(pods[i]); i++) {
        size_t nodes = pods[i] / g.pods;
        g.nodes = nodes - (g.first - NAMES);
        bench_cluster_build_pods(&now.verbs.service.cache, &g);
        g.first = NAMES + nodes;
        measure_all(&a, &first, &now, pods[i]);
    }
    place_close(&first);
    place_close(&now);
}

/* Pods on each node of a request; a kubelet runs at most 110. */
static void grow_crowd(void)
{
    static const uint32_t pods[] = {0, 10, 20, 40, 80, 110};
    const struct axis a = {"growth-crowd", "pods on a node", "with no pods", ""};
    struct bench_cluster g = {.nodes = NAMES, .cards = CARDS, .pod_mem = 1};
    place_open(&first, &g, NAMES);
    for (size_t i = 0; i < COUNT_OF(pods); i++) {
        g.pods = pods[i];
        place_open(&now, &g, NAMES);
        measure_all(&a, &first, &now, pods[i]);
        measure(&a, &first, &now, FILTER_GROUP, pods[i]);
        place_close(&now);
    }
    place_close(&first);
}

static void grow_names(void)
{
    static const size_t names[] = {1, 10, 100, 1000, 10000, 50000};
    const struct axis a = {"growth-names", "names", "of one name", ""};
    const struct bench_cluster g = {.nodes = 50000, .cards = CARDS, .pods = 4, .pod_mem = 8};
    place_open(&first, &g, 1);
    place_open(&now, &g, 1);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        buf_clear(&now.plain, SIZE_MAX);
        bench_write_args(&now.plain, &WISH_PLAIN, names[i]);
        measure(&a, &first, &now, FILTER, names[i]);
        measure(&a, &first, &now, PRIORITIZE, names[i]);
    }
    place_close(&first);
    place_close(&now);
}

/* Runs the named curves, or all. */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*grow)(void);
    } all[] = {{"names", grow_names},
               {"nodes", grow_nodes},
               {"cards", grow_cards},
               {"pods", grow_pods},
               {"crowd", grow_crowd}};

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        bool wanted = argc == 1;
        for (int k = 1; k < argc; k++)
            wanted = wanted || strcmp(argv[k], all[i].name) == 0;
        if (wanted)
            all[i].grow();
    }
    return 0;
}
