/*
 * filter and prioritize as whole HTTP round trips: the real program in its own process, with
 * requests like kube-scheduler's. Each is compared with the same request to an echo server that
 * uses the same HTTP library and answers with as many bytes. Kept connections are used in turn. The
 * first answer is checked in detail; the others must equal it.
 *
 * First client and servers share one core and never work at once: the figure is the processor time
 * of both. Then the client moves to another core, and the figure is elapsed time: it adds the time
 * to wake each core.
 *
 * bench_http CARDPACK
 */
#include "base/limit.h"
#include "bench.h"
#include "cores.h"
#include "http_side.h"
#include "scheduler_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX        "/gpushare-scheduler"
#define TEXT_MAX      (1024 * MIB)
#define NODES_MAX     500  /* with whole Node objects: larger clusters use nodeCacheCapable */
#define APART_MAX     5000 /* names; with more, the wake-up time can't be seen */
#define SHORTLIST     10
#define SHORTLIST_ARG "10"
#define MEM_FITS      4
#define MEM_TOO_MUCH  14

/* The request, its server, and the text that a right answer has once per name. */
enum whom {
    ECHO,
    OWN_ECHO,
    CARDPACK,
    SHORTENED, /* cardpack with a shortlist */
    SERVERS,
};

struct question {
    const char *table;
    const char *what;
    const char *echo; /* name of the echo in the comparison */
    const char *path;
    unsigned mem;
    enum whom whom;
    const char *text;
    bool in_all; /* once per name; else once per place in the shortlist */
};

static const struct question questions[] = {
    {"http-server", "echo by cardpack's server", "the request itself", NULL, MEM_FITS, OWN_ECHO, "",
     true},
    {"filter-http", "all fit", "filter, all fit", PREFIX "/filter", MEM_FITS, CARDPACK, "\"node-",
     true},
    {"filter-http", "none fits", "filter, none fits", PREFIX "/filter", MEM_TOO_MUCH, CARDPACK,
     "\":\"Insufficient GPU Memory in one device", true},
    {"filter-http", "all fit, shortlist of 10", "filter, shortlist of 10", PREFIX "/filter",
     MEM_FITS, SHORTENED, "\"node-", false},
    {"prioritize-http", "all fit", "prioritize, all fit", PREFIX "/prioritize", MEM_FITS, CARDPACK,
     "{\"Host\":\"node-", true},
};

/* Checks the first answer: complete, without an error, with the right number of names. */
static void look(const struct http_side *a, const struct question *q, size_t names, bool by_name)
{
    struct str body = a->client.body;
    if (q->whom == OWN_ECHO) {
        if (!str_ends(buf_str(&a->requests[0]), body))
            die("an echo answers something else");
        return;
    }
    size_t wanted = q->in_all ? names : MIN_OF(names, (size_t)SHORTLIST);
    bool filter = strcmp(q->table, "filter-http") == 0;
    bool offered = filter && q->mem == MEM_FITS;
    const char *text = offered && !by_name ? "{\"metadata\":{\"name\":\"node-" : q->text;
    size_t n = http_side_count(body, text);
    if (a->client.status != 200 || n != wanted ||
        (filter && !str_ends(body, STR("\"Error\":\"\"}"))))
        die("%s, %s, %zu names: status %u, %zu times %s: %.*s", q->table, q->what, names,
            a->client.status, n, text, (int)MIN_OF(body.n, (size_t)1000), body.p);
}

/* Prepares the same request for cardpack and for the echo, which answers with as many bytes. */
static void prepare(const struct question *q, const struct http_child *servers, size_t names,
                    bool by_name, struct http_side *cardpack, struct http_side *echo)
{
    struct buf body;
    buf_init(&body, TEXT_MAX);
    args_write(&body, names, q->mem, by_name);
    http_side_open(cardpack, &servers[q->whom], q->path == NULL ? "/" : q->path, buf_str(&body));
    look(cardpack, q, names, by_name);
    http_side_open_echo(echo, &servers[ECHO], buf_str(&body), cardpack);
    buf_done(&body);
}

