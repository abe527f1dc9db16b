/*
 * What a watch event of the largest pod costs, beside one of a plain pod of as many bytes. A tenant
 * can change such a pod again and again, and nothing else happens meanwhile: no cost may be the
 * product of two numbers that the pod's author chooses.
 */
#include "base/limit.h"
#include "base/log.h"
#include "core/limit.h"
#include "core/preempt/budget.h"
#include "kube/ingest.h"
#include "unit.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* What an API server 1.36.3 stores in one pod. */
enum {
    CONTAINERS = 18000,
    SEATS = 7000,
    LABELS = 60000,
    CLASSES = 20000,
    LIST_BYTES = 250000, /* all annotations: 256 KiB */
};

/* How much longer the event may take. */
#define FACTOR 4

struct kind {
    const char *what;
    enum dialect dialect;
    unsigned containers;
    unsigned labels;
    unsigned classes;
    const char *first; /* of the list of cards or devices; NULL: 255 cards */
    const char *then;  /* the rest of the list, again and again; NULL: nothing */
    size_t most;       /* of the list, in bytes; 0: LIST_BYTES */
    unsigned seats_of; /* the first container that has a seat; CONTAINERS: none has one */
};

#define GPUSHARE(what, ...)                 \
    {                                       \
        what, DIALECT_GPUSHARE, __VA_ARGS__ \
    }
#define VOLCANO(what, ...)                 \
    {                                      \
        what, DIALECT_VOLCANO, __VA_ARGS__ \
    }
#define ELASTIC(what, ...)                             \
    {                                                  \
        what, DIALECT_ELASTIC, CONTAINERS, __VA_ARGS__ \
    }
#define TENCENT(what, ...)                             \
    {                                                  \
        what, DIALECT_TENCENT, CONTAINERS, __VA_ARGS__ \
    }
#define VGPU(what, ...)                 \
    {                                   \
        what, DIALECT_VGPU, __VA_ARGS__ \
    }
#define HAMI(what, ...)                 \
    {                                   \
        what, DIALECT_HAMI, __VA_ARGS__ \
    }

static const struct kind kinds[] = {
    GPUSHARE("containers", CONTAINERS, .first = "0"),
    GPUSHARE("labels", 1, .labels = LABELS, .first = "0"),
    GPUSHARE("DeviceClasses", 1, .classes = CLASSES, .first = "0"),
    GPUSHARE("one card again and again", 1, .first = "0", .then = ",0"),
    GPUSHARE("many cards again and again", 1, .then = ",254"),
    GPUSHARE("no cards", 1, .first = "x", .then = ","),
    VOLCANO("containers", CONTAINERS, .first = "0"),
    VOLCANO("many cards again and again", 1, .then = ",254"),
    ELASTIC("many cards again and again", .then = ",254"),
    ELASTIC("seats of no container", .seats_of = CONTAINERS),
    ELASTIC("seats of the last containers", .seats_of = CONTAINERS - SEATS),
    TENCENT("seats of no container", .seats_of = CONTAINERS),
    TENCENT("seats of the last containers", .seats_of = CONTAINERS - SEATS),
    VGPU("containers", CONTAINERS, .first = "GPU-0,NVIDIA,1,1:"),
    VGPU("devices", 16, .first = "", .then = "a,b:"),
    HAMI("containers", CONTAINERS, .first = "GPU-0,NVIDIA,1,1:"),
    HAMI("parts without a device", 16, .first = "", .then = ";"),
    HAMI("devices without a name", 16, .first = "", .then = ",,:"),
    HAMI("devices of a large node", 4000,
         .first = "GPU-00000000-0000-4000-8000-00000000ffff,NVIDIA,1,1:", .most = 30000,
         .then = "GPU-00000000-0000-4000-8000-00000000ffff,N,1,1:"),
};

