/* A cache with quotas under test: limits, nodes with a pool and a model, pods that ask for more
 * than memory, and the policy's verdicts. */
#pragma once

#include "cache_rig.h"
#include "core/place/fit.h"

#include <stdio.h>

/* A limit of "ns", the namespace of all pods here; -1: no limit. */
static inline struct quota_limit limit_of(enum quota_scope scope, const char *name, int64_t mem,
                                          int64_t cards, int64_t compute)
{
    return (struct quota_limit){
        .scope = scope, .name = str_of(name), .most = {mem, cards, compute}};
}

static inline enum errc set_limits(struct rig *r, const struct quota_limit *limits, size_t n)
{
    struct quota_entry entry = {.namespace = STR("ns"), .limits = limits, .n_limits = n};
    struct cache_event e = {.type = CACHE_QUOTA_SET, .quota = {&entry, 1}};
    return rig_apply(r, &e);
}

/* A node with two cards of `size`; two models come from a table. */
static inline void shop_set(struct rig *r, const char *name, int64_t size, const char *pool,
                            const char *model, const char *other)
{
    char total[32];
    (void)snprintf(total, sizeof(total), "%lld", (long long)size * 2);
    struct card_view cards[] = {
        {.index = 0, .mem = size, .numa = -1, .model = str_of(model)},
        {.index = 1, .mem = size, .numa = -1, .model = str_of(other)},
    };
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = str_of(name),
                                     .mem = str_of(total),
                                     .count = STR("2"),
                                     .exclusive = STR("4"),
                                     .pool = str_of(pool),
                                     .model = str_of(model),
                                     .has_cards = other != NULL,
                                     .cards = cards,
                                     .n_cards = other == NULL ? 0 : 2}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

/* Fields of a pod that `shown` lacks. */
struct asks {
    const char *mem;
    const char *cores;
    const char *exclusive;
    const char *count;
    const char *percent;
    const char *whole;
    const char *model;
    const char *more; /* memory of the second container */
};

static inline void view_of(const struct asks *a, struct container_view containers[static 2],
                           struct pod_view *ret)
{
    containers[0] = (struct container_view){.name = STR("c"),
                                            .mem = str_of(a->mem),
                                            .cores = str_of(a->cores),
                                            .exclusive = str_of(a->exclusive)};
    containers[1] = (struct container_view){.name = STR("d"), .mem = str_of(a->more), .index = 1};
    ret->namespace = STR("ns");
    ret->count_label = str_of(a->count);
    ret->percent = str_of(a->percent);
    ret->whole_label = str_of(a->whole);
    ret->card_model = str_of(a->model);
    ret->containers = containers;
    ret->n_containers = a->more == NULL ? 1 : 2;
    ret->n_mains = 2;
}

static inline void bound(struct rig *r, const char *uid, const char *node, const char *idx,
                         struct asks a)
{
    struct container_view containers[2];
    struct cache_event e = {.type = CACHE_POD_SET};
    view_of(&a, containers, &e.pod);
    e.pod.uid = e.pod.name = str_of(uid);
    e.pod.node = str_of(node);
    e.pod.phase = STR("Running");
    e.pod.idx = str_of(idx);
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

/* Reads the request. Returns its evaluation. */
static inline struct evaluation ask(const struct rig *r, struct asks a, struct request *ret)
{
    struct evaluation evaluation;
    struct container_view containers[2];
    struct pod_view view = {.uid = STR("asked")};
    struct err e = ERR_INIT;
    view_of(&a, containers, &view);
    ck_assert_msg(request_read(&view, ret, &e) == OK, "%s", e.text);
    cache_evaluation(&r->cache, STR("asked"), ret, &evaluation);
    return evaluation;
}

/* The verdict. It must be the same with and without the short way, and with and without the
 * cards. */
static inline enum verdict fit(const struct rig *r, const char *node, struct asks a)
{
    struct request request;
    struct placement there;
    struct placement again;
    struct evaluation evaluation = ask(r, a, &request);
    enum verdict v = fit_node(node_of(r, node), &evaluation);
    ck_assert_int_eq(fit_place(node_of(r, node), &evaluation, &there), v);
    evaluation.fallback = POLICY_SPREAD;
    ck_assert_int_eq(fit_place(node_of(r, node), &evaluation, &again), v);
    return v;
}

/* The quota's reason; "" if the quota is not the reason. */
static inline const char *why(const struct rig *r, const char *node, struct asks a)
{
    static char text[256];
    struct buf to = BUF_ON(text);
    struct quota_refusal refusal;
    struct request request;
    enum verdict v = fit(r, node, a);
    struct evaluation evaluation = ask(r, a, &request);
    if (fit_refusal(node_of(r, node), &evaluation, v, &refusal))
        quota_refusal_write(&refusal, &to);
    buf_putc(&to, '\0');
    return text;
}
