/*
 * Sums one resource over the containers of a pod as kube-scheduler does
 * (k8s.io/component-helpers/resource): containers and sidecars add up. An init container runs
 * beside the sidecars before it, so the peak is the larger of the sum and the largest "init
 * container + sidecars so far". Without sidecars this is the oldest scheduler rule: max(sum of
 * containers, largest init container).
 */
#pragma once

#include "core/request/object_views.h"

struct tally {
    int64_t sum; /* containers and sidecars: what the pod needs while it runs */
    int64_t sidecars;
    int64_t most; /* an init container with its sidecars */
};

/* Sums are cut at cap, so that no number of containers can overflow them. */
static inline int64_t tally_sum(int64_t a, int64_t b, int64_t cap)
{
    return MIN_OF(a + b, cap);
}

/* value is from 0 to cap. Add init containers and sidecars in the pod's order; containers at any
 * time. */
static inline void tally_add(struct tally *t, int64_t value, enum container_kind kind, int64_t cap)
{
    if (kind == CONTAINER_INIT) {
        t->most = MAX_OF(t->most, tally_sum(t->sidecars, value, cap));
        return;
    }
    t->sum = tally_sum(t->sum, value, cap);
    if (kind == CONTAINER_SIDECAR)
        t->sidecars = tally_sum(t->sidecars, value, cap);
}

static inline int64_t tally_peak(const struct tally *t)
{
    return MAX_OF(t->sum, t->most);
}
