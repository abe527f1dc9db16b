/*
 * What kube-scheduler 1.36.3 sends, byte for byte but for the numbers in it, and a cluster for it:
 * nodes of 8 cards with 16 GiB each, and on each node one pod that holds 4 GiB of every card.
 */
#pragma once

#include "buf.h"

/* The cluster file: a List as JSON. */
void cluster_write(struct buf *out, size_t nodes);

/*
 * ExtenderArgs with the names of all nodes (by_name), in an order that is not the file's, or with
 * the nodes themselves. A pod of 4 GiB fits on each of them, and one of 14 on none.
 */
void args_write(struct buf *out, size_t nodes, unsigned mem, bool by_name);
