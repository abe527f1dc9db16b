/*
 * Compares a plan with what it predicts: the same replicas are reserved one after the other, each
 * on the best feasible node, in random clusters. Planning must leave the cluster unchanged.
 */
#include "cache_rig.h"
#include "core/limit.h"
#include "core/place/fit.h"
#include "core/place/score.h"
#include "fail_alloc.h"
#include "report/plan.h"
#include "seeded.h"

#include <stdio.h>

#define NODES_MAX 6
#define PODS_MAX  24

struct text {
    char bytes[32];
};

struct draw {
    struct rig rig;
    uint64_t random;
    uint64_t seed;
    struct card_view cards[8];
    struct container_view containers[4];
    struct text texts[32];
    unsigned n_texts;
};

static uint32_t below(struct draw *d, uint32_t n)
{
    return seeded_draw(&d->random, n);
}

static bool chance(struct draw *d, uint32_t percent)
{
    return below(d, 100) < percent;
}

static struct str spell(struct draw *d, const char *prefix, unsigned number)
{
    struct text *t = &d->texts[d->n_texts++ % COUNT_OF(d->texts)];
    int n = snprintf(t->bytes, sizeof(t->bytes), "%s%u", prefix, number);
    return (struct str){t->bytes, (size_t)n};
}

static struct str one_of(struct draw *d, const char *a, const char *b)
{
    return str_of(chance(d, 50) ? a : b);
}

static void add_node(struct draw *d, unsigned i)
{
    uint32_t n = 1 + below(d, 4);
    uint32_t size = 4 + below(d, 13);
    struct cache_event e = {.type = CACHE_NODE_SET, .node = {.name = spell(d, "n", i)}};
    struct node_view *v = &e.node;
    if (chance(d, 90)) {
        v->mem = spell(d, "", n * size);
        v->count = spell(d, "", n);
        v->mem_allocatable = chance(d, 20) ? spell(d, "", n * size - below(d, size)) : v->mem;
    }
    if (v->mem.n > 0 && chance(d, 25)) {
        v->has_cards = true;
        v->cards = d->cards;
        v->n_cards = n;
        for (uint32_t c = 0; c < n; c++)
            d->cards[c] = (struct card_view){.index = 2 * c,
                                             .mem = 4 + below(d, 13),
                                             .numa = (int32_t)below(d, 2),
                                             .unhealthy = chance(d, 10),
                                             .model = one_of(d, "T4", "A100")};
    }
    if (chance(d, 20))
        v->cordoned = spell(d, "", below(d, n));
    if (chance(d, 20))
        v->max_pods = spell(d, "", 1 + below(d, 4));
    if (chance(d, 40))
        v->exclusive = spell(d, "", below(d, 9));
    if (chance(d, 15))
        v->exclusive_cards = spell(d, "", below(d, n));
    if (chance(d, 40))
        v->placement = one_of(d, "binpack", "spread");
    v->model = one_of(d, "T4", "A100");
    v->pool = one_of(d, "gold", "");
    ck_assert_int_eq(rig_apply(&d->rig, &e), OK);
}

/* Draws the containers, and the pod's other requests. */
static void draw_wishes(struct draw *d, struct pod_view *v)
{
    if (chance(d, 20))
        v->count_label = spell(d, "", 1 + below(d, 3));
    if (chance(d, 15))
        v->whole_label = STR("require-whole-device");
    else if (chance(d, 15))
        v->percent = spell(d, "", 1 + below(d, 100));
    if (chance(d, 10))
        v->card_model = one_of(d, "T4", "!T4");
    if (chance(d, 20))
        v->affinity = one_of(d, "a", "b");
    else if (chance(d, 20))
        v->anti_affinity = one_of(d, "a", "b");
    if (chance(d, 30))
        v->policy = one_of(d, "binpack", "spread");
    v->priority = (int32_t)below(d, 3);
}

