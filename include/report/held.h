/*
 * What the pods of a node hold on one of its cards, for the reports that list it: inspect, cards
 * and the page.
 */
#pragma once

#include "core/measured.h"
#include "core/node.h"

struct held {
    const struct pod *pod;
    int64_t mem; /* as node_charge_of; without a valid card: what the pod asks for */
    uint32_t cores;
    bool known;        /* used_mib and exceeds were measured */
    uint32_t used_mib; /* what the pod really uses of the card */
    bool exceeds;      /* that is more than its share: see measured_exceeds */
};

/* Where a list of them is. Set the first four fields, and the others to 0. */
struct held_walk {
    const struct node *node;
    int64_t card; /* -1: what is charged to no card that the node has */
    const struct measured *all;
    const struct measured_node *measured; /* NULL: unknown, or not asked for */
    const struct pod *pod;                /* the last one that was returned */
    uint32_t next;                        /* its next share */
};

/* False: there are no more. A pod is returned once for each share that it has of the card. */
bool held_next(struct held_walk *w, struct held *ret) _must_use_;
