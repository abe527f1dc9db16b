/*
 * The memory of nodes and pods in the cache, in bytes of the allocator's blocks by kind of block;
 * and whether it grows over months of pods that come and go. A block's bytes are what malloc gave,
 * plus the size that malloc keeps before it.
 *
 * Pods are named and labelled as by controllers: replicas of Deployments, with equal labels and
 * requests in one Deployment, and pods of Jobs, each with its own labels.
 */
#include "bench.h"
#include "core/cache/cache.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TABLE "core-memory"
#define CARDS 8
#define MEBI  (1024.0 * 1024.0)

/* Every fifth pod wants a card. */
#define ONE_IN 5

#define REPLICAS   20
#define NAMESPACES 40
#define LIVES      5 /* pods of a Deployment's version */

enum owner {
    DEPLOYMENTS,
    JOBS,
    MIXED,
};

static const char *const owner_names[] = {"Deployments", "Jobs", "both"};

/* Texts made from one number. */
struct texts {
    char uid[64];
    char namespace[64];
    char name[128];
    char node[64];
    char idx[16];
    char time[24];
    char mem[16];
    char app[64];
    char hash[32];
    char owner[64];
};

struct world {
    struct cache cache;
    enum owner owner;
    size_t n_nodes;
    size_t n_pods; /* pods that want a card */
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static struct str text(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static struct str text(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(to, size, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= size)
        abort();
    return (struct str){to, (size_t)n};
}

#define TEXT(to, ...) text(to, sizeof(to), __VA_ARGS__)

static void apply(struct world *w, const struct cache_event *e)
{
    struct effect effect;
    if (cache_apply(&w->cache, e, UINT64_C(1784000000000000000), &effect) != OK)
        abort();
}

static void add_node(struct world *w, uint64_t i)
{
    char name[64];
    char pool[32];
    struct str cards = STR("8");
    struct str mem = STR("640");
    apply(w, &(struct cache_event){
                 .type = CACHE_NODE_SET,
                 .node = {.name = TEXT(name, "gpu-node-%05llu", (unsigned long long)i),
                          .mem = mem,
                          .count = cards,
                          .mem_allocatable = mem,
                          .model = STR("NVIDIA-A100-SXM4-80GB"),
                          .pool = TEXT(pool, "pool-%u", (unsigned)(i % 5))}});
}

static struct str uid_of(uint64_t i, char *to, size_t size)
{
    uint64_t a = mix(i + 1);
    uint64_t b = mix(a);
    return text(to, size, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
                (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff, (unsigned)(b >> 48) & 0xffff,
                (unsigned long long)b & 0xffffffffffff);
}

/* The cache keeps no pod that wants no card. */
static void add_plain(struct world *w, uint64_t i)
{
    char uid[64];
    apply(w, &(struct cache_event){.type = CACHE_POD_SET,
                                   .pod = {.uid = uid_of(i, uid, sizeof(uid)),
                                           .namespace = STR("web"),
                                           .name = STR("web-0"),
                                           .node = STR("gpu-node-00000"),
                                           .phase = STR("Running")}});
}

static size_t deployment_labels(struct texts *t, uint64_t set, uint64_t version,
                                struct label_view *to)
{
    to[0] =
        (struct label_view){STR("app"), TEXT(t->app, "inference-%05llu", (unsigned long long)set)};
    to[1] = (struct label_view){STR("app.kubernetes.io/part-of"), STR("model-serving")};
    to[2] = (struct label_view){STR("pod-template-hash"),
                                TEXT(t->hash, "%010llx", (unsigned long long)mix(version) >> 24)};
    to[3] = (struct label_view){STR("version"), STR("v1.4.2")};
    return 4;
}

static size_t job_labels(struct texts *t, uint64_t i, struct label_view *to)
{
    struct str uid = uid_of(i ^ 0x5555555, t->owner, sizeof(t->owner));
    struct str name = TEXT(t->app, "train-%08llu", (unsigned long long)i);
    to[0] = (struct label_view){STR("batch.kubernetes.io/controller-uid"), uid};
    to[1] = (struct label_view){STR("batch.kubernetes.io/job-name"), name};
    to[2] = (struct label_view){STR("controller-uid"), uid};
    to[3] = (struct label_view){STR("job-name"), name};
    return 4;
}

/* A pod that holds memory of a card, as the watch shows it. */
static void add_pod(struct world *w, uint64_t i)
{
    struct texts t;
    struct label_view labels[4];
    bool job = w->owner == JOBS || (w->owner == MIXED && mix(i) % 2 == 0);
    /* A replacement pod belongs to the same Deployment, sometimes to another version of it. */
    uint64_t life = i / w->n_pods;
    uint64_t set = i % w->n_pods / REPLICAS;
    uint64_t version = set + ((life / LIVES) << 32);
    uint64_t node = mix(i) % w->n_nodes;
    struct container_view c = {.name = STR("main"),
                               .mem = TEXT(t.mem, "%u", (unsigned)(1 + mix(set) % 16)),
                               .kind = CONTAINER_MAIN};
    struct pod_view v = {
        .uid = uid_of(i, t.uid, sizeof(t.uid)),
        .namespace = TEXT(t.namespace, "team-%02u-models", (unsigned)(set % NAMESPACES)),
        .node = TEXT(t.node, "gpu-node-%05llu", (unsigned long long)node),
        .phase = STR("Running"),
        .initialized = true,
        .idx = TEXT(t.idx, "%u", (unsigned)(i % CARDS)),
        .assigned = STR("true"),
        .assume_time = TEXT(t.time, "%llu", 1783000000000000000 + (unsigned long long)i),
        .containers = &c,
        .n_containers = 1,
        .n_mains = 1,
        .labels = labels,
        .n_labels = job ? job_labels(&t, i, labels) : deployment_labels(&t, set, version, labels),
    };
    v.name =
        job ? TEXT(t.name, "train-%08llu-%05x", (unsigned long long)i, (unsigned)mix(i) & 0xfffff)
            : TEXT(t.name, "inference-%05llu-%010llx-%05x", (unsigned long long)set,
                   (unsigned long long)mix(version) >> 24, (unsigned)mix(i) & 0xfffff);
    apply(w, &(struct cache_event){.type = CACHE_POD_SET, .pod = v});
}

static void remove_pod(struct world *w, uint64_t i)
{
    char uid[64];
    apply(w, &(struct cache_event){.type = CACHE_POD_GONE, .pod.uid = uid_of(i, uid, sizeof(uid))});
}

static double resident(void)
{
    char line[128] = "";
    struct str size;
    struct str rest;
    uint64_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fgets(line, sizeof(line), f) == NULL || fclose(f) != 0)
        abort();
    (void)str_cut(str_of(line), ' ', &size, &rest);
    (void)str_cut(rest, ' ', &size, &rest);
    if (!str_to_u64(size, UINT64_MAX, &pages))
        abort();
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void figure(const struct world *w, const char *what, const char *by, double value,
                   const char *unit)
{
    char row[96];
    (void)TEXT(row, "%s (%s)", what, owner_names[w->owner]);
    bench_figure(&(struct figure){.table = TABLE,
                                  .what = row,
                                  .by = by,
                                  .x = by[0] == 'n' ? w->n_nodes : w->n_pods,
                                  .value = value,
                                  .unit = unit});
}

/* Blocks of one kind; shared blocks count once. */
struct sum {
    const void **found;
    size_t n;
    size_t bytes;
    size_t blocks;
};

static void note(struct sum *s, size_t max, const void *block)
{
    if (s->found == NULL)
        s->found = malloc(max * sizeof(*s->found));
    if (s->found == NULL || s->n > max)
        abort();
    if (block != NULL)
        s->found[s->n++] = block;
}

static int by_address(const void *a, const void *b)
{
    const void *const *x = a;
    const void *const *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t add_up(struct sum *s)
{
    if (s->found == NULL)
        return 0;
    qsort(s->found, s->n, sizeof(*s->found), by_address);
    for (size_t i = 0; i < s->n; i++) {
        if (i > 0 && s->found[i] == s->found[i - 1])
            continue;
        void *block; /* malloc_usable_size takes no const pointer, but changes nothing */
        memcpy(&block, &s->found[i], sizeof(block));
        s->bytes += malloc_usable_size(block) + sizeof(size_t);
        s->blocks++;
    }
    free(s->found);
    return s->bytes;
}

static size_t tell_pods(const struct world *w)
{
    static const char *const rows[] = {"pod: struct, names", "pod: request", "pod: allocation",
                                       "pod: labels"};
    struct sum sums[COUNT_OF(rows)] = {{0}};
    size_t cursor = 0;
    size_t bytes = 0;
    size_t blocks = 0;
    for (const struct pod *p = cache_next_pod(&w->cache, &cursor); p != NULL;
         p = cache_next_pod(&w->cache, &cursor)) {
        note(&sums[0], w->n_pods, p);
        /* The request follows its header in the table. */
        note(&sums[1], w->n_pods, (const char *)p->request - sizeof(struct interned));
        note(&sums[2], w->n_pods, p->allocation);
        note(&sums[3], w->n_pods, p->labels);
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bytes += add_up(&sums[i]);
        blocks += sums[i].blocks;
        figure(w, rows[i], "pods", (double)sums[i].bytes / (double)w->n_pods, "bytes");
    }
    figure(w, "pod, in all", "pods", (double)bytes / (double)w->n_pods, "bytes");
    figure(w, "pod, in all", "pods", (double)blocks / (double)w->n_pods, "blocks");
    return bytes;
}

static size_t tell_nodes(const struct world *w)
{
    static const char *const rows[] = {"node: struct, name", "node: sizes",
                                       "node: usage of 8 cards"};
    struct sum sums[COUNT_OF(rows)] = {{0}};
    size_t cursor = 0;
    size_t bytes = 0;
    for (const struct node *n = cache_next_node(&w->cache, &cursor); n != NULL;
         n = cache_next_node(&w->cache, &cursor)) {
        note(&sums[0], w->n_nodes, n);
        note(&sums[1], w->n_nodes, n->sizes);
        note(&sums[2], w->n_nodes, n->cards);
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bytes += add_up(&sums[i]);
        figure(w, rows[i], "nodes", (double)sums[i].bytes / (double)w->n_nodes, "bytes");
    }
    figure(w, "node, in all", "nodes", (double)bytes / (double)w->n_nodes, "bytes");
    return bytes;
}

static void tell(const struct world *w, double before)
{
    double taken = resident() - before;
    struct mallinfo2 info = mallinfo2();
    size_t maps = 0;
    void *const tables[] = {w->cache.pods.slots, w->cache.nodes.slots, w->cache.requests.heads,
                            w->cache.sizes.heads, w->cache.labels.heads};
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        maps += tables[i] == NULL ? 0 : malloc_usable_size(tables[i]);
    size_t bytes = tell_pods(w) + tell_nodes(w) + maps;
    figure(w, "maps, tables", "pods", (double)maps / MEBI, "MiB");
    figure(w, "nodes, pods, maps", "pods", (double)bytes / MEBI, "MiB");
    figure(w, "all that malloc gave", "pods", (double)(info.uordblks + info.hblkhd) / MEBI, "MiB");
    figure(w, "resident", "pods", taken / MEBI, "MiB");
}

static void open_world(struct world *w)
{
    cache_init(&w->cache, (struct map_seed){1, 2});
    for (uint64_t i = 0; i < w->n_nodes; i++)
        add_node(w, i);
    for (uint64_t i = 0; i < w->n_pods; i++) {
        add_pod(w, i);
        for (uint64_t k = 1; k < ONE_IN; k++)
            add_plain(w, i + (k << 40));
    }
}

/* Deletes pods in random order and adds others. */
static void churn(struct world *w, size_t events, double empty)
{
    uint64_t *there = malloc(w->n_pods * sizeof(*there));
    if (there == NULL)
        abort();
    for (size_t i = 0; i < w->n_pods; i++)
        there[i] = i;
    double before = resident() - empty;
    for (size_t i = 0; i < events / 2; i++) {
        size_t at = mix(i) % w->n_pods;
        remove_pod(w, there[at]);
        there[at] += w->n_pods;
        add_pod(w, there[at]);
    }
    char row[96];
    (void)TEXT(row, "after %zu events (%s)", events, owner_names[w->owner]);
    bench_figure(&(struct figure){.table = TABLE,
                                  .what = row,
                                  .by = "pods",
                                  .x = w->n_pods,
                                  .value = (resident() - empty) / MEBI,
                                  .unit = "MiB",
                                  .beside = "before",
                                  .limit = before / MEBI,
                                  .target = 1.1,
                                  .sense = BENCH_AT_MOST});
    free(there);
}

/* In a new process, so that no memory of an earlier measurement is resident. */
static void measure(enum owner owner, size_t nodes, size_t pods, size_t events)
{
    struct world w = {.owner = owner, .n_nodes = nodes, .n_pods = pods};
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        double empty = resident();
        open_world(&w);
        tell(&w, empty);
        (void)malloc_trim(0); /* frees what the count itself used */
        churn(&w, events, empty);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(1);
}

int main(void)
{
    if (bench_is_quick()) {
        measure(MIXED, 10, 100, 1000);
        return 0;
    }
    measure(DEPLOYMENTS, 5000, 20000, 1000000);
    measure(JOBS, 5000, 20000, 1000000);
    measure(MIXED, 1000, 4000, 1000000);
    measure(MIXED, 5000, 20000, 1000000);
    measure(MIXED, 50000, 200000, 1000000);
    return 0;
}
