/*
 * One decision in process, without HTTP: filter with a shortlist, and prioritize for the nodes of
 * the shortlist. The cluster has the nodes of Alibaba's production trace (openb, 1,213 nodes with
 * 6,212 cards), filled by the policy itself with pods of the trace's most frequent sizes. Measured
 * for a request that was never asked before, and for one that another pod has asked before, after a
 * node has changed.
 */
#include "bench.h"
#include "bench_cluster.h"
#include "extender/extender.h"
#include "verbs_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARD      16000 /* memory of each card */
#define SHORTLIST 10
#define ROUNDS    200
#define FILLED    70 /* hundredths of the cards */

static const struct {
    size_t nodes;
    unsigned cards;
    unsigned cores;
    const char *model;
} kinds[] = {
    {549, 8, 96, "G2"},     {387, 2, 104, "T4"},   {107, 2, 16, "P100"},   {39, 8, 128, "G3"},
    {28, 4, 32, "V100M16"}, {22, 2, 64, "P100"},   {21, 8, 96, "V100M32"}, {19, 1, 8, "V100M16"},
    {17, 4, 96, "T4"},      {9, 4, 48, "V100M32"}, {7, 8, 64, "V100M16"},  {3, 1, 8, "P100"},
    {2, 2, 8, "P100"},      {2, 1, 128, "A10"},    {1, 8, 82, "V100M16"},
};

/* Sizes of pods: thousandths of each card, and how many of a hundred pods have it. */
static const struct {
    unsigned cards;
    unsigned milli;
    unsigned weight;
} sizes[] = {{1, 810, 16}, {1, 1000, 40}, {1, 470, 12}, {1, 650, 5}, {1, 320, 8},
             {1, 230, 7},  {2, 1000, 4},  {4, 1000, 3}, {8, 1000, 5}};

#define USUAL 2 /* the size of the decisions that are measured */

struct question {
    struct buf args;
    size_t head; /* bytes before the list of names */
};

struct decision {
    struct verbs_fixture verbs;
    size_t nodes;
    uint64_t cards;
    uint64_t random;
    unsigned pods;
    struct question usual[COUNT_OF(sizes)]; /* for pods of each size */
    struct question anew[ROUNDS + 8];
    size_t n_anew;
    unsigned n_seen;
    struct buf next; /* the request of prioritize */
};

static uint64_t draw(struct decision *d, uint64_t below)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return d->random % below;
}

static void apply(struct decision *d, const struct cache_event *e)
{
    struct effect effect;
    if (cache_apply(&d->verbs.service.cache, e, UINT64_C(1700000000000000000), &effect) != OK)
        abort();
}

static void build(struct decision *d)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        for (size_t i = 0; i < kinds[k].nodes; i++) {
            struct bench_name name;
            char mem[24];
            char count[24];
            char cpu[24];
            (void)snprintf(mem, sizeof(mem), "%u", kinds[k].cards * CARD);
            (void)snprintf(count, sizeof(count), "%u", kinds[k].cards);
            (void)snprintf(cpu, sizeof(cpu), "%u", kinds[k].cores);
            struct cache_event e = {.type = CACHE_NODE_SET};
            e.node.name = bench_node_name(d->nodes, &name);
            e.node.mem = e.node.mem_allocatable = str_of(mem);
            e.node.count = str_of(count);
            e.node.cpu = str_of(cpu);
            e.node.memory = STR("512Gi");
            e.node.model = str_of(kinds[k].model);
            apply(d, &e);
            d->nodes++;
            d->cards += kinds[k].cards;
        }
    }
}

/* less: taken away from the memory, so that the request is a new one of nearly the same size. */
static void write_question(struct decision *d, struct question *q, unsigned cards, unsigned milli,
                           unsigned less)
{
    static const char key[] = "\"NodeNames\":";
    char labels[64] = "";
    char limits[64];
    if (cards > 1)
        (void)snprintf(labels, sizeof(labels), ",\"aliyun.com/gpu-count\":\"%u\"", cards);
    (void)snprintf(limits, sizeof(limits), ",\"aliyun.com/gpu-mem\":\"%u\"",
                   cards * (milli * (CARD / 1000) - less));
    const struct wish wish = {.labels = labels,
                              .annotations = "",
                              .limits = limits,
                              .namespace = "team-00",
                              .containers = 1};
    buf_init(&q->args, MIB);
    bench_write_args(&q->args, &wish, d->nodes);
    const char *names = memmem(q->args.p, q->args.n, key, sizeof(key) - 1);
    if (names == NULL)
        abort();
    q->head = (size_t)(names - q->args.p) + sizeof(key) - 1;
}

/* The names in the answer, with their brackets. */
static struct str names_of(const struct buf *answer)
{
    static const char key[] = "\"NodeNames\":";
    const char *begin = memmem(answer->p, answer->n, key, sizeof(key) - 1);
    const char *end = begin == NULL ? NULL : memchr(begin, ']', answer->n);
    if (end == NULL)
        abort();
    begin += sizeof(key) - 1;
    return (struct str){begin, (size_t)(end + 1 - begin)};
}

static void learn(struct decision *d)
{
    struct learned_costs *p = &d->verbs.service.cache.learned;
    if (learned_costs_begin(p, &d->verbs.service.cache.nodes)) {
        while (learned_costs_step(p)) {
        }
    }
}

