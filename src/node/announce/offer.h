/* From the cards that the watch of the GPUs sees: what is announced of them, and what the kubelet
 * is offered. Pure. */
#pragma once

#include "gpu/gpu_list.h"
#include "node/announce/announce_write.h"
#include "node/kubelet/devices.h"
#include "node/settings.h"

struct offer {
    struct card_offer items[LIMIT_GPU_CARDS]; /* by index */
    size_t n;
};

/* Whole units of a card of this size, without what is held back. */
int64_t offer_units(uint64_t memory_bytes, const struct settings *s);

/* Whether the setting `cards` has this card. */
bool offer_has(const struct gpu_card *c, const struct settings *s);

/* The cards that the setting has; room for n in ret. Returns how many. Views are borrowed.
 */
size_t offer_select(const struct gpu_card *cards, size_t n, const struct settings *s,
                    struct announce_card *ret);

/*
 * The offer for these cards. A card that was offered as healthy stays so until has_written says
 * that the kubelet may know. Returns whether the offer has changed.
 */
bool offer_update(struct offer *o, const struct announce_card *cards, size_t n,
                  bool (*has_written)(void *ctx, uint32_t index), void *ctx);
