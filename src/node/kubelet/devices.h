/*
 * The devices that the kubelet counts: each stands for one unit of memory of a card. Their IDs are
 * `<card>.<n>`, both in base 36, so that a list of 100,000 devices fits in one message, and an ID
 * says which card it is of.
 */
#pragma once

#include "kubelet/device_plugin.h"

#define DEVICE_ID_BYTES 16 /* two numbers of 7 digits, a point, a NUL */

struct device_unit {
    int64_t bytes; /* memory that a device stands for; positive */
};

/* What the kubelet gets of one card. */
struct card_offer {
    uint32_t index;
    int64_t units;
    bool healthy;
    int32_t numa; /* -1: none */
};

/* The n of a card's devices begin at 0. */
void device_id(char ret[DEVICE_ID_BYTES], uint32_t card, uint32_t n);

/* False: not an ID that device_id makes. */
bool device_parse(struct str id, uint32_t *ret_card, uint32_t *ret_n);

/* Whole units of a card with so much memory, of which `reserve` is held back; 0 if it has less. */
int64_t devices_units(struct device_unit unit, int64_t bytes, int64_t reserve);

/* ERR_LIMIT: more than LIMIT_DEVICES; the error says how much larger the unit must be. ERR_RANGE: a
 * card with negative units. */
enum errc devices_check(const struct card_offer *cards, size_t n, struct err *reterr) _must_use_;

/* Appends a ListAndWatchResponse with all devices of cards that devices_check accepts. */
void devices_list(struct buf *out, const struct card_offer *cards, size_t n);

/* So many devices of this card. */
struct device_wish {
    uint32_t card;
    int64_t units;
};

/*
 * The devices for a container that shall have these wishes, for GetPreferredAllocation: those that
 * it must include, then available ones of the wished cards. They are fewer than wished if a card
 * has too few; then the kubelet takes others. IDs are views of the request's; the array is in the
 * arena. No card twice in the wishes. ERR_NOMEM, ERR_LIMIT.
 */
enum errc devices_prefer(const struct preferred_container *c, const struct device_wish *wishes,
                         size_t n, struct arena *a, struct allocate_container *ret) _must_use_;