static void draw_pod(struct draw *d, struct pod_view *v)
{
    bool exclusive = chance(d, 15);
    uint32_t n = chance(d, 60) ? 1 : 1 + below(d, 3);
    *v = (struct pod_view){.namespace = one_of(d, "ns", "other"),
                           .name = STR("p"),
                           .phase = STR("Pending"),
                           .containers = d->containers,
                           .n_containers = n,
                           .n_mains = n};
    for (uint32_t i = 0; i < n; i++) {
        struct container_view *c = &d->containers[i];
        *c = (struct container_view){.name = STR("c"), .index = i};
        if (exclusive)
            c->exclusive = spell(d, "", 1 + below(d, 2));
        if (!exclusive || chance(d, 20))
            c->mem = spell(d, "", 1 + below(d, 7));
        if (c->mem.n > 0 && chance(d, 25))
            c->cores = spell(d, "", 1 + below(d, 50));
        if (n > 1 && i + 1 == n && chance(d, 30)) {
            c->kind = chance(d, 50) ? CONTAINER_INIT : CONTAINER_SIDECAR;
            c->index = 0;
            v->n_mains = n - 1;
        }
    }
    if (!exclusive)
        draw_wishes(d, v);
}

/* A pod that is bound, reserved, nominated or being deleted. */
static void add_pod(struct draw *d, unsigned i, unsigned n_nodes)
{
    struct cache_event e = {.type = CACHE_POD_SET};
    struct request r;
    struct err err = ERR_INIT;
    draw_pod(d, &e.pod);
    e.pod.uid = e.pod.name = spell(d, "u", i);
    struct str node = spell(d, "n", below(d, n_nodes));
    bool readable = request_read(&e.pod, &r, &err) == OK && request_wants(&r);
    if (readable && chance(d, 60)) {
        e = (struct cache_event){.type = CACHE_RESERVE,
                                 .reserve = {.uid = e.pod.uid,
                                             .namespace = e.pod.namespace,
                                             .name = e.pod.name,
                                             .node = node,
                                             .request = &r}};
        (void)rig_apply(&d->rig, &e);
        return;
    }
    if (chance(d, 60)) {
        e.pod.node = node;
        e.pod.idx = spell(d, "", below(d, 5));
        e.pod.deleting = chance(d, 30);
        e.pod.phase = one_of(d, "Running", "Pending");
    } else {
        e.pod.nominated = node;
    }
    ck_assert_int_eq(rig_apply(&d->rig, &e), OK);
}

static int64_t draw_most(struct draw *d, uint32_t up_to)
{
    return chance(d, 40) ? QUOTA_UNLIMITED : (int64_t)below(d, up_to);
}

/* For one namespace, or for each. */
static void set_quota(struct draw *d)
{
    static const enum quota_scope scopes[] = {QUOTA_TOTAL, QUOTA_POOL, QUOTA_MODEL};
    static const struct str names[] = {{NULL, 0}, {"gold", 4}, {"T4", 2}};
    struct quota_limit limits[COUNT_OF(scopes)];
    struct quota_entry entry = {.namespace = one_of(d, "ns", "*"), .limits = limits};
    struct cache_event e = {.type = CACHE_QUOTA_SET, .quota = {&entry, 1}};
    for (size_t i = 0; i < COUNT_OF(scopes); i++) {
        if (chance(d, 60))
            limits[entry.n_limits++] = (struct quota_limit){
                .scope = scopes[i],
                .name = names[i],
                .most = {draw_most(d, 60), draw_most(d, 12), draw_most(d, 300)}};
    }
    ck_assert_int_eq(rig_apply(&d->rig, &e), OK);
}

static void draw_cluster(struct draw *d)
{
    unsigned nodes = 1 + below(d, NODES_MAX);
    unsigned pods = below(d, PODS_MAX);
    rig_init(&d->rig);
    d->rig.cache.settings = (struct cache_settings){.card_policy = (enum policy)below(d, 3),
                                                    .node_policy = (enum policy)below(d, 3)};
    for (unsigned i = 0; i < nodes; i++)
        add_node(d, i);
    for (unsigned i = 0; i < pods; i++)
        add_pod(d, i, nodes);
    if (chance(d, 40))
        set_quota(d);
}

