/*
 * Filter and prioritize as whole HTTP round trips: the program as it is, in its own process, asked
 * as kube-scheduler asks it, beside an echo of the same bytes by the same HTTP library. By turns on
 * kept connections, and each answer is held against the first one, which is looked at closely.
 *
 *     bench_http CARDPACK
 */
#include "bench.h"
#include "http_child.h"
#include "limit.h"
#include "scheduler_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX        "/gpushare-scheduler"
#define TEXT_MAX      (1024 * MIB)
#define NODES_MAX     500 /* with whole nodes: larger clusters have nodeCacheCapable */
#define SHORTLIST     10
#define SHORTLIST_ARG "10"
#define MEM_FITS      4
#define MEM_TOO_MUCH  14

/* What is asked, of whom, and what stands in a right answer once for each name in it. */
enum whom {
    ECHO,
    OWN_ECHO,
    CARDPACK,
    SHORTENED, /* the one with a shortlist */
    SERVERS,
};

struct question {
    const char *table; /* NULL: the limit */
    const char *what;
    const char *path;
    unsigned mem;
    enum whom whom;
    const char *text;
    bool in_all;   /* for each of the names; else as often as the shortlist is long */
    double target; /* of the ratio, with 5,000 names */
};

static const struct question questions[] = {
    {NULL, "echo", PREFIX "/filter", MEM_FITS, ECHO, "", true, 0},
    {"http-server", "echo by cardpack's server", PREFIX "/filter", MEM_FITS, OWN_ECHO, "", true, 0},
    {"filter-http", "all fit", PREFIX "/filter", MEM_FITS, CARDPACK, "\"node-", true, 3},
    {"filter-http", "none fits", PREFIX "/filter", MEM_TOO_MUCH, CARDPACK,
     "\":\"Insufficient GPU Memory in one device", true, 0},
    {"filter-http", "all fit, shortlist of 10", PREFIX "/filter", MEM_FITS, SHORTENED, "\"node-",
     false, 0},
    {"prioritize-http", "all fit", PREFIX "/prioritize", MEM_FITS, CARDPACK, "{\"Host\":\"node-",
     true, 0},
};

struct asked {
    struct talk talk;
    struct buf request;
    size_t answer_n; /* of a right answer */
};

static size_t ask(void *ctx)
{
    struct asked *a = ctx;
    talk_do(&a->talk, buf_str(&a->request));
    if (a->talk.status != 200 || a->talk.body.n != a->answer_n)
        die("another answer than before: %u, %zu bytes", a->talk.status, a->talk.body.n);
    return 1;
}

static size_t count(struct str in, const char *text)
{
    size_t n = 0;
    size_t text_n = strlen(text);
    const char *at;
    while ((at = memmem(in.p, in.n, text, text_n)) != NULL) {
        in = str_skip(in, (size_t)(at - in.p) + text_n);
        n++;
    }
    return n;
}

/* The first answer: whole, without an error, and with as many names as it must have. */
static void look(struct asked *a, const struct question *q, size_t names, bool by_name)
{
    talk_do(&a->talk, buf_str(&a->request));
    struct str body = a->talk.body;
    a->answer_n = body.n;
    if (q->whom == ECHO || q->whom == OWN_ECHO) {
        if (!str_ends(buf_str(&a->request), body))
            die("an echo answers something else");
        return;
    }
    size_t wanted = q->in_all ? names : MIN_OF(names, (size_t)SHORTLIST);
    bool filter = strcmp(q->table, "filter-http") == 0;
    bool offered = filter && q->mem == MEM_FITS;
    const char *text = offered && !by_name ? "{\"metadata\":{\"name\":\"node-" : q->text;
    size_t n = count(body, text);
    if (a->talk.status != 200 || n != wanted || (filter && !str_ends(body, STR("\"Error\":\"\"}"))))
        die("%s, %s, %zu names: status %u, %zu times %s: %.*s", q->table, q->what, names,
            a->talk.status, n, text, (int)MIN_OF(body.n, (size_t)1000), body.p);
}

static void tell(const struct question *q, size_t names, bool by_name, double us, double echo_us)
{
    char what[96];
    (void)snprintf(what, sizeof(what), "%s%s", q->what, by_name ? "" : ", whole nodes");
    bench_figure(&(struct figure){
        .table = q->table,
        .what = what,
        .by = "names",
        .x = names,
        .value = us,
        .unit = "us",
        .beside = "an echo of the same bytes",
        .limit = echo_us,
        .target = by_name && names == 5000 ? q->target : 0,
        .sense = BENCH_AT_MOST,
    });
}

/* What requests of a size leave behind in memory, once and not for each. */
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

static void measure(const char *program, const char *cluster, size_t names, bool by_name,
                    size_t rounds)
{
    enum {
        N = COUNT_OF(questions)
    };
    struct http_child servers[SERVERS];
    static struct asked asked[N];
    struct bench_side sides[N];
    echo_start(&servers[ECHO]);
    own_echo_start(&servers[OWN_ECHO]);
    cardpack_start(&servers[CARDPACK], program, cluster, "0");
    cardpack_start(&servers[SHORTENED], program, cluster, SHORTLIST_ARG);
    size_t fresh = http_child_resident(&servers[CARDPACK]);
    for (size_t i = 0; i < N; i++) {
        const struct question *q = &questions[i];
        struct buf body;
        buf_init(&body, TEXT_MAX);
        buf_init(&asked[i].request, TEXT_MAX);
        args_write(&body, names, q->mem, by_name);
        talk_request(&asked[i].request, q->path, buf_str(&body));
        buf_done(&body);
        talk_open(&asked[i].talk, servers[q->whom].port);
        look(&asked[i], q, names, by_name);
        sides[i] = (struct bench_side){.once = ask, .ctx = &asked[i]};
    }
    bench_turns(sides, N, rounds);
    tell_kept(names, by_name, fresh, http_child_resident(&servers[CARDPACK]));
    for (size_t i = 0; i < N; i++) {
        if (questions[i].table != NULL)
            tell(&questions[i], names, by_name, sides[i].us, sides[0].us);
        talk_close(&asked[i].talk);
        buf_done(&asked[i].request);
    }
    for (size_t i = 0; i < SERVERS; i++)
        http_child_stop(&servers[i]);
}

static void measure_cluster(const char *program, size_t names, size_t rounds)
{
    char path[TEMP_PATH];
    struct buf text;
    buf_init(&text, TEXT_MAX);
    cluster_write(&text, names);
    int fd = temp_open(path);
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0)
            die("%s can't be written", path);
        at += (size_t)n;
    }
    (void)close(fd);
    buf_done(&text);
    measure(program, path, names, true, rounds);
    if (names == NODES_MAX)
        measure(program, path, names, false, rounds / 2);
}

int main(int argc, char *argv[])
{
    static const struct {
        size_t names;
        size_t rounds;
    } sizes[] = {{1, 4000}, {NODES_MAX, 1000}, {5000, 300}, {50000, 40}};

    if (argc != 2)
        die("usage: %s CARDPACK", argv[0]);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        measure_cluster(argv[1], sizes[i].names, sizes[i].rounds);
    return EXIT_SUCCESS;
}
