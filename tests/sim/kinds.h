/* Random pods and nodes, of all kinds in the simulation. */
#pragma once

#include "slices.h"

static inline bool kind(enum kind k)
{
    return world.set.kinds[k];
}

/* A pod without a node. */
struct pod_object pod_some(const struct name *ns, const struct name *name);

/* Writes an allocation as something other than cardpack would: what the spec asks for, or random
 * values. */
void pod_allocate(struct pod_object *p);

/* Draws the number of cards and their sizes. */
void node_size(struct node_object *n);

/* The administrator changes a label that quotas depend on. */
void node_label(struct node_object *n);

/* A random change of a node. */
void node_change(struct node_object *n);
