/* One random history of test_cache_model.c: its state, its events and what the policies learn. */
#pragma once

#include "cache_model_host.h"
#include "fail_alloc.h"
#include "node_digest.h"
#include "seeded.h"

#include <stdio.h>

struct trial {
    struct cache cache;
    struct model model;
    uint64_t random;
    uint64_t now_ns;
    uint64_t given_ns[M_NODES]; /* the last ASSUME_TIME */
    struct node_digest digests[M_NODES];
    unsigned same_versions; /* how many events did not change a node's version */
    bool limited;           /* namespaces have quotas, and nodes no tables */
    enum policy policy;
    unsigned lessons; /* that ended with prices */
    unsigned refused[VERDICT_COUNT];
    char what[160]; /* the event, for the failure message */
    uint64_t seed;
    unsigned step;
    enum errc code;
    struct effect fx;
};

/* Not ck_assert: it sends a message to the parent process even when it holds. */
#define trial_assert(t, condition)                                                               \
    do {                                                                                         \
        if (!(condition))                                                                        \
            ck_abort_msg("seed %llu step %u (%s): %s", (unsigned long long)(t)->seed, (t)->step, \
                         (t)->what, #condition);                                                 \
    } while (0)

static inline uint32_t draw(struct trial *t, uint32_t below)
{
    return seeded_draw(&t->random, below);
}

static inline bool chance(struct trial *t, uint32_t percent)
{
    return draw(t, 100) < percent;
}

static const char *const node_names[M_NODES] = {"n0", "n1", "n2"};
static const char *const pod_uids[M_PODS] = {"u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"};

/* In an entry the last name means all other namespaces; among pods it is a namespace of its own. */
static const char *const space_names[M_SPACES] = {"a", "b", "c"};
static const char *const entry_names[M_SPACES] = {"a", "b", "*"};
static const char *const pool_names[] = {NULL, "gold", "silver"};
static const char *const model_names[] = {NULL, "T4", "A100"};

/* Whether the event took effect; after ERR_NOMEM the state must be unchanged. */
static inline bool apply(struct trial *t, const struct cache_event *e)
{
    if (chance(t, 10))
        fail_alloc_arm(draw(t, 2) == 0 ? FAIL_ONCE : FAIL_FROM_THEN_ON, draw(t, 3) + 1);
    t->code = cache_apply(&t->cache, e, t->now_ns, &t->fx);
    fail_alloc_disarm();
    cache_check(&t->cache);
    if (t->code == ERR_NOMEM)
        trial_assert(t, fail_alloc_hit() || e->type == CACHE_LIST_END);
    return t->code != ERR_NOMEM;
}

static inline void lose(struct trial *t, enum cache_kind kind)
{
    t->model.torn[kind] = true;
}

/* A number as the API writes it; -1: absent, -2: not a quantity. */
static inline struct str number_text(char *to, size_t size, int64_t value)
{
    if (value == -1)
        return STR_NULL;
    int n = snprintf(to, size, "%lld", (long long)value);
    return value == -2 ? STR("none") : (struct str){to, (size_t)n};
}

/* A little at a time, beside the events. */
static inline void learn(struct trial *t)
{
    struct learned_costs *p = &t->cache.learned;
    uint64_t solved = p->market.solved;
    if (!chance(t, 25))
        return;
    if (chance(t, 10))
        fail_alloc_arm(draw(t, 2) == 0 ? FAIL_ONCE : FAIL_FROM_THEN_ON, draw(t, 8) + 1);
    if (p->market.solve == NULL && chance(t, 20))
        (void)learned_costs_begin(p, &t->cache.nodes);
    for (uint32_t steps = draw(t, 80); steps > 0 && learned_costs_step(p);)
        steps--;
    fail_alloc_disarm();
    t->lessons += p->market.solved > solved ? 1 : 0;
}
