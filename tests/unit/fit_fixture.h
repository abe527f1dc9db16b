/* A node with pods on it, and a pod that asks for room: rows of tables for policy tests. */
#pragma once

#include "asked.h"
#include "core/place/fit.h"

enum {
    FIXTURE_PODS = 4,
    FIXTURE_CARDS = 4
};

#define NODE(...)                   \
    {                               \
        .name = S("n"), __VA_ARGS__ \
    }
/* Nodes with 2 or 4 cards of 16. */
#define TWO_CARDS  NODE(.mem = S("32"), .count = S("2"), .exclusive = S("0"))
#define FOUR_CARDS NODE(.mem = S("64"), .count = S("4"), .exclusive = S("0"))

#define NO_NODE       \
    {                 \
        .name = S("") \
    }
#define NO_POD       \
    {                \
        .uid = S("") \
    }

/* A pod that runs on node n, on this card. */
#define AT(card)  .node = S("n"), .idx = S(#card), .phase = S("Running")
#define HELD(...) .node = S("n"), .phase = S("Running"), ALLOCATION(__VA_ARGS__)

static inline void fit_fixture_open(struct rig *r, const struct node_view *node,
                                    const struct pod_view *pods, enum policy fallback)
{
    rig_init(r);
    r->cache.settings.card_policy = fallback;
    if (node->name.n > 0)
        set_node(r, *node);
    for (size_t i = 0; i < FIXTURE_PODS && pods[i].uid.n > 0; i++)
        set_pod(r, pods[i]);
}

/* The verdict of fit, which must equal the verdict of place. */
static inline enum verdict fit_fixture_evaluate(const struct rig *r, const struct pod_view *pod,
                                                struct placement *ret)
{
    struct request request;
    struct evaluation evaluation = asked(r, *pod, &request);
    const struct node *n = cache_node(&r->cache, STR("n"));
    enum verdict v = fit_node(n, &evaluation);
    ck_assert_int_eq(fit_place(n, &evaluation, ret), v);
    return v;
}
