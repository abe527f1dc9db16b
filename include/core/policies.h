/* What the policies that compare costs have learned from the pods seen so far. */
#pragma once

#include "core/fgd.h"
#include "core/market.h"
#include "core/pack.h"

struct policies {
    struct market market;
    struct fgd fgd;
    uint64_t lessons; /* how often fgd has learned */
};

/* Changes whenever a cost can have changed that is not of a change of the node. */
static inline uint64_t policies_lesson(const struct policies *p)
{
    return p->market.solved + p->lessons;
}

void policies_done(struct policies *p);

/* The policy, or binpack if it is one with costs and has not learned enough. p may be NULL: it
 * knows nothing. */
enum pack policies_able(const struct policies *p, enum pack policy);

/* Whether the policy chooses the cards by costs. Then ret, n->n_cards of them, are the costs of the
 * request's first card; less is better. */
bool policies_order(const struct request *r, enum pack policy, const struct node *n, int64_t *ret);

/* Whether so many pods came since the policies learned the latest time that they should again. */
bool policies_are_due(const struct policies *p);

/* Learns from the pods seen so far, for these nodes (struct node by name). policies_step does the
 * work, a tenth of a millisecond each time, until it returns false; the old costs hold until then.
 * False: there is nothing to learn, or no memory. */
bool policies_begin(struct policies *p, const struct map *nodes);
bool policies_step(struct policies *p);