/* Writes all state that affects decisions; each cluster has its own order. */
static void dump(const struct cache *c, struct buf *out)
{
    size_t cursor = 0;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        buf_put(out, n->name);
        buf_put(out, (struct str){(const char *)n, sizeof(*n)});
        buf_put(out, (struct str){(const char *)n->cards, n->n_cards * sizeof(n->cards[0])});
        for (const struct pod *p = n->pods; p != NULL; p = p->next)
            buf_put(out, (struct str){(const char *)p, sizeof(*p)});
    }
    ck_assert(!buf_failed(out));
}

#define draw_assert(d, condition) \
    ck_assert_msg((condition), "seed %llu: %s", (unsigned long long)(d)->seed, #condition)

/* The scheduler counts exclusive cards; neither filter nor bind does. */
static bool has_exclusive(const struct node *n, const struct request *r)
{
    return r->exclusive == 0 ||
           (n->fault != NODE_ABSENT && n->exclusive + (int64_t)r->exclusive <= n->sizes->exclusive);
}

/* Looks at every node. */
static const struct node *choose(struct draw *d, const struct evaluation *e)
{
    const struct request *r = e->request;
    const struct cache *c = &d->rig.cache;
    enum policy policy = policy_choose(r->node_policy, POLICY_UNSET, c->settings.node_policy);
    const struct node *best = NULL;
    uint64_t best_score = 0;
    size_t cursor = 0;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        uint64_t score = 0;
        if (fit_node(n, e) != VERDICT_FITS || !has_exclusive(n, r))
            continue;
        if (request_shares(r))
            score = score_share(n, fit_cost(n, r), policy);
        if (best == NULL || score > best_score ||
            (score == best_score && str_cmp(n->name, best->name) < 0)) {
            best = n;
            best_score = score;
        }
    }
    return best;
}

static void check_spot(struct draw *d, const struct plan_spot *spot, const struct pod *p)
{
    const struct pod_allocation *a = spot->allocation;
    const struct pod_allocation *b = p->allocation;
    draw_assert(d, str_eq(spot->site->real->name, p->node->name));
    draw_assert(d, a->n_grants == b->n_grants && a->n_shares == b->n_shares);
    draw_assert(d, a->n_grants == 0 ||
                       memcmp(a->grants, b->grants, a->n_grants * sizeof(a->grants[0])) == 0);
    draw_assert(d, a->n_shares == 0 ||
                       memcmp(a->shares, b->shares, a->n_shares * sizeof(a->shares[0])) == 0);
}

/* Reserves the replicas: they must go where the plan says, and no further replica may fit. */
static void follow(struct draw *d, const struct plan *plan, const struct request *r)
{
    struct evaluation evaluation;
    for (uint32_t i = 0; i <= plan->fit; i++) {
        struct str uid = spell(d, "r", i);
        cache_evaluation(&d->rig.cache, uid, r, &evaluation);
        const struct node *n = choose(d, &evaluation);
        if (i == plan->fit) {
            draw_assert(d, n == NULL || plan->fit == plan->replicas);
            break;
        }
        draw_assert(d, n != NULL);
        struct cache_event e = {.type = CACHE_RESERVE,
                                .reserve = {.uid = uid,
                                            .namespace = r->namespace,
                                            .name = STR("p"),
                                            .node = n->name,
                                            .request = r}};
        draw_assert(d, rig_apply(&d->rig, &e) == OK);
        check_spot(d, &plan->spots[i], d->rig.fx.pod);
    }
    for (size_t i = 0; i < plan->n_sites; i++) {
        const struct plan_site *s = &plan->sites[i];
        draw_assert(d, plan_next(plan, s) == plan_evaluate(s->real, &evaluation));
        draw_assert(d, plan->fit == plan->replicas || plan_next(plan, s) != VERDICT_FITS);
    }
}

