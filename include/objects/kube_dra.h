/* Reads the objects of resource.k8s.io/v1: ResourceSlice, ResourceClaim and DeviceClass. */
#pragma once

#include "core/dra/dra.h"
#include "json/jread.h"

/* Devices without anything to join them to a card by are left out, as are those of slices that
 * name no node. An attribute counts with and without a domain: "uuid", "gpu.example.com/uuid". */
void kube_read_slice(struct jread *r, struct arena *a, struct dra_slice_view *ret);

/* The results of its allocation, without those for administrators. */
void kube_read_claim(struct jread *r, struct arena *a, struct dra_claim_view *ret);

void kube_read_class(struct jread *r, struct dra_class_view *ret);
