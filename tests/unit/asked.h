/* Macros that write a pod or node view in one line of a table. */
#pragma once

#include "cache_rig.h"
#include "core/dialect/gpushare.h"

/* STR for static initializers. */
#define S(lit)               \
    {                        \
        lit, sizeof(lit) - 1 \
    }

#define MAIN_CORES(at, q, share)                                                                  \
    {                                                                                             \
        .name = S("m" #at), .mem = S(q), .cores = S(share), .index = (at), .kind = CONTAINER_MAIN \
    }
#define MAIN(at, q)                                                            \
    {                                                                          \
        .name = S("m" #at), .mem = S(q), .index = (at), .kind = CONTAINER_MAIN \
    }
#define INIT(at, q)                                                            \
    {                                                                          \
        .name = S("i" #at), .mem = S(q), .index = (at), .kind = CONTAINER_INIT \
    }
#define SIDECAR(at, q)                                                            \
    {                                                                             \
        .name = S("s" #at), .mem = S(q), .index = (at), .kind = CONTAINER_SIDECAR \
    }

#define LIST_OF(type, ...) \
    (const type[])         \
    {                      \
        __VA_ARGS__        \
    }
#define LENGTH_OF(type, ...) (sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

/* The first `mains` containers are those of spec.containers. */
#define CONTAINERS(mains, ...)                                 \
    .containers = LIST_OF(struct container_view, __VA_ARGS__), \
    .n_containers = LENGTH_OF(struct container_view, __VA_ARGS__), .n_mains = (mains)

/* {container, card, mem}, ... */
#define ALLOCATION(...)                                                        \
    .has_allocation = true, .grants = LIST_OF(struct grant_view, __VA_ARGS__), \
    .n_grants = LENGTH_OF(struct grant_view, __VA_ARGS__)

/* A pending pod of namespace ns. */
#define POD(id, ...)                                                   \
    {                                                                  \
        .uid = S(id), .namespace = S("ns"), .name = S(id), __VA_ARGS__ \
    }

/* A pod with one container that asks for this much memory. */
#define PLAIN(id, q, ...) POD(id, CONTAINERS(1, MAIN(0, q)), __VA_ARGS__)

#define WHOLE .whole_label = S("require-whole-device")

/* A node's table with these cards. */
#define CARDS(...)                                                      \
    .has_cards = true, .cards = LIST_OF(struct card_view, __VA_ARGS__), \
    .n_cards = LENGTH_OF(struct card_view, __VA_ARGS__)

static inline void set_node(struct rig *r, struct node_view view)
{
    struct cache_event e = {.type = CACHE_NODE_SET, .node = view};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline void set_pod(struct rig *r, struct pod_view view)
{
    struct cache_event e = {.type = CACHE_POD_SET, .pod = view};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

/* Reads the pod's request, which must be valid. Returns its evaluation. */
static inline struct evaluation asked(const struct rig *r, struct pod_view view,
                                      struct request *ret)
{
    struct evaluation evaluation;
    struct err e = ERR_INIT;
    ck_assert_ok(request_read(&view, ret, &e), &e);
    cache_evaluation(&r->cache, view.uid, ret, &evaluation);
    return evaluation;
}

/* Holds a card of node n for the pod. */
static inline enum errc take(struct rig *r, struct pod_view view)
{
    struct request request;
    (void)asked(r, view, &request);
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = view.uid,
                                        .namespace = view.namespace,
                                        .name = view.name,
                                        .node = STR("n"),
                                        .request = &request}};
    return rig_apply(r, &e);
}
