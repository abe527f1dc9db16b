/*
 * What the cost of filter and prioritize does not depend on, shown without a clock: the memory of
 * pods, and of nodes outside the request, is made inaccessible, and the answer is the same. So such
 * pods and cards cost a request nothing. Requests that depend on other pods read only the pods of
 * the named nodes.
 */
#include "access_check.h"
#include "bench_cluster.h"
#include "unit.h"
#include "verbs_fixture.h"

enum {
    NODES = 48,
    ASKED = 16, /* the first nodes */
    CARDS = 8,
    HALF = BENCH_CARD_MEM / 2,
};

/* Node i has owner 1 + i, its pods have owner 1 + NODES + i. */
static bool asked_without_pods(unsigned owner)
{
    return owner <= ASKED;
}

static bool asked_with_pods(unsigned owner)
{
    return owner <= ASKED || (owner > NODES && owner <= NODES + ASKED);
}

static const struct wish plain = WISH_PLAIN;
static const struct wish two_cards = {"two cards", ",\"aliyun.com/gpu-count\":\"2\"",
                                      "",          ",\"aliyun.com/gpu-mem\":\"16\"",
                                      "team-00",   1};
static const struct wish percent = {
    "a percentage", "", ",\"cardpack.io/gpu-mem-percent\":\"30\"", ",\"aliyun.com/gpu-mem\":\"1\"",
    "team-00",      1};
static const struct wish whole = {"a whole card",
                                  ",\"ack.gpushare.placement\":\"require-whole-device\"",
                                  "",
                                  ",\"aliyun.com/gpu-mem\":\"1\"",
                                  "team-00",
                                  1};
static const struct wish apart = {"two containers", "", "", ",\"aliyun.com/gpu-mem\":\"4\"",
                                  "team-00",        2};
static const struct wish model = {
    "a model", "", ",\"cardpack.io/card-model\":\"NVIDIA-A100*\"", ",\"aliyun.com/gpu-mem\":\"8\"",
    "team-00", 1};
static const struct wish limited = {"a quota",      "", "", ",\"aliyun.com/gpu-mem\":\"8\"",
                                    "team-limited", 1};
static const struct wish beside = {"an affinity group",
                                   "",
                                   ",\"cardpack.io/card-affinity-group\":\"group-1\"",
                                   ",\"aliyun.com/gpu-mem\":\"8\"",
                                   "team-00",
                                   1};
static const struct wish not_beside = {"an anti-affinity group",
                                       "",
                                       ",\"cardpack.io/card-anti-affinity-group\":\"group-1\"",
                                       ",\"aliyun.com/gpu-mem\":\"8\"",
                                       "team-00",
                                       1};

typedef bool reach(unsigned owner);

static const struct {
    const struct wish *wish;
    handler *handle;
    unsigned shortlist;
    uint32_t pods; /* on each node; each uses half a card */
    size_t fit;
    reach *reach;
} rows[] = {
    {&plain, filter_handle, 0, CARDS, ASKED, asked_without_pods},
    {&plain, filter_handle, 0, 2 * CARDS, 0, asked_without_pods},
    {&plain, filter_handle, 3, CARDS, 3, asked_without_pods},
    {&plain, prioritize_handle, 0, CARDS, ASKED, asked_without_pods},
    {&plain, prioritize_handle, 0, 2 * CARDS, ASKED, asked_without_pods},
    {&two_cards, filter_handle, 0, CARDS, ASKED, asked_without_pods},
    {&percent, filter_handle, 0, CARDS, ASKED, asked_without_pods},
    {&whole, filter_handle, 0, CARDS / 2, ASKED, asked_without_pods},
    {&whole, filter_handle, 0, CARDS, 0, asked_without_pods},
    {&apart, filter_handle, 0, CARDS, ASKED, asked_without_pods},
    {&model, filter_handle, 0, CARDS, ASKED, asked_with_pods},
    {&limited, filter_handle, 0, CARDS, ASKED, asked_with_pods},
    {&beside, filter_handle, 0, CARDS, ASKED, asked_with_pods},
    {&not_beside, filter_handle, 0, CARDS, ASKED, asked_with_pods},
    {&not_beside, prioritize_handle, 0, CARDS, ASKED, asked_with_pods},
};

struct act {
    struct verbs_fixture verbs;
    handler *handle;
};

static void share_all(struct map *m)
{
    size_t cursor = 0;
    access_share(m->slots);
    for (void *object = map_next(m, &cursor); object != NULL; object = map_next(m, &cursor))
        access_share(object);
}

/* The maps are shared by all, and so is the data of a namespace and of a group. */
static void build(struct act *a, uint32_t pods, const struct wish *wish, size_t asked)
{
    struct cache *c = &a->verbs.service.cache;
    struct bench_cluster g = {
        .nodes = 1, .cards = CARDS, .pods = pods, .pod_mem = HALF, .tables = wish != &plain};
    size_t cursor = 0;
    verbs_open(&a->verbs);
    for (g.first = 0; g.first < NODES; g.first++) {
        access_own(1 + (unsigned)g.first);
        bench_cluster_build_nodes(c, &g);
        access_own(1 + NODES + (unsigned)g.first);
        bench_cluster_build_pods(c, &g);
    }
    access_own(0);
    bench_cluster_limit(c);
    access_share(c->nodes.slots);
    access_share(c->slots);
    access_share(c->pods.slots);
    share_all(&c->groups);
    share_all(&c->quota.tenants);
    for (const struct quota_tenant *t = map_next(&c->quota.tenants, &cursor); t != NULL;
         t = map_next(&c->quota.tenants, &cursor))
        access_share(t->used);
    bench_write_args(&a->verbs.request, wish, asked);
}

static void ask(void *ctx)
{
    struct act *a = ctx;
    verbs_ask(&a->verbs, a->handle, buf_str(&a->verbs.request));
}

TEST_EACH(nothing_else_is_touched, COUNT_OF(rows))
{
    struct act a = {.handle = rows[_i].handle};
    struct buf whole_answer;
    size_t fit;
    size_t failed;
    build(&a, rows[_i].pods, rows[_i].wish, ASKED);
    a.verbs.service.shortlist = rows[_i].shortlist;
    buf_init(&whole_answer, MIB);
    ask(&a);
    buf_put(&whole_answer, buf_str(&a.verbs.answer));
    verbs_count(&a.verbs, &fit, &failed);
    ck_assert_uint_eq(fit, rows[_i].fit);
    ck_assert_uint_eq(access_run(rows[_i].reach, ask, &a), 0);
    ck_assert(str_eq(buf_str(&a.verbs.answer), buf_str(&whole_answer)));
    buf_done(&whole_answer);
    verbs_close(&a.verbs);
}

/* Tests the access check. */
TEST(a_touch_is_noticed)
{
    struct act a = {.handle = filter_handle};
    build(&a, CARDS, &not_beside, ASKED);
    unsigned touched = access_run(asked_without_pods, ask, &a);
    ck_assert_uint_gt(touched, NODES);
    ck_assert_uint_le(touched, NODES + ASKED);
    verbs_close(&a.verbs);
    build(&a, CARDS, &plain, NODES);
    touched = access_run(asked_without_pods, ask, &a);
    ck_assert_uint_gt(touched, ASKED);
    ck_assert_uint_le(touched, NODES);
    verbs_close(&a.verbs);
}
