/* The objects of DRA in a cache under test: node "n1" with two cards, its slices, claims and
 * classes. */
#pragma once

#include "cache_rig.h"

#include <stdio.h>

#define GIB ((int64_t)1 << 30)

/* A node with two cards of 16, "GPU-a" and "GPU-b". */
static const struct card_view two[] = {
    {.index = 0, .mem = 16, .numa = -1, .uuid = {"GPU-a", 5}, .pci = 0xa},
    {.index = 1, .mem = 16, .numa = -1, .uuid = {"GPU-b", 5}, .pci = 0xb},
};

/* cards: two of them; NULL: the node has no table. */
static inline enum errc table_set(struct rig *r, const struct card_view *cards, const char *given,
                                  const char *label)
{
    char mem[8] = "32";
    if (cards != NULL)
        (void)snprintf(mem, sizeof(mem), "%lld", (long long)(cards[0].mem + cards[1].mem));
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("n1"),
                                     .mem = str_of(mem),
                                     .count = STR("2"),
                                     .exclusive = STR("0"),
                                     .has_renamed = true,
                                     .has_cards = cards != NULL,
                                     .cards = cards,
                                     .n_cards = cards == NULL ? 0 : 2,
                                     .dra_cards = str_of(given),
                                     .dra = str_of(label)}};
    return rig_apply(r, &e);
}

static inline enum errc slice_set(struct rig *r, const char *name, int64_t generation,
                                  struct dra_device_view device)
{
    struct cache_event e = {.type = CACHE_SLICE_SET,
                            .slice = {.name = str_of(name),
                                      .driver = STR("gpu"),
                                      .pool = STR("n1"),
                                      .node = STR("n1"),
                                      .generation = generation,
                                      .devices = &device,
                                      .n_devices = 1}};
    return rig_apply(r, &e);
}

static inline void slice_gone(struct rig *r, const char *name)
{
    struct cache_event e = {.type = CACHE_SLICE_GONE, .slice = {.name = str_of(name)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline enum errc claim_set(struct rig *r, const char *uid, struct dra_result_view x)
{
    x.driver = STR("gpu");
    x.pool = STR("n1");
    struct cache_event e = {
        .type = CACHE_CLAIM_SET,
        .claim = {.uid = str_of(uid), .results = &x, .n_results = x.device.n > 0 ? 1 : 0}};
    return rig_apply(r, &e);
}

static inline void claim_gone(struct rig *r, const char *uid)
{
    struct cache_event e = {.type = CACHE_CLAIM_GONE, .claim = {.uid = str_of(uid)}};
    ck_assert_int_eq(rig_apply(r, &e), OK);
}

static inline enum errc class_set(struct rig *r, const char *name, const char *resource)
{
    struct cache_event e = {.type = CACHE_CLASS_SET,
                            .class = {.name = str_of(name), .resource = str_of(resource)}};
    return rig_apply(r, &e);
}

#define NAMED(n, u) ((struct dra_device_view){.name = STR(n), .uuid = STR(u), .memory = 16 * GIB})
#define HOLDS(d)    ((struct dra_result_view){.device = STR(d), .memory = -1})
