/*
 * The reasons of filter's refusals, with figures: what the pod asks for, and what the nodes that
 * refuse it for this reason have. One text for all of them: kube-scheduler counts equal reasons,
 * and an event has only 1024 bytes for the reasons of all nodes. So every figure is the best of any
 * of these nodes, or their sum.
 */
#pragma once

#include "core/place/shortfall.h"
#include "core/request/evaluation.h"

/* No reason is longer, in bytes, however long the annotation that it quotes. */
#define SHORTFALL_WRITE_BYTES ((size_t)400)

/*
 * Appends the reason for v, the sentence of verdict_reason with figures: "Insufficient GPU Memory
 * in one device: asks 12, largest free 10, largest card 16". Where the sentence names the node,
 * without the name. sums: by verdict; NULL: no figures. Quotas and BAD_REQUEST have texts of their
 * own.
 */
void shortfall_write(struct buf *out, enum verdict v, const struct evaluation *e,
                     const struct shortfall *sums);

/* The sentence of each verdict about all cards with room, where the pod asks for several and some
 * of them are free, but not enough. */
#define SHORTFALL_FEW "Too few GPU devices of the node are free"

/* fit: how many are free. */
bool shortfall_is_of_few(enum verdict v, const struct request *r, uint32_t fit);