static void put_list(struct buf *out, const struct kind *k)
{
    size_t from = out->n;
    buf_printf(out, "\"%s", k->first == NULL ? "0" : k->first);
    for (unsigned i = 1; k->first == NULL && i < 255; i++)
        buf_printf(out, ",%u", i);
    while (k->then != NULL && out->n - from < (k->most > 0 ? k->most : LIST_BYTES))
        buf_printf(out, "%s", k->then);
    buf_printf(out, "\"");
}

static void put_annotations(struct buf *out, const struct kind *k)
{
    const struct dialect_facts *d = dialect_facts(k->dialect);
    bool named = k->dialect == DIALECT_ELASTIC;
    if (d->seat.p == NULL)
        buf_printf(out, "\"%.*s\":", STR_ARG(d->idx));
    else if (k->then != NULL)
        buf_printf(out, "\"%.*s%s0\":", STR_ARG(d->seat), named ? "c" : "");
    if (d->seat.p == NULL || k->then != NULL) {
        put_list(out, k);
        return;
    }
    for (unsigned i = 0; i < SEATS; i++)
        buf_printf(out, "%s\"%.*s%s%u\":\"0\"", i == 0 ? "" : ",", STR_ARG(d->seat),
                   named ? "c" : "", k->seats_of + i);
}

static void put_resources(struct buf *out, const struct kind *k)
{
    const struct dialect_facts *d = dialect_facts(k->dialect);
    buf_printf(out, "\"%.*s\":\"1\"", STR_ARG(d->mem));
    if (d->cores.p != NULL)
        buf_printf(out, ",\"%.*s\":\"1\"", STR_ARG(d->cores));
    if (dialect_has_uuids(k->dialect))
        buf_printf(out, ",\"%.*s\":\"1\"", STR_ARG(d->count));
    for (unsigned i = 0; i < k->classes; i++)
        buf_printf(out, ",\"deviceclass.resource.kubernetes.io/%05u\":\"1\"", i);
}

static void put_containers(struct buf *out, const struct kind *k)
{
    for (unsigned i = 0; i < k->containers; i++) {
        buf_printf(out, "%s{\"name\":\"c%u\",\"resources\":{\"limits\":{", i == 0 ? "" : ",", i);
        put_resources(out, k);
        buf_printf(out, "}}}");
    }
}

static void put_pod(struct buf *out, const struct kind *k)
{
    buf_printf(out, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\","
                    "\"labels\":{\"a\":\"\"");
    for (unsigned i = 0; i < k->labels; i++)
        buf_printf(out, ",\"l%u\":\"\"", i);
    buf_printf(out, "},\"annotations\":{");
    put_annotations(out, k);
    buf_printf(out, "}},\"spec\":{\"nodeName\":\"node\",\"containers\":[");
    put_containers(out, k);
    buf_printf(out, "]},\"status\":{\"phase\":\"Pending\"}}");
    ck_assert(!buf_failed(out));
}

/* A pod of as many bytes, with so many containers that ask for CPU and memory. */
static void put_plain_pod(struct buf *out, size_t bytes)
{
    buf_printf(out, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"v\"},"
                    "\"spec\":{\"nodeName\":\"node\",\"containers\":[");
    for (unsigned i = 0; out->n < bytes; i++)
        buf_printf(out,
                   "%s{\"name\":\"c%u\",\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":"
                   "\"1Gi\"}}}",
                   i == 0 ? "" : ",", i);
    buf_printf(out, "]},\"status\":{\"phase\":\"Pending\"}}");
    ck_assert(!buf_failed(out));
}

/* Its kubelet has written as many cards as are read, and not all of one kind of UUID. */
static void put_node(struct buf *out)
{
    const struct dialect_facts *d = dialect_facts(DIALECT_HAMI);
    buf_printf(out, "{\"metadata\":{\"name\":\"node\",\"annotations\":{\"%.*s\":\"",
               STR_ARG(d->table));
    for (unsigned i = 0; i < LIMIT_CARDS; i++)
        buf_printf(out, "%s00000000-0000-4000-8000-%012x,10,16384,100,NVIDIA-A100,0,true:",
                   i == 0 ? "MIG-" : "GPU-", i);
    buf_printf(out, "\"}},\"status\":{\"capacity\":{\"%.*s\":\"10240\"}}}", STR_ARG(d->count));
    ck_assert(!buf_failed(out));
}

