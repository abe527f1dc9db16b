/*
 * The table of a node's cards: annotation cardpack.io/cards, a JSON list with one object for each
 * card.
 *
 *     [{"index": 0, "memory": 16, "model": "NVIDIA A10", "uuid": "GPU-1", "numa": 0},
 *      {"index": 1, "memory": "4", "profile": "1g.5gb", "health": "Unhealthy"}]
 *
 * memory is a number or a quantity, in the unit of the node's gpu-mem. health is a boolean,
 * "Healthy" or "Unhealthy"; without it the card is healthy. pci is the address of the GPU
 * ("0000:3b:00.0"); DRA's devices are joined to cards by uuid, else by pci. A MIG or vGPU slice is
 * a card of its own, with its profile. Unknown keys are ignored.
 */
#pragma once

#include "base/arena.h"
#include "core/request/object_views.h"

/*
 * Fills ret's table from the annotation's text. If the text cannot be read, sets cards_fault, in
 * the arena: "cardpack.io/cards: [1].memory: \"x\" is not a quantity". False only if the arena
 * failed.
 */
bool cards_read(struct str text, struct arena *a, struct node_view *ret) _must_use_;
