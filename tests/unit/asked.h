/* Pods and nodes as views, each in a line of a table. */
#pragma once

#include "cache_rig.h"
#include "gpushare.h"

/* As STR, for a static table. */
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

/* `mains` of the containers are in spec.containers. */
#define CONTAINERS(mains, ...)                                 \
    .containers = LIST_OF(struct container_view, __VA_ARGS__), \
    .n_containers = LENGTH_OF(struct container_view, __VA_ARGS__), .n_mains = (mains)

/* {container, card, mem}, ... */
#define ALLOCATION(...)                                                        \
    .has_allocation = true, .grants = LIST_OF(struct grant_view, __VA_ARGS__), \
    .n_grants = LENGTH_OF(struct grant_view, __VA_ARGS__)

/* Of namespace ns, pending. */
#define POD(id, ...)                                                   \
    {                                                                  \
        .uid = S(id), .namespace = S("ns"), .name = S(id), __VA_ARGS__ \
    }

/* Of one container that asks for so much memory. */
#define PLAIN(id, q, ...) POD(id, CONTAINERS(1, MAIN(0, q)), __VA_ARGS__)

#define WHOLE .whole_label = S("require-whole-device")

/* A table of these cards. */
#define CARDS(...)                                                      \
    .has_cards = true, .cards = LIST_OF(struct card_view, __VA_ARGS__), \
    .n_cards = LENGTH_OF(struct card_view, __VA_ARGS__)

static inline void set_node(struct rig *r, struct node_view view)
{
    struct event e = {.type = EVENT_NODE_SET, .node = view};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline void set_pod(struct rig *r, struct pod_view view)
{
    struct event e = {.type = EVENT_POD_SET, .pod = view};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

/* What it asks for, which must be readable, and what the cache knows of it. */
static inline struct request asked(const struct rig *r, struct pod_view view)
{
    struct request request;
    struct err e = ERR_INIT;
    ck_assert_ok(request_read(&view, &request, &e), &e);
    cache_resolve(&r->cache, view.uid, &request);
    return request;
}

/* A card is taken for it on node n. */
static inline enum errc take(struct rig *r, struct pod_view view)
{
    struct request request = asked(r, view);
    struct event e = {.type = EVENT_RESERVE,
                      .reserve = {.uid = view.uid,
                                  .namespace = view.namespace,
                                  .name = view.name,
                                  .node = STR("n"),
                                  .request = &request}};
    return rig_apply(r, &e);
}
