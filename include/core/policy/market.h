/*
 * Prices of the shapes that pods ask for, and what the idle part of a node is worth at these
 * prices: the policy bid-price. A pod goes where the value lost is least: V(node before) - V(node
 * with the pod).
 *
 * Let y_j be the price of shape j in cards, c_j its cores, and lambda the price of a core. A card
 * with r hundredths left is worth v(r) = tau ln Z(r), where Z(r) = 1 + sum over j of
 * exp((y_j - lambda c_j) / tau) Z(r - s_j): a soft maximum over all ways to fill it. k wholly free
 * cards are worth f(k), which adds the shapes of several cards. A node with C idle cores is worth
 *     V = min over lambda of [lambda C + f(k) + sum over its partly used cards of v(r)],
 * the Lagrangian bound of its best filling. The prices are those at which the pods that are
 * expected, by the shares of the shapes seen so far, just fill what is idle.
 *
 * Where pods come and go, a full node is no better than an empty one: what counts is whether room
 * comes together again for a pod of several cards. So the more pods leave (the turnover, 0 to 1:
 * how many pods left for each one that was placed), the more a pod costs on a node with free cards:
 *     turnover x (what the pod takes) x (the node's free cards) / 8,
 * where a pod takes a whole card if it is the first one there, else its share, and a pod without
 * cards a tenth. A small part of the prices is then for an empty cluster. The turnover counts as
 * 0.05 at the least, and as no more if no pod asked for several cards: where nearly equal costs
 * decide, pods go together, because the pods that come may be larger than those that came.
 *
 * And where pods come and go, the nodes are kept that alone, a tenth of all at the most, can hold
 * some shape of several cards, by their model or by their CPU: a pod of fewer cards costs there
 *     turnover x 0.3 x min(1, 10 x the share of wholly free cards) more,
 * so it goes there only if little else is left. In a cluster that is used up that is nothing.
 *
 * Values are whole numbers of millionths of a card, so equal nodes have equal costs, in whichever
 * order their cards are added.
 *
 * A solve takes some ten milliseconds and is cut into steps: market_begin copies the shapes, and
 * market_step does about a tenth of a millisecond of work, at first to count the cards and to copy
 * what is idle. Until it ends the old prices hold. If nodes come or go meanwhile, the solve is
 * given up and is due again at once; if no shape fits on a card that is there, more pods are
 * awaited.
 */
#pragma once

#include "core/policy/shapes.h"
#include "core/state/node.h"

struct map;

/* Values of lambda. A multiple of 4, for the processor's vectors. */
#define MARKET_RATES 20

/* More wholly free cards of one kind on a node are worth as much as these, and each further one as
 * much as one that no pod of several cards can use. */
#define MARKET_FREE_MAX 64

/* Kinds of cards (model and size) with values of their own; all further ones share the last. */
#define MARKET_KINDS 64

/* Longest model with a kind of its own, in bytes; a label's value has at most 63. The cards of a
 * longer one have no kind. */
#define MARKET_MODEL_MAX ((size_t)64)

/* The cost of a node without prices. */
#define MARKET_NO_COST INT64_MAX

/* Millionths of a card. */
struct market_values {
    int32_t part[SHAPE_STEPS + 1][MARKET_RATES]; /* of a card with so many hundredths left */
    int32_t free[MARKET_FREE_MAX + 1][MARKET_RATES];
};

struct market_kind {
    struct str model; /* views the next field */
    char bytes[MARKET_MODEL_MAX];
    int64_t total;
    struct market_values *values; /* borrowed from `owned`; NULL: no price yet */
};

/* Nodes that few others can stand in for: those of at least so many cards and so much CPU. */
struct market_reserved {
    uint32_t cards; /* 0: none are kept */
    int64_t cpu;
};

struct market_solve;

struct market {
    struct shapes shapes;
    struct market_kind kinds[MARKET_KINDS]; /* card.kind is the index plus 1 */
    uint32_t n_kinds;
    struct market_values *owned; /* by class of the latest solve */
    int32_t rates[MARKET_RATES]; /* millionths of a card for a core */
    double core_price;           /* of the pods that ask for no card; in cards */
    double placed;               /* pods that got cards, and that gave them back; see turnover */
    double departed;
    double turnover; /* at the latest solve */
    int32_t drain;   /* millionths of a card */
    int32_t reserve; /* the same: what a pod costs more on the nodes below */
    struct market_reserved reserved[MARKET_KINDS]; /* by kind of their first card */
    uint64_t solved;            /* number of solves so far; 0: there are no prices */
    uint64_t solved_arrivals;   /* shapes.arrivals at the latest one */
    uint64_t interval;          /* arrivals after which its prices are old, at most */
    struct market_solve *solve; /* in progress; owned */
};

void market_done(struct market *m);

/* Sets card.kind of each of the node's cards. Call it after node_resize. The value of a card
 * without a kind counts as 0. */
void market_know(struct market *m, struct node *n);

/* If the table is full: frees the kinds of which no card is left, and the rarest one for a kind of
 * more than twice as many cards, and gives all cards of the nodes (struct node by name) their kinds
 * anew. True: kinds have changed. */
bool market_free_kinds(struct market *m, const struct map *nodes);

/* A pod has got cards and runs; it is gone. */
static inline void market_note_placed(struct market *m)
{
    m->placed++;
}

static inline void market_note_departed(struct market *m)
{
    m->departed++;
}

/* What a pod asks for, prepared for market_cost. Valid as long as the evaluation. */
struct market_ask {
    const struct market *market;
    const struct evaluation *evaluation;
    int64_t cpu;
    uint32_t cards;
    bool whole;
    uint8_t steps[MARKET_KINDS + 1]; /* by card.kind: hundredths of each card; 0: none */
};

void market_ask(const struct market *m, const struct evaluation *e, struct market_ask *ret);

/* Whether the card has room for the pod's part of it. What is free and what is asked for are
 * rounded in opposite directions: a card that seems to have one hundredth too little is compared
 * exactly. */
bool market_has_room(const struct market_ask *ask, const struct card *c);

/* What the node loses with the pod, in millionths of a card; less is better. For a node where the
 * pod fits. MARKET_NO_COST: there are no prices yet, or no card has room. */
int64_t market_cost(const struct market_ask *ask, const struct node *n);

/* ret, n->n_cards of them: what the node loses if the pod takes this card alone. MARKET_NO_COST:
 * the card has no room. */
void market_order(const struct market_ask *ask, const struct node *n, int64_t *ret);

/* What is idle on the node, in millionths of a card; 0 without prices. */
int64_t market_value(const struct market *m, const struct node *n);

/* The number of arrivals with which the prices are old, and whether so many pods came. */
uint64_t market_due(const struct market *m);
bool market_is_due(const struct market *m);

/* Starts a solve for these nodes (struct node by name), which outlive it; ends one that is in
 * progress. False: no memory, or no shape asks for cards; the old prices stay. */
bool market_begin(struct market *m, const struct map *nodes);

/* One step of the solve in progress. True: there is more to do. */
bool market_step(struct market *m);
