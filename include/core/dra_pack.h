/*
 * A device of a ResourceSlice in few bytes. A cluster has a device for each of its cards, and
 * claims hold some of them: so the facts are packed as long as no claim asks for them. A UUID as
 * NVIDIA's driver writes it takes 17 bytes of the 40 of its text.
 */
#pragma once

#include "core/dra.h"

/* The bytes that dra_pack writes. Of a UUID it keeps DRA_PACK_TEXT_MAX bytes: no card has a longer
 * one, and the API server allows 64. */
#define DRA_PACK_TEXT_MAX ((size_t)255)
size_t dra_pack_size(const struct dra_device_view *v);

/* Writes the record; returns the end of it. */
unsigned char *dra_pack(unsigned char *at, const struct dra_device_view *v);

/* Of a record: its name, the record after it, and its facts. */
struct str dra_pack_name(const unsigned char *record);
const unsigned char *dra_pack_next(const unsigned char *record);
void dra_unpack(const unsigned char *record, struct dra_facts *ret);
