/*
 * The cost of hostile requests in steps; and by kind of work how long a step takes, as a multiple
 * of that of a usual request. Each row makes one thing as large as allowed, on a cluster of
 * BENCH_NODES nodes. No request may take more than LIMIT_REQUEST_STEPS, nor more than its row says;
 * with one thing doubled, it may take at most twice as many.
 */
#include "base/log.h"
#include "bench_cluster.h"
#include "core/limit.h"
#include "daemon/query/query.h"
#include "objects/limit.h"
#include "report/whatif.h"
#include "unit.h"
#include "verbs_fixture.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    NODES = 1000,
    CARDS = 8,
    PODS = 16, /* on each node */
};

/* The dimensions of a request and of its cluster; `filled` replaces each 0 by the usual value. */
struct size {
    size_t nodes;
    uint32_t cards;
    uint32_t pods;
    size_t repeats; /* of each name */
    size_t bytes;   /* of a list */
    size_t name;    /* length of each model and uuid, no two alike; 0: the usual ones */
    unsigned containers;
    unsigned replicas;
    size_t victims;  /* victims per node; the same ones repeated */
    size_t limits;   /* of the limited namespace, each of long models; 0: bench_cluster_limit's */
    unsigned shapes; /* that the policies have learned */
};

static struct size filled(struct size s)
{
    s.nodes = s.nodes == 0 ? NODES : s.nodes;
    s.cards = s.cards == 0 ? CARDS : s.cards;
    s.pods = s.pods == 0 ? PODS : s.pods;
    s.repeats = MAX_OF(s.repeats, (size_t)1);
    s.containers = MAX_OF(s.containers, 1U);
    s.replicas = MAX_OF(s.replicas, 1U);
    return s;
}

/* What the request's pod asks for. */
struct wants {
    const char *labels;
    const char *annotation; /* NULL: none */
    const char *item;       /* an item of the annotation's list */
    size_t bytes;           /* length of that list; 0: as in the size */
    unsigned mem; /* of a container; no node has room for it, so each is searched to the end */
};

#define MODEL  "cardpack.io/card-model"
#define UUID   "cardpack.io/card-uuid"
#define POLICY "cardpack.io/policy"
#define GROUP  "cardpack.io/card-anti-affinity-group"
#define ONE    "group-1"

static const struct wants models = {"", MODEL, "*N*V*I*D*I*A*x*", 0, 8};
static const struct wants uuids = {"", UUID, "GPU-ffffffffffffffffffffffffffffffff", 0, 8};
static const struct wants group = {"\"aliyun.com/gpu-count\":\"8\"", GROUP, ONE, sizeof(ONE) + 1,
                                   64};
/* No model has the 'b', and each has as many places to look for the rest as the rest is long. */
#define HOSTILE .bytes = 4000, .name = LIMIT_CARD_NAME
#define A16     "aaaaaaaaaaaaaaaa"
#define A112    A16 A16 A16 A16 A16 A16 A16
static const struct wants long_models = {"", MODEL, "*" A112 A16 "b*", 0, 8};
static const struct wants many_models = {"", MODEL, "*" A16 A16 "b", 0, 8};
static const struct wants short_models = {"", MODEL, "*b", 0, 8};
static const struct wants by_price = {"", POLICY, "bid-price", sizeof("bid-price") + 1, 8};
static const struct wants by_fgd = {"", POLICY, "fgd", sizeof("fgd") + 1, 8};
static const struct wants long_uuids = {"", UUID, A112 A112 A16, 0, 8};
static const struct wants quota = {"", NULL, "", 0, 8};
/* 16 containers of 3 to 18 on four cards with 40 free: many partial placements, and none
 * complete. */
static const struct wants containers = {"", MODEL, "", 0, 3};
static const struct wants apart = {"", GROUP, ONE, sizeof(ONE) + 1, 3};
static const struct wants little = {"", MODEL, "", 0, 1};

typedef void body_fn(struct buf *out, const struct size *s, const struct wants *w);

static void put_list(struct buf *out, const char *annotation, const char *item, size_t bytes)
{
    size_t begin = out->n;
    buf_printf(out, ",\"%s\":\"", annotation);
    for (size_t start = out->n; bytes > 0 && out->n - start + strlen(item) < bytes;)
        buf_printf(out, "%s%s", out->n == start ? "" : ",", item);
    if (bytes == 0)
        out->n = begin;
    else
        buf_printf(out, "\"");
}

