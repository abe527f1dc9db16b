/*
 * filter and prioritize over HTTP for every kind of request, where all nodes fit, half of them, or
 * none, and beside claims of DRA: the real program, with client and servers on one core as in
 * bench_http.c. Each request is compared with an echo of as many bytes.
 *
 * bench_kinds CARDPACK
 */
#include "base/limit.h"
#include "bench.h"
#include "cores.h"
#include "http_side.h"
#include "scheduler_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX    "/gpushare-scheduler"
#define TEXT_MAX  (1024 * MIB)
#define SHORTLIST "10"

/* Until a new cardpack has learned from the pods of its cluster: only then its scores stay. */
#define LESSON_S 2

enum {
    ALL,
    HALF,
    NONE,
    LEVELS,
};

/* Which of the levels make sense for a kind. */
#define ANY_LEVEL (1U << ALL | 1U << HALF | 1U << NONE)

struct kind {
    const char *what;
    struct pod_kind pod;
    unsigned mem[LEVELS]; /* of the container; what fits on all nodes, on half of them, on none */
    unsigned levels;
    enum claims claims; /* in which cluster */
};

#define PERCENT(n)    ",\"annotations\":{\"cardpack.io/gpu-mem-percent\":\"" #n "\"}"
#define NOTE(key, v)  ",\"annotations\":{\"cardpack.io/" key "\":\"" v "\"}"
#define ONE_LEVEL(of) (1U << (of))
#define MEM           "aliyun.com/gpu-mem"
#define TWO_CARDS     ",\"aliyun.com/gpu-count\":\"2\""

static const struct kind kinds[] = {
    {"memory of one card", {MEM, "default", "", ""}, {4, 10, 14}, ANY_LEVEL, CLAIMS_NONE},
    {"a percentage of a card", {MEM, "default", "", PERCENT(25)}, {1}, ONE_LEVEL(ALL), CLAIMS_NONE},
    {"a percentage of a card",
     {MEM, "default", "", PERCENT(60)},
     {0, 1},
     ONE_LEVEL(HALF),
     CLAIMS_NONE},
    {"a percentage of a card",
     {MEM, "default", "", PERCENT(85)},
     {0, 0, 1},
     ONE_LEVEL(NONE),
     CLAIMS_NONE},
    {"two cards", {MEM, "default", TWO_CARDS, ""}, {8, 20, 28}, ANY_LEVEL, CLAIMS_NONE},
    {"a model of card",
     {MEM, "default", "", NOTE("card-model", "NVIDIA-A100*, !*-40GB")},
     {4, 10, 14},
     ANY_LEVEL,
     CLAIMS_NONE},
    {"an anti-affinity group",
     {MEM, "default", "", NOTE("card-anti-affinity-group", "group-1")},
     {4, 10, 14},
     ANY_LEVEL,
     CLAIMS_NONE},
    {"a namespace with limits", {MEM, "limited", "", ""}, {4, 10, 14}, ANY_LEVEL, CLAIMS_NONE},
    {"limits that are reached", {MEM, "spent", "", ""}, {0, 0, 4}, ONE_LEVEL(NONE), CLAIMS_NONE},
    {"beside claims of some cards", {MEM, "default", "", ""}, {4, 10, 14}, ANY_LEVEL, CLAIMS_SOME},
    {"two cards beside claims",
     {MEM, "default", TWO_CARDS, ""},
     {8, 20, 28},
     ANY_LEVEL,
     CLAIMS_SOME},
    {"beside claims of half of the nodes",
     {MEM, "default", "", ""},
     {0, 4, 14},
     ONE_LEVEL(HALF) | ONE_LEVEL(NONE),
     CLAIMS_HALF},
    {"nvidia.com/gpu, which DRA serves",
     {"nvidia.com/gpu", "default", "", ""},
     {1},
     ONE_LEVEL(ALL),
     CLAIMS_HALF},
};

static const char *const level_names[LEVELS] = {"all fit", "half fit", "none fits"};

/* What is asked for each kind and level. */
enum way {
    FILTER,
    SHORTENED, /* filter by a cardpack with a shortlist */
    PRIORITIZE,
    WAYS,
};

static const char *const way_names[WAYS] = {"filter", "filter, shortlist of 10", "prioritize"};

enum {
    ECHO,
    CARDPACK,
    CARDPACK_SHORT,
    SERVERS,
};

struct size {
    size_t names;
    size_t rounds;
};

