/*
 * filter and prioritize in process: cardpack's handlers, from the request's bytes to the answer's
 * bytes. Compared with a copy of the same bytes, and with jansson, which only reads the request.
 * The order of the names differs from the nodes' order in the map and in memory.
 */
#include "bench.h"
#include "bench_cluster.h"
#include "count.h"
#include "verbs_fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define CARDS  8
#define ROUNDS 100

struct case_of {
    struct verbs_fixture verbs;
    handler *handle;
    char *copy; /* room for request and answer */
    size_t often;
};

static size_t ask(void *ctx)
{
    struct case_of *c = ctx;
    for (size_t i = 0; i < c->often; i++)
        verbs_ask(&c->verbs, c->handle, buf_str(&c->verbs.request));
    return c->often;
}

static size_t copy(void *ctx)
{
    const struct case_of *c = ctx;
    const struct buf *answer = &c->verbs.answer;
    for (size_t i = 0; i < c->often; i++) {
        memcpy(c->copy, c->verbs.request.p, c->verbs.request.n);
        memcpy(c->copy + c->verbs.request.n, answer->p, answer->n);
        __asm__ volatile(""
                         :
                         : "r"(c->copy)
                         : "memory"); /* the copy must happen although its result is not used */
    }
    return c->often;
}

static size_t read_jansson(void *ctx)
{
    const struct case_of *c = ctx;
    json_error_t error;
    json_t *request = json_loadb(c->verbs.request.p, c->verbs.request.n, 0, &error);
    if (request == NULL)
        abort();
    json_decref(request);
    return 1;
}

/* Which of the n nodes are feasible. */
static const struct way {
    const char *verb;
    const char *what;
    unsigned shortlist;
    uint32_t pods; /* each uses half a card; twice the cards fill a node */
    size_t pods_every;
} ways[] = {
    {"filter", "all fit", 0, CARDS, 1},       {"filter", "half fit", 0, 2 * CARDS, 2},
    {"filter", "none fits", 0, 2 * CARDS, 1}, {"filter", "all fit, shortlist of 10", 10, CARDS, 1},
    {"prioritize", "all fit", 0, CARDS, 1},   {"prioritize", "half fit", 0, 2 * CARDS, 2},
};

static bool is_prioritize(const struct way *w)
{
    return strcmp(w->verb, "prioritize") == 0;
}

static void expect(const struct case_of *c, const struct way *w, size_t n)
{
    size_t fit;
    size_t failed;
    size_t full = w->pods <= CARDS ? 0 : (n + w->pods_every - 1) / w->pods_every;
    verbs_count(&c->verbs, &fit, &failed);
    size_t fits = n - full;
    if (w->shortlist > 0)
        fits = MIN_OF(fits, (size_t)w->shortlist);
    if (is_prioritize(w) ? fit != n : fit != fits || failed != full) {
        (void)fprintf(stderr, "%s: of %zu names %zu fit, %zu don't\n", w->what, n, fit, failed);
        abort();
    }
}

static void open_case(struct case_of *c, const struct bench_cluster *g, const struct wish *wish)
{
    verbs_open(&c->verbs);
    bench_cluster_build(&c->verbs.service.cache, g);
    bench_cluster_limit(&c->verbs.service.cache);
    bench_write_args(&c->verbs.request, wish, g->nodes);
    c->handle = filter_handle;
}

static void close_case(struct case_of *c)
{
    free(c->copy);
    verbs_close(&c->verbs);
}

