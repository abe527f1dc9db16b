/* Pods and nodes of every kind that there is in this world, by chance. */
#pragma once

#include "slices.h"

static inline bool kind(enum kind k)
{
    return world.set.kinds[k];
}

/* One that nobody has placed yet. */
struct pod_object pod_some(const struct name *ns, const struct name *name);

/* Somebody writes which container has which card: what its spec asks for, or anything. */
void pod_allocate(struct pod_object *p);

/* How many cards, and how large. */
void node_size(struct node_object *n);

/* What becomes of it. */
void node_change(struct node_object *n);
