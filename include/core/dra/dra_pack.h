/*
 * The devices of a ResourceSlice in few bytes. A cluster has a device for each of its cards, and
 * claims hold some of them: so the facts are packed as long as no claim asks for them. All but the
 * UUIDs of NVIDIA's driver, 16 bytes each, is a shape: the slices of nodes of one kind share it.
 */
#pragma once

#include "base/intern.h"
#include "core/dra/dra.h"

struct dra_shape;

/* The shape of n devices, with a reference for the caller; NULL: allocation failed. Of a UUID in
 * another form than NVIDIA's driver writes it keeps 255 bytes. */
struct dra_shape *dra_shape_take(struct intern_table *t, const struct dra_device_view *devices,
                                 size_t n);

/* Accepts NULL. */
void dra_shape_give(struct intern_table *t, struct dra_shape *s);

/* The UUIDs that are not in the shape. Returns the end of what it writes. */
size_t dra_pack_uuids_size(const struct dra_device_view *devices, size_t n);
unsigned char *dra_pack_uuids(unsigned char *at, const struct dra_device_view *devices, size_t n);

/* The first device of this name. uuids: what dra_pack_uuids wrote for the slice. Unless NULL,
 * *ret gets its facts, with texts in the shape. */
bool dra_shape_find(const struct dra_shape *s, const unsigned char *uuids, struct str name,
                    uint32_t *ret_index, struct dra_facts *ret);