/* A filter answers each name once, or twice where eviction can't help. */
static void look(const struct http_side *side, const struct kind *kind, int level, enum way way,
                 size_t names)
{
    struct str body = side->client.body;
    size_t refused = http_side_count(body, "\":\"");
    size_t all = http_side_count(body, "\"node-");
    size_t fit = level == ALL ? names : level == HALF ? names / 2 : 0;
    bool shares = strcmp(kind->pod.resource, MEM) == 0; /* else there is nothing to shorten by */
    size_t wanted = way == SHORTENED && shares ? MIN_OF(fit, (size_t)10) : fit;
    bool right = way == PRIORITIZE ? all == names : all - (refused - 1) == wanted;
    if (side->client.status != 200 || !right ||
        (way != PRIORITIZE && !str_ends(body, STR("\"Error\":\"\"}"))))
        die("%s, %s, %s: %zu of %zu names, %zu refusals: %.*s", kind->what, level_names[level],
            way_names[way], all, names, refused, (int)MIN_OF(body.n, (size_t)1000), body.p);
}

static void measure(const struct kind *kind, int level, const struct http_child *servers,
                    const struct size *size)
{
    static struct http_side asked[2 * WAYS];
    struct bench_side sides[2 * WAYS];
    struct buf body;
    enum way end = level == NONE ? SHORTENED : WAYS; /* no more is asked where no node fits */
    buf_init(&body, TEXT_MAX);
    args_write_of_kind(&body, size->names, &kind->pod, kind->mem[level], true);
    for (enum way way = 0; way < end; way++) {
        const struct http_child *server = &servers[way == SHORTENED ? CARDPACK_SHORT : CARDPACK];
        struct http_side *own = &asked[2 * (size_t)way + 1];
        http_side_open(own, server, way == PRIORITIZE ? PREFIX "/prioritize" : PREFIX "/filter",
                       buf_str(&body));
        look(own, kind, level, way, size->names);
        http_side_open_echo(&asked[2 * (size_t)way], &servers[ECHO], buf_str(&body), own);
        sides[2 * (size_t)way] = (struct bench_side){.once = http_side_ask,
                                                     .ctx = &asked[2 * (size_t)way],
                                                     .asked = http_child_clock(&servers[ECHO])};
        sides[2 * (size_t)way + 1] = (struct bench_side){
            .once = http_side_ask, .ctx = own, .asked = http_child_clock(server)};
    }
    buf_done(&body);
    bench_turns_together(sides, (size_t)2 * end, size->rounds);
    for (enum way way = 0; way < end; way++) {
        char table[64];
        char what[96];
        (void)snprintf(table, sizeof(table), "kinds-%zu", size->names);
        (void)snprintf(what, sizeof(what), "%s: %s, %s", kind->what, way_names[way],
                       level_names[level]);
        bench_figure(&(struct figure){.table = table,
                                      .what = what,
                                      .value = sides[2 * (size_t)way + 1].us,
                                      .unit = "us",
                                      .beside = "an echo of as many bytes",
                                      .limit = sides[2 * (size_t)way].us,
                                      .target = way == PRIORITIZE || level == NONE ? 4 : 5,
                                      .sense = BENCH_AT_MOST});
        http_side_close(&asked[2 * (size_t)way]);
        http_side_close(&asked[2 * (size_t)way + 1]);
    }
}

static void measure_cluster(const char *program, size_t core, const struct size *size,
                            enum claims claims)
{
    char path[TEMP_PATH];
    struct http_child servers[SERVERS];
    struct buf text;
    buf_init(&text, TEXT_MAX);
    cluster_write_of_kinds(&text, size->names, claims);
    http_side_store(path, buf_str(&text));
    buf_done(&text);
    cores_pin(core);
    echo_start(&servers[ECHO]);
    cardpack_start(&servers[CARDPACK], program, path, "0");
    cardpack_start(&servers[CARDPACK_SHORT], program, path, SHORTLIST);
    for (size_t i = 0; i < SERVERS; i++)
        cores_check(servers[i].pid, core);
    (void)sleep(LESSON_S);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        for (int level = 0; level < LEVELS; level++) {
            if (kinds[i].claims == claims && (kinds[i].levels >> level & 1) != 0)
                measure(&kinds[i], level, servers, size);
        }
    }
    for (size_t i = 0; i < SERVERS; i++)
        http_child_stop(&servers[i]);
}

int main(int argc, char *argv[])
{
    static const struct size sizes[] = {{5000, 400}, {15000, 150}};
    size_t cores[CORES_MAX];
    if (argc != 2)
        die("usage: %s CARDPACK", argv[0]);
    (void)cores_find(cores);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        for (enum claims claims = 0; claims < CLAIMS_COUNT; claims++)
            measure_cluster(argv[1], cores[0], &sizes[i], claims);
    }
    return EXIT_SUCCESS;
}
