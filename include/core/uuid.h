/*
 * UUIDs of cards in few bytes. A cluster has one for each of its cards, twice with DRA: of the 40
 * bytes of a text as NVIDIA's driver writes it 16 are kept. Any other text is kept as it is, so
 * that a reader always gets the text back as it was.
 */
#pragma once

#include "base/str.h"

/* "GPU-" and 8-4-4-4-12 digits. */
#define UUID_TEXT_N ((size_t)40)
#define UUID_BYTES  ((size_t)16)

enum uuid_kind {
    UUID_NONE, /* absent, or empty */
    UUID_TEXT, /* any other text */
    UUID_GPU,  /* "GPU-" and a UUID of lower case */
    UUID_MIG,
};

/* Room for a text that was kept in UUID_BYTES. */
struct uuid_room {
    char text[UUID_TEXT_N];
};

enum uuid_kind uuid_kind_of(struct str text);

static inline bool uuid_is_short(enum uuid_kind kind)
{
    return kind == UUID_GPU || kind == UUID_MIG;
}

/* The text is of the kind UUID_GPU or UUID_MIG. */
void uuid_pack(struct str text, unsigned char to[static UUID_BYTES]);

/* The text, in `room`. */
struct str uuid_unpack(enum uuid_kind kind, const unsigned char from[static UUID_BYTES],
                       struct uuid_room *room);
