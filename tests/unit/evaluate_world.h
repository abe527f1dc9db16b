/*
 * A small cluster for test_evaluate_model.c: random events of all kinds, and requests of few
 * shapes, so that the same shape is asked again after some events.
 */
#pragma once

#include "core/cache/cache.h"
#include "core/dialect/gpushare.h"
#include "extender/extender.h"
#include "seeded.h"
#include "unit.h"

#include <stdio.h>

enum {
    W_NODES = 6,
    W_PODS = 14,
    W_CARDS = 4,
    W_SHAPES = 6, /* of each history */
    W_NAMES = 24, /* at most, in one question */
    W_PARTS = 3,  /* containers */
};

static const char *const w_nodes[] = {"node-0", "node-1", "node-2", "node-3", "node-4",
                                      "node-5", "node-x", "n"}; /* the last two never exist */
static const char *const w_pods[W_PODS + 1] = {"u0",  "u1",  "u2",  "u3",  "u4",
                                               "u5",  "u6",  "u7",  "u8",  "u9",
                                               "u10", "u11", "u12", "u13", "unknown"};
static const char *const w_spaces[] = {"a", "b", "c"};
static const char *const w_models[] = {NULL, "T4", "A10", "A100", "H100", "L4", "L40"};
static const char *const w_pools[] = {NULL, "gold", "silver"};
static const char *const w_numbers[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                        "9", "10", "11", "12", "13", "14", "15", "16"};

struct w_pod {
    struct container_view containers[W_PARTS];
    struct grant_view grants[W_CARDS];
    struct pod_view view;
};

struct world {
    struct cache *cache; /* the test's */
    struct w_pod shapes[W_SHAPES];
    uint64_t random;
    uint64_t seed;
    unsigned step;
    char what[64]; /* the event */
    unsigned met[VERDICT_COUNT];
};

