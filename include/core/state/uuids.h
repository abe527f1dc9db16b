/*
 * The UUIDs of a node's cards, by index, in one block of bytes that needs no alignment. If all are
 * of one of the kinds that need 16 bytes, the block has one byte more than these; else also the
 * place and the kind of each.
 */
#pragma once

#include "core/uuid.h"

/* The bytes that uuids_pack writes; 0: none of the texts has a character. */
size_t uuids_size(const struct str *texts, uint32_t n);
void uuids_pack(const struct str *texts, uint32_t n, unsigned char *to);

/* The i-th text of a block of n: in `room`, or in the block. */
struct str uuids_get(const unsigned char *block, uint32_t n, uint32_t i, struct uuid_room *room);

/* The first that equals the text; n: none. An empty text equals none. */
uint32_t uuids_find(const unsigned char *block, uint32_t n, struct str text);
