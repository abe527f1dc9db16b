/*
 * The lists of devices by which pods of HAMi's family name their cards:
 *
 *     GPU-a,NVIDIA,1024,30:GPU-b,NVIDIA,1024,30:;GPU-c,NVIDIA,2048,0:
 *
 * For each card its UUID, the word NVIDIA, memory and compute, closed by a colon; between the
 * containers a semicolon. The plugin gives the container what the list says, so the list counts
 * where it says more than the pod's spec. The same pod has the same list wherever its cards are in
 * the node's table, so the cache keeps the list and looks the indices up again when the table
 * changes.
 */
#pragma once

#include "core/state/node.h"

/* One grant for each card of the pod's list: for its container if several have cards, else for the
 * pod as a whole. Its card is INT32_MAX, which no node has: see vgpu_locate. Memory that can't be
 * read counts as the pod's whole request, and compute as all of the card. */
void vgpu_read(const struct pod_view *pod, const struct request *r, struct placement *ret);

/* Sets the card of each of the list's grants, as vgpu_read returned them: INT32_MAX where the table
 * has no such UUID. A container's percentage of a larger card raises its grant. */
void vgpu_locate(struct str list, const struct request *r, const struct node *on,
                 struct grant *grants, uint32_t n);

/* Whether the list, as vgpu_write wrote it, gives a container less than its percentage of a card of
 * the node: the card has grown since. */
bool vgpu_falls_short(struct str list, const struct request *r, const struct node *on);

/* Writes the cards of the containers that have any, with a semicolon between two of them. The node
 * has these cards. */
void vgpu_write(const struct grant *grants, uint32_t n, const struct node *on, struct buf *out);

/* Puts each part of such a list at its container's place in the pod's list. view: of the pod that
 * asks for r. */
void vgpu_write_pod(struct str list, const struct request *r, const struct pod_view *view,
                    struct buf *out);

/* The list without empty containers at its ends. */
struct str vgpu_trim(struct str list);