#define world_assert(w, condition)                                                               \
    do {                                                                                         \
        if (!(condition))                                                                        \
            ck_abort_msg("seed %llu step %u (%s): %s", (unsigned long long)(w)->seed, (w)->step, \
                         (w)->what, #condition);                                                 \
    } while (0)

static inline uint32_t draw(struct world *w, uint32_t below)
{
    return seeded_draw(&w->random, below);
}

static inline bool once_in(struct world *w, uint32_t n)
{
    return draw(w, n) == 0;
}

static inline struct str one_of(struct world *w, const char *const *texts, uint32_t n)
{
    return str_of(texts[draw(w, n)]);
}

#define ONE_OF(w, texts) one_of((w), (texts), COUNT_OF(texts))

static inline void apply(struct world *w, const char *what, const struct cache_event *e)
{
    struct effect fx;
    (void)snprintf(w->what, sizeof(w->what), "%s", what);
    enum errc code = cache_apply(w->cache, e, 1000 + w->step, &fx);
    world_assert(w, code != ERR_NOMEM && code != ERR_INTERNAL);
}

static inline void make_containers(struct world *w, struct w_pod *p)
{
    static const char *const cores[] = {NULL, NULL, NULL, "20", "60"};
    uint32_t n = once_in(w, 4) ? 1 + draw(w, W_PARTS) : 1;
    for (uint32_t i = 0; i < n; i++)
        p->containers[i] = (struct container_view){.name = STR("c"),
                                                   .mem = str_of(w_numbers[1 + draw(w, 8)]),
                                                   .cores = ONE_OF(w, cores),
                                                   .index = i};
    if (once_in(w, 12))
        p->containers[0].exclusive = STR("1");
    if (once_in(w, 16))
        p->containers[0].mem = STR_NULL;
    if (once_in(w, 40))
        p->containers[0].mem = STR("none");
    p->view.containers = p->containers;
    p->view.n_containers = n;
    p->view.n_mains = n;
}

static inline void make_wishes(struct world *w, struct pod_view *v)
{
    static const char *const percents[] = {"25", "50"};
    static const char *const wishes[] = {"A10*", "!T4", "T4, A10"};
    static const char *const uuids[] = {"GPU-1", "!GPU-2"};
    static const char *const groups[] = {"g", "h"};
    static const char *const policies[] = {"binpack", "spread", "fgd", "bid-price"};
    static const char *const flags[] = {"true"};
    uint32_t kind = draw(w, 12); /* most have one wish, some have several */
    if (kind == 0 || once_in(w, 16))
        v->count_label = str_of(w_numbers[2 + draw(w, 2)]);
    if (kind == 1 || once_in(w, 20))
        v->whole_label = GPUSHARE_WHOLE_DEVICE;
    if (kind == 2 || once_in(w, 16))
        v->percent = ONE_OF(w, percents);
    if (kind == 3 || once_in(w, 16))
        v->card_model = ONE_OF(w, wishes);
    if (kind == 4)
        v->card_uuid = ONE_OF(w, uuids);
    if (kind == 5 || once_in(w, 16))
        v->affinity = ONE_OF(w, groups);
    if (kind == 6 || once_in(w, 16))
        v->anti_affinity = ONE_OF(w, groups);
    if (kind == 7)
        v->card_policy = ONE_OF(w, policies);
    if (kind == 8)
        v->node_policy = ONE_OF(w, policies);
    if (kind == 9 && once_in(w, 3))
        v->require_isolation = ONE_OF(w, flags);
    v->priority = (int32_t)draw(w, 3);
    v->host = (struct host){250 * (int64_t)draw(w, 4), 0};
}

static inline void make_pod(struct world *w, struct w_pod *p, const char *uid, const char *space)
{
    *p = (struct w_pod){.view = {.uid = str_of(uid),
                                 .name = str_of(uid),
                                 .namespace = str_of(space),
                                 .phase = STR("Pending")}};
    make_containers(w, p);
    make_wishes(w, &p->view);
}

/* A pod of a known shape, or of a new one. */
static inline void some_pod(struct world *w, struct w_pod *p)
{
    uint32_t i = draw(w, W_PODS);
    const char *space = w_spaces[i % COUNT_OF(w_spaces)];
    make_pod(w, p, w_pods[i], space);
    if (once_in(w, 2))
        return;
    const struct w_pod *like = &w->shapes[draw(w, W_SHAPES)];
    struct str uid = p->view.uid;
    *p = *like;
    p->view.uid = p->view.name = uid;
    p->view.containers = p->containers;
}

/* ---- events ---- */

static inline void event_node(struct world *w)
{
    static const char *const sizes[] = {"16", "32", "32", "33", "48", NULL, "none"};
    static const char *const counts[] = {"2", "2", "3", "4", NULL};
    static const char *const limits[] = {NULL, NULL, NULL, "20"};
    static const char *const cpus[] = {NULL, "2", "4"};
    static const char *const lists[] = {NULL, NULL, NULL, "0", "1"};
    static const char *const placements[] = {NULL, NULL, "spread", "bid-price"};
    static const char *const uuids[] = {NULL, "GPU-1", "GPU-2"};
    static const char *const most[] = {NULL, NULL, NULL, "1", "2"};
    static const char *const isolations[] = {NULL, "mps", "none"};
    struct card_view cards[W_CARDS];
    struct node_view v = {.name = str_of(w_nodes[draw(w, W_NODES)]),
                          .mem = ONE_OF(w, sizes),
                          .count = ONE_OF(w, counts),
                          .mem_allocatable = ONE_OF(w, limits),
                          .cpu = ONE_OF(w, cpus),
                          .cordoned = ONE_OF(w, lists),
                          .placement = ONE_OF(w, placements),
                          .max_pods = ONE_OF(w, most),
                          .model = ONE_OF(w, w_models),
                          .pool = ONE_OF(w, w_pools),
                          .isolation = ONE_OF(w, isolations),
                          .has_cards = once_in(w, 3)};
    if (once_in(w, 6))
        v.exclusive = STR("2");
    if (once_in(w, 8))
        v.exclusive_cards = ONE_OF(w, lists);
    for (uint32_t i = 0; v.has_cards && i < W_CARDS; i++) {
        if (i > 0 && once_in(w, 3))
            continue;
        cards[v.n_cards++] = (struct card_view){.index = i,
                                                .mem = 8 + draw(w, 9),
                                                .numa = (int32_t)draw(w, 3) - 1,
                                                .model = ONE_OF(w, w_models),
                                                .uuid = ONE_OF(w, uuids)};
    }
    v.cards = cards;
    apply(w, "node", &(struct cache_event){.type = CACHE_NODE_SET, .node = v});
}

static inline void event_node_gone(struct world *w)
{
    struct str name = one_of(w, w_nodes, W_NODES);
    apply(w, "node gone", &(struct cache_event){.type = CACHE_NODE_GONE, .node = {.name = name}});
}

static inline void event_health(struct world *w)
{
    static const char *const lists[] = {"0", "1", "0,1", ""};
    enum cache_event_type type = once_in(w, 3) ? CACHE_HEALTH_GONE : CACHE_HEALTH_SET;
    struct cache_event e = {.type = type,
                            .health = {one_of(w, w_nodes, W_NODES), ONE_OF(w, lists)}};
    apply(w, "health", &e);
}

static inline void event_pod(struct world *w, enum cache_event_type type)
{
    static const char *const phases[] = {"Pending", "Running", "Running", "Succeeded"};
    static const char *const assigned[] = {NULL, "true", "false"};
    static const char *const cards[] = {"0", "0", "1", "2", "9", NULL};
    static const char *const vacated[] = {"1"};
    struct w_pod p;
    some_pod(w, &p);
    if (once_in(w, 3)) {
        if (once_in(w, 2))
            p.view.nominated = one_of(w, w_nodes, W_NODES);
    } else {
        p.view.node = one_of(w, w_nodes, W_NODES);
        p.view.phase = ONE_OF(w, phases);
        p.view.assigned = ONE_OF(w, assigned);
        p.view.idx = ONE_OF(w, cards);
        p.view.initialized = once_in(w, 2);
        if (once_in(w, 10))
            p.view.vacated = ONE_OF(w, vacated);
        if (once_in(w, 40))
            p.view.fault = STR("the test says so");
    }
    p.view.deleting = once_in(w, 6);
    if (once_in(w, 8)) { /* asks for no card */
        p.view.containers = NULL;
        p.view.n_containers = 0;
    }
    apply(w, "pod", &(struct cache_event){.type = type, .pod = p.view});
}

static inline struct str some_uid(struct world *w)
{
    return one_of(w, w_pods, W_PODS);
}

static inline void event_pod_gone(struct world *w)
{
    apply(w, "pod gone",
          &(struct cache_event){.type = CACHE_POD_GONE, .pod = {.uid = some_uid(w)}});
}

static inline void event_reserve(struct world *w)
{
    struct w_pod p;
    struct request r;
    struct err e;
    some_pod(w, &p);
    if (request_read(&p.view, &r, &e) != OK || !request_wants(&r))
        return;
    struct cache_event event = {.type = CACHE_RESERVE,
                                .reserve = {.uid = p.view.uid,
                                            .namespace = p.view.namespace,
                                            .name = p.view.name,
                                            .node = one_of(w, w_nodes, W_NODES),
                                            .request = &r}};
    apply(w, "reserve", &event);
}

static inline void event_holder(struct world *w)
{
    static const enum cache_event_type types[] = {CACHE_CONFIRM, CACHE_CANCEL, CACHE_UNKEEP,
                                                  CACHE_RENEW};
    struct cache_event e = {.type = types[draw(w, COUNT_OF(types))],
                            .holder = {.uid = some_uid(w), .read_back = once_in(w, 2)}};
    apply(w, "holder", &e);
}

static inline void event_keep(struct world *w)
{
    struct str uid = some_uid(w);
    const struct pod *p = cache_pod(w->cache, uid);
    if (p == NULL)
        return;
    struct placement there = {.n = 1};
    there.grants[0] =
        (struct grant){.mem = p->request->mem, .card = draw(w, 2), .container = UINT16_MAX};
    struct cache_event e = {.type = CACHE_KEEP, .keep = {uid, one_of(w, w_nodes, W_NODES), &there}};
    apply(w, "keep", &e);
}

static inline void event_list(struct world *w)
{
    struct cache_event e = {.type = once_in(w, 3) ? CACHE_LIST_END : CACHE_LIST_BEGIN,
                            .list = (enum cache_kind)draw(w, CACHE_ALL_KINDS)};
    apply(w, "list", &e);
}

static inline void event_quota(struct world *w)
{
    struct quota_limit limits[2];
    struct str pools[] = {STR("gold"), STR("")};
    struct str models[] = {STR("A10*")};
    struct quota_entry entries[2] = {{.namespace = STR("a"), .limits = limits, .n_limits = 2},
                                     {.namespace = STR("*"), .limits = limits, .n_limits = 1}};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        limits[i] =
            (struct quota_limit){.scope = (enum quota_scope)draw(w, 3), .most = {-1, -1, -1}};
        limits[i].most[draw(w, QUOTA_KINDS)] = draw(w, 40);
        if (limits[i].scope != QUOTA_TOTAL)
            limits[i].name = limits[i].scope == QUOTA_POOL ? STR("gold") : STR("A10*");
    }
    if (once_in(w, 3)) {
        entries[0].pools = pools;
        entries[0].n_pools = 1 + draw(w, 2);
    }
    if (once_in(w, 4)) {
        entries[0].models = models;
        entries[0].n_models = 1;
    }
    struct cache_event e = {.type = once_in(w, 5) ? CACHE_QUOTA_GONE : CACHE_QUOTA_SET,
                            .quota = {entries, 1 + draw(w, 2)}};
    apply(w, "quota", &e);
}

