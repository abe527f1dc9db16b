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