/* Figures with client and servers on different cores have tables of their own. */
static void tell(const struct question *q, bool apart, size_t names, bool by_name, double us,
                 double echo_us)
{
    char what[96];
    char echo[96];
    char table[64];
    const char *nodes = by_name ? "" : ", whole nodes";
    const char *cores = apart ? "-apart" : "";
    (void)snprintf(table, sizeof(table), "%s%s", q->table, cores);
    (void)snprintf(what, sizeof(what), "%s%s", q->what, nodes);
    bench_figure(&(struct figure){
        .table = table,
        .what = what,
        .by = "names",
        .x = names,
        .value = us,
        .unit = "us",
        .beside = "an echo of as many bytes",
        .limit = echo_us,
    });
    (void)snprintf(table, sizeof(table), "echo-http%s", cores);
    (void)snprintf(echo, sizeof(echo), "%s%s", q->echo, nodes);
    bench_figure(&(struct figure){
        .table = table,
        .what = echo,
        .by = "names",
        .x = names,
        .value = echo_us,
        .unit = "us",
    });
}

/* Memory that requests of one size leave behind, once and not for each request. */
static void tell_kept(size_t names, bool by_name, size_t before, size_t after)
{
    bench_figure(&(struct figure){
        .table = "memory-http",
        .what = by_name ? "grown by such requests" : "grown by such requests, whole nodes",
        .by = "names",
        .x = names,
        .value = (double)after / (double)MIB - (double)before / (double)MIB,
        .unit = "MiB",
    });
}

struct place {
    size_t cores[CORES_MAX]; /* the first one is the servers' */
    size_t n_cores;
    const char *program;
};

enum {
    N = COUNT_OF(questions),
};

static void take_turns(struct bench_side sides[static 2 * N], bool apart, size_t names,
                       bool by_name, size_t rounds)
{
    (apart ? bench_turns : bench_turns_together)(sides, (size_t)2 * N, rounds);
    for (size_t i = 0; i < N; i++)
        tell(&questions[i], apart, names, by_name, sides[2 * i + 1].us, sides[2 * i].us);
}

/* First all on one core; then the client on the other core. */
static void measure(const struct place *p, const char *cluster, size_t names, bool by_name,
                    size_t rounds)
{
    struct http_child servers[SERVERS];
    static struct http_side asked[2 * N];
    struct bench_side sides[2 * N];
    cores_pin(p->cores[0]);
    echo_start(&servers[ECHO]);
    own_echo_start(&servers[OWN_ECHO]);
    cardpack_start(&servers[CARDPACK], p->program, cluster, "0");
    cardpack_start(&servers[SHORTENED], p->program, cluster, SHORTLIST_ARG);
    size_t fresh = http_child_resident(&servers[CARDPACK]);
    for (size_t i = 0; i < SERVERS; i++)
        cores_check(servers[i].pid, p->cores[0]);
    for (size_t i = 0; i < N; i++)
        prepare(&questions[i], servers, names, by_name, &asked[2 * i + 1], &asked[2 * i]);
    for (size_t i = 0; i < COUNT_OF(sides); i++)
        sides[i] = (struct bench_side){
            .once = http_side_ask,
            .ctx = &asked[i],
            .asked = http_child_clock(&servers[i % 2 == 0 ? ECHO : questions[i / 2].whom])};
    take_turns(sides, false, names, by_name, rounds);
    tell_kept(names, by_name, fresh, http_child_resident(&servers[CARDPACK]));
    if (p->n_cores > 1 && by_name && names <= APART_MAX) {
        cores_pin(p->cores[1]);
        take_turns(sides, true, names, by_name, rounds);
    }
    for (size_t i = 0; i < COUNT_OF(asked); i++)
        http_side_close(&asked[i]);
    for (size_t i = 0; i < SERVERS; i++)
        http_child_stop(&servers[i]);
}

static void measure_cluster(const struct place *p, size_t names, size_t rounds)
{
    char path[TEMP_PATH];
    struct buf text;
    buf_init(&text, TEXT_MAX);
    cluster_write(&text, names);
    http_side_store(path, buf_str(&text));
    buf_done(&text);
    measure(p, path, names, true, rounds);
    if (names == NODES_MAX)
        measure(p, path, names, false, rounds / 2);
}

int main(int argc, char *argv[])
{
    static const struct {
        size_t names;
        size_t rounds;
    } sizes[] = {{1, 4000}, {NODES_MAX, 1000}, {5000, 1000}, {50000, 100}};
    struct place p;

    if (argc != 2)
        die("usage: %s CARDPACK", argv[0]);
    p.program = argv[1];
    p.n_cores = cores_find(p.cores);
    if (p.n_cores == 1)
        printf("there is one core: nothing is measured across two\n");
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        measure_cluster(&p, sizes[i].names, sizes[i].rounds);
    return EXIT_SUCCESS;
}
