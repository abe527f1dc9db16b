/*
 * The annotations of a dialect that has one for each container (dialect_facts.seat):
 *
 *     elasticgpu.io/container-NAME         "1", or "0,2" for whole cards
 *     tencent.com/predicate-gpu-idx-N      the same; N is the index in spec.containers
 */
#pragma once

#include "base/buf.h"
#include "core/state/pod_allocation.h"
#include "objects/kube.h"

/*
 * The annotations for the cards that h gives to the containers of r, which shares cards. Their
 * texts are appended to out, which must not grow as long as they are used. pod: for the names of
 * the containers, used by elastic-gpu's dialect alone. Returns how many there are; 0: no memory.
 */
uint32_t seats_write(const struct pod_allocation *h, const struct request *r,
                     const struct pod_view *pod, struct buf *out,
                     struct binding_seat ret[static REQUEST_DEMANDS_MAX]);

/* Whether the pod has all of these annotations, with the same cards. */
bool seats_are_there(const struct pod_view *pod, enum dialect dialect,
                     const struct binding_seat *seats, size_t n);