/* The devices of a node's slice are the two cards with UUIDs of event_node. */
static inline void event_dra(struct world *w)
{
    static const struct dra_device_view devices[] = {
        {.name = {"1", 1}, .uuid = {"GPU-1", 5}, .memory = 16},
        {.name = {"2", 1}, .uuid = {"GPU-2", 5}, .memory = 16}};
    static const char *const uids[] = {"c", "d", "e"};
    struct str node = one_of(w, w_nodes, W_NODES);
    struct dra_result_view held = {.driver = STR("g"),
                                   .pool = node,
                                   .device = devices[draw(w, 2)].name,
                                   .shared = once_in(w, 2),
                                   .memory = (int64_t)draw(w, 9) - 1};
    struct cache_event claim = {
        .type = CACHE_CLAIM_SET,
        .claim = {.uid = ONE_OF(w, uids), .results = &held, .n_results = once_in(w, 3) ? 0 : 1}};
    struct cache_event slice = {.type = once_in(w, 6) ? CACHE_SLICE_GONE : CACHE_SLICE_SET,
                                .slice = {.name = node,
                                          .driver = STR("g"),
                                          .pool = node,
                                          .node = node,
                                          .devices = devices,
                                          .n_devices = 2}};
    struct cache_event class = {.type = once_in(w, 2) ? CACHE_CLASS_GONE : CACHE_CLASS_SET,
                                .class = {STR("k"), GPUSHARE_RESOURCE_EXCLUSIVE}};
    uint32_t dice = draw(w, 10);
    apply(w, "dra", dice < 5 ? &claim : dice < 9 ? &slice : &class);
}