static uint32_t try_seed(uint64_t seed)
{
    struct draw d = {.random = seed, .seed = seed};
    struct arena a;
    struct pod_view view;
    struct request r;
    struct err e = ERR_INIT;
    struct plan plan = {.fit = 0};
    struct buf before;
    struct buf after;
    arena_init(&a, 16 * MIB);
    buf_init(&before, MIB);
    buf_init(&after, MIB);
    draw_cluster(&d);
    draw_pod(&d, &view);
    if (request_read(&view, &r, &e) == OK && request_wants(&r)) {
        struct evaluation evaluation;
        cache_evaluation(&d.rig.cache, STR_NULL, &r, &evaluation);
        dump(&d.rig.cache, &before);
        ck_assert_int_eq(plan_make(&plan, &d.rig.cache, &evaluation, 1 + below(&d, 60), &a), OK);
        cache_check(&d.rig.cache);
        dump(&d.rig.cache, &after);
        draw_assert(&d, str_eq(buf_str(&before), buf_str(&after)));
        draw_assert(&d, !plan.exhausted);
        follow(&d, &plan, &r);
    }
    rig_done(&d.rig);
    arena_done(&a);
    buf_done(&before);
    buf_done(&after);
    return plan.fit;
}

TEST(a_plan_comes_true)
{
    uint64_t first = seeded_setting("CARDPACK_SEED", 1);
    uint64_t seeds = seeded_setting("CARDPACK_SEEDS", 3000);
    uint64_t placed = 0;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        placed += try_seed(seed);
    if (seeds >= 3000)
        ck_assert_uint_gt(placed, seeds);
}

/* ---- further cases by hand ---- */

static struct request memory(int64_t mem)
{
    return (struct request){.mem = mem,
                            .lasting_mem = mem,
                            .namespace = STR("ns"),
                            .n_demands = 1,
                            .demands = {{.mem = mem, .kind = CONTAINER_MAIN}}};
}

/* Of exclusive cards a plan uses no more than the node has. */
TEST(exclusive_pods_end_with_the_cards)
{
    struct rig r;
    struct arena a;
    struct plan p;
    const struct request q = {.exclusive = 3, .namespace = STR("ns")};
    const struct evaluation evaluation = {.request = &q};
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("a"), .exclusive = STR("8")}};
    rig_init(&r);
    arena_init(&a, MIB);
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    e.node = (struct node_view){.name = STR("none")};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_int_eq(plan_make(&p, &r.cache, &evaluation, 100, &a), OK);
    ck_assert_uint_eq(p.fit, 2);
    for (size_t i = 0; i < p.n_sites; i++)
        ck_assert_int_eq(plan_next(&p, &p.sites[i]), VERDICT_NO_EXCLUSIVE);
    ck_assert_int_eq(plan_evaluate(NULL, &evaluation), VERDICT_UNKNOWN_NODE);
    arena_done(&a);
    rig_done(&r);
}

/* The work has a ceiling: the plan returns what it has placed by then, and says that more may
 * fit. */
TEST(work_is_bounded)
{
    struct rig r;
    struct arena a;
    struct plan p;
    struct request q = memory(1);
    const struct evaluation evaluation = {.request = &q};
    rig_init(&r);
    arena_init(&a, 64 * MIB);
    node_set(&r, "n", "8388608", "1024", "8388608");
    q.affinity = STR("g");
    ck_assert_int_eq(plan_make(&p, &r.cache, &evaluation, LIMIT_WHATIF_REPLICAS, &a), OK);
    ck_assert_msg(p.exhausted, "%u fit, %llu", p.fit,
                  (unsigned long long)p.evaluation.step_budget->steps);
    ck_assert_uint_gt(p.fit, 10);
    ck_assert_uint_lt(p.fit, 8192); /* the card of the group has room for so many */
    arena_done(&a);
    rig_done(&r);
}

static enum errc make_plan(void *ctx)
{
    struct rig *r = ctx;
    struct arena a;
    struct plan p;
    const struct request q = memory(3);
    const struct evaluation evaluation = {.request = &q};
    arena_init(&a, MIB);
    enum errc code = plan_make(&p, &r->cache, &evaluation, 5, &a);
    if (code == OK)
        ck_assert_uint_eq(p.fit, 5);
    else
        ck_assert_int_eq(code, ERR_NOMEM);
    arena_done(&a);
    cache_check(&r->cache);
    return code;
}

TEST(without_memory_there_is_no_plan)
{
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "32", "2", "32");
    fail_alloc_each(make_plan, &r);
    rig_done(&r);
}

int main(void)
{
    TCase *tc = unit_case("plan");
    tcase_set_timeout(tc, 300);
    return unit_run();
}
