/*
 * kube-scheduler's preemption request and our answer (ExtenderPreemptionArgs and
 * ExtenderPreemptionResult of k8s.io/kube-scheduler/extender/v1): the victims on each node. Keys
 * are read without regard to case, as in extender.h.
 */
#pragma once

#include "core/request/object_views.h"
#include "json/jread.h"
#include "json/jwrite.h"

/*
 * The victims on one node. The newest schedulers send none for a node where their own filters find
 * no pod to evict.
 */
struct node_victims {
    struct str node;
    struct str *uids; /* none is empty or absent */
    size_t n;
    int64_t num_pdb_violations; /* as kube-scheduler counts them; 1.20 always sends 0 */
};

struct preempt_args {
    struct pod_view pod;
    struct node_victims *nodes; /* sorted by name, without duplicates */
    size_t n;
};

/*
 * Views point into the body or into the arena; the caller may change all arrays. An error names the
 * field.
 */
enum errc extender_preempt_read(struct str body, struct arena *a, struct preempt_args *ret,
                                struct err *reterr) _must_use_;

/*
 * Writes an ExtenderPreemptionResult with these nodes, which replaces the scheduler's proposal. It
 * always contains UIDs, also if the request contained whole pods. A node without victims is left
 * out, because schedulers fail or crash on an empty list.
 */
void extender_preempt_write(struct buf *out, const struct node_victims *nodes, size_t n);