/* Part of a lesson, or a whole one. */
static inline void event_lesson(struct world *w)
{
    struct learned_costs *p = &w->cache->learned;
    unsigned steps = once_in(w, 4) ? draw(w, 20) : UINT32_MAX;
    (void)snprintf(w->what, sizeof(w->what), "lesson");
    if (p->market.solve == NULL && !learned_costs_begin(p, &w->cache->nodes))
        return;
    while (steps > 0 && learned_costs_step(p))
        steps--;
}

static inline void world_step(struct world *w)
{
    uint32_t dice = draw(w, 100);
    if (dice < 25)
        event_pod(w, CACHE_POD_SET);
    else if (dice < 28)
        event_pod(w, CACHE_POD_READ);
    else if (dice < 35)
        event_pod_gone(w);
    else if (dice < 58)
        event_reserve(w);
    else if (dice < 70)
        event_holder(w);
    else if (dice < 74)
        event_keep(w);
    else if (dice < 77)
        event_list(w);
    else if (dice < 86)
        event_node(w);
    else if (dice < 88)
        event_node_gone(w);
    else if (dice < 90)
        event_dra(w);
    else if (dice < 92)
        event_health(w);
    else if (dice < 98)
        event_quota(w);
    else
        event_lesson(w);
}

static inline void world_open(struct world *w, struct cache *cache, uint64_t seed)
{
    *w = (struct world){.cache = cache, .random = seed, .seed = seed};

    static const enum policy policies[] = {POLICY_BINPACK, POLICY_SPREAD, POLICY_FGD,
                                           POLICY_BID_PRICE};

    cache_init(w->cache, (struct map_seed){seed, 0});
    w->cache->settings.node_policy = policies[draw(w, COUNT_OF(policies))];
    w->cache->settings.card_policy = policies[draw(w, 2)];
    w->cache->settings.shrink = once_in(w, 2);
    w->cache->settings.swap_guard = (enum swap_guard)draw(w, 3);
    for (uint32_t i = 0; i < W_SHAPES; i++)
        make_pod(w, &w->shapes[i], "shape", w_spaces[i % COUNT_OF(w_spaces)]);
    for (uint32_t i = 0; i < W_NODES; i++)
        event_node(w);
}
