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

/* What DRA has of the cluster's cards. Where it has some, each node has a table of its cards, and a
 * ResourceSlice with all of them. */
enum claims {
    CLAIMS_NONE,
    CLAIMS_SOME, /* on each node a claim holds one card, and another one half of a card */
    CLAIMS_HALF, /* of every other node all cards; and a DeviceClass serves nvidia.com/gpu */
    CLAIMS_COUNT,
};

/*
 * The same cluster for all kinds of requests: the cards have a model, every other node's pod holds
 * 8 GiB of every card, and the pods are in the anti-affinity group group-0. The namespace `limited`
 * has a quota that no request reaches, `spent` one that each request exceeds.
 */
void cluster_write_of_kinds(struct buf *out, size_t nodes, enum claims claims);

/* What the pod has beside the amount: JSON that begins with a comma, or "". */
struct pod_kind {
    const char *resource; /* of which it requests the amount */
    const char *namespace;
    const char *labels; /* members of its labels */
    const char *more;   /* members of its metadata */
};

void args_write_of_kind(struct buf *out, size_t nodes, const struct pod_kind *kind, unsigned mem,
                        bool by_name);
