/* A cache with nodes whose pods the policies learn from. */
#pragma once

#include "core/policy/learned_costs.h"
#include "fit_fixture.h"
#include "seeded.h"

#include <stdio.h>

/* Enough names for the largest cluster of these tests. */
#define NAME_BYTES 16

static inline struct market *market_of(struct rig *r)
{
    return &r->cache.learned.market;
}

/* A node with equal cards. cpu NULL: unknown. model NULL: unknown. */
static inline void add_node(struct rig *r, const char *name, int64_t total, int64_t cards,
                            const char *cpu, const char *model)
{
    char mem[24];
    char count[24];
    (void)snprintf(mem, sizeof(mem), "%lld", (long long)(total * cards));
    (void)snprintf(count, sizeof(count), "%lld", (long long)cards);
    set_node(r, (struct node_view){.name = str_of(name),
                                   .mem = str_of(mem),
                                   .count = str_of(count),
                                   .cpu = str_of(cpu),
                                   .model = str_of(model)});
}

static inline void add_nodes(struct rig *r, char prefix, int n, int64_t total, int64_t cards,
                             const char *cpu, const char *model)
{
    char name[NAME_BYTES];
    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof(name), "%c%d", prefix, i);
        add_node(r, name, total, cards, cpu, model);
    }
}

/* Counts so many pods of one shape. */
static inline void see(struct market *m, struct shape x, int times)
{
    for (int i = 0; i < times; i++)
        shapes_add(&m->shapes, &x);
}

static inline void solve(struct rig *r)
{
    struct learned_costs *p = &r->cache.learned;
    ck_assert(learned_costs_begin(p, &r->cache.nodes));
    while (learned_costs_step(p)) {
    }
    ck_assert_uint_gt(p->market.solved, 0);
}

/* *ret: a request for some memory of each of `cards` cards. Returns its evaluation. */
static inline struct evaluation wants(const struct rig *r, int64_t mem, uint32_t cards, int64_t cpu,
                                      struct request *ret)
{
    struct evaluation evaluation;
    *ret = (struct request){.mem = mem * cards,
                            .lasting_mem = mem * cards,
                            .cards = cards == 1 ? 0 : cards,
                            .namespace = STR("ns"),
                            .host = {.cpu = cpu},
                            .n_demands = 1,
                            .demands = {{.mem = mem * cards, .kind = CONTAINER_MAIN}}};
    cache_evaluation(&r->cache, STR("nobody"), ret, &evaluation);
    return evaluation;
}
