/*
 * Quotas of namespaces: the ConfigMap, which changes at random, and usage counted from the API
 * server's objects (docs/quota.md). The model has only limits on totals, and shares no sums with
 * cardpack.
 */
#pragma once

#include "oracle.h"
#include "slices.h"

/* Usage by kind, in the order of struct limits_object: the least and the most it can be. */
struct uses {
    int64_t least[LIMITED_KINDS];
    int64_t most[LIMITED_KINDS];
};

/* Writes another quota ConfigMap, or deletes it. */
void quotas_change(void);

/* The highest limits that a process may believe this pod's namespace has. */
void quotas_believed(const struct proc *p, const struct pod_object *of, int64_t ret[LIMITED_KINDS]);

/* After a Binding of cardpack to a pod of this namespace: usage within the limits of the last
 * decision. */
void quotas_check(const struct name *ns);

/* At rest: whether the namespace's quota has room for the pod. */
enum fits quotas_fits(const struct pod_object *p);

/* `"quota.yaml":"..."`. */
void quotas_render(struct text *t, const struct health_object *h);