/* Places a pod of this size on the best node, if there is one. */
static void place(struct decision *d, size_t size)
{
    struct verbs_fixture *v = &d->verbs;
    struct filter_args args;
    struct request request;
    struct err e = ERR_INIT;
    char uid[32];
    verbs_ask(v, filter_handle, buf_str(&d->usual[size].args));
    struct str names = names_of(&v->answer);
    if (names.n <= 2)
        return;
    const char *quote = memchr(names.p + 2, '"', names.n - 2);
    if (quote == NULL ||
        extender_read_filter(buf_str(&d->usual[size].args), &v->arena, &args, &e) != OK)
        abort();
    (void)snprintf(uid, sizeof(uid), "uid-%u", d->pods++);
    args.pod.uid = args.pod.name = str_of(uid);
    apply(d, &(struct cache_event){.type = CACHE_POD_SET, .pod = args.pod});
    if (request_read(&args.pod, &request, &e) != OK)
        abort();
    apply(d,
          &(struct cache_event){.type = CACHE_RESERVE,
                                .reserve = {.uid = args.pod.uid,
                                            .namespace = args.pod.namespace,
                                            .name = args.pod.name,
                                            .node = {names.p + 2, (size_t)(quote - (names.p + 2))},
                                            .request = &request}});
}

static void fill(struct decision *d)
{
    uint64_t placed = 0;
    d->verbs.service.shortlist = 1;
    for (unsigned i = 0; placed < d->cards * FILLED * 10; i++) {
        size_t k = 0;
        for (uint64_t at = draw(d, 100); at >= sizes[k].weight; k++)
            at -= sizes[k].weight;
        unsigned before = d->pods;
        place(d, k);
        placed += d->pods > before ? sizes[k].cards * sizes[k].milli : 0;
        if (i % 200 == 100)
            learn(d);
    }
    d->verbs.service.shortlist = SHORTLIST;
}

static void decide(struct decision *d, const struct question *q)
{
    struct verbs_fixture *v = &d->verbs;
    verbs_ask(v, filter_handle, buf_str(&q->args));
    buf_clear(&d->next, SIZE_MAX);
    buf_put(&d->next, str_head(buf_str(&q->args), q->head));
    buf_put(&d->next, names_of(&v->answer));
    buf_putc(&d->next, '}');
    verbs_ask(v, prioritize_handle, buf_str(&d->next));
}

/* Another pod of the same shape: another UID. */
static void take_next_pod(struct decision *d)
{
    static const char key[] = "\"uid\":\"";
    struct buf *args = &d->usual[USUAL].args;
    char digits[9];
    char *uid = memmem(args->p, args->n, key, sizeof(key) - 1);
    if (uid == NULL)
        abort();
    (void)snprintf(digits, sizeof(digits), "%08u", d->n_seen++);
    memcpy(uid + sizeof(key) - 1, digits, sizeof(digits) - 1);
}

static size_t decide_seen(void *ctx)
{
    struct decision *d = ctx;
    take_next_pod(d);
    decide(d, &d->usual[USUAL]);
    return 1;
}

static size_t decide_anew(void *ctx)
{
    struct decision *d = ctx;
    decide(d, &d->anew[d->n_anew++]);
    return 1;
}

/* A pod ends, and comes again somewhere. */
static size_t change(void *ctx)
{
    struct decision *d = ctx;
    char uid[32];
    (void)snprintf(uid, sizeof(uid), "uid-%u", d->pods - 1);
    apply(d, &(struct cache_event){.type = CACHE_CANCEL, .holder = {.uid = str_of(uid)}});
    apply(d, &(struct cache_event){.type = CACHE_POD_GONE, .pod = {.uid = str_of(uid)}});
    d->verbs.service.shortlist = 1;
    place(d, USUAL);
    d->verbs.service.shortlist = SHORTLIST;
    return 1;
}

static void measure(enum policy policy)
{
    static struct decision d;
    d = (struct decision){.random = 88172645463325252U};
    verbs_open(&d.verbs);
    d.verbs.service.cache.settings.node_policy = policy;
    d.verbs.service.cache.settings.card_policy = policy;
    build(&d);
    buf_init(&d.next, MIB);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        write_question(&d, &d.usual[i], sizes[i].cards, sizes[i].milli, 0);
    for (size_t i = 0; i < COUNT_OF(d.anew); i++)
        write_question(&d, &d.anew[i], 1, sizes[USUAL].milli, (unsigned)i + 1);
    fill(&d);
    learn(&d);
    place(&d, USUAL);
    struct bench_side sides[] = {{.once = change, .ctx = &d},
                                 {.once = decide_seen, .ctx = &d},
                                 {.once = decide_anew, .ctx = &d}};
    bench_turns_alone(sides, COUNT_OF(sides), ROUNDS);
    for (int i = 1; i <= 2; i++) {
        char what[64];
        (void)snprintf(what, sizeof(what), "%s, %s", policy_name(policy),
                       i == 1 ? "a shape seen before" : "the first time");
        bench_figure(&(struct figure){.table = "decision",
                                      .what = what,
                                      .value = sides[i].us,
                                      .unit = "us",
                                      .target = i == 1 ? 30 : 100,
                                      .sense = BENCH_AT_MOST});
    }
    for (size_t i = 0; i < COUNT_OF(d.anew); i++)
        buf_done(&d.anew[i].args);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        buf_done(&d.usual[i].args);
    buf_done(&d.next);
    verbs_close(&d.verbs);
}

/* Arguments: the policies; by default all. */
int main(int argc, char **argv)
{
    static const enum policy policies[] = {POLICY_BINPACK, POLICY_SPREAD, POLICY_FGD,
                                           POLICY_BID_PRICE};

    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        bool asked = argc == 1;
        for (int k = 1; k < argc; k++)
            asked = asked || strcmp(argv[k], policy_name(policies[i])) == 0;
        if (asked)
            measure(policies[i]);
    }
    return 0;
}
