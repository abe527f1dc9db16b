/*
 * One watch event, from the bytes of its line to the cache. Compared with a copy of the same bytes,
 * and with jansson, which only reads them. Two versions of an object alternate, so that each event
 * is a change.
 */
#include "base/log.h"
#include "bench.h"
#include "bench_cluster.h"
#include "count.h"
#include "feed.h"
#include "verbs_fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OFTEN  100
#define ROUNDS 200

struct news {
    struct feed feed;
    struct buf lines[2];
    char *copy;
};

static size_t take(void *ctx)
{
    struct news *n = ctx;
    for (size_t i = 0; i < OFTEN; i++)
        feed_push(&n->feed, buf_str(&n->lines[i % 2]));
    return OFTEN;
}

static size_t copy(void *ctx)
{
    const struct news *n = ctx;
    for (size_t i = 0; i < OFTEN; i++) {
        memcpy(n->copy, n->lines[i % 2].p, n->lines[i % 2].n);
        __asm__ volatile(""
                         :
                         : "r"(n->copy)
                         : "memory"); /* the copy must happen although its result is not used */
    }
    return OFTEN;
}

static size_t read_jansson(void *ctx)
{
    const struct news *n = ctx;
    const size_t often = 10;
    json_error_t error;
    for (size_t i = 0; i < often; i++) {
        json_t *event = json_loadb(n->lines[i % 2].p, n->lines[i % 2].n, 0, &error);
        if (event == NULL)
            abort();
        json_decref(event);
    }
    return often;
}

#define ON_CARD(i)                                                                    \
    ",\"ALIYUN_COM_GPU_MEM_IDX\":\"" i "\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"," \
    "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1690000000000000000\",\"ALIYUN_COM_GPU_MEM_POD\":\"8\""

/* How the second version differs. */
static const struct row {
    const char *what;
    const char *limits;
    const char *annotations[2];
    const char *phases[2];
} rows[] = {
    {"a pod's status",
     ",\"aliyun.com/gpu-mem\":\"8\"",
     {ON_CARD("0"), ON_CARD("0")},
     {"Pending", "Running"}},
    {"a pod's card",
     ",\"aliyun.com/gpu-mem\":\"8\"",
     {ON_CARD("0"), ON_CARD("1")},
     {"Running", "Running"}},
    {"a pod without a card", "", {"", ""}, {"Pending", "Running"}},
    {"a pod comes and goes",
     ",\"aliyun.com/gpu-mem\":\"8\"",
     {ON_CARD("0"), ON_CARD("0")},
     {"Running", "Succeeded"}},
};

static void write_pods(struct news *n, const struct row *row)
{
    struct bench_name name;
    struct pod_text p = {.name = STR("train-7c5ddbdf54-x2x7p"),
                         .uid = STR("1b4e28ba-2fa1-41d2-883f-0016d3cca427"),
                         .node = bench_node_name(500, &name),
                         .wish = WISH_PLAIN};
    p.wish.limits = row->limits;
    for (unsigned i = 0; i < 2; i++) {
        p.phase = str_of(row->phases[i]);
        p.wish.annotations = row->annotations[i];
        p.version = 1000000 + i;
        buf_init(&n->lines[i], MIB);
        buf_put(&n->lines[i], STR("{\"type\":\"MODIFIED\",\"object\":"));
        bench_write_pod(&n->lines[i], &p);
        buf_put(&n->lines[i], STR("}\n"));
    }
}

static void write_nodes(struct news *n, bool resized)
{
    for (unsigned i = 0; i < 2; i++) {
        buf_init(&n->lines[i], MIB);
        buf_put(&n->lines[i], STR("{\"type\":\"MODIFIED\",\"object\":"));
        bench_write_node(&n->lines[i], 500, resized && i == 1 ? 7 : 8, 1000000 + i);
        buf_put(&n->lines[i], STR("}\n"));
    }
}

static void measure(struct news *n, const char *what)
{
    char row[64];
    (void)snprintf(row, sizeof(row), "%s, %.1f KB", what, (double)n->lines[0].n / 1000);
    n->copy = malloc(n->lines[0].n + n->lines[1].n);
    if (n->copy == NULL)
        abort();
    struct bench_side sides[] = {
        {.once = take, .ctx = n}, {.once = copy, .ctx = n}, {.once = read_jansson, .ctx = n}};
    bench_turns_alone(sides, COUNT_OF(sides), ROUNDS);
    struct figure f = {.table = "watch",
                       .what = row,
                       .value = sides[0].us,
                       .unit = "us",
                       .beside = "a copy of the bytes",
                       .limit = sides[1].us};
    bench_figure(&f);
    f.beside = "jansson reads them";
    f.limit = sides[2].us;
    bench_figure(&f);
    size_t before = count_allocations();
    (void)take(n);
    bench_figure(&(struct figure){.table = "allocations-watch",
                                  .what = what,
                                  .value = (double)(count_allocations() - before) / OFTEN,
                                  .unit = ""});
    free(n->copy);
    buf_done(&n->lines[0]);
    buf_done(&n->lines[1]);
}

int main(void)
{
    static struct verbs_fixture verbs;
    static struct news news;
    const struct bench_cluster g = {.nodes = 1000, .cards = 8, .pods = 20, .pod_mem = 8};
    verbs_open(&verbs);
    log_setup(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT); /* a changed size is logged */
    bench_cluster_build(&verbs.service.cache, &g);
    feed_open(&news.feed, verbs.service.loop, &verbs.service.cache, false);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        write_pods(&news, &rows[i]);
        measure(&news, rows[i].what);
    }
    feed_close(&news.feed);
    feed_open(&news.feed, verbs.service.loop, &verbs.service.cache, true);
    write_nodes(&news, false);
    measure(&news, "a node's status");
    write_nodes(&news, true);
    measure(&news, "a node's cards");
    feed_close(&news.feed);
    verbs_close(&verbs);
    return 0;
}
