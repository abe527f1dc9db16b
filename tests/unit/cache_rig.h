/*
 * A cache under test: a short function for each event, with the invariants asserted after each. The
 * event's effects are in `fx`, its result in `code`.
 */
#pragma once

#include "core/cache/cache.h"
#include "unit.h"

struct rig {
    struct cache cache;
    struct effect fx;
    enum errc code;
    uint64_t now_ns;
};

static inline void rig_init(struct rig *r)
{
    *r = (struct rig){.now_ns = 1000};
    cache_init(&r->cache, (struct map_seed){1, 2});
}

static inline void rig_done(struct rig *r)
{
    cache_done(&r->cache);
}

static inline enum errc rig_apply(struct rig *r, const struct cache_event *e)
{
    r->code = cache_apply(&r->cache, e, r->now_ns, &r->fx);
    cache_check(&r->cache);
    return r->code;
}

/* allocatable NULL: the node has none. */
static inline void node_set(struct rig *r, const char *name, const char *mem, const char *count,
                            const char *allocatable)
{
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = str_of(name),
                                     .mem = str_of(mem),
                                     .count = str_of(count),
                                     .exclusive = STR("0"),
                                     .mem_allocatable = str_of(allocatable)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline void node_gone(struct rig *r, const char *name)
{
    struct cache_event e = {.type = CACHE_NODE_GONE, .node = {.name = str_of(name)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline void health_set(struct rig *r, const char *node, const char *gpus)
{
    struct cache_event e = {.type = CACHE_HEALTH_SET,
                            .health = {.node = str_of(node), .gpus = str_of(gpus)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline void health_gone(struct rig *r, const char *node)
{
    struct cache_event e = {.type = CACHE_HEALTH_GONE, .health = {.node = str_of(node)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

/* A pod as the API server shows it; its other fields follow from these. */
struct shown {
    const char *uid;
    const char *mem;    /* NULL: "8" */
    const char *node;   /* NULL: unbound */
    const char *idx;    /* NULL: no annotation */
    const char *phase;  /* NULL: Pending */
    const char *assume; /* NULL: no annotation */
    const char *assigned;
    const char *app; /* a label; NULL: none */
    uint64_t version;
    bool deleting;
    bool leftovers; /* an allocation and compute of another Binding */
    enum container_kind kind;
};

static inline enum errc pod_event(struct rig *r, enum cache_event_type type, struct shown s)
{
    struct container_view container = {
        .name = STR("c"), .mem = str_of(s.mem == NULL ? "8" : s.mem), .kind = s.kind};
    struct label_view label = {STR("app"), str_of(s.app)};
    struct cache_event e = {.type = type,
                            .pod = {.uid = str_of(s.uid),
                                    .namespace = STR("ns"),
                                    .name = str_of(s.uid),
                                    .version = s.version,
                                    .node = str_of(s.node),
                                    .phase = str_of(s.phase == NULL ? "Pending" : s.phase),
                                    .deleting = s.deleting,
                                    .former = {s.leftovers, s.leftovers, s.leftovers},
                                    .idx = str_of(s.idx),
                                    .assigned = str_of(s.assigned),
                                    .assume_time = str_of(s.assume),
                                    .labels = &label,
                                    .n_labels = s.app == NULL ? 0 : 1,
                                    .containers = &container,
                                    .n_containers = 1}};
    return rig_apply(r, &e);
}

#define pod_set(r, ...) \
    ck_assert_int_eq(pod_event((r), CACHE_POD_SET, (struct shown){__VA_ARGS__}), OK)

static inline void pod_gone(struct rig *r, const char *uid)
{
    ck_assert_int_eq(pod_event(r, CACHE_POD_GONE, (struct shown){.uid = uid}), OK);
}

static inline enum errc reserve(struct rig *r, const char *uid, const char *node, int64_t mem)
{
    struct request request = {.mem = mem,
                              .lasting_mem = mem,
                              .namespace = STR("ns"),
                              .n_demands = 1,
                              .demands = {{.mem = mem, .kind = CONTAINER_MAIN}}};
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = str_of(uid),
                                        .namespace = STR("ns"),
                                        .name = str_of(uid),
                                        .node = str_of(node),
                                        .request = &request}};
    return rig_apply(r, &e);
}

static inline enum errc renew(struct rig *r, const char *uid)
{
    return rig_apply(r, &(struct cache_event){.type = CACHE_RENEW, .holder = {.uid = str_of(uid)}});
}

static inline enum errc confirm(struct rig *r, const char *uid, bool read_back)
{
    struct cache_event e = {.type = CACHE_CONFIRM,
                            .holder = {.uid = str_of(uid), .read_back = read_back}};
    return rig_apply(r, &e);
}

static inline void cancel(struct rig *r, const char *uid)
{
    struct cache_event e = {.type = CACHE_CANCEL, .holder = {.uid = str_of(uid)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline void list_begin(struct rig *r, enum cache_kind kind)
{
    ck_assert_int_eq(rig_apply(r, &(struct cache_event){.type = CACHE_LIST_BEGIN, .list = kind}),
                     OK);
}

static inline void list_end(struct rig *r, enum cache_kind kind)
{
    ck_assert_int_eq(rig_apply(r, &(struct cache_event){.type = CACHE_LIST_END, .list = kind}), OK);
}

static inline const struct node *node_of(const struct rig *r, const char *name)
{
    const struct node *n = cache_node(&r->cache, str_of(name));
    ck_assert_ptr_nonnull(n);
    return n;
}

static inline const struct pod *pod_of(const struct rig *r, const char *uid)
{
    const struct pod *p = cache_pod(&r->cache, str_of(uid));
    ck_assert_ptr_nonnull(p);
    return p;
}

static inline bool pod_known(const struct rig *r, const char *uid)
{
    return cache_pod(&r->cache, str_of(uid)) != NULL;
}

static inline int64_t card_used(const struct rig *r, const char *node, uint32_t card)
{
    const struct node *n = node_of(r, node);
    ck_assert_uint_lt(card, n->n_cards);
    return n->cards[card].used;
}
