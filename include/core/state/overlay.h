/* A copy of a node as it would be with more pods, or without some of its pods, to ask questions
 * about. The node itself does not change, and must outlive its overlay. */
#pragma once

#include "core/limit.h"
#include "core/state/node.h"

struct overlay {
    /* For fit_place and fit_card. No room is kept on it. The derived
     * figures that fit_node uses are still those of the original node. */
    struct node node;
    struct card cards[LIMIT_CARDS];
};

void overlay_init(struct overlay *o, const struct node *n);

/* sign 1: adds these shares; -1: removes them. */
void overlay_charge(struct overlay *o, const struct request *r, const struct share *shares,
                    uint32_t n, int sign);

/* For many overlays at once: `copy` is a copy of a struct node, and its cards are a copy too. Adds
 * p to its pods; p must live as long as the copy. The original node does not change. */
void overlay_add(struct node *copy, struct pod *p);

/* Removes a pod that holds cards of the node. */
void overlay_remove(struct overlay *o, const struct pod *p);
