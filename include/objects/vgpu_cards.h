/*
 * The table of a node's cards that a device plugin of HAMi's family writes to its node, in one of
 * two forms:
 *
 *     [{"id":"GPU-a","index":1,"count":10,"devmem":16384,"type":"NVIDIA-A10","health":true}]
 *     GPU-a,10,16384,NVIDIA-A10,true,hami-core:
 *
 * The first is HAMi's. The second is that of Volcano's plugin; older versions of HAMi wrote it with
 * further fields: ID, count, memory, cores, type, NUMA node, health, index, mode. `count` is how
 * many pods a card can have. A card in the mode "mig" counts as unhealthy: its parts are given out
 * by rules of their own.
 */
#pragma once

#include "base/arena.h"
#include "core/request/object_views.h"

/* Reads `cordon` of *ret. Sets has_cards, cards and n_cards, or cards_fault, a sentence about the
 * annotation `name`. Views point into the text or the arena. False: no memory. */
bool vgpu_cards_read(struct str text, struct str name, struct arena *a, struct capacity_view *ret);
