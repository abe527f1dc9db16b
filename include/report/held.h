/*
 * What the pods of a node hold on each of its cards, for the reports that list it: inspect, cards
 * and the page. The node's pods are read once, not once for each card.
 */
#pragma once

#include "core/limit.h"
#include "core/state/measured.h"
#include "core/state/node.h"

struct held {
    const struct pod *pod;
    int64_t mem; /* as node_charge_of; without a valid card: what the pod asks for */
    uint32_t cores;
    bool known;        /* used_mib and exceeds were measured */
    uint32_t used_mib; /* what the pod really uses of the card */
    bool exceeds;      /* that is more than its share: see measured_exceeds */
};

struct held_slot {
    const struct pod *pod;
    const struct share *share; /* NULL: it has none */
};

struct held_walk {
    const struct node *node;
    const struct measured *all;
    const struct measured_node *measured; /* NULL: unknown, or not asked for */
    struct held_slot *slots;              /* by card; owned */
    uint32_t ends[LIMIT_CARDS + 1];       /* where the slots of each card end; of none: the last */
    uint32_t next;                        /* the next slot */
};

/* False: no memory, and there is nothing to end. The node must not change before held_end. */
bool held_begin(struct held_walk *w, const struct node *n, const struct measured *m) _must_use_;
void held_end(struct held_walk *w);

/* False: the card has no more. Ask for the cards in ascending order, and then for -1: what is
 * charged to no card that the node has. A pod is returned once for each share that it has of the
 * card. */
bool held_next(struct held_walk *w, int64_t card, struct held *ret) _must_use_;
