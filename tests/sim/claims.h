/*
 * Dynamic Resource Allocation in the simulation: a driver that publishes ResourceSlices, the
 * allocator of kube-scheduler, which knows nothing of cardpack's pods, DeviceClasses that serve
 * nvidia.com/gpu, and the oracle's rules for the devices that claims hold (docs/dra.md).
 *
 * Without a partition the allocator takes any card, also one that pods share. Then cardpack is at
 * fault only if it gives a pod a card that it surely knew to be held: the process had been told of
 * the allocation, and of a slice with the device, before it decided. With a partition, no card may
 * ever be held by a claim and by a pod that cardpack placed.
 */
#pragma once

#include "api/store.h"
#include "sim.h"

struct proc;

#define LENT_WHOLE INT64_MAX

/* Allowed blocks of memory for what a process knows of slices and claims, and for its lists. */
#define CLAIMS_BLOCKS (8 * (MAX_SLICES + MAX_CLAIMS) + 64)

/* ---- the actors: claims.c ---- */

void claims_begin(void);                 /* the driver publishes; perhaps there is a class */
void claims_part(struct node_object *n); /* the administrator gives cards to DRA */
void claims_give(struct node_object *n); /* the same at any time; not with a partition */
void claims_act(void); /* one action of the driver or of the allocator; perhaps a class changes */
void claims_settle(void); /* the driver publishes all devices */

/* Draws the PCI address of a card in a node's table. */
void claims_name_card(const struct node_object *n, struct card_object *c);

/* What the driver knows of a device; it never changes. */
struct device_object claims_device(unsigned node, uint8_t card, bool mig);

/* Whether a claim uses the card, whatever its node's table says. With adminAccess it does not. */
bool claims_use(unsigned node, int64_t card);

/* ---- the oracle's part: taken.c ---- */

void claims_reset(void);
void claims_forget(unsigned proc); /* the process starts without any knowledge */
void claims_changed(const struct change *c);
/* With a partition, no claim and pod of cardpack's have the same card. */
void claims_check_partition(void);
void claims_learn(const struct proc *p); /* called after each turn */

/* Whether DRA serves nvidia.com/gpu on this version of a node: by all classes, or perhaps, by what
 * p may believe of them. */
bool claims_serve(const struct node_object *n);
bool claims_may_serve(const struct proc *p, const struct node_object *n);

/* What claims hold of the card of `n`, which is a version of store.nodes[node]: all claims, or
 * those that p surely knows. In the node's unit, or LENT_WHOLE. */
int64_t claims_lend(const struct proc *p, const struct node_object *n, unsigned node, int64_t card);
