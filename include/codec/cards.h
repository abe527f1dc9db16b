/*
 * The table of a node's cards: annotation cardpack.io/cards, a JSON list with an object a card.
 *
 *     [{"index": 0, "memory": 16, "model": "NVIDIA A10", "uuid": "GPU-1", "numa": 0},
 *      {"index": 1, "memory": "4", "profile": "1g.5gb", "health": "Unhealthy"}]
 *
 * memory is in the unit of the node's gpu-mem, a number or a quantity. health is a boolean, or
 * "Healthy" or "Unhealthy"; without it a card is healthy. A MIG or vGPU slice is a card of its own,
 * with its profile. Keys that are not known are left alone.
 */
#pragma once

#include "arena.h"
#include "view.h"

/*
 * Fills ret's table from the annotation's text. One that can't be read leaves cards_fault, in the
 * arena: "cardpack.io/cards: [1].memory: \"x\" is not a quantity". False only if the arena failed.
 */
bool cards_read(struct str text, struct arena *a, struct node_view *ret) _must_use_;
