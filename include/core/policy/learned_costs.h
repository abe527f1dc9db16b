/* What the policies that compare costs have learned from the pods seen so far. */
#pragma once

#include "core/policy/fgd.h"
#include "core/policy/market.h"
#include "core/request/policy.h"

struct learned_costs {
    struct market market;
    struct fgd fgd;
    uint64_t lessons; /* how often fgd has learned */
};

/* Changes whenever a cost can have changed that is not of a change of the node. */
static inline uint64_t learned_costs_lesson(const struct learned_costs *p)
{
    return p->market.solved + p->lessons;
}

void learned_costs_done(struct learned_costs *p);

/* The policy, or binpack if it is one with costs and has not learned enough. p may be NULL: it
 * knows nothing. */
enum policy learned_costs_able(const struct learned_costs *p, enum policy policy);

/* Whether the policy chooses the cards by costs. Then ret, n->n_cards of them, are the costs of the
 * request's first card; less is better. */
bool learned_costs_order(const struct evaluation *e, enum policy policy, const struct node *n,
                         int64_t *ret);

/* Whether so many pods came since the policies learned the latest time that they should again. */
bool learned_costs_are_due(const struct learned_costs *p);

/* Learns from the pods seen so far, for these nodes (struct node by name). learned_costs_step does
 * the work, a tenth of a millisecond each time, until it returns false; the old costs hold until
 * then. False: there is nothing to learn, or no memory. */
bool learned_costs_begin(struct learned_costs *p, const struct map *nodes);
bool learned_costs_step(struct learned_costs *p);