static void put_pod(struct buf *out, const struct size *s, const struct wants *w)
{
    buf_printf(out,
               "{\"metadata\":{\"name\":\"p\",\"namespace\":\"%s\",\"uid\":\"u\",\"labels\":{%s},"
               "\"annotations\":{\"a\":\"b\"",
               w->annotation == NULL ? "team-limited" : "team-00", w->labels);
    if (w->annotation != NULL)
        put_list(out, w->annotation, w->item, w->bytes > 0 ? w->bytes : s->bytes);
    buf_printf(out, "}},\"spec\":{\"priority\":1000,\"containers\":[");
    for (unsigned i = 0; i < s->containers; i++)
        buf_printf(out,
                   "%s{\"name\":\"c%u\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":%u}}}",
                   i == 0 ? "" : ",", i, s->containers == 1 ? w->mem : w->mem + i);
    buf_printf(out, "]}}");
}

static void put_names(struct buf *out, const struct size *s)
{
    struct bench_name name;
    buf_printf(out, ",\"NodeNames\":[");
    for (size_t i = 0; i < s->nodes * s->repeats; i++)
        buf_printf(out, "%s\"%.*s\"", i == 0 ? "" : ",",
                   STR_ARG(bench_node_name(i % s->nodes, &name)));
    buf_printf(out, "]}");
}

static void with_names(struct buf *out, const struct size *s, const struct wants *w)
{
    buf_printf(out, "{\"Pod\":");
    put_pod(out, s, w);
    put_names(out, s);
}

static void in_replicas(struct buf *out, const struct size *s, const struct wants *w)
{
    buf_printf(out, "{\"replicas\":%u,\"pod\":", s->replicas);
    put_pod(out, s, w);
    buf_printf(out, "}");
}

static void with_victims(struct buf *out, const struct size *s, const struct wants *w)
{
    struct bench_name name;
    buf_printf(out, "{\"Pod\":");
    put_pod(out, s, w);
    buf_printf(out, ",\"NodeNameToMetaVictims\":{");
    for (size_t i = 0; i < s->nodes; i++) {
        buf_printf(out, "%s\"%.*s\":{\"Pods\":[", i == 0 ? "" : ",",
                   STR_ARG(bench_node_name(i, &name)));
        for (size_t k = 0; k < s->victims; k++)
            buf_printf(out, "%s{\"UID\":\"6f1d2c3b-%04x-4a5b-8c6d-%012zx\"}", k == 0 ? "" : ",", 1,
                       i);
        buf_printf(out, "]}");
    }
    buf_printf(out, "}}");
}

static void put_nothing(struct buf *out, const struct size *s, const struct wants *w)
{
    (void)out;
    (void)s;
    (void)w;
}

/* Instead of a number of steps: the limit ends the request. */
#define REFUSED UINT64_MAX

#define CARDS_OF ((uint64_t)NODES * CARDS)
#define PODS_OF  ((uint64_t)NODES * PODS)
#define DISTINCT ((uint64_t)LIMIT_WISH_BYTES)
#define REPEATS  UINT64_C(20)
#define SEARCHED ((uint64_t)NODES * REQUEST_DEMANDS_MAX * (CARDS + 1))

static const struct row {
    const char *what;
    handler *handle;
    body_fn *body;
    const struct wants *wants;
    struct size size;
    uint64_t most; /* steps */
} rows[] = {
    {"one card", filter_handle, with_names, &quota, {0}, 16 * CARDS_OF},
    {"patterns of models",
     filter_handle,
     with_names,
     &models,
     {.bytes = 1900},
     6 * CARDS_OF + DISTINCT},
    {"patterns of models",
     prioritize_handle,
     with_names,
     &models,
     {.bytes = 1900},
     6 * CARDS_OF + DISTINCT},
    {"uuids",
     filter_handle,
     with_names,
     &uuids,
     {.bytes = LIMIT_WISH_BYTES},
     12 * CARDS_OF + DISTINCT},
    {"names that are repeated",
     filter_handle,
     with_names,
     &group,
     {.repeats = REPEATS},
     16 * CARDS_OF + PODS_OF + REPEATS *NODES},
    {"names that are repeated",
     prioritize_handle,
     with_names,
     &group,
     {.repeats = REPEATS},
     16 * CARDS_OF + PODS_OF + REPEATS *NODES},
    {"containers",
     filter_handle,
     with_names,
     &containers,
     {.cards = 4, .pods = 8, .containers = REQUEST_DEMANDS_MAX},
     LIMIT_APART_LOOKS + 16 * CARDS_OF + 4 * PODS_OF + SEARCHED},
    {"containers",
     prioritize_handle,
     with_names,
     &containers,
     {.cards = 4, .pods = 8, .containers = REQUEST_DEMANDS_MAX},
     LIMIT_APART_LOOKS + 16 * CARDS_OF + 4 * PODS_OF + SEARCHED},
    {"explained",
     query_explain_post,
     put_pod,
     &apart,
     {.cards = 4, .pods = 8, .containers = REQUEST_DEMANDS_MAX},
     LIMIT_APART_LOOKS + 64 * CARDS_OF + 16 * PODS_OF + SEARCHED},
    {"replicas",
     query_fit,
     in_replicas,
     &little,
     {.containers = REQUEST_DEMANDS_MAX, .replicas = LIMIT_WHATIF_REPLICAS},
     LIMIT_REQUEST_STEPS},
    {"victims",
     preempt_handle,
     with_victims,
     &containers,
     {.cards = 4, .pods = 8, .containers = 16, .victims = 100},
     LIMIT_REQUEST_STEPS},
    {"victims",
     preempt_handle,
     with_victims,
     &containers,
     {.containers = 1, .victims = 100},
     (uint64_t)LIMIT_VICTIM_STEPS *LIMIT_VICTIM_LOOKS + UINT64_C(200) * NODES + 64 * PODS_OF +
         64 * CARDS_OF},
};