static double cpu_ms(void)
{
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static double cost_of(struct ingest *in, const struct buf *pod)
{
    double from = cpu_ms();
    ingest_pod(in, buf_str(pod), false);
    ck_assert(!in->lost && in->n_unreadable == 0);
    return cpu_ms() - from;
}

TEST_EACH(the_largest_pod_costs_what_its_bytes_cost, COUNT_OF(kinds))
{
    const struct kind *k = &kinds[_i];
    struct loop *l = NULL;
    struct cache c;
    struct ingest in;
    struct buf pod;
    struct buf plain;
    double ms = 0;
    double usual = 0;
    ck_assert_int_eq(loop_new(&l, NULL), OK);
    dialects_use(DIALECTS_ALL);
    log_setup(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    cache_init(&c, (struct map_seed){1, 2});
    ingest_init(&in, l, &c);
    buf_init(&pod, LIMIT_OBJECT_BYTES);
    buf_init(&plain, LIMIT_OBJECT_BYTES);
    put_node(&pod);
    ingest_node(&in, buf_str(&pod), false);
    ck_assert_uint_eq(cache_node(&c, STR("node"))->n_cards, LIMIT_CARDS);
    buf_clear(&pod, LIMIT_OBJECT_BYTES);
    put_pod(&pod, k);
    put_plain_pod(&plain, pod.n);
    for (unsigned i = 0; i < 6 && (i == 0 || ms > FACTOR * usual); i++) {
        double now = cost_of(&in, &pod);
        ms = i == 0 ? now : MIN_OF(ms, now);
        usual = cost_of(&in, &plain);
    }
    const struct pod *p = cache_pod(&c, STR("u"));
    ck_assert(p != NULL && p->node != NULL && p->request->dialect == k->dialect);
    if (k->then != NULL && k->dialect == DIALECT_GPUSHARE)
        ck_assert_int_le(p->card, 0); /* of a list that is too long its first part counts */
    ck_assert_msg(ms <= FACTOR * usual, "%.*s, %s: %.1f ms, and %.1f ms for a plain pod",
                  STR_ARG(dialect_facts(k->dialect)->name), k->what, ms, usual);
    buf_done(&plain);
    buf_done(&pod);
    ingest_done(&in);
    cache_done(&c);
    (void)loop_free(l);
}

/* Of `n` budgets in one namespace. */
static double cost_of_deletions(unsigned n)
{
    struct budgets b;
    char name[16];
    budgets_init(&b, (struct map_seed){1, 2});
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "b%u", i);
        const struct budget_view v = {.namespace = STR("ns"), .name = str_of(name)};
        ck_assert_int_eq(budgets_set(&b, &v), OK);
    }
    double from = cpu_ms();
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "b%u", i);
        ck_assert(budgets_gone(&b, STR("ns"), str_of(name)));
    }
    double ms = cpu_ms() - from;
    budgets_done(&b);
    return ms;
}

TEST(a_deleted_budget_is_not_searched_for)
{
    double once = cost_of_deletions(1000);
    double more = cost_of_deletions(16000);
    for (unsigned i = 0; i < 5 && more > 16 * FACTOR * once; i++) {
        once = cost_of_deletions(1000);
        more = MIN_OF(more, cost_of_deletions(16000));
    }
    ck_assert_msg(more <= 16 * FACTOR * once, "%.1f ms, and %.1f ms for 16 times as many", once,
                  more);
}

int main(void)
{
    TCase *tc = unit_case("event_cost");
    tcase_set_timeout(tc, 300);
    return unit_run();
}
