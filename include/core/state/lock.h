/*
 * The lock of a node (dialect_facts.lock) as the watch shows it. Between the Binding and the
 * plugin's acknowledgement a pod waits on the node, and no other gets it anyway: see swap.h. This
 * is for the lock that stays longer, or that another scheduler has set:
 *
 *   - it counts for LOCK_EXPIRES_S, as for the schedulers of HAMi and Volcano;
 *   - if it names a pod, that pod must be on the node. A bind also waits for a pod that is still
 *     pending, for LOCK_BINDS_S: a scheduler sets the lock directly before the Binding. Filter does
 *     not: that pod may be the one that it judges, made again under its old name;
 *   - one that can't be read, or has a time in the future, is not obeyed: it would never end.
 */
#pragma once

#include "core/request/object_views.h"

#define LOCK_EXPIRES_S 300U
#define LOCK_BINDS_S   30U

/* The plugin removes the lock so long after the acknowledgement. A pod that is refused meanwhile
 * would be tried again much later. */
#define LOCK_GRACE_S 2U

static inline bool lock_is_odd(const struct lock_view *l, uint64_t now_s)
{
    return l->text.p != NULL && (l->since_s == 0 || l->since_s > now_s + LOCK_EXPIRES_S);
}

static inline bool lock_is_fresh(const struct lock_view *l, uint64_t now_s)
{
    return l->text.p != NULL && !lock_is_odd(l, now_s) &&
           now_s <= (uint64_t)l->since_s + LOCK_EXPIRES_S;
}