static void limit_long_models(struct cache *c, size_t n)
{
    struct effect effect;
    struct quota_limit limits[LIMIT_QUOTA_SCOPES];
    const struct quota_entry entry = {.namespace = BENCH_LIMITED, .limits = limits, .n_limits = n};
    struct cache_event e = {.type = CACHE_QUOTA_SET, .quota = {&entry, 1}};
    for (size_t i = 0; i < n; i++)
        limits[i] = (struct quota_limit){.scope = QUOTA_MODEL,
                                         .name = STR("*" A112 A16 "b*"),
                                         .most = {INT64_MAX, INT64_MAX, INT64_MAX}};
    ck_assert_int_eq(cache_apply(c, &e, 1, &effect), OK);
}

static void learn_shapes(struct cache *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        shapes_add(&c->learned.market.shapes,
                   &(struct shape){.cpu = i, .cards = 1, .mem = 1 + i % BENCH_CARD_MEM});
    ck_assert(learned_costs_begin(&c->learned, &c->nodes));
    while (learned_costs_step(&c->learned))
        continue;
}

/* What one request takes. */
struct cost {
    uint64_t steps;
    double ns; /* of the processor */
};

static double cpu_ns(void)
{
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static struct cost cost_of(const struct row *row, const struct size *size)
{
    struct size all = filled(*size);
    const struct size *s = &all;
    struct verbs_fixture d;
    struct bench_cluster g = {.nodes = s->nodes,
                              .cards = s->cards,
                              .pods = s->pods,
                              .pod_mem = BENCH_CARD_MEM / 4,
                              .tables = true,
                              .name_bytes = s->name};
    verbs_open(&d);
    log_setup(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    bench_cluster_build(&d.service.cache, &g);
    bench_cluster_limit(&d.service.cache);
    if (s->limits > 0)
        limit_long_models(&d.service.cache, s->limits);
    if (s->shapes > 0)
        learn_shapes(&d.service.cache, s->shapes);
    row->body(&d.request, s, row->wants);
    ck_assert(!buf_failed(&d.request));
    d.may_fail = row->most == REFUSED;
    d.service.step_budget.steps = UINT64_MAX;
    double began = cpu_ns();
    verbs_ask(&d, row->handle, buf_str(&d.request));
    struct cost ret = {d.service.step_budget.steps, cpu_ns() - began};
    verbs_close(&d);
    return ret;
}

static uint64_t steps_of(const struct row *row, const struct size *size)
{
    return cost_of(row, size).steps;
}

/* Kinds of work: each makes one thing dear that a tenant, a kubelet or an administrator chooses.
 * The first one is what a step takes in most requests. */
static const struct row kinds[] = {
    {"one card", filter_handle, with_names, &quota, {.nodes = 100}, 0},
    {"one card", query_explain_post, put_pod, &quota, {.nodes = 100}, 0},
    {"cards", query_explain_post, put_pod, &little, {.nodes = 20, .cards = 256}, 0},
    {"cards", query_fit, in_replicas, &little, {.nodes = 20, .cards = 256, .replicas = 50}, 0},
    {"nodes", query_fit, in_replicas, &little, {0}, 0},
    {"pods", query_explain_post, put_pod, &group, {.nodes = 10, .cards = 64, .pods = 500}, 0},
    {"pods", filter_handle, with_names, &group, {.nodes = 10, .cards = 64, .pods = 500}, 0},
    {"containers",
     query_explain_post,
     put_pod,
     &containers,
     {.nodes = 20, .cards = 64, .pods = 640, .containers = REQUEST_DEMANDS_MAX},
     0},
    {"long models", filter_handle, with_names, &long_models, {.nodes = 4, HOSTILE}, 0},
    {"long models", query_explain_post, put_pod, &long_models, {.nodes = 1, HOSTILE}, 0},
    {"long uuids", filter_handle, with_names, &long_uuids, {.nodes = 100, HOSTILE}, 0},
    {"long uuids", query_explain_post, put_pod, &long_uuids, {.nodes = 100, HOSTILE}, 0},
    {"models",
     filter_handle,
     with_names,
     &short_models,
     {.nodes = 100, .bytes = 200, .name = LIMIT_CARD_NAME},
     0},
    {"models of a quota",
     filter_handle,
     with_names,
     &quota,
     {.nodes = 4, .name = LIMIT_CARD_NAME, .limits = LIMIT_QUOTA_SCOPES},
     0},
    {"prices", prioritize_handle, with_names, &by_price, {.nodes = 50, .shapes = SHAPES_MAX}, 0},
    {"prices", query_explain_post, put_pod, &by_price, {.nodes = 50, .shapes = SHAPES_MAX}, 0},
    {"shapes", prioritize_handle, with_names, &by_fgd, {.nodes = 50, .shapes = SHAPES_MAX}, 0},
    {"shapes", query_explain_post, put_pod, &by_fgd, {.nodes = 50, .shapes = SHAPES_MAX}, 0},
};

/* How much longer a step of any kind may take than a step of the first kind. */
#define FACTOR 4

TEST_EACH(a_step_of_each_kind_takes_as_long, COUNT_OF(kinds))
{
    struct cost usual = cost_of(&kinds[0], &kinds[0].size);
    struct cost c = cost_of(&kinds[_i], &kinds[_i].size);
    for (unsigned i = 0; i < 5 && c.ns / (double)c.steps > FACTOR * usual.ns / (double)usual.steps;
         i++) {
        struct cost again = cost_of(&kinds[_i], &kinds[_i].size);
        usual = cost_of(&kinds[0], &kinds[0].size);
        c.ns = MIN_OF(c.ns, again.ns);
    }
    ck_assert_msg(c.ns / (double)c.steps <= FACTOR * usual.ns / (double)usual.steps,
                  "%s: %.0f ns for %llu steps, and usually %.0f ns for %llu", kinds[_i].what, c.ns,
                  (unsigned long long)c.steps, usual.ns, (unsigned long long)usual.steps);
}

/* Too much work for one request, for every handler: each of the kubelets of 60 nodes wrote its own
 * table. The last node, or the last model, may go beyond the limit. */
static const struct row endless[] = {
    {"filter",
     filter_handle,
     with_names,
     &many_models,
     {.nodes = 60, .cards = 256, HOSTILE},
     REFUSED},
    {"prioritize",
     prioritize_handle,
     with_names,
     &many_models,
     {.nodes = 60, .cards = 256, HOSTILE},
     REFUSED},
    {"preempt",
     preempt_handle,
     with_victims,
     &many_models,
     {.nodes = 60, .cards = 256, .victims = 1, HOSTILE},
     REFUSED},
    {"explain",
     query_explain_post,
     put_pod,
     &many_models,
     {.nodes = 60, .cards = 256, HOSTILE},
     REFUSED},
    {"fit",
     query_fit,
     in_replicas,
     &many_models,
     {.nodes = 60, .cards = 256, .replicas = 100, HOSTILE},
     REFUSED},
};

TEST_EACH(every_handler_ends_at_the_limit, COUNT_OF(endless))
{
    uint64_t steps = steps_of(&endless[_i], &endless[_i].size);
    ck_assert_uint_gt(steps, LIMIT_REQUEST_STEPS);
    ck_assert_uint_le(steps, LIMIT_REQUEST_STEPS + LIMIT_REQUEST_STEPS / 16);
}

/* inspect and cards count no steps: they write each card and each share of a pod once. Of four
 * times as many cards and pods nothing is a product. */
TEST(what_is_listed_is_read_once)
{
    static const struct row row = {"cards", query_cards, put_nothing, &quota, {0}, 0};
    static const struct size small = {.nodes = 1, .cards = 125, .pods = 500};
    static const struct size large = {.nodes = 1, .cards = 500, .pods = 2000};
    double once = cost_of(&row, &small).ns;
    double more = cost_of(&row, &large).ns;
    for (unsigned i = 0; i < 5 && more > 8 * once; i++) {
        once = cost_of(&row, &small).ns;
        more = MIN_OF(more, cost_of(&row, &large).ns);
    }
    ck_assert_msg(more <= 8 * once, "%.0f ns, and %.0f ns for four times as much", once, more);
}

TEST_EACH(a_request_takes_so_many_steps, COUNT_OF(rows))
{
    const struct row *row = &rows[_i];
    uint64_t steps = steps_of(row, &row->size);
    ck_assert_msg(steps <= row->most && steps <= LIMIT_REQUEST_STEPS && steps >= NODES,
                  "%s: %llu steps of %llu", row->what, (unsigned long long)steps,
                  (unsigned long long)row->most);
}

static const struct {
    handler *handle;
    body_fn *body;
    const struct wants *wants;
    struct size once;
    struct size twice;
} doubled[] = {

#define TWICE(handle, body, wants, of, n, ...)       \
    {                                                \
        handle, body, wants, {__VA_ARGS__.of = (n)}, \
        {                                            \
            __VA_ARGS__.of = UINT32_C(2) * (n)       \
        }                                            \
    }
    TWICE(filter_handle, with_names, &models, bytes, 900, ),
    TWICE(filter_handle, with_names, &models, nodes, 200, .bytes = 1900, ),
    TWICE(filter_handle, with_names, &models, cards, 32, .nodes = 100, .bytes = 1900, ),
    TWICE(filter_handle, with_names, &uuids, bytes, 2000, ),
    TWICE(filter_handle, with_names, &group, repeats, 8, .nodes = 200, ),
    TWICE(filter_handle, with_names, &group, pods, 32, .nodes = 100, ),
    TWICE(filter_handle, with_names, &group, cards, 64, .nodes = 50, ),
    TWICE(filter_handle, with_names, &quota, repeats, 8, .nodes = 200, ),
    TWICE(filter_handle, with_names, &containers, nodes, 200, .cards = 4, .pods = 8,
          .containers = 16, ),
    TWICE(filter_handle, with_names, &containers, pods, 8, .cards = 4, .nodes = 100,
          .containers = 16, ),
    TWICE(query_explain_post, put_pod, &apart, pods, 32, .nodes = 50, .containers = 16, ),
    TWICE(query_explain_post, put_pod, &apart, cards, 64, .nodes = 20, .containers = 4, ),
    TWICE(preempt_handle, with_victims, &containers, victims, 200, .nodes = 50, ),
    TWICE(preempt_handle, with_victims, &containers, nodes, 100, .victims = 10, ),
};

TEST_EACH(what_is_doubled_costs_twice_at_most, COUNT_OF(doubled))
{
    struct row row = {
        .handle = doubled[_i].handle, .body = doubled[_i].body, .wants = doubled[_i].wants};
    uint64_t once = steps_of(&row, &doubled[_i].once);
    uint64_t twice = steps_of(&row, &doubled[_i].twice);
    ck_assert_msg(twice <= 2 * once + once / 8 + 1000, "%llu steps, and then %llu",
                  (unsigned long long)once, (unsigned long long)twice);
}

/* A bind concerns one node, and may search it to the end. */
TEST(a_reservation_takes_so_many_steps)
{
    static struct step_budget step_budget;
    struct verbs_fixture d;
    struct bench_name name;
    struct effect effect;
    struct request r = {.n_demands = REQUEST_DEMANDS_MAX};
    struct bench_cluster g = {.nodes = 1, .cards = LIMIT_CARDS, .pods = LIMIT_CARDS, .pod_mem = 60};
    verbs_open(&d);
    bench_cluster_build(&d.service.cache, &g);
    for (uint32_t i = 0; i < r.n_demands; i++)
        r.demands[i] = (struct demand){.mem = i == 15 ? 21 : 7, .index = (uint16_t)i};
    r.mem = r.lasting_mem = 21 + 15 * 7;
    step_budget_begin(&step_budget, 1);
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = STR("u"),
                                        .namespace = STR("ns"),
                                        .name = STR("p"),
                                        .node = bench_node_name(0, &name),
                                        .request = &r,
                                        .step_budget = &step_budget}};
    ck_assert_int_eq(cache_apply(&d.service.cache, &e, 1, &effect), ERR_UNAVAILABLE);
    ck_assert_uint_le(step_budget.steps, LIMIT_APART_LOOKS + UINT64_C(32) * LIMIT_CARDS);
    ck_assert_uint_gt(step_budget.steps, LIMIT_CARDS);
    verbs_close(&d);
}

int main(void)
{
    TCase *tc = unit_case("steps");
    tcase_set_timeout(tc, 300);
    return unit_run();
}
