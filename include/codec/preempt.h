/*
 * The scheduler's question whom to preempt (ExtenderPreemptionArgs and ExtenderPreemptionResult of
 * k8s.io/kube-scheduler/extender/v1): which pods it would evict on which nodes, and our word on it.
 * Keys are read in any case, as in extender.h.
 */
#pragma once

#include "jread.h"
#include "jwrite.h"
#include "view.h"

/* Pods of one node that would have to go. None: the newest schedulers ask like that for nodes where
 * their own filters find nothing to evict. */
struct node_victims {
    struct str node;
    struct str *uids; /* never empty or absent ones */
    size_t n;
    int64_t num_pdb_violations; /* as the scheduler counts them; 1.20 always says 0 */
};

struct preempt_args {
    struct pod_view pod;
    struct node_victims *nodes; /* in the order of their names, none twice */
    size_t n;
};

/*
 * Views point into the body or into the arena, and all arrays are the caller's to change. An error
 * names the field.
 */
enum errc preempt_read(struct str body, struct arena *a, struct preempt_args *ret,
                       struct err *reterr) _must_use_;

/*
 * An ExtenderPreemptionResult of these nodes, which takes the place of what was asked: always in
 * UIDs, whatever the request's form. A node without victims is left out, since schedulers fail or
 * crash on an empty list.
 */
void preempt_write(struct buf *out, const struct node_victims *nodes, size_t n);
