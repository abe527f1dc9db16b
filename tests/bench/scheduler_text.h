/*
 * The bytes that kube-scheduler 1.36.3 sends, apart from the numbers in them; and a cluster for it:
 * nodes with 8 cards of 16 GiB, and on each node one pod that holds 4 GiB of every card.
 */
#pragma once

#include "base/buf.h"

/* The cluster file: a List in JSON. */
void cluster_write(struct buf *out, size_t nodes);

/*
 * ExtenderArgs with the names of all nodes (by_name) or with the nodes, not in the file's order. A
 * pod of 4 GiB is feasible on every node, one of 14 GiB on none.
 */
void args_write(struct buf *out, size_t nodes, unsigned mem, bool by_name);

/*
 * The same cluster for all kinds of requests: the cards have a model, every other node's pod holds
 * 8 GiB of every card, and the pods are in the anti-affinity group group-0. The namespace `limited`
 * has a quota that no request reaches, `spent` one that each request exceeds.
 */
void cluster_write_of_kinds(struct buf *out, size_t nodes);

/* What the pod has beside the memory: JSON that begins with a comma, or "". */
struct pod_kind {
    const char *namespace;
    const char *labels; /* members of its labels */
    const char *more;   /* members of its metadata */
};

void args_write_of_kind(struct buf *out, size_t nodes, const struct pod_kind *kind, unsigned mem,
                        bool by_name);