static void measure(const struct way *w, size_t n)
{
    struct case_of c = {.often = n < 100 ? 100 : 1};
    char row[64];
    const struct bench_cluster g = {.nodes = n,
                                    .cards = CARDS,
                                    .pods = w->pods,
                                    .pod_mem = BENCH_CARD_MEM / 2,
                                    .pods_every = w->pods_every};
    open_case(&c, &g, &WISH_PLAIN);
    c.verbs.service.shortlist = w->shortlist;
    c.handle = is_prioritize(w) ? prioritize_handle : filter_handle;
    for (int i = 0; i < 4; i++)
        verbs_ask(&c.verbs, c.handle, buf_str(&c.verbs.request));
    expect(&c, w, n);
    size_t before = count_allocations();
    verbs_ask(&c.verbs, c.handle, buf_str(&c.verbs.request));
    size_t allocations = count_allocations() - before;
    c.copy = malloc(c.verbs.request.n + c.verbs.answer.n);
    if (c.copy == NULL)
        abort();
    struct bench_side sides[] = {
        {.once = ask, .ctx = &c}, {.once = copy, .ctx = &c}, {.once = read_jansson, .ctx = &c}};
    bench_turns_alone(sides, COUNT_OF(sides), n > 5000 ? ROUNDS / 5 : ROUNDS);
    struct figure f = {.table = w->verb,
                       .what = w->what,
                       .by = "names",
                       .x = n,
                       .value = sides[0].us,
                       .unit = "us",
                       .beside = "a copy of the bytes",
                       .limit = sides[1].us};
    bench_figure(&f);
    f.beside = "jansson reads the request";
    f.limit = sides[2].us;
    bench_figure(&f);
    (void)snprintf(row, sizeof(row), "%s, %s", w->verb, w->what);
    f = (struct figure){.table = "allocations",
                        .what = row,
                        .by = "names",
                        .x = n,
                        .value = (double)allocations,
                        .unit = ""};
    bench_figure(&f);
    close_case(&c);
}

static const struct wish unusual[] = {
    {"two cards", ",\"aliyun.com/gpu-count\":\"2\"", "", ",\"aliyun.com/gpu-mem\":\"16\"",
     "team-00", 1},
    {"a percentage of a card", "", ",\"cardpack.io/gpu-mem-percent\":\"30\"",
     ",\"aliyun.com/gpu-mem\":\"1\"", "team-00", 1},
    {"a whole card", ",\"ack.gpushare.placement\":\"require-whole-device\"", "",
     ",\"aliyun.com/gpu-mem\":\"1\"", "team-00", 1},
    {"two containers", "", "", ",\"aliyun.com/gpu-mem\":\"4\"", "team-00", 2},
    {"a model of card", "", ",\"cardpack.io/card-model\":\"NVIDIA-A100*, !*-40GB\"",
     ",\"aliyun.com/gpu-mem\":\"8\"", "team-00", 1},
    {"an anti-affinity group", "", ",\"cardpack.io/card-anti-affinity-group\":\"group-1\"",
     ",\"aliyun.com/gpu-mem\":\"8\"", "team-00", 1},
    {"a namespace with limits", "", "", ",\"aliyun.com/gpu-mem\":\"8\"", "team-limited", 1},
};

/* Requests other than memory of one card, compared with such a request on the same nodes. */
static void measure_unusual(handler *handle, const char *table)
{
    const size_t n = 5000;
    const struct bench_cluster g = {
        .nodes = n, .cards = CARDS, .pods = CARDS / 2, .pod_mem = 8, .tables = true};
    static struct case_of plain = {.often = 1};
    struct case_of c = {.often = 1};
    size_t fit;
    size_t failed;
    open_case(&plain, &g, &WISH_PLAIN);
    open_case(&c, &g, &WISH_PLAIN);
    plain.handle = c.handle = handle;
    for (size_t i = 0; i < COUNT_OF(unusual); i++) {
        buf_clear(&c.verbs.request, SIZE_MAX);
        bench_write_args(&c.verbs.request, &unusual[i], n);
        struct bench_side sides[] = {{.once = ask, .ctx = &c}, {.once = ask, .ctx = &plain}};
        bench_turns_alone(sides, COUNT_OF(sides), ROUNDS / 2);
        verbs_count(&c.verbs, &fit, &failed);
        if (fit != n)
            abort();
        bench_figure(&(struct figure){.table = table,
                                      .what = unusual[i].what,
                                      .value = sides[0].us,
                                      .unit = "us",
                                      .beside = "memory of one card",
                                      .limit = sides[1].us});
    }
    close_case(&c);
    close_case(&plain);
    plain = (struct case_of){.often = 1};
}

int main(void)
{
    static const size_t names[] = {1, 500, 5000, 50000};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        for (size_t k = 0; k < COUNT_OF(names); k++)
            measure(&ways[i], names[k]);
    }
    measure_unusual(filter_handle, "filter-requests");
    measure_unusual(prioritize_handle, "prioritize-requests");
    return 0;
}
